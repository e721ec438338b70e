"""All release tables and wheel lists of the collections, held against the package index, Spack and EasyBuild."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
from packaging.version import Version

from hpcgen.blocks.requirements import in_range
from hpcgen.catalog.beside_blocks import read_wheel_list
from hpcgen.catalog.catalog import FOLDERS, Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.release import Release, ReleaseTable, Upstream
from hpcgen.plugins.tables.upstream import (
    Known,
    Releases,
    easybuild_releases,
    index_releases,
    newest,
    plain_version,
    spack_releases,
    version_of,
)
from hpcgen.supply.net.index_pages import IndexFile
from hpcgen.supply.net.package_index import PackageIndex, PinnedRequirement, pinned

_AT_ONCE = 8
_FIELDS: dict[str, Literal["pypi", "spack", "easybuild"]] = {
    "Spack": "spack",
    "EasyBuild": "easybuild",
    "index": "pypi",
}
"""What each source is called in ``upstream``."""


class RefreshRequest(msgspec.Struct, frozen=True):
    """What tables are held against.

    Parameters
    ----------
    blocks: only these tables, and no wheel lists; all if empty.
    spack, easybuild: clones of their recipes.
    index: whether the package index is asked.
    aged_before: rows that were last looked up before that day are told.
    """

    blocks: tuple[str, ...] = ()
    spack: Path | None = None
    easybuild: Path | None = None
    index: PackageIndex | None = None
    aged_before: str = ""


class Table(msgspec.Struct, frozen=True):
    """One block's table: its rows in all collections, and what others know of the same software."""

    block: str
    upstream: Upstream
    known: dict[str, Releases]
    findings: list[TableFinding]


def compared(catalog: Catalog, asked: RefreshRequest) -> list[Table]:
    """Every table that says by what names others know its software, or one whose rows have aged."""
    names = asked.blocks or tuple(name for name in catalog.names("block") if catalog.release_files(name))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_table, catalog, asked), names))


def _table(catalog: Catalog, asked: RefreshRequest, block: str) -> Table:
    rows = catalog.releases(block)
    upstream = upstream_of(catalog, block)
    known: dict[str, Releases] = {}
    findings: list[TableFinding] = []
    if not (upstream.pypi or upstream.spack or upstream.easybuild or upstream.none):
        told = "it is not compared: `upstream` names no other sources, and no reason for that"
        findings.append(TableFinding(block, "unread", "", told))
    for source, name, look in _sources(asked, upstream):
        try:
            releases = look(name)
            known[source] = _wanted(releases, source, upstream)
            if not releases:
                findings.append(TableFinding(block, "unread", "", f"{source} has no release of {name}"))
        except HpcgenError as error:
            findings.append(TableFinding(block, "unread", "", f"{source}: {error.problems[0].message}"))
    findings += [*newer(block, rows, known), *differing(block, rows, known), *aged(block, rows, asked.aged_before)]
    return Table(block, upstream, known, findings)


def _wanted(releases: Releases, source: str, upstream: Upstream) -> Releases:
    """A source's releases without those that are left out, and without the hashes of other archives."""
    others = upstream.other_archives.get(_FIELDS[source], {})
    return {
        version: Known(places=each.places) if _in_any(version, others) else each
        for version, each in releases.items()
        if not _in_any(version, upstream.left_out)
    }


def _in_any(version: str, ranges: Iterable[str]) -> bool:
    return any(in_range(version, each) for each in ranges)


def upstream_of(catalog: Catalog, block: str) -> Upstream:
    """By what names others know the software; the first table that says any counts."""
    tables = (convert(document, ReleaseTable) for document in catalog.release_documents(block))
    return next((table.upstream for table in tables if table.upstream is not None), Upstream())


def _sources(asked: RefreshRequest, upstream: Upstream) -> Iterator[tuple[str, str, Callable[[str], Releases]]]:
    if asked.spack is not None and upstream.spack:
        yield "Spack", upstream.spack, partial(spack_releases, asked.spack)
    if asked.easybuild is not None and upstream.easybuild:
        yield "EasyBuild", upstream.easybuild, partial(easybuild_releases, asked.easybuild)
    if asked.index is not None and upstream.pypi:
        yield "index", upstream.pypi, partial(_in_index, asked.index)


def _in_index(index: PackageIndex, name: str) -> Releases:
    return index_releases(index.project(name)[0])


# wheel lists


def wheel_findings(catalog: Catalog, index: PackageIndex) -> list[TableFinding]:
    """What the package index no longer has as the wheel lists of the collections say it, or has withdrawn."""
    lists: dict[PinnedRequirement, list[str]] = {}
    for folder in catalog.folders:
        for path in sorted((folder / FOLDERS["block"] / "wheels").glob("*.txt")):
            for pin in pinned(read_wheel_list(path, catalog.shown(path)).lines):
                lists.setdefault(pin, []).append(path.stem)
    projects = sorted({pin.name for pin in lists})
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        pages = dict(zip(projects, pool.map(index.project, projects), strict=True))
    # Names are read once: a project may have thousands of files, and be in a hundred lists.
    files = {name: _by_version(found) for name, (found, _) in pages.items()}
    found: dict[tuple[str, str, Kind, str], list[str]] = {}
    for pin, names in lists.items():
        for kind, message in _about(pin, files[pin.name], pages[pin.name][1]):
            found.setdefault((pin.name, pin.version, kind, message), []).extend(names)
    return [
        TableFinding(f"wheels of {name}", kind, version, message, list(dict.fromkeys(names)))
        for (name, version, kind, message), names in found.items()
    ]


def _by_version(files: Iterable[IndexFile]) -> dict[str, list[IndexFile]]:
    found: dict[str, list[IndexFile]] = {}
    for each in files:
        found.setdefault(version_of(each.file), []).append(each)
    return found


def _about(
    pin: PinnedRequirement, files: Mapping[str, Sequence[IndexFile]], failed: Sequence[str]
) -> Iterator[tuple[Kind, str]]:
    """What is wrong with one requirement of a list, given a project's files by version."""
    if not files:
        yield "unread", f"no index has {pin.name}: {'; '.join(failed)}" if failed else f"no index has {pin.name}"
        return
    of_version = files.get(str(Version(pin.version)), [])
    there = {each.sha256: each.yanked for each in of_version}
    gone = [sha256 for sha256 in pin.hashes if sha256 not in there]
    if not of_version:
        yield "gone", f"the index has no file of {pin.version}"
    elif gone and "" not in there:
        more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
        yield "gone", f"the index has no file with sha256 {gone[0][:16]}…{more}"
    if any(there.get(sha256) for sha256 in pin.hashes):
        yield "yanked", f"{pin.version} was withdrawn"


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
