"""``--add copy:FOLDER=/opt/NAME``: files of this machine beside the blocks and packages that :mod:`added` reads."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.stack import Copied

KIND = "copy:"


class AddedCopy(msgspec.Struct, frozen=True):
    """A file or folder of this machine: its parent folder, and the entry of a stack for it there."""

    folder: Path
    entry: Copied


class AddedWords(msgspec.Struct, frozen=True):
    """Words of ``--add``: files of this machine, and the others, which name blocks and packages."""

    others: tuple[str, ...] = ()
    copies: tuple[AddedCopy, ...] = ()

    def packages(self, kind: str) -> list[str]:
        """The text after ``pip:`` or ``apt:``."""
        return [word.partition(":")[2] for word in self.others if word.startswith(f"{kind}:")]


def added_words(words: Sequence[str]) -> AddedWords:
    """Separate files from blocks and packages; InputError for all that cannot be copied."""
    copies: list[AddedCopy] = []
    problems = Problems()
    known = list(dict.fromkeys(words))
    for word in known:
        if word.startswith(KIND):
            with problems.caught(lambda: "--add"):
                copies.append(_copy(word.removeprefix(KIND)))
    problems.raise_as(InputError)
    return AddedWords(tuple(word for word in known if not word.startswith(KIND)), tuple(copies))


def _copy(text: str) -> AddedCopy:
    source, equals, target = text.rpartition("=")
    if not equals or not source:
        raise InputError(f"copy:{text} needs SOURCE=TARGET", expected="copy:FOLDER=/opt/NAME")
    path = Path(os.path.normpath(Path.cwd() / source))
    try:
        entry = record_from({"from": path.name, "to": target}, Copied)
    except msgspec.ValidationError as failure:
        raise InputError(f"copy:{text}: {failure}", expected="copy:FOLDER=/opt/NAME") from failure
    return AddedCopy(path.parent, entry)
