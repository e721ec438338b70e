"""The words of ``--add``: a block's name, ``pip:h5py==3.11.0``, ``apt:git``, ``copy:FOLDER=/opt/x``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.config.decoding import record_from
from hpcgen.errors import InputError, Problems
from hpcgen.model.stack import Copied

KINDS = ("pip", "apt", "copy")


class AddedCopy(msgspec.Struct, frozen=True):
    """A file or folder of this machine: the folder that it lies in, and what a stack would say of it there."""

    folder: Path
    entry: Copied


class Added(msgspec.Struct, frozen=True):
    """What ``--add`` names.

    Parameters
    ----------
    blocks: names of blocks and virtuals.
    pip: Python packages, as the block ``python_packages`` takes them.
    apt: packages of the distribution, whatever its package manager is, as ``os_packages`` takes them.
    copies: files of this machine.
    """

    blocks: tuple[str, ...] = ()
    pip: tuple[str, ...] = ()
    apt: tuple[str, ...] = ()
    copies: tuple[AddedCopy, ...] = ()

    @property
    def packages(self) -> dict[str, tuple[str, ...]]:
        """Packages by the block that installs them, without empty lists."""
        found = {"python_packages": self.pip, "os_packages": self.apt}
        return {block: names for block, names in found.items() if names}


def added_words(words: Sequence[str]) -> Added:
    """The words of ``--add``, sorted by what they are; whether packages and blocks exist is asked later.

    Raises
    ------
    InputError: a word that says nothing, all of them at once.
    """
    found: dict[str, list[str]] = {kind: [] for kind in ("", *KINDS)}
    copies: list[AddedCopy] = []
    problems = Problems()
    for word in dict.fromkeys(words):
        kind, colon, rest = word.partition(":")
        if not colon:
            found[""].append(word)
        elif kind not in KINDS or not rest:
            expected = "a block, pip:NAME==VERSION, apt:NAME or copy:FOLDER=/opt/NAME"
            problems.add(f"{word!r} is nothing that can be added", "--add", expected)
        elif kind == "copy":
            with problems.caught(lambda: "--add"):
                copies.append(_copy(rest))
        else:
            found[kind].append(rest)
    problems.raise_as(InputError)
    return Added(tuple(found[""]), tuple(found["pip"]), tuple(found["apt"]), tuple(copies))


def _copy(text: str) -> AddedCopy:
    source, equals, target = text.rpartition("=")
    if not equals or not source:
        raise InputError(f"copy:{text} does not say what goes where", expected="copy:FOLDER=/opt/NAME")
    path = Path(os.path.normpath(Path.cwd() / source))
    try:
        entry = record_from({"from": path.name, "to": target}, Copied)
    except msgspec.ValidationError as failure:
        raise InputError(f"copy:{text}: {failure}", expected="copy:FOLDER=/opt/NAME") from failure
    return AddedCopy(path.parent, entry)
