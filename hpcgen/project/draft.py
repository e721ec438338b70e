"""A stack that grows: every value with the reason for it, and what a stack cannot hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.secret_rules import without_secrets
from hpcgen.core.support.units import harmless

APP = "/app"


Path = tuple[str | int, ...]


class Guess(Record, frozen=True):
    """One value of the stack.

    Parameters
    ----------
    path: where it stands in the stack: ``run``, ``command``.
    why: the reason, for the user.
    where: the line of the project that says it, if one does.
    """

    path: Path
    value: Any
    why: Text
    where: Position | None = None


class Remark(Record, frozen=True):
    """What the stack does not hold, and what to do about it."""

    text: Text
    where: Position | None = None


class Option(Record, frozen=True):
    """An option of ``hpcgen submit`` that asks for what a job script of the project does."""

    words: tuple[Text, ...]
    said: Text
    where: Position


_ORDER = {"mpi": 1, "cmake": 2, "gnu": 2, "python_packages": 3, "conda_packages": 3, "os_packages": 4}
"""Of the blocks: what is named first is chosen first, and that is a framework."""


class Draft:
    """What is known so far.

    Attributes
    ----------
    data: the stack, as plain data.
    guesses: the reasons, in their order; several may be about one value.
    remarks: what is said beside it.
    options: for the command that submits the job.
    problems: mistakes in files of the project.
    programs: where the image has the programs that are compiled, by their names.
    gpu_package: a package that computes on GPUs and comes from no block.
    """

    def __init__(self) -> None:
        self.data: dict[str, Any] = {"name": "", "title": "", "blocks": {}, "run": {}}
        self.guesses: list[Guess] = []
        self.remarks: list[Remark] = []
        self.options: list[Option] = []
        self.problems = Problems()
        self.programs: dict[str, str] = {}
        self.gpu_package = ""

    def put(self, path: Path, value: Any, why: str, where: Position | None = None) -> None:
        """A value at a place of the stack; mappings on the way there are made."""
        at = self.data
        for key in path[:-1]:
            at = at.setdefault(str(key), {})
        at[str(path[-1])] = value
        self.because(path, value, why, where)

    def because(self, path: Path, value: Any, why: str, where: Position | None = None) -> None:
        """One more reason for what stands there."""
        self.guesses.append(Guess(path, value, harmless(without_secrets(why)), where))

    def add_block(self, name: str, why: str, where: Position | None = None, **options: Any) -> None:
        """A block, or one more reason for it."""
        if name not in self.blocks:
            self.put(("blocks", name), {"options": options} if options else {}, why, where)
        else:
            self.because(("blocks", name), self.blocks[name], why, where)

    def remark(self, text: str, where: Position | None = None) -> None:
        """Something to say beside the stack."""
        self.remarks.append(Remark(harmless(without_secrets(text)), where))

    @property
    def blocks(self) -> dict[str, Any]:
        """Of the stack, by name."""
        found: dict[str, Any] = self.data["blocks"]
        return found

    def has_any(self, names: Sequence[str]) -> bool:
        """Whether one of these blocks is there."""
        return any(name in self.blocks for name in names)

    def settle(self) -> None:
        """Put the blocks into the order in which they are to be chosen."""
        self.data["blocks"] = dict(sorted(self.blocks.items(), key=lambda each: _ORDER.get(each[0], 0)))
