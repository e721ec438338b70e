"""New rows of release tables, put into their files as text, so that all else there stays as it was written.

No hash is written that was not seen in two places, or downloaded.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from packaging.version import Version

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, load, loads
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.release import Release, ReleaseTable
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.tables.findings import GIT
from hpcgen.plugins.tables.git_tags import archive_hash
from hpcgen.plugins.tables.refresh import Table
from hpcgen.plugins.tables.upstream import Known, newest, plain_version

REPOSITORIES = {
    "Spack": "github.com/spack/spack-packages",
    "EasyBuild": "github.com/easybuilders/easybuild-easyconfigs",
    "index": "package index",
}
_COPIED = {"archives", "accepts", "on", "host", "only", "licence", "source"}
"""What a row may have for another to be made like it."""


class Addition(msgspec.Struct, frozen=True):
    """A row that was added to a file, or ``why`` there is none."""

    block: str
    version: str
    file: str = ""
    why: str = ""


_BY_HAND = "write the row by hand"


class _Refused(Exception):
    """Why no row can be made, and what the user can do."""

    def __init__(self, message: str, remedy: str) -> None:
        super().__init__(f"{message} → {remedy}")


def add_rows(
    catalog: Catalog, tables: Sequence[Table], clones: Mapping[str, Path | None], today: str, download: bool
) -> list[Addition]:
    """Add the newest release whose hash is sure to each table that is behind.

    ``clones``: the folder of each source that is one. ``download``: fetch and hash what one source alone has a hash of.
    """
    commits = {source: _commit(folder) for source, folder in clones.items() if folder is not None}
    found = []
    for table, behind in ((t, each.version) for t in tables for each in t.findings if each.kind == "newer"):
        try:
            found.append(_add(catalog, table, behind, commits, today, download))
        except _Refused as reason:
            found.append(Addition(table.block, behind, why=f"{behind} is not added: {reason}"))
        except HpcgenError as error:
            found.append(Addition(table.block, behind, why=f"{behind} is not added: {error.problems[0]}"))
    return found


def _add(
    catalog: Catalog, table: Table, behind: str, commits: Mapping[str, str], today: str, download: bool
) -> Addition:
    path, rows, like = _file_with_row_before(catalog, table.block, behind)
    url = _url(rows[like])
    made = _made_by_git(table, rows, like)
    if not made:
        _check_same_archives(rows, table.known)
    for version in sorted(_between(table.known, like, behind), key=Version, reverse=True):
        address = _for_version(url, like, version)
        found = _of_git(table, version, like) if made else _sure_hash(table.known, version, address, download)
        if found is None:
            continue
        sha256, told = found
        source = _source(told, table.known, version, commits, rows[like], like, today)
        text = path.read_text("utf-8")
        written = with_row(text, like, version, address, sha256, source)
        _check(text, written, version, str(path))
        write_file(path, written)
        return Addition(table.block, version, catalog.shown(path))
    raise _Refused("no two sources have a hash for it", _BY_HAND if download else "--download fetches it and hashes it")


def _file_with_row_before(catalog: Catalog, block: str, behind: str) -> tuple[Path, dict[str, Release], str]:
    """The file that has the newest row before a release, that file's rows, and which row that is."""
    tables = []
    for path in catalog.release_files(block):
        rows = convert(load(path, catalog.shown(path), LONG_LIST), ReleaseTable).releases
        tables.append((path, rows))
    every = (version for _, rows in tables for version in rows if plain_version(version))
    like = newest(version for version in every if Version(version) < Version(behind))
    if not like:
        raise _Refused("the table has no row to make another like it", _BY_HAND)
    path, rows = next((path, rows) for path, rows in tables if like in rows)
    return path, rows, like


def _made_by_git(table: Table, rows: Mapping[str, Release], like: str) -> bool:
    """Whether git makes the table's archives, which it must show on the row that the new one is like."""
    if table.repository is None or table.repository.git.archive != "git":
        return False
    tags = table.known.get(GIT, {})
    if like not in tags:
        raise _Refused(f"{table.repository.address} has no tag of {like}, the newest row", _BY_HAND)
    (archive,) = rows[like].archives.values()
    if archive_hash(table.repository, tags[like].places[0]) != archive.sha256:
        raise _Refused(f"the archive that git makes of {like} has another sha256 than the row", _BY_HAND)
    return True


def _of_git(table: Table, version: str, like: str) -> tuple[str, str] | None:
    """The hash of the archive that git makes of a release, and how that is known."""
    known = table.known[GIT].get(version)
    if known is None or table.repository is None:
        return None
    tag, commit = known.places[0], next(iter(known.commits))
    address = table.repository.git.url.removeprefix("https://")
    told = f"the archive that git makes of the tag {tag} ({commit[:8]}) of {address}, as it makes that of {like}"
    return archive_hash(table.repository, tag), told


def _url(row: Release) -> str:
    """The address of the only archive of a row that has nothing else that would have to be found anew."""
    more = {name for name in row.__struct_fields__ if getattr(row, name) and name not in _COPIED}
    if more:
        raise _Refused(f"the newest row has {', '.join(sorted(more))}, which must be looked up", _BY_HAND)
    if len(row.archives) != 1:
        raise _Refused(f"the newest row has {len(row.archives)} archives, and one can be found", _BY_HAND)
    return next(iter(row.archives.values())).url


def _check_same_archives(rows: Mapping[str, Release], known: Mapping[str, Mapping[str, Known]]) -> None:
    """Others may take another archive of the same release; one hash that is the table's too shows that they do not."""
    for version, row in rows.items():
        ours = {archive.sha256 for archive in row.archives.values()}
        if any(ours & releases[version].hashes for releases in known.values() if version in releases):
            return
    raise _Refused(
        "no hash of the table is among those of the others, so that their archives may be other ones", _BY_HAND
    )


def _between(known: Mapping[str, Mapping[str, Known]], like: str, last: str) -> set[str]:
    """The releases after a row, up to another."""
    every = {version for releases in known.values() for version in releases}
    return {version for version in every if Version(like) < Version(version) <= Version(last)}


def _for_version(url: str, old: str, new: str) -> str:
    """The address of another version: its number, and that of its minor release where a folder has that."""
    address = url.replace(old, new)
    if address == url:
        raise _Refused(f"the address of {old} does not have its version: {url}", _BY_HAND)
    minor = re.escape(".".join(old.split(".")[:2]))
    return re.sub(rf"(?<=[/v]){minor}(?=/)", ".".join(new.split(".")[:2]), address)


def _sure_hash(
    known: Mapping[str, Mapping[str, Known]], version: str, url: str, download: bool
) -> tuple[str, Sequence[str]] | None:
    """The one hash that two sources have, or that one has and the download too; and who that is."""
    hashes = {source: releases[version].hashes for source, releases in known.items() if version in releases}
    every = sorted({sha256 for some in hashes.values() for sha256 in some})
    agreed = [sha256 for sha256 in every if sum(sha256 in some for some in hashes.values()) > 1]
    if len(agreed) == 1:
        return agreed[0], [source for source, some in hashes.items() if agreed[0] in some]
    if download:
        for source, some in hashes.items():
            if len(some) == 1 and _downloaded(url, next(iter(some))):
                return next(iter(some)), [source, "download"]
    return None


def _downloaded(url: str, sha256: str) -> bool:
    """Whether what the address has is of this hash."""
    from hpcgen.supply.net.download import Download, Downloader

    file = url.rpartition("/")[2]
    with tempfile.TemporaryDirectory(prefix="hpcgen-tables-") as folder:
        wanted = WantedFile(kind="archive", name=file, file=file, sha256=sha256, urls=[url])
        try:
            Downloader().fetch([Download(wanted, Path(folder), Path(folder, "whole"))])
        except HpcgenError:
            return False
    return True


def _source(
    seen: str | Sequence[str],
    known: Mapping[str, Mapping[str, Known]],
    version: str,
    commits: Mapping[str, str],
    like: Release,
    old: str,
    today: str,
) -> str:
    """The row's ``source``, as flow YAML. ``seen``: by whom the hash is known, or how."""
    told = [seen] if isinstance(seen, str) else []
    for source in seen if not told else ():
        if source == "download":
            told.append("the archive itself, downloaded")
            continue
        places = ", ".join(known[source][version].places[:2])
        commit = f"@{commits[source]}" if commits.get(source) else ""
        told.append(f"{REPOSITORIES.get(source, source)}{commit}: {places}")
    carried = [name for name in ("accepts", "on", "host", "only") if getattr(like, name)]
    note = f', note: "{" and ".join(carried)} as in {old}, not looked up for this release"' if carried else ""
    known_how = 'verified: "no"' if carried else f'as_of: "{today}", dated_by: reading, verified: "yes"'
    return f'{{from: "{"; ".join(told)}", checked: "{today}", {known_how}{note}}}'


def with_row(text: str, like: str, version: str, url: str, sha256: str, source: str) -> str:
    """The text of a table with one more row beside that of ``like``, which it is a copy of but for what is given."""
    lines = text.splitlines(keepends=True)
    start = next(i for i, line in enumerate(lines) if re.match(rf"""  ["']?{re.escape(like)}["']?:""", line))
    end = start + 1
    while end < len(lines) and (lines[end].startswith("   ") or not lines[end].strip()):
        end += 1
    copied = _without_key([re.sub(r"\s+#.*", "", line) for line in lines[start:end] if line.strip()], "source")
    row = "".join(copied).replace(like, version, 1)
    row = re.sub(r"""(url: )(["']?)[^\s"',}]+\2""", lambda found: f"{found[1]}{found[2]}{url}{found[2]}", row)
    row = re.sub(r"(sha256: )[0-9a-f]{64}", rf"\g<1>{sha256}", row)
    row = f"{row.rstrip()}\n    source: {source}\n"
    following = next((found[1] for line in lines[end:] if (found := re.match(r"""  ["']?(\d[^"':]*)""", line))), "")
    place = start if plain_version(following) and Version(following) < Version(like) else end
    if place and not lines[place - 1].endswith("\n"):
        lines[place - 1] += "\n"
    return "".join([*lines[:place], row, *lines[place:]])


def _without_key(lines: Sequence[str], key: str) -> list[str]:
    """A row's lines without those of one of its keys."""
    kept, inside = [], False
    for line in lines:
        if re.match(r"    \S", line):
            inside = line.startswith(f"    {key}:")
        if not inside:
            kept.append(line.rstrip() + "\n")
    return kept


def _check(before: str, after: str, version: str, name: str) -> None:
    """That the new text says what the old one did, and one row more."""
    old, new = (convert(loads(text, name, LONG_LIST), ReleaseTable) for text in (before, after))
    rows = {key: row for key, row in new.releases.items() if key != version}
    if version not in new.releases or msgspec.structs.replace(new, releases=rows) != old:
        raise _Refused("the file is not written as rows of two spaces, so that the row would change others", _BY_HAND)


def _commit(folder: Path) -> str:
    """The commit that a clone is at; empty where git does not know."""
    words = ["git", "-C", str(folder), "rev-parse", "--short=8", "HEAD"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
