"""The packages of an rpm database, read as data: SQLite (Enterprise Linux 9 and later, Fedora) or ndb (openSUSE).

Source: rpm's lib/backend/sqlite.c (a table Packages of header blobs), lib/backend/ndb/rpmpkg.c (slots of 16 bytes in
pages of 4096, each with the block of its blob) and lib/header.c (count and size in network order, then the index). The
older Berkeley DB (Enterprise Linux 8 and before) has no reader here.
"""

from __future__ import annotations

import re
import sqlite3
import struct
import tempfile
import time
from collections.abc import Iterator

import msgspec

from hpcgen.core.errors import InputError

DATABASES = tuple(
    f"{folder}/{name}"
    for folder in ("/usr/lib/sysimage/rpm", "/var/lib/rpm")
    for name in ("rpmdb.sqlite", "Packages.db", "Packages")
)
"""Where a database may lie; the second folder is often a link to the first."""
MOST_PACKAGES = 50_000
_NAME, _VERSION, _RELEASE, _EPOCH, _SOURCE = 1000, 1001, 1002, 1003, 1044
_TAGS = (_NAME, _VERSION, _RELEASE, _EPOCH, _SOURCE)
_SOURCE_FILE = re.compile(r"(.+)-([^-]+-[^-]+)\.(?:no)?src\.rpm")
_SECONDS = 60.0
_HEADER = 16 * 1024 * 1024
"""Bytes of one header; those of the kernel's packages have some."""
_PAGE, _SLOT, _BLOCK, _SLOTS = 4096, 16, 16, 32


class RpmRecord(msgspec.Struct, frozen=True):
    """An installed package; versions are ``EPOCH:VERSION-RELEASE``, without the epoch where there is none.

    ``source``, ``source_version``: the source package that it is built from; "" where the record names none. The record
    gives the source's version without its epoch, which is that of the packages with the same version.
    """

    name: str
    version: str
    source: str = ""
    source_version: str = ""


def rpm_packages(data: bytes, path: str) -> list[RpmRecord]:
    """The packages, of several versions of one the first.

    ``path``: of the database in the image, for messages. InputError: it is of a kind that has no reader, or damaged.
    """
    if data.startswith(b"SQLite format 3\0"):
        blobs = _from_sqlite(data, path)
    elif data.startswith(b"RpmP"):
        blobs = _from_ndb(data)
    else:
        raise InputError(
            f"{path} is an rpm database of the older kind (Berkeley DB), which hpcgen cannot read",
            remedy="rpm -qa in the image lists its packages",
        )
    found: dict[str, RpmRecord] = {}
    try:
        for blob in blobs:
            package = _package(blob)
            if package is not None:
                found.setdefault(package.name, package)
            if len(found) > MOST_PACKAGES:
                raise ValueError("it has too many packages")
    except (sqlite3.Error, struct.error, ValueError) as failure:
        raise InputError(
            f"{path} cannot be read: {failure}", remedy="rpm -qa in the image says whether the database is damaged"
        ) from failure
    return _with_epochs([*found.values()])


def _with_epochs(packages: list[RpmRecord]) -> list[RpmRecord]:
    """The sources' versions with the epoch of what is built from them; of a package that has another, its own."""
    epochs = {}
    for each in packages:
        epoch, _, version = each.version.rpartition(":")
        if version == each.source_version:
            epochs[each.source, version] = epoch
    found = []
    for each in packages:
        epoch = epochs.get((each.source, each.source_version), each.version.rpartition(":")[0])
        version = f"{epoch}:{each.source_version}" if epoch and each.source else each.source_version
        found.append(msgspec.structs.replace(each, source_version=version))
    return found


def _from_sqlite(data: bytes, path: str) -> Iterator[bytes]:
    """The blobs of the table; what a stranger has written as its schema is not run."""
    with tempfile.NamedTemporaryFile(prefix="hpcgen-") as file:
        file.write(data)
        file.flush()
        connection = sqlite3.connect(f"file:{file.name}?mode=ro&immutable=1", uri=True)
        end = time.monotonic() + _SECONDS
        try:
            connection.set_progress_handler(lambda: int(time.monotonic() > end), 100_000)
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA cell_size_check=ON")
            kind = connection.execute("SELECT type, sql FROM sqlite_master WHERE name = 'Packages'").fetchall()
            if [each[0] for each in kind] != ["table"] or "VIRTUAL" in str(kind[0][1]).upper():
                raise ValueError("it has no table of packages")
            for (blob,) in connection.execute("SELECT blob FROM Packages"):
                if isinstance(blob, bytes):
                    yield blob
        finally:
            connection.close()


def _from_ndb(data: bytes) -> Iterator[bytes]:
    """The blobs that its slots name."""
    (pages,) = struct.unpack_from("<I", data, 12)
    for at in range(_SLOTS, min(pages * _PAGE, len(data)) - _SLOT + 1, _SLOT):
        mark, number, block, _ = struct.unpack_from("<4s3I", data, at)
        if mark != b"Slot":
            raise ValueError("a slot has no mark")
        if not number:
            continue
        head, owner, _, length = struct.unpack_from("<4s3I", data, block * _BLOCK)
        start = block * _BLOCK + 16
        if head != b"BlbS" or owner != number or start + length > len(data):
            raise ValueError("a package lies outside of it")
        yield data[start : start + length]


def _package(blob: bytes) -> RpmRecord | None:
    """What one header says; None for a key, which rpm keeps among the packages."""
    count, size = struct.unpack_from(">2I", blob)
    store = 8 + 16 * count
    if len(blob) > _HEADER or store + size > len(blob):
        raise ValueError("a header is longer than its blob")
    found: dict[int, str] = {}
    for number in range(count):
        tag, kind, offset, _ = struct.unpack_from(">4I", blob, 8 + 16 * number)
        if tag not in _TAGS or offset >= size:
            continue
        if kind == 4:
            found[tag] = str(struct.unpack_from(">I", blob, store + offset)[0])
        elif kind == 6:
            text, ended, _ = blob[store + offset : store + offset + 1024].partition(b"\0")
            found[tag] = text.decode("utf-8", "replace") if ended else ""
    name, version = found.get(_NAME, ""), found.get(_VERSION, "")
    if not name or not version or name == "gpg-pubkey":
        return None
    epoch = f"{found[_EPOCH]}:" if found.get(_EPOCH, "0") != "0" else ""
    edition = f"{epoch}{version}-{found[_RELEASE]}" if found.get(_RELEASE) else f"{epoch}{version}"
    source = _SOURCE_FILE.fullmatch(found.get(_SOURCE, ""))
    return RpmRecord(name, edition, source[1], source[2]) if source else RpmRecord(name, edition)
