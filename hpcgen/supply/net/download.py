"""Fetch many files at once: each is resumed, tried again and elsewhere, and checked before it gets its name.

A file grows as a :class:`~hpcgen.supply.net.part.PartialFile`. Only when its size and sha256 are right it is fsynced
and renamed to where it belongs, so whatever has its final name was whole.
"""

from __future__ import annotations

import re
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import msgspec

from hpcgen.core.errors import FetchError, Problem
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.support.hashing import CHUNK
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.supply.net.part import PartialFile
from hpcgen.supply.net.web import Response, Timeouts, Web, WebError, explained, shown
from hpcgen.supply.net.workers import work_all

_LARGEST = 200 * 10**9
"""Bytes of a file of unknown size."""
_SLACK = 1024 * 1024
"""Bytes beyond the announced size that are still read, so that the hash of a wrong file can be told."""
_MOST_ROUNDS = 200
_SHOWN = 20
_DOWN_AFTER = 2
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18}|\*)")


class RetryPolicy(msgspec.Struct, frozen=True):
    """When a download is given up, and how it is tried again.

    connect_s, silence_s: until a connection stands; of silence.
    stall_s, stall_bytes: a transfer that brings fewer bytes in so many seconds is cut off and tried again.
    rounds: how often all addresses of a file are tried without progress (``stall_bytes``).
    pause_s, longest_pause_s: before the second round, doubled before each further one.
    """

    connect_s: float = 20.0
    silence_s: float = 30.0
    stall_s: float = 60.0
    stall_bytes: int = 60_000
    rounds: int = 5
    pause_s: float = 1.0
    longest_pause_s: float = 30.0


class Download(msgspec.Struct, frozen=True):
    """One file to fetch: the folder for its part, and where it goes when it is whole."""

    wanted: WantedFile
    parts: Path
    target: Path


class _Transfer(msgspec.Struct):
    """A connection in use, for the one who watches that it moves."""

    line: socket.socket | None = None
    moved: int = 0
    seen: int = 0
    since: float = 0.0
    stalled: bool = False


class Downloader:
    """Fetches files.

    Parameters
    ----------
    jobs: how many at once.
    ca_files, tokens: as :class:`~hpcgen.supply.net.web.Web` takes them.
    """

    def __init__(
        self,
        jobs: int = 8,
        policy: RetryPolicy | None = None,
        ca_files: Sequence[Path] = (),
        watch: Watch | None = None,
        tokens: Mapping[str, str] | None = None,
    ) -> None:
        self.jobs, self.policy, self.watch = jobs, policy or RetryPolicy(), watch or Watch()
        self.web = Web(Timeouts(self.policy.connect_s, self.policy.silence_s), ca_files, tokens)
        self.stop = threading.Event()
        self.transfers: dict[int, _Transfer] = {}
        self.down: dict[str, int] = {}
        self.progress = TransferProgress("fetching", 0, 0)

    def fetch(self, downloads: Sequence[Download]) -> None:
        """Fetch all; what is whole stays, and so do the parts of what is not.

        FetchError: with every file that was not fetched, and why from each address. DiskError: the disk is full, or the
        like.
        """
        failures: dict[str, Problem] = {}
        # The largest first: it takes longest, and the small ones fill the gaps.
        order = sorted(downloads, key=lambda each: (-(each.wanted.size or 0), each.wanted.file))
        self.progress = TransferProgress("fetching", len(order), sum(each.wanted.size or 0 for each in order))
        self.stop.clear()

        def work(download: Download) -> None:
            if (problem := _File(self, download).fetch()) is not None:
                failures[str(download.target)] = problem

        self.watch.begin(self.progress)
        try:
            work_all(order, work, self.jobs, self._tick, self.stop, self._cut_all)
        finally:
            self.watch.end()
        if failures:
            raise FetchError(_listed(list(failures.values())))

    def is_down(self, url: str) -> bool:
        """Whether a host could not be reached for other files either: then waiting for it is in vain."""
        return self.down.get(urllib.parse.urlsplit(url).netloc, 0) >= _DOWN_AFTER

    def note_down(self, url: str) -> None:
        """A file was given up because its host could not be reached."""
        host = urllib.parse.urlsplit(url).netloc
        self.down[host] = self.down.get(host, 0) + 1

    def _tick(self) -> None:
        now = time.monotonic()
        for transfer in list(self.transfers.values()):
            if now - transfer.since < self.policy.stall_s:
                continue
            if transfer.moved - transfer.seen < self.policy.stall_bytes:
                transfer.stalled = True
                _cut(transfer)
            transfer.since, transfer.seen = now, transfer.moved
        self.watch.tick()

    def _cut_all(self) -> None:
        for transfer in list(self.transfers.values()):
            _cut(transfer)


class _File:
    """The download of one file."""

    def __init__(self, owner: Downloader, download: Download) -> None:
        self.owner, self.wanted, self.target = owner, download.wanted, download.target
        self.part = PartialFile(download.parts / f"{self.wanted.sha256}-{self.wanted.file[:150]}")
        self.key = f"{self.wanted.file} {self.wanted.sha256}"
        self.failures: dict[str, WebError] = {}

    def fetch(self) -> Problem | None:
        """Fetch it; the problem if none of its addresses gave it."""
        stop, policy = self.owner.stop, self.owner.policy
        urls = list(dict.fromkeys(self.wanted.urls))
        pause, fruitless = policy.pause_s, 0
        self.owner.progress.begin(self.key)
        for _ in range(_MOST_ROUNDS):
            before = self.part.size()
            if self._round(urls):
                self.owner.progress.end(self.key)
                return None
            # A server that only trickles is not on its way to the end.
            grown = self.part.size() >= before + policy.stall_bytes
            fruitless, pause = (0, policy.pause_s) if grown else (fruitless + 1, pause)
            if not urls or fruitless >= policy.rounds or stop.is_set():
                break
            wait = max(self.failures[url].wait for url in urls)
            stop.wait(min(max(pause, wait), policy.longest_pause_s))
            pause *= 2
        for url in urls:
            if self.failures[url].down:
                self.owner.note_down(url)
        self.owner.progress.end(self.key, done=False)
        return _problem(self.wanted, self.failures)

    def _round(self, urls: list[str]) -> bool:
        """Try each address once; what need not be tried again leaves ``urls``."""
        for url in list(urls):
            try:
                self._try(url)
                return True
            except WebError as failure:
                if self.owner.stop.is_set():
                    urls.clear()
                    return False
                self.failures[url] = failure
                if not failure.again or (failure.down and self.owner.is_down(url)):
                    urls.remove(url)
            finally:
                self.part.close()
        return False

    def _try(self, url: str) -> None:
        if urllib.parse.urlsplit(url).scheme == "file":
            self._copy(url)
            return
        have, whole = self.part.size(), self.wanted.size
        if whole is not None and have >= whole:
            self.part.begin(whole)
            if self._fits():
                return
            self.part.forget()
            have = 0
        self._count(have)
        transfer = _Transfer(since=time.monotonic())
        self.owner.transfers[threading.get_ident()] = transfer
        try:
            answer = self.owner.web.get(
                url, self._range(url, have), self.wanted.kind == "package", lambda line: _use(transfer, line)
            )
            try:
                self._receive(url, answer, have, transfer)
            finally:
                answer.close()
        except WebError as failure:
            if transfer.stalled:
                raise self._stalled() from failure
            raise
        finally:
            del self.owner.transfers[threading.get_ident()]

    def _range(self, url: str, have: int) -> dict[str, str]:
        """Headers that ask for the rest; ``If-Range`` where the address marked its version."""
        if not have:
            return {}
        tag = self.part.tag(url)
        return {"Range": f"bytes={have}-", **({"If-Range": tag} if tag else {})}

    def _receive(self, url: str, answer: Response, have: int, transfer: _Transfer) -> None:
        """Take the bytes of an answer to the end, then check and name the file."""
        if answer.status == 416:
            self.part.forget()
            raise WebError("the server has fewer bytes than were fetched before; fetching again")
        start, length = _placed(answer, have)
        self.part.begin(start)
        self._count(start)
        if not start and (tag := answer.headers.get("etag", "")).startswith('"') and len(tag) < 200:
            self.part.remember(url, tag)
        whole = self.wanted.size
        if whole is not None and length is not None and start + length > whole + _SLACK:
            with suppress(OSError, HTTPException, ValueError):
                self.part.write(answer.read(512))
            raise self._too_long(start + length)
        self._pour(lambda: self._read(answer), transfer)
        if self.owner.stop.is_set():
            raise WebError("interrupted")
        if transfer.stalled:
            raise self._stalled()
        if length is not None and self.part.count < start + length:
            raise WebError(f"the connection closed after {self.part.count} of {start + length} bytes")
        if self._fits():
            return
        found, first = self.part.hasher.hexdigest(), self.part.first()
        self.part.forget()
        if start:
            raise WebError("the parts before and after an interruption do not match; fetching again")
        raise _wrong(self.wanted, found, self.part.count, first)

    def _read(self, answer: Response) -> bytes:
        try:
            return answer.read(CHUNK)
        except TimeoutError as failure:
            raise WebError(f"it stalled: no data for {self.owner.policy.silence_s:g} s") from failure
        except (OSError, HTTPException, ValueError) as failure:
            at = f"after {self.part.count} bytes: "
            problem = explained(failure, urllib.parse.urlsplit(answer.url).hostname or "")
            raise WebError(f"the connection broke {at}{problem.message}") from failure

    def _pour(self, read: Callable[[], bytes], transfer: _Transfer) -> None:
        """Write what comes, at most what the file may have."""
        most = _LARGEST if self.wanted.size is None else self.wanted.size + _SLACK
        while data := read():
            transfer.moved += len(data)
            self.part.write(data)
            self.owner.progress.moved(self.key, len(data))
            if self.part.count > most:
                raise self._too_long(None)
            if self.owner.stop.is_set():
                raise WebError("interrupted")

    def _copy(self, url: str) -> None:
        """A ``file:`` address, checked like any other."""
        parts = urllib.parse.urlsplit(url)
        if parts.netloc not in ("", "localhost"):
            raise WebError("it is on another machine", again=False)
        source = Path(urllib.request.url2pathname(parts.path))
        self._count(0)
        try:
            if not source.is_file():
                raise WebError("there is no such file", again=False)
            with open(source, "rb") as stream:
                self.part.begin(0)
                self._pour(lambda: stream.read(CHUNK), _Transfer())
        except OSError as failure:
            raise WebError(f"it cannot be read: {failure.strerror}", again=False) from failure
        if not self._fits():
            found, first = self.part.hasher.hexdigest(), self.part.first()
            self.part.forget()
            raise _wrong(self.wanted, found, self.part.count, first)

    def _fits(self) -> bool:
        """Name the file if it is what was wanted."""
        whole = self.wanted.size
        if self.part.hasher.hexdigest() != self.wanted.sha256 or whole not in (None, self.part.count):
            return False
        self._count(self.part.count)
        self.part.finish(self.target)
        return True

    def _count(self, count: int) -> None:
        """From now on so many bytes are there."""
        progress = self.owner.progress
        progress.moved(self.key, count - progress.running.get(self.key, 0))

    def _too_long(self, count: int | None) -> WebError:
        first = self.part.first()
        self.part.forget()
        said = f"{count} bytes" if count is not None else "more bytes than that"
        message = f"the server sends a different file: {said}, expected {self.wanted.size}{_kind_of(first)}"
        return WebError(message, again=False, other_file=True)

    def _stalled(self) -> WebError:
        policy = self.owner.policy
        return WebError(f"it stalled: fewer than {policy.stall_bytes} bytes arrived in {policy.stall_s:g} s")


def _use(transfer: _Transfer, line: socket.socket) -> None:
    transfer.line = line


def _cut(transfer: _Transfer) -> None:
    """End a connection under the one who reads from it; he then sees its end."""
    if transfer.line is not None:
        with suppress(OSError):
            # Not SSLSocket's own, which would have the reader go on without decrypting.
            socket.socket.shutdown(transfer.line, socket.SHUT_RDWR)


def _placed(answer: Response, have: int) -> tuple[int, int | None]:
    """Where the bytes of an answer begin, and how many they are if it says so."""
    announced = answer.headers.get("content-length", "")
    length = int(announced) if announced.isdecimal() and len(announced) < 19 else None
    if answer.status == 200:
        return 0, length
    found = _RANGE.fullmatch(answer.headers.get("content-range", ""))
    if found is None or int(found[1]) != have:
        raise WebError("the server sends a part of the file that was not requested", again=False)
    return have, length


def _kind_of(first: bytes) -> str:
    """What a wrong file looks like."""
    if first.lstrip().startswith(b"<"):
        return "; it is a web page, perhaps the login or error page of a proxy: open the address in a browser"
    return ""


def _wrong(wanted: WantedFile, found: str, count: int, first: bytes) -> WebError:
    size = f" ({count} bytes, expected {wanted.size})" if wanted.size not in (None, count) else ""
    guess = _kind_of(first) or ("; it is empty" if not count else "")
    message = f"the server sends a different file{size}: its sha256 is {found}, expected {wanted.sha256}{guess}"
    return WebError(message, again=False, other_file=True)


def _problem(wanted: WantedFile, failures: dict[str, WebError]) -> Problem:
    reasons = [f"{shown(url)}: {failure.message}" for url, failure in failures.items()]
    name = wanted.file if wanted.file == wanted.name else f"{wanted.file} ({wanted.name})"
    if not reasons:
        return Problem(
            f"{name} was not fetched: no address is known for it", remedy="put it into a folder and pass --files DIR"
        )
    remedy = "run the same command again, which resumes; for files that you got elsewhere, use --files DIR"
    if any(failure.other_file for failure in failures.values()):
        remedy = "if the file has really changed, regenerate the lock; do not use the received file"
    return Problem(f"{name} was not fetched: " + "; ".join(reasons), remedy=remedy)


def _listed(problems: list[Problem]) -> list[Problem]:
    """The first ones, and how many more there are; a remedy stands once, at the last that it is for."""
    ordered = sorted(problems, key=lambda each: (each.remedy, each.message))
    left = len(ordered) - _SHOWN
    ordered = ordered[:_SHOWN]
    if left > 0:
        ordered.append(Problem(f"{left} more files were not fetched", remedy=ordered[-1].remedy))
    pairs = zip(ordered, [*ordered[1:], None], strict=True)
    return [
        Problem(each.message) if after is not None and each.remedy == after.remedy else each for each, after in pairs
    ]
