"""A stack that init wrote and its user edited: what init has now goes into it, and the user's own lines stay."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import NamedTuple

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError


class BothStacks(NamedTuple):
    """A stack with the lines of both. ``kept``: by their number in it, lines of the user's and what init has there."""

    text: str
    kept: dict[int, str]


def merged(written: str, own: str, new: str) -> BothStacks | None:
    """What changed from ``written`` to ``new``, done in ``own``; None where the lines together make no file.

    Where both changed the same lines, those of ``own`` stay.

    ``written``: what init wrote last time. ``own``: what the user made of it. ``new``: what init would write now.
    """
    before, mine, theirs = (text.splitlines(keepends=True) for text in (written, own, new))
    in_mine, in_theirs = _places(before, mine), _places(before, theirs)
    lines: list[str] = []
    kept: dict[int, str] = {}
    start, i, j = 0, 0, 0
    for end in [*sorted(in_mine.keys() & in_theirs.keys()), len(before)]:
        was = before[start:end]
        here, there = mine[i : in_mine.get(end, len(mine))], theirs[j : in_theirs.get(end, len(theirs))]
        if here not in (was, there) and there != was:
            kept[len(lines) + 1] = " ".join(" ".join(there).split())
        lines += [*(there if here == was else here), *before[end : end + 1]]
        start, i, j = end + 1, i + len(here) + 1, j + len(there) + 1
    text = "".join(lines)
    try:
        loads(text, "merged")
    except InputError:
        return None
    return BothStacks(text, kept)


def _places(before: list[str], after: list[str]) -> dict[int, int]:
    """Where lines of one text are in the other, in the same order."""
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    return {a + number: b + number for a, b, size in blocks for number in range(size)}
