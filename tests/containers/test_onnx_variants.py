"""Variants of a converted model in the image of its stack, each compared, and all of them measured in rounds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_tools import ChImage
from test_onnx_convert import INPUT, THREE, collection, ensemble, image

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
    layers = {"from": "sklearn", "factory": "models.py:layers", **INPUT}
    file = ensemble(folder, {"net": THREE["net"], "layers": layers})
    file.write_text(json.dumps({**json.loads(file.read_text()), "optimise": variants}))
    return file


def test_variants_are_compared_and_measured_in_pairs(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    file, out = asked(tmp_path, **MADE, transformer=None), tmp_path / "out"
    done = onnx(ch_image, collection, image, "convert", str(file), "-o", str(out), "--rounds", "2", "--json")
    assert done.returncode == 0
    model, other = (json.loads(done.stdout)["models"][name] for name in ("net", "layers"))
    # The biases of scikit-learn's layers have two axes.
    assert not [each for each in other["variants"] if each["variant"] == "int8-static" and each.get("failed")]
    made = {each["variant"]: each for each in model["variants"]}
    assert "nothing in it that it could fuse" in made["transformer"]["failed"]
    for name in MADE:
        assert (out / "net" / name / "model.onnx").is_file() and made[name]["differences"]
    assert {each.get("variant", "") for each in model["timings"]} == {"", *MADE}
    assert (out / "report.html").read_text().count("<svg") in (1, 2)
    bench = ("bench", str(out), "--only", "net", "--origin", str(file), "--batch", "4", "--rounds", "3", "--json")
    found = json.loads(onnx(ch_image, collection, image, *bench).stdout)["runtimes"]
    assert [each["timing"]["runtime"] for each in found] == ["framework", *["onnxruntime"] * (1 + len(MADE))]
    assert found[0]["first"] and all(each["ratio"]["low"] < each["ratio"]["high"] for each in found[1:])
    results = [run_over_a_file(ch_image, collection, image, out, variant) for variant in ("", *MADE)]
    for variant, result in zip(MADE, results[1:], strict=True):
        np.testing.assert_allclose(result, results[0], atol=0.1)
        assert "int8" not in variant or (result != results[0]).any()


def run_over_a_file(ch_image: ChImage, collection: Path, image: Path, out: Path, variant: str) -> Any:
    """What a variant of the net computes by ``hpcgen onnx run`` over one file, which is the same each time."""
    data, results = out.parent / "x.npy", out.parent / f"results-{variant}"
    np.save(data, np.random.default_rng(3).random((5, 8), "f4"))
    words = ["run", str(out), "net", str(data), "-o", str(results), "--json"]
    done = onnx(ch_image, collection, image, *words, *(["--variant", variant] if variant else []))
    assert done.returncode == 0 and json.loads(done.stdout)["computed"] == 1
    with np.load(results / "net" / "x.npz") as found:
        return found[found.files[0]]


def test_eight_bits_within_the_tolerance_of_single_precision_are_a_failed_validation(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    file = asked(tmp_path, **{"int8-dynamic": None})
    done = onnx(ch_image, collection, image, "convert", str(file), "-o", str(tmp_path / "out"), "--no-time")
    assert done.returncode == 12 and "net: int8-dynamic" in done.stderr
    assert not (tmp_path / "out").exists()
