"""Variants of a converted model in the image of its stack, each compared, and all of them measured in rounds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from container_tools import ChImage
from test_onnx_convert import THREE, collection, ensemble, image

pytestmark = pytest.mark.slow
__all__ = ["collection", "image"]

LOOSE = {"absolute": 0.1, "relative": 0.1, "share": 0.05}
MADE = {"ort-basic": None, "ort-all": None, "fp16": LOOSE, "int8-dynamic": LOOSE, "int8-static": LOOSE}


def onnx(ch_image: ChImage, collection: Path, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    start = [sys.executable, "-m", "hpcgen", "--collection", str(collection), "onnx", *words, "--image", str(image)]
    done = subprocess.run(start, env=ch_image.env, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    return done


def asked(folder: Path, **variants: dict[str, float] | None) -> Path:
    file = ensemble(folder, {"net": THREE["net"]})
    file.write_text(json.dumps({**json.loads(file.read_text()), "optimise": variants}))
    return file


def test_variants_are_compared_and_measured_in_pairs(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    file, out = asked(tmp_path, **MADE, transformer=None), tmp_path / "out"
    done = onnx(ch_image, collection, image, "convert", str(file), "-o", str(out), "--rounds", "2", "--json")
    assert done.returncode == 0
    model = json.loads(done.stdout)["models"]["net"]
    made = {each["variant"]: each for each in model["variants"]}
    assert "nothing in it that it could fuse" in made["transformer"]["failed"]
    for name in MADE:
        assert (out / "net" / name / "model.onnx").is_file() and made[name]["differences"]
    assert {each.get("variant", "") for each in model["timings"]} == {"", *MADE}
    assert (out / "report.html").read_text().count("<svg") == 1
    bench = ("bench", str(out), "--origin", str(file), "--batch", "4", "--rounds", "3", "--json")
    found = json.loads(onnx(ch_image, collection, image, *bench).stdout)["runtimes"]
    assert [each["timing"]["runtime"] for each in found] == ["framework", *["onnxruntime"] * (1 + len(MADE))]
    assert found[0]["first"] and all(each["ratio"]["low"] < each["ratio"]["high"] for each in found[1:])


def test_eight_bits_within_the_tolerance_of_single_precision_are_a_failed_validation(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    file = asked(tmp_path, **{"int8-dynamic": None})
    done = onnx(ch_image, collection, image, "convert", str(file), "-o", str(tmp_path / "out"), "--no-time")
    assert done.returncode == 12 and "net: int8-dynamic" in done.stderr
    assert not (tmp_path / "out").exists()
