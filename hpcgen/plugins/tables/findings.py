"""One release table held against what others know of the same software."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec
from packaging.version import Version

from hpcgen.core.model.release import Release
from hpcgen.plugins.tables.upstream import Releases, newest, plain_version

Kind = Literal["newer", "differs", "gone", "yanked", "aged", "unread"]


class TableFinding(msgspec.Struct, frozen=True):
    """What a maintainer should look at.

    Parameters
    ----------
    table: the block, or the wheel list.
    kind: ``newer``: there is a newer release; ``differs``: others have another hash for a release; ``gone``: the index
        has a file no longer; ``yanked``: its release was withdrawn; ``aged``: nobody has looked for long; ``unread``:
        what could not be compared.
    version: of the release that it is about; empty where it is about several.
    sources: where that stands.
    """

    table: str
    kind: Kind
    version: str
    message: str
    sources: list[str] = []


def newer(block: str, rows: Mapping[str, Release], known: Mapping[str, Releases]) -> list[TableFinding]:
    """The newest release that anybody knows, if the table's newest is older.

    Parameters
    ----------
    known: what each source knows, by its name: ``Spack``, ``EasyBuild``, ``index``.
    """
    ours = newest(version for version in rows if plain_version(version))
    latest = {source: newest(releases) for source, releases in known.items() if releases}
    ahead = {s: version for s, version in latest.items() if not ours or Version(version) > Version(ours)}
    if not ahead:
        return []
    told = ", ".join(f"{source} {version}" for source, version in latest.items())
    places = [place for source, version in ahead.items() for place in known[source][version].places]
    best = newest(ahead.values())
    return [TableFinding(block, "newer", best, f"the table ends with {ours or 'nothing'}: {told}", places)]


def differing(block: str, rows: Mapping[str, Release], known: Mapping[str, Releases]) -> Iterator[TableFinding]:
    """Rows for whose release a source has hashes, and none of them is the row's.

    A source with which the table has no hash in common takes other archives of the same releases, and is not compared.
    """
    for source, releases in known.items():
        both = {version: (pins_of(row), releases[version]) for version, row in rows.items() if version in releases}
        both = {version: (ours, other) for version, (ours, other) in both.items() if ours and other.pins}
        other_ones = {version for version, (ours, other) in both.items() if not ours & other.pins}
        if both and len(other_ones) == len(both):
            told = f"{source} has no hash of the table: if it takes other archives, say so in upstream.other_archives"
            yield TableFinding(block, "unread", "", told)
            continue
        for version in other_ones:
            ours, other = both[version]
            theirs = f"{', '.join(sorted(other.pins)[:3])}{' …' if len(other.pins) > 3 else ''}"
            told = (
                f"{source} has {theirs}, the table {', '.join(sorted(ours))}: "
                "a changed archive, or another one, for upstream.other_archives"
            )
            yield TableFinding(block, "differs", version, told, list(other.places))


def pins_of(row: Release) -> frozenset[str]:
    """What a row pins its archives and its own git tree by: sha256 and commits."""
    trees = {tree.commit for name, tree in row.trees.items() if name == "source"}
    return frozenset({archive.sha256 for archive in row.archives.values()} | trees)


def aged(block: str, rows: Mapping[str, Release], limit: str) -> list[TableFinding]:
    """Rows that were looked up before a day, ``2025-11-22``."""
    old = {version: row.source.checked for version, row in rows.items() if row.source and row.source.checked < limit}
    if not old:
        return []
    shown = f"{', '.join(list(old)[:6])}{' …' if len(old) > 6 else ''}"
    message = f"checked before {limit}, the oldest on {min(old.values())}: {shown}"
    return [TableFinding(block, "aged", next(iter(old)) if len(old) == 1 else "", message)]
