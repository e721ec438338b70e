"""Keys and ranges of release tables with which nobody gets what they mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from packaging.version import InvalidVersion, Version

from hpcgen.blocks.requirements import in_range, version_range
from hpcgen.core.errors import Problem

_RELEASE = "the number of a release, such as 2.15.1, or of a pre-release, such as 2.16.0rc1"


def key_problems(keys: Iterable[str], elsewhere: Iterable[str]) -> Iterator[tuple[str, Problem]]:
    """Keys of a table that are not versions of releases, each with its problem, which has no place yet.

    Parameters
    ----------
    elsewhere: keys of other tables of the same block, whose rows add up with these.
    """
    parsed = {text: _parsed(text) for text in keys}
    taken = {found: text for text in reversed([*elsewhere]) if (found := _parsed(text)) is not None}
    for text, found in parsed.items():
        wrong = _wrong(text, found)
        same = text if found is None else taken.setdefault(found, text)
        if wrong is None and same != text:
            message = f"{text!r} is the same version as {same!r}, which has a row: no range can tell them apart"
            wrong = message, f"drop one row, or call it {same!r}"
        if wrong is not None:
            yield text, Problem(wrong[0], expected=_RELEASE, remedy=wrong[1])


def _parsed(text: str) -> Version | None:
    try:
        return Version(text) if text[:1].isdigit() and text == text.strip() else None
    except InvalidVersion:
        return None


def _wrong(text: str, found: Version | None) -> tuple[str, str] | None:
    """What is wrong with a key, and what to do."""
    if found is None:
        return f"{text!r} is not a version", "call the row by the number under which it was released"
    base = _text(found.release)
    if found.epoch:
        wrong = f"{text!r} has an epoch: it is newer than all that have none, and ranges such as <={base} leave it out"
        return wrong, f"call it {text.partition('!')[2]}"
    if found.local:
        public = text.partition("+")[0]
        wrong = f"{text!r} is a build of {public}, and ranges do not tell builds of a release apart"
        return wrong, f"call it {public}; `accepts`, `on` and `only` say which systems a build is for"
    if found.is_postrelease:
        public = found.public.partition(".post")[0]
        wrong = f"{text!r} is a post-release: ranges such as =={public} and <={public} leave it out"
        return wrong, f"call it {public}, which is the release that it corrects"
    if re.search(r"\d[abc]$", text, re.IGNORECASE):
        wrong = f"{text!r} is the pre-release {found}, which comes before {base}"
        return wrong, f"call it {found} if that is meant; a patch level is a number, such as {base}.1"
    return None


def is_empty(versions: str) -> bool:
    """Whether no version can match a range that parses, such as ``>=3,<2``; False if a bound is no release."""
    bounds = [_parsed(each.version.removesuffix(".*")) for each in version_range(versions)]
    releases = [each for each in bounds if each is not None and re.fullmatch(r"[\d.]+((a|b|rc)\d+)?", str(each))]
    if len(releases) < len(bounds):
        return False
    places = max((len(each.release) for each in releases), default=0)
    tried = {"0"}
    for each in releases:
        # Where anything lies in a range, a bound does or what comes next to one: above 1.2 (1.2.0.1), above 1.2.*
        # (1.3), above 1.2rc1, below 1.2a1.
        last, (kind, number) = each.release[-1], each.pre or ("a", 0)
        above = [*each.release, *[0] * (places - len(each.release)), 1]
        beside = [*each.release[:-1], last + 1]
        base = each.base_version
        tried |= {str(each), _text(above), _text(beside), f"{base}{kind}{number + 1}", f"{base}.dev0"}
    return not any(in_range(each, versions) for each in tried)


def _text(release: Iterable[int]) -> str:
    return ".".join(map(str, release))
