"""What an engine finds as ``mksquashfs`` while a finished image is added to.

It writes the file from the blocks of the finished image where it can. Where it cannot, or is asked for what it does not
know, it says why in a file and becomes the real mksquashfs, which writes the whole. Apptainer and ch-convert look for
mksquashfs on PATH; an engine whose configuration names another one uses that.

Options that Apptainer 1.4.5 and 1.5 (internal/pkg/image/packer/squashfs.go) and ch-convert 0.31 and 0.45 use are known.
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.images.repacking.layout import Unsuitable

FAILURES = (Unsuitable, OSError, ValueError, struct.error, RecursionError, MemoryError)
"""What a damaged image, or a folder that cannot be read, ends in."""
_ALONE = ("-noappend", "-quiet", "-no-progress", "-percentage")


class Asked(msgspec.Struct, frozen=True):
    """What mksquashfs is asked for: see :func:`hpcgen.images.repacking.repack.repack`."""

    folder: Path
    target: Path
    without: tuple[str, ...] = ()
    all_root: bool = False
    block_size: int | None = None
    threads: int | None = None
    added: dict[str, int] = {}


class Finished(msgspec.Struct, frozen=True):
    """The image whose blocks are used.

    Parameters
    ----------
    offset: where its squashfs begins, in bytes.
    program: the real mksquashfs.
    told: the file that says what became of it.
    """

    path: str
    offset: int
    program: str
    told: str


def main(words: Sequence[str]) -> None:
    """The stand-in: the finished image as JSON, then the words that mksquashfs was given."""
    finished = msgspec.json.decode(words[0], type=Finished)
    given = list(words[1:])
    if given in (["-version"], ["-help"]):
        os.execv(finished.program, [finished.program, *given])
    from hpcgen.images.repacking.repack import repack

    try:
        if "SOURCE_DATE_EPOCH" in os.environ:
            raise Unsuitable("its files are to have a given date")
        asked = asked_of(given)
        made = repack(
            asked.folder,
            asked.target,
            Path(finished.path),
            finished.offset,
            without=asked.without,
            added=asked.added,
            all_root=asked.all_root,
            block_size=asked.block_size,
            threads=asked.threads,
        )
    except FAILURES as why:
        _tell(finished, f"the file was written whole: {why}")
        os.execv(finished.program, [finished.program, *given])
    _tell(finished, f"{_megabytes(made.kept)} of the finished image were taken over, {_megabytes(made.new)} are new")


def asked_of(words: Sequence[str]) -> Asked:
    """What the command line of mksquashfs asks for; Unsuitable for a word that is not known here."""
    rest = list(words)
    names: list[str] = []
    without: list[str] = []
    added: dict[str, int] = {}
    more: dict[str, int] = {}
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            names.append(word)
        elif word == "-all-root":
            more["all_root"] = True
        elif word == "-comp" and rest and rest[0] != "gzip":
            raise Unsuitable(f"it is to be compressed by {rest[0]}")
        elif word in ("-mem", "-comp", "-Xcompression-level") and rest:
            rest = rest[1:]
        elif word == "-processors" and rest:
            more["threads"] = int(rest.pop(0))
        elif word == "-b" and rest:
            more["block_size"] = int(rest.pop(0))
        elif word == "-pf" and rest:
            added = _added(Path(rest.pop(0)).read_text(encoding="utf-8"))
        elif word == "-e":
            # All that follows, as ch-convert gives it: paths that begin with the folder's.
            while rest and not rest[0].startswith("-"):
                without.append(str(Path(rest.pop(0))))
        elif word not in _ALONE:
            raise Unsuitable(f"mksquashfs is given {word}")
    if len(names) != 2 or not Path(names[0]).is_dir() or "-noappend" not in words:
        raise Unsuitable("mksquashfs is not asked to write one folder as a new file")
    folder = Path(names[0])
    if any(not each.startswith(f"{folder}/") for each in without):
        raise Unsuitable("mksquashfs is to leave out what lies elsewhere")
    all_root = bool(more.get("all_root"))
    return Asked(folder, Path(names[1]), tuple(without), all_root, more.get("block_size"), more.get("threads"), added)


def _added(text: str) -> dict[str, int]:
    """What ch-convert has mksquashfs add, a line each: empty files, whose content ``true`` prints, and folders."""
    found = {}
    for line in text.splitlines():
        name, kind, mode, *rest = line.split()
        if (kind, rest) not in (("d", ["root", "root"]), ("f", ["root", "root", "true"])):
            raise Unsuitable(f"mksquashfs is to add {line}")
        found[name] = int(mode, 8) | (stat.S_IFDIR if kind == "d" else stat.S_IFREG)
    return found


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _tell(finished: Finished, text: str) -> None:
    with contextlib.suppress(OSError):
        Path(finished.told).write_text(f"{text}\n", encoding="utf-8")
