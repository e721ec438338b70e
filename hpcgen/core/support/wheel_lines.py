"""Lines of wheel lists: a package with its version and the sha256 of each file of it that is accepted.

They are a part of pip's requirements format: https://pip.pypa.io/en/stable/reference/requirements-file-format/. What
else that has (other indexes, further lists, addresses, options of builds) decides where code comes from, and is none of
a list's business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from hpcgen.core.secret_rules import public

_PACKAGE = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_HASHES = r"(?:\s+--hash=sha256:[0-9a-f]{64})"
_LINE = re.compile(
    rf"(?P<name>{_PACKAGE})\s*(?:\[(?P<extras>[A-Za-z0-9._, -]*)\])?\s*"
    # Behind the marker an option can only begin with a space and a hyphen.
    rf"==\s*(?P<version>[A-Za-z0-9.!+_-]+)\s*(?:;(?P<marker>(?:(?!\s-)[^#\\])*?))?(?P<hashes>{_HASHES}+)\s*"
)
_PYTHONS = 'python_version in "'
EXPECTED = "NAME==VERSION --hash=sha256:… with 64 digits"


class WheelLine(NamedTuple):
    """One package of a wheel list; ``hashes`` are sha256, ``marker`` says in which environments it is wanted."""

    name: str
    extras: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    @property
    def pythons(self) -> tuple[str, ...]:
        """The Pythons that the marker names one by one, as in lists for several; () of any other marker."""
        return _pythons(self.marker)

    def __str__(self) -> str:
        extras = f"[{self.extras}]" if self.extras else ""
        marker = f" ; {self.marker}" if self.marker else ""
        hashes = "".join(f" --hash=sha256:{each}" for each in self.hashes)
        return f"{self.name}{extras}=={self.version}{marker}{hashes}"


@lru_cache(maxsize=16384)
def parse_line(text: str) -> WheelLine | None:
    """The package of a line without its comment; None for anything else."""
    match = _LINE.fullmatch(text)
    if match is None:
        return None
    extras = ",".join(word.strip() for word in (match["extras"] or "").split(",") if word.strip())
    marker = (match["marker"] or "").strip()
    if marker and not _pythons(marker) and not _is_marker(marker):
        return None
    hashes = tuple(word.partition(":")[2] for word in match["hashes"].split())
    return WheelLine(match["name"], extras, match["version"], marker, hashes)


def marker_of(pythons: Iterable[str]) -> str:
    """The marker of a line that is for these Pythons (``3.12``) of a list for several."""
    return f'{_PYTHONS}{" ".join(pythons)}"'


@lru_cache(maxsize=4096)
def _pythons(marker: str) -> tuple[str, ...]:
    plain = marker.startswith(_PYTHONS) and marker.endswith('"') and marker.count('"') == 2
    return tuple(marker[len(_PYTHONS) : -1].split()) if plain else ()


def _is_marker(text: str) -> bool:
    from packaging.markers import InvalidMarker, Marker

    try:
        return bool(Marker(text))
    except InvalidMarker:
        return False


def fault(text: str) -> str:
    """The mistake in a line that :func:`parse_line` cannot read."""
    if text.startswith("-"):
        return f"{text.split()[0].partition('=')[0]!r} is an option of pip, and a wheel list has none"
    if "://" in text or re.match(rf"{_PACKAGE}\s*(\[.*\])?\s*@", text):
        return "a package is named by an address instead of its version"
    if parse_line(f"{text} --hash=sha256:{'0' * 64}") is not None:
        return f"{public(text, 120)!r} has no hash"
    return f"{public(text, 120)!r} is not a pinned package"


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number of the first line, and text, of what a list says: lines joined that end with a backslash, no comments."""
    number, start, held = 0, 1, ""
    for number, line in enumerate([*text.split("\n"), ""], 1):
        bare = re.sub(r"(^|\s)#.*", "", line).strip()
        start = start if held else number
        if bare.endswith("\\"):
            held += bare[:-1] + " "
            continue
        if said := (held + bare).strip():
            yield start, said
        held = ""
