"""Releases that a page or file names: sums of a project, folders of a vendor, a distribution's index of packages."""

from __future__ import annotations

import gzip
import http.client
import io
import lzma
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

from hpcgen.core.errors import FetchError
from hpcgen.core.model.release import UpstreamGit, UpstreamList
from hpcgen.plugins.tables.git_tags import Repository, clone_of, file_in
from hpcgen.plugins.tables.upstream import Known, Releases, pattern_of, plain_version
from hpcgen.supply.net.package_index import PAGE_BYTES
from hpcgen.supply.net.web import Web, WebError

_FAILURES = (WebError, OSError, EOFError, http.client.HTTPException, lzma.LZMAError, zlib.error)
_ON_GITHUB = re.compile(r"https://raw\.githubusercontent\.com/([^/]+/[^/]+)/HEAD/(.+)")


def listed_releases(listed: UpstreamList, clones: Mapping[str, Path], web: Web | None) -> Releases:
    """The releases that a list names, with the hashes that stand beside them.

    clones: by ``OWNER/NAME``; a file of a repository on GitHub is read in its clone where there is one.
    web: None where no network is used.
    FetchError: there is no answer, or none that can be read. InputError: the pattern is no regular expression.
    """
    pattern = pattern_of(listed.pattern)
    text = _text(listed.url, clones, web).decode("utf-8", "replace")
    found: Releases = {}
    for match in pattern.finditer(text):
        if version := plain_version(match["version"]):
            sha256 = match.groupdict().get("sha256")
            known = Known(frozenset({sha256} if sha256 else ()), places=(listed.url,))
            found[version] = found.get(version, Known()).joined(known)
    return found


def readable(listed: UpstreamList, clones: Mapping[str, Path], web: Web | None) -> bool:
    """Whether there is a way to the list: the network, or a clone of the repository that it is in."""
    part = _ON_GITHUB.fullmatch(listed.url)
    return web is not None or (part is not None and clone_of(part[1], clones) is not None)


def _text(url: str, clones: Mapping[str, Path], web: Web | None) -> bytes:
    part = _ON_GITHUB.fullmatch(url)
    clone = clone_of(part[1], clones) if part else None
    if part and clone:
        return file_in(Repository(UpstreamGit(url=f"https://github.com/{part[1]}"), clone), part[2])
    assert web is not None
    try:
        data = _downloaded(url, web)
        if url.endswith(".gz"):
            with gzip.open(io.BytesIO(data)) as unpacked:
                data = unpacked.read(PAGE_BYTES + 1)
        elif url.endswith(".xz"):
            with lzma.open(io.BytesIO(data)) as unpacked_xz:
                data = unpacked_xz.read(PAGE_BYTES + 1)
    except _FAILURES as error:
        raise FetchError(f"{url}: {error}", remedy="try again later, or correct the address in the table") from None
    if len(data) > PAGE_BYTES:
        raise FetchError(f"{url} is larger than {PAGE_BYTES >> 20} MiB", remedy="name another list of the releases")
    return data


def _downloaded(url: str, web: Web) -> bytes:
    answer = web.get(url, {}, False, lambda _: None)
    try:
        return answer.body(PAGE_BYTES)
    finally:
        answer.close()
