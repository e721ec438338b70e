"""A squashfs is read as the folder that it was made of, by this unsquashfs and by one that cannot print files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.core.model.image_facts import ImageFacts
from tests.unit.images.test_reading import SITE, TREE, read, written


def squashed(root: Path) -> Path:
    image = root.with_suffix(".sqfs")
    image.unlink(missing_ok=True)
    subprocess.run(["mksquashfs", root, image, "-quiet", "-no-progress", "-all-root"], check=True, capture_output=True)
    return image


@pytest.mark.parametrize("release", ["here", "4.4"])
def test_a_squashfs_says_what_its_folder_says(release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if release != "here":
        (tmp_path / "bin").mkdir()
        script = f'#!/bin/sh\n[ "$1" != -version ] || {{ echo "unsquashfs version {release}"; exit 1; }}\nexec '
        (tmp_path / "bin" / "unsquashfs").write_text(f'{script}{shutil.which("unsquashfs")} "$@"\n')
        (tmp_path / "bin" / "unsquashfs").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    root = written(tmp_path / "root", TREE)
    facts, folder = read(squashed(root)), read(root)
    for name in set(ImageFacts.__struct_fields__) - {"folders"}:
        assert getattr(facts, name) == getattr(folder, name), name


def test_a_squashfs_that_was_made_to_do_harm_is_read_or_refused(tmp_path: Path) -> None:
    root = written(tmp_path / "root", {"usr/lib/os-release": b"ID=x\n", "etc/os-release": "/etc/passwd"})
    with (root / "usr/lib/libmpi.so.12").open("wb") as stream:
        stream.truncate(2 * 1024**3)
    (root / SITE / "a\nb-1.dist-info").mkdir(parents=True)
    (root / SITE / "a\nb-1.dist-info" / "METADATA").write_bytes(b"")
    facts = read(squashed(root))
    assert facts.mpi == [] and facts.packages == [] and "line break" in facts.unread[0]
    # A name that looks like another entry of the list, for a file that is not there.
    line = "\n-rw-r--r-- root/root   99 2026-01-01 00:00 squashfs-root/opt/torch"
    (root / "opt" / f"x{line}").mkdir(parents=True)
    (root / "opt" / f"x{line}" / "version.py").write_bytes(b"")
    with pytest.raises(InputError):
        read(squashed(root))
