"""Captured trees for tests: those of tests/trees, and small ones made on the spot.

    python -m tests.helpers.trees FOLDER

writes those of tests/trees into a new folder, in the layout of ``hpcgen site capture``.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from hpcgen.machine.detect.capture import stub
from hpcgen.machine.detect.detection import detect
from hpcgen.machine.detect.elf import Library
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen
from tests.conftest import ROOT

TREES = ROOT / "tests" / "trees"
NAMES = sorted(path.name for path in TREES.iterdir() if path.is_dir())

CPU = "processor: {number}\nvendor_id: GenuineIntel\nphysical id: 0\ncore id: {number}\nflags: fpu sse sse2\n"


def unpack(folder: Path) -> Path:
    """All of tests/trees in a new folder, with the links and colons that a source distribution cannot hold."""
    for name in NAMES:
        for source in (path for path in (TREES / name).rglob("*") if path.is_file()):
            place = folder / name / unquote(str(source.relative_to(TREES / name)))
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, place)
        for line in (folder / name / "links").read_text("utf-8").splitlines():
            path, target = line.split(" -> ")
            link(folder / name, path, target)
        (folder / name / "links").unlink()
    return folder


def seen_in(folder: Path) -> Seen:
    """What detection finds in a tree."""
    return detect(Machine.captured(folder))


def make_tree(
    folder: Path,
    files: dict[str, str | bytes] | None = None,
    commands: dict[str, str] | None = None,
    environment: dict[str, str] | None = None,
) -> Path:
    """A tree with these files below its root, and a machine that can be described at all."""
    basic: dict[str, str | bytes] = {
        "/etc/os-release": 'ID="debian"\nVERSION_ID="12"\n',
        "/proc/cpuinfo": "\n".join(CPU.format(number=number) for number in range(2)),
        "/proc/meminfo": "MemTotal: 8388608 kB\n",
    }
    for path, content in {**basic, **(files or {})}.items():
        place = folder / "root" / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "commands").mkdir(exist_ok=True)
    for name, text in (commands or {}).items():
        (folder / "commands" / name).write_text(text)
    (folder / "environment").write_text("".join(f"{name}={value}\n" for name, value in (environment or {}).items()))
    return folder


def link(folder: Path, path: str, target: str) -> None:
    """A link in a tree's root."""
    place = folder / "root" / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(target)


def library(soname: str, text: bytes = b"", **more: Any) -> bytes:
    """A library that says this of itself."""
    return stub(Library(soname, **more), text)


OPENMPI = b"\0v4.1.6\0Open MPI\0"
INTEL = b"\0Intel(R) MPI Library %s for Linux* OS\n\0002021.11\0"


if __name__ == "__main__":
    unpack(Path(sys.argv[1]))
