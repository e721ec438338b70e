"""Find the files that hashed requirement lines ask for, in the package indexes that pip is told to use."""

from __future__ import annotations

import functools
import netrc
import os
import re
import threading
import time
import urllib.parse
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version

from hpcgen.core.errors import FetchError, InputError, Problem, Problems
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.secret_rules import public
from hpcgen.core.support.hashing import file_sha256
from hpcgen.core.support.wheel_lines import EXPECTED, logical_lines, parse_line
from hpcgen.supply.net.index_pages import ACCEPT, IndexFile, PageError, read_page
from hpcgen.supply.net.web import Timeouts, Web, WebError, shown

PAGE_BYTES = 128 * 1024 * 1024
"""The largest page that is read, unpacked; the largest of the public index have some 20 MB."""
_SILENCE_S = 30.0
_PAGE_S = 300.0
"""The longest that one page may take, however steadily it comes."""
_ATTEMPTS = 4
_PAUSE_S = 0.5
_AT_ONCE = 8
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class PinnedRequirement(msgspec.Struct, frozen=True):
    """A requirement line: the normalised name, the version, and the sha256 of each file that is accepted."""

    name: str
    version: str
    hashes: tuple[str, ...]


class IndexPage(msgspec.Struct, frozen=True):
    """One address that is looked at: the page of a project in an index, or (``all``) one page or folder for all."""

    address: str
    all: bool


def find_files(
    lines: Sequence[str], indexes: Sequence[str] | None = None, *, loopback_http: bool = False
) -> list[WantedFile]:
    """The file of every line, with all addresses that have it.

    lines: ``name==version --hash=sha256:…``; comments and empty lines are allowed.
    indexes: addresses of simple indexes (``https:``, or ``file:`` for a folder); those of pip's own settings if
        None, with their folders of links.
    loopback_http: allow http to this machine itself.
    InputError: lines that are not pinned by version and sha256, all of them.
    FetchError: files that no index has, all of them, with what was looked at.
    """
    pins = pinned(lines)
    source = PackageIndex(indexes, loopback_http=loopback_http)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(source.wanted, pins))
    Problems(answer for answer in found if isinstance(answer, Problem)).raise_as(FetchError)
    files = [each for answer in found if not isinstance(answer, Problem) for each in answer]
    return list({(each.sha256, each.file): each for each in files}.values())


def pinned(lines: Iterable[str]) -> list[PinnedRequirement]:
    """The requirements of hashed lines; one package may have several files."""
    result, problems = [], Problems()
    for _, text in logical_lines("\n".join(lines)):
        line = parse_line(text)
        if line is None or not _is_version(line.version):
            problems.add(f"not a pinned requirement: {public(text, 120)!r}", expected=EXPECTED)
            continue
        result.append(PinnedRequirement(canonicalize_name(line.name), line.version, line.hashes))
    problems.raise_as(InputError)
    return result


class PackageIndex:
    """The indexes, folders and pages that are looked at, and what was read there. For use by many threads."""

    def __init__(self, indexes: Sequence[str] | None = None, *, loopback_http: bool = False) -> None:
        from hpcgen.supply.net.pip_settings import named_folders, pip_settings

        links = named_folders()
        ca_files: list[Path] = []
        if indexes is None:
            settings = pip_settings()
            indexes, links = settings.indexes, (*links, *settings.links)
            ca_files = [Path(settings.cert)] if settings.cert else []
        self.indexes = [with_password(address.rstrip("/") + "/") for address in indexes]
        self.links = [with_password(_address(link)) for link in links]
        self.loopback_http = loopback_http
        self.pause_s = _PAUSE_S
        self.web = Web(Timeouts(silence=_SILENCE_S), ca_files)
        self._lock = threading.Lock()
        self._reading: dict[str, threading.Lock] = {}
        self._read: dict[str, list[IndexFile] | str] = {}

    def wanted(self, pin: PinnedRequirement) -> list[WantedFile] | Problem:
        """The files of a pinned requirement, or that none has its hash."""
        fitting = self.files(pin.name, pin.version)
        by_hash: dict[str, list[IndexFile]] = {}
        for each in fitting:
            sha256 = each.sha256 or self.own_hash(each)
            if sha256 in pin.hashes:
                by_hash.setdefault(sha256, []).append(each)
        unnamed = [each for each in fitting if not each.sha256 and not each.url.startswith("file:")]
        if not by_hash and len(unnamed) == len(pin.hashes) == 1:
            # The index tells no hashes, but there is only one file that it can be; the download is checked.
            by_hash[pin.hashes[0]] = unnamed
        if not by_hash:
            return self._nowhere(pin, fitting)
        return [_wanted(pin, sha256, by_hash[sha256]) for sha256 in pin.hashes if sha256 in by_hash]

    @property
    def remote(self) -> list[str]:
        """The indexes, and pages of links, that are not of this machine."""
        return [each for each in (*self.indexes, *self.links) if not each.startswith("file:")]

    def files(self, name: str, version: str, *, remote: bool = True) -> list[IndexFile]:
        """What all indexes have of one version, each file as often as it is there; those that fail have nothing.

        ``remote``: whether those are asked too that are not of this machine.
        """
        wanted = Version(version)
        found = []
        for place in (each for each in self.places(name) if remote or each.address.startswith("file:")):
            files = self._page(place)
            found += [each for each in files if fits(each.file, name, wanted)] if isinstance(files, list) else []
        return found

    def project(self, name: str) -> tuple[list[IndexFile], list[str]]:
        """All files that the indexes have of a project, and why some could not be asked."""
        files: list[IndexFile] = []
        failed = []
        for place in self.places(name):
            page = self._page(place)
            if isinstance(page, str):
                failed.append(f"{shown(place.address)} ({page})")
            else:
                files += [each for each in page if fits(each.file, name, None)]
        return files, failed

    def places(self, name: str) -> list[IndexPage]:
        """Where a project is looked for, in pip's order."""
        project = [IndexPage(f"{index}{canonicalize_name(name)}/", False) for index in self.indexes]
        return [*project, *(IndexPage(link, True) for link in self.links)]

    def _nowhere(self, pin: PinnedRequirement, fitting: Sequence[IndexFile]) -> Problem:
        hashes = " or ".join(f"sha256:{sha256}" for sha256 in pin.hashes[:3])
        looked = "; ".join(self._said(place, pin) for place in self.places(pin.name)) or "nothing: pip has no index"
        have = sorted({each.file for each in fitting})
        there = f"; available for this version: {', '.join(have[:8])}{' …' if len(have) > 8 else ''}" if have else ""
        unnamed = " (not all with a sha256)" if any(not each.sha256 for each in fitting) else ""
        return Problem(
            f"no package index has {pin.name} {pin.version} with {hashes}; searched {looked}{there}{unnamed}",
            remedy="configure pip (pip config list) with the index that the list was made from, or --wheel-dir FOLDER",
        )

    def _said(self, place: IndexPage, pin: PinnedRequirement) -> str:
        files = self._page(place)
        address = shown(place.address)
        if isinstance(files, str):
            return f"{address} ({files})"
        if place.all:
            files = [each for each in files if fits(each.file, pin.name, None)]
        return f"{address} ({len(files)} {'file' if len(files) == 1 else 'files'})"

    def _page(self, place: IndexPage) -> list[IndexFile] | str:
        """Cached contents, or the reason there are none."""
        with self._lock:
            alone = self._reading.setdefault(place.address, threading.Lock())
        with alone:
            if place.address not in self._read:
                self._read[place.address] = self._look(place)
            return self._read[place.address]

    def _look(self, place: IndexPage) -> list[IndexFile] | str:
        parts = urllib.parse.urlsplit(place.address)
        try:
            if parts.scheme == "file":
                files = _local_page(local_path(place.address))
            elif refusal := self._refusal(place.address):
                return refusal
            else:
                files = self._remote_page(place.address)
        except (PageError, WebError, OSError) as error:
            return error.strerror or str(error) if isinstance(error, OSError) else str(error)
        # A server has no say over the files of this machine.
        allowed = ("file:", "https:") if parts.scheme == "file" else ("https:",)
        usable = [each for each in files if each.url.startswith(allowed) or self._is_loopback(each.url)]
        return [_with_credentials(each, parts) for each in usable]

    def _refusal(self, address: str) -> str:
        """Why an address is not used; empty if it is."""
        if address.startswith("https:") or self._is_loopback(address):
            return ""
        return "not used: only https and file are supported"

    def _is_loopback(self, address: str) -> bool:
        if not self.loopback_http:
            return False
        parts = urllib.parse.urlsplit(address)
        return parts.scheme == "http" and parts.hostname in _LOOPBACK

    def _remote_page(self, address: str) -> list[IndexFile]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                data, kind, url = self._get(address)
                return read_page(data, kind, url)
            except WebError as error:
                if not error.again or attempt == _ATTEMPTS:
                    raise
                time.sleep(min(max(error.wait, self.pause_s * 2 ** (attempt - 1)), 30))
        raise AssertionError("unreachable")

    def _get(self, address: str) -> tuple[bytes, str, str]:
        """A page's bytes, its type and where it was in the end."""
        headers = {"Accept": ACCEPT, "Accept-Encoding": "gzip"}
        answer = self.web.get(address, headers, self._is_loopback(address), lambda socket: None)
        try:
            if answer.status != 200:
                raise WebError(f"the server says {answer.status}", again=False)
            packed = answer.headers.get("content-encoding", "").lower() == "gzip"
            data = _bounded(answer.read, packed, answer.headers.get("content-length", ""))
        finally:
            answer.close()
        return data, answer.headers.get("content-type", ""), answer.url

    @staticmethod
    def own_hash(each: IndexFile) -> str:
        """The sha256 of a file of this machine that no page gave one for."""
        return _hash_file(local_path(each.url)) if each.url.startswith("file:") else ""


def _version(words: Sequence[str]) -> Version | None:
    return _parsed(words[0]) if words else None


@functools.lru_cache(maxsize=16384)
def _parsed(text: str) -> Version | None:
    """A version, of which a page has each in many files."""
    try:
        return Version(text)
    except InvalidVersion:
        return None


def _plain(text: str) -> str:
    return text.lower().replace("_", "-").replace(".", "-")


def fits(file: str, name: str, version: Version | None) -> bool:
    """Is this the name of a file of a project, and of this version if one is given?"""
    # One page may have the files of thousands of projects, and to take their names apart takes long.
    if _plain(file[: len(name)]) != _plain(name):
        return False
    try:
        if file.endswith(".whl"):
            if version is not None and _version(file.split("-")[1:2]) != version:
                return False
            found, its = parse_wheel_filename(file)[:2]
        else:
            found, its = parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
    return found == canonicalize_name(name) and (version is None or its == version)


def local_path(address: str) -> Path:
    """The path of a ``file:`` address of this machine."""
    parts = urllib.parse.urlsplit(address)
    if parts.netloc not in ("", "localhost"):
        raise PageError(f"{shown(address)} is a file on another machine")
    return Path(urllib.request.url2pathname(parts.path))


def _wanted(pin: PinnedRequirement, sha256: str, files: Sequence[IndexFile]) -> WantedFile:
    sizes = [_local_size(each) if each.size is None else each.size for each in files]
    return WantedFile(
        kind="wheel",
        name=f"{pin.name} {pin.version}",
        file=files[0].file,
        sha256=sha256,
        urls=list(dict.fromkeys(each.url for each in files)),
        size=next((size for size in sizes if size is not None), None),
    )


def with_password(address: str) -> str:
    """An address with the user name and password that ~/.netrc has for its host, as pip takes them from there."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" or parts.username is not None:
        return address
    known = _netrc(os.environ.get("NETRC")).get(parts.hostname or "")
    if known is None:
        return address
    user, password = (urllib.parse.quote(word or "", safe="") for word in (known[0], known[2]))
    return parts._replace(netloc=f"{user}:{password}@{parts.netloc}").geturl()


@functools.cache
def _netrc(path: str | None) -> dict[str, tuple[str, str | None, str | None]]:
    try:
        return dict(netrc.netrc(path).hosts)
    except (OSError, netrc.NetrcParseError):
        return {}


def _with_credentials(each: IndexFile, index: urllib.parse.SplitResult) -> IndexFile:
    """A file at the index's own host, with the user name and password that the index's address has."""
    if index.username is None and not _netrc(os.environ.get("NETRC")):
        return each
    parts = urllib.parse.urlsplit(each.url)
    if index.username is None or parts.netloc != index.netloc.rpartition("@")[2]:
        return msgspec.structs.replace(each, url=with_password(each.url))
    return msgspec.structs.replace(each, url=parts._replace(netloc=index.netloc).geturl())


def _local_size(each: IndexFile) -> int | None:
    try:
        return local_path(each.url).stat().st_size if each.url.startswith("file:") else None
    except OSError:
        return None


def _local_page(path: Path) -> list[IndexFile]:
    """A folder of an index (with index.html), a page, or a folder of packages as ``--find-links`` takes it."""
    index = path / "index.html"
    page = index if index.is_file() else path
    if page.is_file():
        if page.stat().st_size > PAGE_BYTES:
            raise PageError("it is too large")
        return read_page(page.read_bytes(), "text/html", page.absolute().as_uri())
    return [IndexFile(each.name, each.absolute().as_uri()) for each in sorted(page.iterdir()) if each.is_file()]


def _address(link: str) -> str:
    """What pip takes as find-links: an address, or a path of this machine."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", link):
        return link
    return Path(link).expanduser().absolute().as_uri()


def _bounded(read: Callable[[int], bytes], packed: bool, length: str) -> bytes:
    """A whole response, unpacked, of at most ``PAGE_BYTES``; ``length`` is what the server announced."""
    unpack = zlib.decompressobj(wbits=31) if packed else None
    data = bytearray()
    got = 0
    end = time.monotonic() + _PAGE_S
    while chunk := _chunk(read):
        if time.monotonic() > end:
            raise WebError(f"the page had not arrived after {_PAGE_S:.0f} seconds")
        got += len(chunk)
        try:
            data += unpack.decompress(chunk, PAGE_BYTES + 1 - len(data)) if unpack else chunk
        except zlib.error:
            raise WebError("its response cannot be decompressed") from None
        if len(data) > PAGE_BYTES:
            raise WebError(f"the page is larger than {PAGE_BYTES // 1024**2} MiB", again=False)
    if (length.isdecimal() and got != int(length)) or (unpack is not None and not unpack.eof):
        raise WebError("the connection ended in the middle of the page")
    return bytes(data)


def _chunk(read: Callable[[int], bytes]) -> bytes:
    import http.client

    try:
        return read(256 * 1024)
    except (OSError, http.client.HTTPException) as failure:
        raise WebError(f"the connection was lost ({failure})") from failure


@functools.cache
def _hash_file(path: Path) -> str:
    try:
        return file_sha256(path)
    except OSError:
        return ""


def _is_version(text: str) -> bool:
    try:
        Version(text)
    except InvalidVersion:
        return False
    return True
