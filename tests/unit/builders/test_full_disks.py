"""Disks that are really full: a small tmpfs where a build writes its image, its temporary files or its record.

The engine is a stand-in for Apptainer that fills the disk as told, and fails as Apptainer does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpcgen.backends.engines.building import BuildFolder, Target, Work
from hpcgen.builders.remedies import Disks
from hpcgen.kit.folder import read_kit

pytestmark = pytest.mark.root

KIT = Path(__file__).parents[2] / "golden" / "hlrs-testbed" / "mpi-hello"
APPTAINER = """\
#!/bin/sh
[ "$1" = build ] || exec echo "apptainer version 1.4.5"
echo "INFO:    Starting build..."
if ! cat /dev/zero > "$FILL" 2> /dev/null && [ -z "$GOES_ON" ]; then
    echo "FATAL:   While performing build: while creating SIF: no space left on device"
    exit 255
fi
for word; do case $word in *.sif) echo image > "$word" ;; esac; done
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with 40 MB of room."""
    if os.geteuid() != 0:
        pytest.fail("this tier needs root: pytest -m root")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def build(folder: Path, output: str, *words: str, fill: str, **env: str) -> subprocess.CompletedProcess[str]:
    """``hpcgen build`` by the stand-in, which fills the disk with the file ``fill``."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "apptainer"
    program.write_text(APPTAINER)
    program.chmod(0o755)
    command = [sys.executable, "-m", "hpcgen", "build", str(KIT), "--engine", "apptainer", "-o", output, *words]
    own = {
        "HPCGEN_RECORDS": str(folder / "records"),
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "FILL": fill,
        "GOES_ON": "",
    }
    return subprocess.run(command, env={**os.environ, **own, **env}, capture_output=True, text=True, timeout=60)


def test_the_folder_of_the_image_is_named_where_that_is_full(tmp_path: Path, disk: Path) -> None:
    done = build(tmp_path, f"{disk}/a.sif", fill=f"{disk}/half")
    assert done.returncode == 8, done.stderr
    assert f"  cause: the disk of {disk} (the image) is full: 0 B of 41.9 MB were free\n" in done.stderr
    assert f"  remedy: free space in {disk}, or write the image elsewhere with -o\n" in done.stderr
    assert "TMPDIR" not in done.stderr


@pytest.mark.parametrize(
    ("variable", "holds"),
    [("APPTAINER_TMPDIR", "the unpacked image"), ("APPTAINER_CACHEDIR", "the downloads")],
)
def test_the_folder_of_the_engine_is_named_where_that_is_full(
    tmp_path: Path, disk: Path, variable: str, holds: str
) -> None:
    done = build(tmp_path, f"{tmp_path}/a.sif", fill=f"{disk}/half", **{variable: str(disk)})
    assert done.returncode == 8, done.stderr
    assert f"  cause: the disk of {disk} ({holds}) is full: " in done.stderr
    assert f"  remedy: free space in {disk}, or " in done.stderr and f"set {variable} to " in done.stderr
    assert "with -o" not in done.stderr


def test_the_least_that_was_free_counts_because_engines_remove_their_files(tmp_path: Path, disk: Path) -> None:
    target = Target("sif", f"{disk}/a.sif", f"{disk}/.a.sif")
    plan = read_kit(KIT).plan
    work = Work(plan, KIT, KIT / "Singularity.def", KIT, "0", tmp_path / "scratch", target, [])
    disks = Disks()
    disks.watch([BuildFolder(tmp_path / "not" / "yet", "images", "set IMAGES")], work)
    assert disks.told() is None
    with (disk / "half").open("wb") as half:
        half.write(b"x" * 30_000_000)
    disks.look(at_once=True)
    (disk / "half").unlink()
    told = disks.told()
    assert told is not None and told[0].startswith(f"the disk of {disk} (the image) is full: ")


def test_a_disk_that_was_filled_between_two_looks_is_known_by_what_the_engine_says(tmp_path: Path, disk: Path) -> None:
    target = Target("sif", f"{tmp_path}/a.sif", f"{tmp_path}/.a.sif")
    work = Work(read_kit(KIT).plan, KIT, KIT / "Singularity.def", KIT, "0", tmp_path / "scratch", target, [])
    disks = Disks()
    disks.watch([BuildFolder(disk, "images", "set IMAGES")], work)
    disks.said("FATAL:   While performing build: write /elsewhere/blob: no space left on device")
    disks.said(f"error writing '{disk}/of-the-step': No space left on device")
    assert disks.told() is None
    disks.said(f"FATAL:   While performing build: write {disk}/oci/blob: no space left on device")
    told = (f"the disk of {disk} (images) is full", f"free space in {disk}, or set IMAGES")
    assert disks.told() == told


def test_an_image_whose_record_cannot_be_written_is_built(tmp_path: Path, disk: Path) -> None:
    own = {"HPCGEN_RECORDS": str(disk), "GOES_ON": "yes"}
    image = f"{tmp_path}/a.sif"
    done = build(tmp_path, image, "--json", "--quiet", fill=f"{disk}/half", **own)
    assert (done.returncode, Path(image).read_text()) == (0, "image\n"), done.stderr
    assert json.loads(done.stdout)["image"]["name"] == image
    assert f"hpcgen: warning: the image is built: {image}; its record could not be written: cannot" in done.stderr
    assert "the disk is full; free space there, or set HPCGEN_RECORDS to another folder\n" in done.stderr


def test_a_failed_build_is_told_although_its_record_cannot_be_written(tmp_path: Path, disk: Path) -> None:
    done = build(tmp_path, f"{tmp_path}/a.sif", fill=f"{disk}/half", HPCGEN_RECORDS=str(disk))
    assert done.returncode == 8, done.stderr
    assert "the build's record could not be written: " in done.stderr
    assert "the image was not built: apptainer build ended with status 255" in done.stderr
