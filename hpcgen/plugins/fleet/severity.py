"""How grave an advisory is, by what its OSV file says: a word of its database, else the vectors of CVSS.

Source: https://ossf.github.io/osv-schema: "severity"; FIRST's CVSS v3.1, "Qualitative Severity Rating Scale", which
v4.0 has too and which is applied to v2 as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

from hpcgen.core.support.extras import extra
from hpcgen.plugins.fleet.advisories import Advisory, Rating

Severity = Literal["none", "low", "medium", "high", "critical"]
LEVELS: tuple[Severity, ...] = get_args(Severity)
_LEAST = (0.0, 0.1, 4.0, 7.0, 9.0)
"""The least score of each level."""
_OTHER_WORDS: dict[str, Severity] = {
    "moderate": "medium",
    "important": "high",
    "negligible": "low",
    "unimportant": "low",
}
"""GitHub's and Red Hat's, Ubuntu's, Debian's."""
_CLASSES = {"CVSS_V2": "CVSS2", "CVSS_V3": "CVSS3", "CVSS_V4": "CVSS4"}


def severity_of(advisory: Advisory) -> Severity | None:
    """The gravest of what its database says in words, else by its vectors; None where neither is there to be read.

    MissingToolError: it has vectors alone, and the library that knows their scores is not installed.
    """
    ratings = [*(advisory.severity or ()), *(each for one in advisory.affected or () for each in one.severity or ())]
    found = [*_words(advisory, ratings)] or [level for each in ratings if (level := _level(each)) is not None]
    return max(found, key=LEVELS.index, default=None)


def _words(advisory: Advisory, ratings: list[Rating]) -> Iterator[Severity]:
    places = [advisory.database_specific]
    for affected in advisory.affected or ():
        places += [affected.database_specific, affected.ecosystem_specific]
    said: list[Any] = [each.score for each in ratings if each.type not in _CLASSES]
    said += [place.get(name) for place in places if isinstance(place, dict) for name in ("severity", "urgency")]
    for word in said:
        known = word.lower() if isinstance(word, str) else ""
        known = _OTHER_WORDS.get(known, known)
        yield from (level for level in LEVELS if level == known)


def _level(rating: Rating) -> Severity | None:
    """Of a vector; None of one that is damaged, or in a way of rating that is not known."""
    if rating.type not in _CLASSES:
        return None
    with extra("advisories", "rate advisories by their CVSS vectors"):
        import cvss  # type: ignore[import-untyped, import-not-found, unused-ignore]
    try:
        score = float(getattr(cvss, _CLASSES[rating.type])(rating.score).scores()[0])
    except cvss.CVSSError:
        return None
    return next(level for level, least in reversed([*zip(LEVELS, _LEAST, strict=True)]) if score >= least)
