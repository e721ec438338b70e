"""A stack that grows: every value with the reason for it, and what a stack cannot hold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from hpcgen.core.errors import Position, Problems
from hpcgen.core.model.fields import Record, Text
from hpcgen.core.secret_rules import without_secrets
from hpcgen.core.support.units import harmless
from hpcgen.machine.detect.yaml_text import inline

APP = "/app"


Path = tuple[str | int, ...]


class Guess(Record, frozen=True):
    """One value of the stack.

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

    data: the stack, as plain data.
    guesses: the reasons, in their order; several may be about one value.
    remarks: what is said beside it.
    options: for the command that submits the job.
    problems: mistakes in files of the project.
    programs: where the image has the programs that are compiled, by their names.
    notebooks: the program is a server for notebooks.
    candidates: the command lines of the project, the likeliest first.
    asked: blocks of packages that the project's list has, with the range that it asks for.
    gpu_package: a package that computes on GPUs and comes from no block.
    spack: names of the packages that the project's Spack environment asks for.
    torch_of_conda: PyTorch is among the packages of conda.
    """

    def __init__(self) -> None:
        self.data: dict[str, Any] = {"name": "", "title": "", "blocks": {}, "run": {}}
        self.guesses: list[Guess] = []
        self.remarks: list[Remark] = []
        self.options: list[Option] = []
        self.problems = Problems()
        self.programs: dict[str, str] = {}
        self.candidates: list[Any] = []
        self.asked: dict[str, str] = {}
        self.gpu_package = ""
        self.spack: frozenset[str] = frozenset()
        self.torch_of_conda = False
        self.notebooks = False

    def put(self, path: Path, value: Any, why: str, where: Position | None = None) -> None:
        """A value at a place of the stack; mappings on the way there are made."""
        at = self.data
        for key in path[:-1]:
            at = at.setdefault(str(key), {})
        at[str(path[-1])] = value
        self.because(path, value, why, where)

    def because(self, path: Path, value: Any, why: str, where: Position | None = None) -> None:
        """One more reason for what stands there."""
        guess = Guess(path, value, harmless(without_secrets(why)), where)
        if value is not None or guess not in self.guesses:
            self.guesses.append(guess)

    def add_block(self, name: str, why: str, where: Position | None = None, **options: Any) -> None:
        """A block, or one more reason for it."""
        if name not in self.blocks:
            self.put(("blocks", name), {"options": options} if options else {}, why, where)
        else:
            self.because(("blocks", name), None, why, where)

    def leave_open(self, text: str, where: Position | None = None) -> None:
        """What the image still lacks."""
        said = harmless(without_secrets(text if where is None else f"{where.file}:{where.line}: {text}"))
        if "open" not in self.data:
            self.put(("open",), [], "what the image still lacks: plans repeat it until its line is removed")
        if said not in (there := self.data["open"]):
            there.append(said)

    def remark(self, text: str, where: Position | None = None) -> None:
        """Something to say beside the stack."""
        if (remark := Remark(harmless(without_secrets(text)), where)) not in self.remarks:
            self.remarks.append(remark)

    @property
    def blocks(self) -> dict[str, Any]:
        """Of the stack, by name."""
        found: dict[str, Any] = self.data["blocks"]
        return found

    def options_of(self, block: str) -> dict[str, Any]:
        """What the stack says of a block; empty where it has none of that name."""
        found: dict[str, Any] = self.blocks.get(block, {}).get("options", {})
        return found

    def has_any(self, names: Sequence[str]) -> bool:
        """Whether one of these blocks is there."""
        return any(name in self.blocks for name in names)

    def program(self, name: str) -> str:
        """Where the image has a program that is compiled, in whatever case a README writes its letters; else empty."""
        alike = [place for each, place in self.programs.items() if each.lower() == name.lower()]
        return self.programs.get(name) or (alike[0] if len(alike) == 1 else "")

    def settle(self) -> None:
        """Put the blocks into the order in which they are to be chosen."""
        self.data["blocks"] = dict(sorted(self.blocks.items(), key=lambda each: _ORDER.get(each[0], 0)))


_FIELDS = ("name", "title", "blocks", "copy", "build", "run", "open")
_WIDTH = 116
_HEAD = """\
# Written by `hpcgen init` from the files of this folder; comments say why each line is as it is. Change what is wrong.
# `hpcgen list blocks` and `hpcgen show block NAME` list the choices, `hpcgen schema stack` has every field.
"""


def stack_text(draft: Draft) -> str:
    """The whole file."""
    lines = [_HEAD.rstrip("\n")]
    for field in _FIELDS:
        if field in draft.data:
            lines += _field(draft, field)
    if draft.remarks:
        lines.append("# Found by init, but not in this stack:")
    for remark in draft.remarks:
        lines += _comment(_reason(remark.text, remark.where), "", "# - ")
    return "\n".join(lines) + "\n"


def _field(draft: Draft, field: str) -> Iterator[str]:
    value = draft.data[field]
    if not isinstance(value, (dict, list)):
        yield from _why(draft, (field,), "")
        yield f"{field}: {inline(value)}"
        return
    yield f"{field}:" if value else f"{field}: {{}}"
    if field == "run" and draft.options:
        words = " ".join(word for option in draft.options for word in option.words)
        said = ", ".join(dict.fromkeys(f"{each.said} ({each.where.file}:{each.where.line})" for each in draft.options))
        text = f"How large a job is, no stack says: `hpcgen submit {words}` is as large as that of {said}."
        yield from _comment(text, "  ")
    if isinstance(value, list):
        yield from _why(draft, (field,), "  ")
        for each in value:
            yield from _entry(each) if isinstance(each, dict) else [f"  - {inline(each)}"]
        return
    for key, inner in value.items():
        yield from _why(draft, (field, key), "  ")
        yield from _value(key, inner, "  ")


def _entry(entry: dict[str, Any]) -> Iterator[str]:
    for number, (key, value) in enumerate(entry.items()):
        yield f"  {'- ' if number == 0 else '  '}{key}: {inline(value)}"


def _value(key: str, value: Any, indent: str) -> Iterator[str]:
    """A value on its line; a list of long texts or of mappings one below the other."""
    line = f"{indent}{key}: {inline(value)}"
    if isinstance(value, list) and (len(line) > _WIDTH or key == "commands" or any(isinstance(v, dict) for v in value)):
        yield f"{indent}{key}:"
        yield from (f"{indent}  - {inline(each)}" for each in value)
    elif isinstance(value, dict) and len(line) > _WIDTH:
        yield f"{indent}{key}:"
        for name, inner in value.items():
            yield from _value(name, inner, f"{indent}  ")
    else:
        yield line


def _why(draft: Draft, path: Path, indent: str) -> Iterator[str]:
    """The reasons of a value and of all that is in it."""
    for each in reasons(draft, path):
        yield from _comment(_reason(each.why, each.where), indent)


def reasons(draft: Draft, path: Path) -> list[Guess]:
    """Of a value and of all that is in it, in their order."""
    return [each for each in draft.guesses if each.path[: len(path)] == path]


def _reason(why: str, where: Any) -> str:
    return f"{where.file}:{where.line}: {why}" if where is not None else why


def _comment(text: str, indent: str, lead: str = "# ") -> Sequence[str]:
    words = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return textwrap.wrap(
        words,
        _WIDTH,
        initial_indent=f"{indent}{lead}",
        subsequent_indent=f"{indent}#{' ' * (len(lead) - 1)}",
        break_long_words=False,
        break_on_hyphens=False,
    )
