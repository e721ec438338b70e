"""The reasons of ``left_out`` in release tables, tried again: which of them no longer holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import Version

from hpcgen.blocks.requirements import in_range
from hpcgen.core.errors import ConflictError, FetchError, HpcgenError, InputError
from hpcgen.core.model.release import LeftOut, Until, Upstream
from hpcgen.plugins.tables.findings import GIT, TableFinding
from hpcgen.plugins.tables.upstream import Releases, version_of
from hpcgen.supply.net.package_index import PackageIndex

_GLIBC = "2.35"
"""That of Ubuntu 22.04: what newer releases have wheels for."""


def tried_again(
    block: str, upstream: Upstream, known: Mapping[str, Releases], index: PackageIndex | None
) -> Iterator[TableFinding]:
    """What came of each reason: it holds no longer, it could not be tried, or nothing where it still holds.

    ``known``: what each source knows, with the releases that are left out. ``index``: None if the package index is not
    asked.
    """
    for versions, reason in upstream.left_out.items():
        if not isinstance(reason, LeftOut):
            yield TableFinding(block, "untried", versions, f"left out, and no machine can try why: {reason}")
            continue
        try:
            told = _came_true(reason.until, versions, upstream, known, index)
        except HpcgenError as error:
            yield TableFinding(block, "unread", versions, f"left out ({reason.why}): {error.problems[0].on_one_line}")
            continue
        if told is None:
            yield TableFinding(block, "untried", versions, f"left out, and no index was asked: {reason.why}")
        elif told:
            yield TableFinding(block, "lapsed", versions, f"left out ({reason.why}), but {told}")


def _came_true(
    until: Until, versions: str, upstream: Upstream, known: Mapping[str, Releases], index: PackageIndex | None
) -> str | None:
    """How all came true that a reason waits for, empty if one did not; None if that hangs on an index not asked."""
    told = []
    if until.hash:
        told.append(_hash_known(versions, upstream, known))
    if (until.index or until.lock) and index is None:
        return None if all(told) else ""
    if until.index and index is not None:
        told.append(_in_index(until.index, index))
    if until.lock and all(told):
        told.append(_locked(until))
    return " and ".join(told) if all(told) else ""


def _hash_known(versions: str, upstream: Upstream, known: Mapping[str, Releases]) -> str:
    for source, releases in known.items():
        for version in sorted(releases, key=Version, reverse=True):
            made = source == GIT and upstream.git is not None and upstream.git.archive == "git"
            if in_range(version, versions) and (releases[version].hashes or made):
                return f"git makes the archive of {version}" if made else f"{source} has a sha256 of {version}"
    return ""


def _in_index(text: str, index: PackageIndex) -> str:
    try:
        asked = Requirement(text)
    except InvalidRequirement:
        raise InputError(f"{text} is not a requirement", expected="a name and a range: certifi>=2026.1") from None
    files, failed = index.project(asked.name)
    if not files and failed:
        raise FetchError("; ".join(failed), remedy="check pip's settings, or try again later")
    there = {version for each in files if not each.yanked and (version := version_of(each.file))}
    fitting = [version for version in there if asked.specifier.contains(version, prereleases=False)]
    return f"the index has {asked.name} {max(fitting, key=Version)}" if fitting else ""


def _locked(until: Until) -> str:
    from hpcgen.supply.pin.wheels import lock_wheels

    try:
        lines = lock_wheels(until.lock, until.python, until.architecture, _GLIBC)
    except ConflictError:
        return ""
    return f"{' '.join(until.lock)} can be locked: {len(lines)} packages"
