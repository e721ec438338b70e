"""Every field of MODAK's requests, and what it means here: the rows from which docs/modak-requests.md has its table."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.core.support.templates import table
from hpcgen.plugins.tuning.requests.values import (
    FRAMEWORKS,
    OF_A_FIELD,
    READERS,
    Reader,
    RequestValue,
    as_it_is,
    switch,
    unread,
    word,
)

Form = Literal["released", "example"]


class Row(msgspec.Struct, frozen=True):
    """One field.

    path: with ``{a|b}`` for several that mean the same; ``*`` at its end takes any name.
    means: for people: hpcgen's field, or that it is not honoured, and why.
    read: its reader.
    form: whether the released tool has it, or only its longer examples.
    """

    path: str
    means: str
    read: Reader
    form: Form


class _Said(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"arguments": "with"}):
    """A row of the table: ``same``: the field of hpcgen's with the same meaning. ``lost``: why it is not honoured.

    Of others ``means`` says it, and they are read by the reader of a name, with its arguments, or by what a word, or
    true and false, stands for.
    """

    path: str
    form: Form = "released"
    same: str = ""
    lost: str = ""
    remedy: str = ""
    means: str = ""
    read: str = ""
    arguments: list[str] = []
    words: dict[str, RequestValue] = {}
    if_true: RequestValue | None = None
    if_false: RequestValue = RequestValue()

    def row(self, steps: Mapping[str, str]) -> Row:
        path = ".".join(steps.get(step, step) for step in self.path.split("."))
        if self.same:
            return Row(path, f"`{self.same}`", as_it_is(self.same), self.form)
        if self.lost:
            remedy = f"; {self.remedy}" if self.remedy else ""
            return Row(path, f"not honoured: {self.lost}{remedy}", unread(self.lost, self.remedy), self.form)
        return Row(path, self.means, self._reader(), self.form)

    def _reader(self) -> Reader:
        if self.words:
            return word(self.words)
        if self.if_true is not None:
            return switch(self.if_true, self.if_false)
        return OF_A_FIELD[self.read](*self.arguments) if self.arguments else READERS[self.read]


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    steps: dict[str, str]
    rows: list[_Said]


KINDS = ("ai_training", "ai_inference", "hpc")
PARALLEL = ("mpi", "openmp", "opencc", "opencl")
CHOSEN_BY = {
    **dict.fromkeys(KINDS, "app_type"),
    **dict.fromkeys(FRAMEWORKS, "config.ai_framework"),
    **dict.fromkeys(PARALLEL, "config.parallelisation"),
}
"""Of several sections beside each other one is read: the word at this path, from their parent on, says which."""


def _table() -> _Table:
    return table(Path(__file__).with_suffix(".yaml"), _Table)


def steps() -> Mapping[str, str]:
    """Parts of paths by their names in the table."""
    return _table().steps


@cache
def rows() -> tuple[Row, ...]:
    """All rows, in the order of the table."""
    return tuple(each.row(steps()) for each in _table().rows)


def expanded(path: str) -> Iterator[tuple[str, ...]]:
    """All paths that one with ``{a|b}`` stands for, as steps."""
    parts = re.split(r"\{([^}]*)\}", path)
    choices = [part.split("|") if number % 2 else [part] for number, part in enumerate(parts)]
    for each in itertools.product(*choices):
        yield tuple("".join(each).split("."))
