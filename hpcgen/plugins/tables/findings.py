"""What a table should be looked at for: newer releases, other hashes, rows that have aged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec
from packaging.version import Version

from hpcgen.blocks.requirements import in_range
from hpcgen.core.model.release import Release, UpstreamList
from hpcgen.plugins.tables.upstream import Known, Releases, newest, plain_version

GIT = "git"
"""What the repository of a table is called among the sources."""
_CHANGED = "a changed archive, or another one, for upstream.other_archives"

Kind = Literal["newer", "differs", "lapsed", "gone", "yanked", "aged", "unread", "untried"]
NOTHING_FOUND: tuple[Kind, ...] = ("unread", "untried")
"""What is not known, rather than something to look at."""


class TableFinding(msgspec.Struct, frozen=True):
    """What a maintainer should look at.

    table: the block, or the wheel list.
    kind: ``newer``: there is a newer release; ``differs``: others have another hash for a release; ``lapsed``: a reason
        to leave a release out that holds no longer; ``gone``: the index has a file no longer; ``yanked``: its release
        was withdrawn; ``aged``: nobody has looked for long; ``unread``: what could not be compared; ``untried``: a
        reason to leave a release out that a machine cannot try.
    version: of the release that it is about; empty where it is about several.
    sources: where that stands.
    """

    table: str
    kind: Kind
    version: str
    message: str
    sources: list[str] = []


def newer(
    block: str, rows: Mapping[str, Release], known: Mapping[str, Releases], series: int = 0
) -> Iterator[TableFinding]:
    """The newest release that anybody knows, if the table's newest is older; and so of each series that the table has.

    ``known``: what each source knows, by its name: ``Spack``, ``EasyBuild``, ``index``, ``git``. ``series``: how many
    numbers of a version name its series; 0 if there are none.
    """
    ours = newest(version for version in rows if plain_version(version))
    latest = {source: newest(releases) for source, releases in known.items() if releases}
    best = newest(latest.values())
    ahead = best if best and is_newer(best, ours) else ""
    if ahead:
        told = ", ".join(f"{source} {version}" for source, version in latest.items())
        yield _newer(block, best, f"the table ends with {ours or 'nothing'}: {told}", known)
    every = _by_series((version for releases in known.values() for version in releases), series)
    for name, our in sorted(_by_series(rows, series).items()):
        theirs = every.get(name, "")
        if theirs and theirs != ahead and is_newer(theirs, our):
            have = ", ".join(source for source, releases in known.items() if theirs in releases)
            yield _newer(block, theirs, f"of {'.'.join(map(str, name))} the table has {our}: {have} {theirs}", known)


def is_newer(theirs: str, ours: str) -> bool:
    """Whether a release comes after one of a table, whose 3.12 is any 3.12.1 too."""
    return not ours or (Version(theirs) > Version(ours) and not theirs.startswith(f"{ours}."))


def _newer(block: str, version: str, told: str, known: Mapping[str, Releases]) -> TableFinding:
    places = [place for releases in known.values() if version in releases for place in releases[version].places]
    return TableFinding(block, "newer", version, told, places)


def _by_series(versions: Iterable[str], numbers: int) -> dict[tuple[int, ...], str]:
    """The newest release of each series; none without series."""
    found: dict[tuple[int, ...], str] = {}
    for version in versions if numbers else ():
        if plain_version(version):
            name = Version(version).release[:numbers]
            found[name] = newest([version, found.get(name, version)])
    return found


def rows_on(rows: Mapping[str, Release], listed: UpstreamList) -> dict[str, Release]:
    """The rows for the distribution of a list; all for one of none."""
    return {
        version: row
        for version, row in rows.items()
        if all(name in row.on and in_range(on, row.on[name]) for name, on in listed.on.items())
    }


def differing(block: str, rows: Mapping[str, Release], known: Mapping[str, Releases]) -> Iterator[TableFinding]:
    """Rows for whose release a source has hashes or a commit, and none of them is the row's.

    A source with which the table has no hash in common takes other archives of the same releases, and is not compared.
    """
    for source, releases in known.items():
        both = {version: _comparable(row, releases[version]) for version, row in rows.items() if version in releases}
        both = {version: (ours, theirs) for version, (ours, theirs) in both.items() if ours and theirs}
        other_ones = {version for version, (ours, theirs) in both.items() if not ours & theirs}
        if both and len(other_ones) == len(both) and source != GIT:
            told = f"{source} has no hash of the table: if it takes other archives, say so in upstream.other_archives"
            yield TableFinding(block, "unread", "", told)
            continue
        for version in sorted(other_ones, key=Version):
            ours, theirs = both[version]
            shown = f"{', '.join(sorted(theirs)[:3])}{' …' if len(theirs) > 3 else ''}"
            why = "the tag was moved" if source == GIT else _CHANGED
            told = f"{source} has {shown}, the table {', '.join(sorted(ours))}: {why}"
            yield TableFinding(block, "differs", version, told, list(releases[version].places))


def _comparable(row: Release, other: Known) -> tuple[frozenset[str], frozenset[str]]:
    """What a row and a source pin a release by: hashes if both have some, else commits."""
    ours = frozenset(archive.sha256 for archive in row.archives.values())
    if ours and other.hashes:
        return ours, other.hashes
    return frozenset(tree.commit for name, tree in row.trees.items() if name == "source"), other.commits


def aged(block: str, rows: Mapping[str, Release], limit: str) -> list[TableFinding]:
    """Rows that were looked up before a day, ``2025-11-22``."""
    old = {version: row.source.checked for version, row in rows.items() if row.source and row.source.checked < limit}
    if not old:
        return []
    shown = f"{', '.join(list(old)[:6])}{' …' if len(old) > 6 else ''}"
    message = f"checked before {limit}, the oldest on {min(old.values())}: {shown}"
    return [TableFinding(block, "aged", next(iter(old)) if len(old) == 1 else "", message)]
