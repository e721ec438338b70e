"""What a search found as a layout for the site's profile, put into its file as text: all else stays as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.config.yamlfile import Document, load, loads
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Source
from hpcgen.core.model.site import Layout
from hpcgen.core.support.writing import write_file
from hpcgen.machine.detect.yaml_text import dump
from hpcgen.plugins.tuning.bench.comparison import Compared
from hpcgen.plugins.tuning.bench.running import layout_of
from hpcgen.plugins.tuning.tune.space import image_words


class LayoutEntry(msgspec.Struct, frozen=True):
    """A layout and where it is from."""

    layout: Layout
    source: Source

    @property
    def text(self) -> str:
        """As it stands in a profile."""
        return dump({"layouts": [_plain(self.layout)], "sources": {"layouts": _plain(self.source)}})


def _plain(record: Layout | Source) -> dict[str, Any]:
    defaults = {"nodes": 1, "note": "", "as_of": None}
    data: dict[str, Any] = msgspec.to_builtins(record)
    return {name: value for name, value in data.items() if name not in defaults or value != defaults[name]}


def entry_for(winner: Compared, default: Compared, today: str) -> LayoutEntry:
    """The layout of what was faster than the default, with its speed and all else that was set."""
    outcome, plan = winner.outcome, winner.outcome.case.job.plan
    ranks, threads = layout_of(outcome)
    speed, ratio = winner.speed, winner.ratio
    assert speed is not None and ratio is not None
    more = image_words(default.outcome, outcome)
    more += [each for each in outcome.variant.words if not each.startswith(("layout=", "threads="))]
    first = "{} x {}".format(*layout_of(default.outcome))
    by = f" by {outcome.framework}" if outcome.framework else ""
    measured = (
        f"{outcome.workload.name}{by}, {today}: {outcome.workload.text(speed.value)}, "
        f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) times the default's {first}"
    )
    if more:
        measured += f"; with {' '.join(more)}"
    words = f"hpcgen tune, workload {outcome.workload.name}, image of {plan.stack.name}"
    content = outcome.case.content
    return LayoutEntry(
        Layout(plan.partition, ranks, threads, measured=measured),
        Source(from_=f"{words} {content[:12]}".rstrip(), checked=today, as_of=today, verified="yes"),
    )


def add_to(path: Path, entry: LayoutEntry) -> None:
    """Put the layout before the others of a profile, so that jobs take it.

    A source that the profile has for its layouts stays: each layout says by itself how it was measured.

    InputError: the file is not written as profiles are; what is to be added is in the message. Nothing has changed.
    OutputError: it cannot be written.
    """
    document = load(path)
    try:
        written = with_entry(document, path.read_text("utf-8"), "layouts", [_plain(entry.layout)])
        after = loads(written, str(path))
        if not document.has(("sources", "layouts")):
            written = with_entry(after, written, "sources", {"layouts": _plain(entry.source)})
            after = loads(written, str(path))
    except InputError:
        raise _refused(path, entry) from None
    if after.data != _wanted(document, entry):
        raise _refused(path, entry)
    write_file(path, written)


def with_entry(document: Document, text: str, key: str, value: Any) -> str:
    """The text with one more entry, the first below a key at the top."""
    path = (key,)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    block = dump({key: value}).splitlines(keepends=True)
    if not document.has(path) or not document.data[key]:
        start = document.position(path, key=True).line - 1 if document.has(path) else None
        if start is not None:
            lines[start : start + 1] = block
        else:
            at = _before_sources(document, key, len(lines))
            lines[at:at] = ["\n", *block] if at == len(lines) else [*block, "\n"]
        return "".join(lines)
    line = document.position(path, key=True).line
    first = 0 if isinstance(document.data[key], list) else next(iter(document.data[key]))
    child = document.position((key, first), key=True)
    indent = indent_of(lines, child.line - 1)
    lines[line:line] = [f"{indent}{each[2:]}" for each in block[1:]]
    return "".join(lines)


def _before_sources(document: Document, key: str, end: int) -> int:
    """Sources are the last of a profile."""
    if key == "sources" or not document.has(("sources",)):
        return end
    return document.position(("sources",), key=True).line - 1


def indent_of(lines: list[str], at: int) -> str:
    """The spaces before a line's text."""
    return lines[at][: len(lines[at]) - len(lines[at].lstrip(" "))]


def _wanted(before: Document, entry: LayoutEntry) -> dict[str, Any]:
    """What the old text said, and the layout."""
    wanted = {**before.data, "layouts": [_texts(_plain(entry.layout)), *(before.data.get("layouts") or [])]}
    if not before.has(("sources", "layouts")):
        wanted["sources"] = {"layouts": _texts(_plain(entry.source)), **(before.data.get("sources") or {})}
    return wanted


def _texts(data: dict[str, Any]) -> dict[str, str]:
    """As YAML files are read: numbers are text."""
    return {name: str(value) for name, value in data.items()}


def _refused(path: Path, entry: LayoutEntry) -> InputError:
    message = "it does not have one key per line, so nothing can be added without changing the rest"
    return InputError(message, str(path), remedy=f"add this by hand:\n{entry.text}")
