"""A file that grows: what is there of it is never taken for the whole."""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec

from hpcgen.core.support.hashing import CHUNK
from hpcgen.core.support.placing import sync_folder

_TAG_BYTES = 4096


class DiskError(Exception):
    """A file could not be written; ``failure`` is what the system said."""

    def __init__(self, failure: OSError) -> None:
        super().__init__(str(failure))
        self.failure = failure


class PartialFile:
    """The beginning of a file, and beside it (``.tag``) the server's mark of the version that it is of.

    ``path``: of the part; its folder is made when it is needed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.hasher = hashlib.sha256()
        self.count = 0
        self._open: int | None = None

    def size(self) -> int:
        """Bytes that were received so far."""
        try:
            return self.path.stat().st_size
        except OSError:
            return 0

    def begin(self, start: int) -> None:
        """Open it to write behind its first ``start`` bytes, which are hashed; what is behind them goes away."""
        self.close()
        self.hasher, self.count = hashlib.sha256(), 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._open = os.open(self.path, flags, 0o666)
            os.ftruncate(self._open, start)
            while self.count < start and (data := os.read(self._open, CHUNK)):
                self.hasher.update(data)
                self.count += len(data)
        except OSError as failure:
            raise DiskError(failure) from failure

    def write(self, data: bytes) -> None:
        """Add bytes; DiskError where they do not fit."""
        assert self._open is not None
        self.hasher.update(data)
        self.count += len(data)
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._open, rest) :]
        except OSError as failure:
            raise DiskError(failure) from failure

    def close(self) -> None:
        """Leave it as it is, for another time."""
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def finish(self, target: Path) -> None:
        """It is whole: have it on the disk for good, and only then under its name."""
        try:
            if self._open is not None:
                os.fsync(self._open)
                self.close()
            target.parent.mkdir(parents=True, exist_ok=True)
            self.path.rename(target)
            sync_folder(target.parent)
        except OSError as failure:
            raise DiskError(failure) from failure
        self._tag().unlink(missing_ok=True)

    def forget(self) -> None:
        """Remove the part, so that the next download starts at its first byte."""
        self.close()
        self.path.unlink(missing_ok=True)
        self._tag().unlink(missing_ok=True)

    def first(self, count: int = 512) -> bytes:
        """Its first bytes, to say what it is."""
        try:
            with open(self.path, "rb") as stream:
                return stream.read(count)
        except OSError:
            return b""

    def remember(self, url: str, tag: str) -> None:
        """Keep the entity tag of the version that is being fetched; only a help, so no error if it cannot be kept."""
        with contextlib.suppress(OSError):
            self._tag().write_bytes(msgspec.json.encode([url, tag]))

    def tag(self, url: str) -> str:
        """The entity tag that this address gave the part with; empty if it had none or it was another address."""
        try:
            kept = msgspec.json.decode(self._tag().read_bytes()[:_TAG_BYTES], type=tuple[str, str])
        except (OSError, ValueError):
            return ""
        return kept[1] if kept[0] == url else ""

    def _tag(self) -> Path:
        return self.path.with_name(f"{self.path.name}.tag")
