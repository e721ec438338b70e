"""Explanations as records, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from hpcgen.core.model.fields import Record, Source

GroundKind = Literal["site", "stack", "file", "command", "block", "release", "job", "lock", "rule"]

_TITLES: dict[GroundKind, str] = {
    "site": "site profile",
    "stack": "stack",
    "file": "project file",
    "command": "asked for",
    "block": "block",
    "release": "release table",
    "job": "job",
    "lock": "lock",
    "rule": "rule",
}


class Ground(Record, frozen=True):
    """One reason.

    Parameters
    ----------
    kind: who says it. text: what it says. place: the file and line, as far as they are known here.
    source: what stands for a fact of the profile.
    """

    kind: GroundKind
    text: str
    place: str = ""
    source: Source | None = None


class Refused(Record, frozen=True):
    """A refused alternative, with the reason."""

    what: str
    why: str
    place: str = ""


class Explanation(Record, frozen=True):
    """One subject of a kit: its kind and value, the reasons, refused alternatives, and what to ask next."""

    kind: str
    name: str
    value: str = ""
    stage: str = ""
    grounds: list[Ground] = []
    refused: list[Refused] = []
    see: list[str] = []


def explanation_text(each: Explanation) -> str:
    """The explanation for the user, over several lines."""
    stage = f", {each.stage} stage" if each.stage else ""
    name = f" {each.name}" if each.name else ""
    value = f" = {each.value}" if each.value else ""
    lines = [f"{each.kind}{name}{value}{stage}", *_grounds(each.grounds)]
    if each.refused:
        lines.append("  not taken:")
        lines += [f"    {other.what}: {other.why}{_at(other.place)}" for other in each.refused]
    if each.see:
        lines.append(f"  see also: {', '.join(each.see)}")
    return "\n".join(lines)


def _grounds(grounds: Sequence[Ground]) -> Iterator[str]:
    width = max((len(_TITLES[ground.kind]) for ground in grounds), default=0)
    for ground in grounds:
        yield f"  {_TITLES[ground.kind].ljust(width)}  {ground.text}{_at(ground.place)}"
        if ground.source is not None:
            source = ground.source
            verified = "verified" if source.verified == "yes" else "not verified"
            note = f"; {source.note}" if source.note else ""
            yield f"  {' ' * width}  source: {source.from_} (checked {source.checked}, {verified}{note})"


def _at(place: str) -> str:
    return f"  [{place}]" if place else ""
