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
from hpcgen.core.errors import FetchError, HpcgenError
from hpcgen.core.model.release import ReleaseTable, Upstream
from hpcgen.plugins.tables.findings import GIT, Kind, TableFinding, aged, differing, newer, rows_on
from hpcgen.plugins.tables.git_tags import Repository, clone_of, tag_releases
from hpcgen.plugins.tables.left_out import tried_again
from hpcgen.plugins.tables.listed import listed_releases, readable
from hpcgen.plugins.tables.upstream import (
    Known,
    Releases,
    easybuild_releases,
    index_releases,
    spack_releases,
    version_of,
)
from hpcgen.supply.net.index_pages import IndexFile
from hpcgen.supply.net.package_index import PackageIndex, PinnedRequirement, pinned
from hpcgen.supply.net.web import Web

_AT_ONCE = 8
_FIELDS: dict[str, Literal["pypi", "spack", "easybuild"]] = {
    "Spack": "spack",
    "EasyBuild": "easybuild",
    "index": "pypi",
}
"""What each source is called in ``upstream``."""


class RefreshRequest(msgspec.Struct, frozen=True):
    """What tables are held against.

    blocks: only these tables, and no wheel lists; all if empty.
    spack, easybuild: clones of their recipes.
    index: whether the package index is asked.
    aged_before: rows that were last looked up before that day are told.
    clones: of other repositories, by ``OWNER/NAME``.
    web: None if nothing is asked but the index and clones.
    """

    blocks: tuple[str, ...] = ()
    spack: Path | None = None
    easybuild: Path | None = None
    index: PackageIndex | None = None
    aged_before: str = ""
    clones: Mapping[str, Path] = {}
    web: Web | None = None


class Table(msgspec.Struct, frozen=True):
    """One block's table: its rows in all collections, and what others know of the same software."""

    block: str
    upstream: Upstream
    known: dict[str, Releases]
    findings: list[TableFinding]
    repository: Repository | None = None


def compared(catalog: Catalog, asked: RefreshRequest) -> list[Table]:
    """Every table that says by what names others know its software, or one whose rows have aged."""
    names = asked.blocks or tuple(name for name in catalog.names("block") if catalog.release_files(name))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(partial(_table, catalog, asked), names))


def _table(catalog: Catalog, asked: RefreshRequest, block: str) -> Table:
    rows = catalog.releases(block)
    upstream = upstream_of(catalog, block)
    repository = _repository(asked, upstream)
    findings: list[TableFinding] = []
    if upstream == Upstream():
        told = "it is not compared: `upstream` names no other sources, and no reason for that"
        findings.append(TableFinding(block, "unread", "", told))
    every: dict[str, Releases] = {}
    for source, name, look in _sources(asked, upstream, repository):
        try:
            every[source] = look()
            if not every[source]:
                findings.append(TableFinding(block, "unread", "", f"{source} has no release of {name}"))
        except HpcgenError as error:
            findings.append(TableFinding(block, "unread", "", f"{source}: {error.problems[0].message}"))
    known = {source: _wanted(releases, source, upstream) for source, releases in every.items()}
    for listed in upstream.lists:
        if listed.on and listed.name in known:
            packages = {listed.name: known.pop(listed.name)}
            findings += newer(block, rows_on(rows, listed), packages, upstream.series)
    findings += newer(block, rows, known, upstream.series)
    findings += [*differing(block, rows, known), *aged(block, rows, asked.aged_before)]
    findings += tried_again(block, upstream, every, asked.index)
    return Table(block, upstream, known, findings, repository)


def _repository(asked: RefreshRequest, upstream: Upstream) -> Repository | None:
    """The repository of a table if there is a way to it."""
    if upstream.git is None:
        return None
    clone = clone_of(upstream.git.url, asked.clones)
    return Repository(upstream.git, clone) if clone is not None or asked.web is not None else None


def _wanted(releases: Releases, source: str, upstream: Upstream) -> Releases:
    """A source's releases without those that are left out, and without the hashes of other archives."""
    others = upstream.other_archives.get(_FIELDS[source], {}) if source in _FIELDS else {}
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


def _sources(
    asked: RefreshRequest, upstream: Upstream, repository: Repository | None
) -> Iterator[tuple[str, str, Callable[[], Releases]]]:
    if asked.spack is not None and upstream.spack:
        yield "Spack", upstream.spack, partial(spack_releases, asked.spack, upstream.spack)
    if asked.easybuild is not None and upstream.easybuild:
        yield "EasyBuild", upstream.easybuild, partial(easybuild_releases, asked.easybuild, upstream.easybuild)
    if asked.index is not None and upstream.pypi:
        yield "index", upstream.pypi, partial(_in_index, asked.index, upstream.pypi)
    if repository is not None:
        yield GIT, repository.git.url, partial(tag_releases, repository)
    for listed in upstream.lists:
        if readable(listed, asked.clones, asked.web):
            yield listed.name, listed.pattern, partial(listed_releases, listed, asked.clones, asked.web)


def _in_index(index: PackageIndex, name: str) -> Releases:
    files, failed = index.project(name)
    if not files and failed:
        raise FetchError("; ".join(failed), remedy="check pip's settings, or try again later")
    return index_releases(files)


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
