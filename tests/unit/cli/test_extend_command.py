"""``hpcgen extend`` up to the engine's commands: which engine, from what, under which name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import GOLDEN, Command

STORED = GOLDEN / "workstation" / "mpi-hello"
CH_IMAGE = "#!/bin/sh\necho 0.31\n"


@pytest.fixture
def image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image that is a folder, beside a ch-image that tells its version alone."""
    shutil.copytree(STORED, tmp_path / "root" / "opt" / "hpcgen" / "kit")
    (tmp_path / "ch").mkdir()
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("ch-image", "ch-convert"):
        (tools / name).write_text(CH_IMAGE)
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/usr/bin:/bin")
    return tmp_path / "root"


def test_a_folder_is_brought_into_the_store_and_added_to_there(image: Path, hpcgen: Command) -> None:
    words = ["--engine", "ch-image", "--add", "apt:bc", "--add", "os_packages", "--dry-run", "--kit", "kit"]
    words.append("--allow-unsupported")
    done = hpcgen("extend", "root", *words)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert f" import {image} hpcgen-extended-" in lines[1] and lines[2].startswith("(cd BUILD")
    assert all("CH_IMAGE_CACHE=disabled" in line for line in lines[1:3])
    assert f"mv {image.parent}/.hpcgen-" in done.stdout and f"{image}-extended\n" in done.stdout
    recipe = (image.parent / "kit" / "build.sh").read_text()
    assert "\nFROM hpcgen-extended-" in recipe and "--no-install-recommends bc &&" in recipe
    # The finished image is looked at as any other base.
    stage = recipe.partition("\nFROM hpcgen-extended-")[2]
    assert stage.count("hpcgen: wrong base image: ") == 1 and "extend an image that was built for this site" in stage
    assert "hpcgen extend root --add apt:bc --add os_packages" in recipe
    assert (image.parent / "kit" / "root").resolve() == image


def test_what_needs_a_builder_is_refused_with_the_reason(image: Path, hpcgen: Command) -> None:
    done = hpcgen("extend", "root", "--engine", "ch-image", "--add", "pip:h5py==3.11.0", "--allow-unsupported")
    assert done.returncode == 6 and "its build asks for the OS packages python3-dev, python3-venv" in done.stderr
    assert "remedy: rebuild the image" in done.stderr


def test_another_kind_of_image_than_the_engine_takes_is_refused(image: Path, hpcgen: Command) -> None:
    done = hpcgen("extend", "root", "--engine", "buildah", "--add", "apt:bc", "--dry-run")
    assert done.returncode == 3 and "buildah cannot add to " in done.stderr and "a directory image" in done.stderr
    assert "an image of the kind podman" in done.stderr and "--engine charliecloud" in done.stderr


def test_an_image_without_a_kit_is_for_a_site_and_says_its_distribution(image: Path, hpcgen: Command) -> None:
    shutil.rmtree(image / "opt")
    (image / "etc").mkdir()
    words = ["extend", "root", "--add", "apt:bc", "--dry-run"]
    done = hpcgen(*words)
    assert done.returncode == 2 and "--site is missing" in done.stderr
    done = hpcgen(*words, "--site", "workstation")
    assert done.returncode == 3 and "does not state its distribution" in done.stderr
