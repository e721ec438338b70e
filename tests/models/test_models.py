"""``hpcgen onnx convert`` on models of many kinds, held beside their originals by ``judge.py``."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

VARIABLE = "HPCGEN_TEST_ONNX"
"""Names a Python with hpcgen's extra ``onnx`` and the frameworks; see README.md."""
ENSEMBLES = sorted(path.stem for path in Path(__file__).parent.glob("*.yaml") if path.stem != "expected")


@pytest.mark.parametrize("name", ENSEMBLES)
def test_every_model_is_right_or_refused_with_a_reason_as_expected(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    shutil.copytree(Path(__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__"))
    python, env = os.environ[VARIABLE], {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["onnx", "convert", f"{name}.yaml", "-o", "out", "--here", "--no-time", "--threads", "1"]
    subprocess.run([python, "-m", "hpcgen", *words], cwd=folder, env=env, check=False)
    made = next(each for each in ("out", "out.failed") if (folder / each).is_dir())
    done = subprocess.run([python, "judge.py", f"{name}.yaml", made], cwd=folder, env=os.environ, check=False)
    assert done.returncode == 0
