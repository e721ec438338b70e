"""The models of examples/onnx, from every kind of file that can be converted, in the image of their stack."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from statistics import median

import pytest
from container_tools import REPORTS, ChImage
from test_onnx_convert import collection, image
from test_onnx_variants import onnx

from hpcgen.plugins.onnx.results import read_report
from tests.conftest import ROOT

pytestmark = pytest.mark.slow
__all__ = ["collection", "image"]

CLOSE = 1e-5
"""Absolute, for outputs around 1: the largest is BERT's, with some 4e-6."""


@pytest.fixture(scope="module")
def folder(ch_image: ChImage, image: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, with the files that their own program writes in the image."""
    folder = tmp_path_factory.mktemp("examples") / "onnx"
    shutil.copytree(ROOT / "examples" / "onnx", folder)
    start = ["ch-run", "-b", f"{folder}:/mnt/0", "-c", "/mnt/0", f"--set-env={image}/ch/environment", str(image)]
    subprocess.run([*start, "--", "python3", "make_files.py"], env=ch_image.env, check=True)
    return folder


@pytest.mark.parametrize(("name", "count"), [("all", 13), ("ensemble", 3)])
def test_every_model_computes_the_same(
    ch_image: ChImage, collection: Path, image: Path, folder: Path, name: str, count: int
) -> None:
    out = folder / f"out-{name}"
    done = onnx(ch_image, collection, image, "convert", str(folder / f"{name}.yaml"), "-o", str(out), "--rounds", "2")
    assert done.returncode == 0
    models = read_report(out).models
    assert len(models) == count and all(each.passed for each in models.values())
    for model in models.values():
        largest = max(each.largest_absolute for each in model.converted.differences)
        times = [f"{each.runtime} {median(each.seconds) * 1e3:.3g} ms" for each in model.timings if each.seconds]
        REPORTS.append(f"{model.converted.model}: {largest:.1e}; {', '.join(times)}")
        assert largest < CLOSE
