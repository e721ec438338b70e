"""The order of RPM versions.

Source: rpm's rpmio/rpmvercmp.c, and its manual, rpm-version(7).
"""

from __future__ import annotations

import re

_PART = re.compile(r"[0-9]+|[A-Za-z]+|~|\^")
_END = (1, 0, "")

Part = tuple[int, int, str]


def rpm_version_key(text: str) -> tuple[int, list[Part], list[Part]]:
    """``EPOCH:VERSION-RELEASE`` for comparison with another; without an epoch it is 0."""
    epoch, _, rest = text.rpartition(":")
    version, _, release = rest.rpartition("-")
    return int(epoch or 0), _parts(version or release), _parts(release if version else "")


def _parts(text: str) -> list[Part]:
    """``~`` is older than the end, ``^`` newer than it and older than all else; letters are older than numbers."""
    return [*map(_part, _PART.findall(text)), _END]


def _part(text: str) -> Part:
    if text.isdecimal():
        return (4, int(text), "")
    return (("~", "", "^").index(text), 0, "") if text in "~^" else (3, 0, text)
