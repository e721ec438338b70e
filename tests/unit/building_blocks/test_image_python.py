"""The environment over an image's own Python: each sees the other's packages, and the image's versions stay."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT

PROGRAM = str(ROOT / "building_blocks" / "files" / "image_python.py")


def package(python: Path, name: str, version: str, text: str = "") -> None:
    """A package in the folder of an environment's packages."""
    folder = next((python / "lib").glob("python3.*")) / "site-packages"
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("")
    (folder / name / "__main__.py").write_text(text)
    (folder / f"{name}-{version}.dist-info").mkdir()
    (folder / f"{name}-{version}.dist-info" / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")


def run(*words: str, path: str = "") -> str:
    environment = {**os.environ, "PATH": f"{path}{os.environ['PATH']}"}
    return subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout


def test_the_two_pythons_see_each_other_and_pip_is_held_to_what_is_there(tmp_path: Path) -> None:
    image, ours = tmp_path / "image", tmp_path / "ours"
    run(sys.executable, "-m", "venv", "--without-pip", str(image))
    package(image, "pip", "1.0", "print('a pip')")
    package(image, "numbers_of", "1.26.4")
    package(image, "odd", "of-today")
    # Its own programs are the first on PATH from the start, as in the recipe.
    run("python3", PROGRAM, "seen", str(ours), path=f"{ours}/bin:{image}/bin:")
    assert (ours / "image-packages.txt").read_text() == "numbers_of==1.26.4\n"
    assert (ours / "pip.conf").read_text() == f"[global]\nconstraint = {ours}/image-packages.txt\n"
    package(ours, "added", "2.0")
    run(str(ours / "bin" / "python"), PROGRAM, "shown", str(ours))
    for python in (ours, image):
        told = run(str(python / "bin" / "python"), "-c", "import added, numbers_of; print(added.__file__)")
        assert told.startswith(str(ours))
