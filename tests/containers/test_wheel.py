"""The wheel carries the built-in collection: installed elsewhere it renders what the checkout renders."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
CASES = [("supermuc", "tf-horovod"), ("hlrs-testbed", "tf-horovod"), ("workstation", "mpi-hello")]


@pytest.mark.slow
def test_wheel_in_an_empty_environment_renders_the_same_bytes(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", wheels, ROOT], check=True)
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", next(wheels.glob("hpcgen-*.whl"))], check=True)
    for site, stack in CASES:
        words = ["render", "--site", site, "--stack", stack, "--json"]
        apart = subprocess.run(
            [environment / "bin" / "hpcgen", *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        here = subprocess.run(
            [sys.executable, "-m", "hpcgen", *words], cwd=ROOT, capture_output=True, text=True, check=True
        )
        assert apart.stdout == here.stdout
        assert apart.stderr == here.stderr
