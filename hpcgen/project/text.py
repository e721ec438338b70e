"""A draft as hpcgen.yaml: every value with its reason in a comment above it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from hpcgen.machine.detect.yaml_text import inline
from hpcgen.project.draft import Draft, Guess, Path

_FIELDS = ("name", "title", "blocks", "copy", "build", "run")
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
    yield f"{field}:" if value or field == "run" else f"{field}: {{}}"
    if field == "run" and draft.options:
        words = " ".join(word for option in draft.options for word in option.words)
        said = ", ".join(dict.fromkeys(f"{each.said} ({each.where.file}:{each.where.line})" for each in draft.options))
        text = f"How large a job is, no stack says: `hpcgen submit {words}` is as large as that of {said}."
        yield from _comment(text, "  ")
    if isinstance(value, list):
        yield from _why(draft, (field,), "  ")
        for each in value:
            yield from _entry(each)
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
