"""A store of artifacts: a folder that several machines may share, also by NFS.

``KEY.json`` in a folder of the key's first two letters says what an artifact is, ``files/SHA256.tar.gz`` is its
content. ``index.json``, which ``cache push`` writes, has the keys, for who cannot list a folder. Each gets its name
when it is whole, the record last: so nobody reads half of one, writers need no lock, and a killed one leaves nothing
that is used. Two that compile the same leave the archive of both, and the record of the last.
"""

from __future__ import annotations

import glob
import re
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import HpcgenError, InputError, PolicyError, UnknownNameError, did_you_mean
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.support.file_formats import ARTIFACT
from hpcgen.core.support.hashing import file_sha256, read_plain
from hpcgen.core.support.refusals import explained
from hpcgen.core.support.signatures import ARTIFACT as NAMESPACE
from hpcgen.core.support.signatures import Signer, sign, signer_of
from hpcgen.core.support.writing import CopiedFile, write_file
from hpcgen.recipe.artifacts import StoredArtifact

ARCHIVES = "files"
SIGNED = ".sig"
INDEX = "index.json"
MAX_BYTES = 1024 * 1024
"""Of a record, or a signature."""
_RECORD = re.compile(r"[0-9a-f]{64}\.json")
_UNFINISHED_S = 86400.0
"""A file without its final name that is older than this was left by a killed process."""


class ArtifactEntry(NamedTuple):
    """A record that could be read: its file, its bytes, and what they say."""

    path: Path
    data: bytes
    record: Artifact


class ArtifactStore:
    """The artifacts of one folder.

    ``folder``: it need not be there yet. ``signers``: a file of allowed signers, one of whom must have signed whatever
    is taken.
    """

    def __init__(self, folder: Path, signers: Path | None = None) -> None:
        self.folder, self.signers = folder.absolute(), signers

    def find(self, key: str, tell: Callable[[str], None] = lambda text: None) -> StoredArtifact | None:
        """The artifact of a key, if it is whole, is what its record says and is signed where it has to be.

        ``tell``: told why one that is there is not taken.
        """
        if not self.record_path(key).exists():
            return None
        try:
            found = self.read(key)
            self._check_archive(found.record)
            if self.signers is not None:
                self.signer(found)
        except HpcgenError as error:
            tell(f"not taken from {self.folder}: {error.problems[0].message}")
            return None
        return StoredArtifact(found.record, self.archive(found.record), str(self.folder))

    def read(self, key: str) -> ArtifactEntry:
        """The record of a key; InputError where it is not there, damaged, or was written by a newer release."""
        return self._read(self.record_path(key))

    def put(self, record: Artifact, archive: Path) -> StoredArtifact:
        """Add an artifact, whose archive is copied; one of the same key is replaced.

        OutputError: the folder cannot be written.
        """
        place = self.archive(record)
        with explained(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            if not _is(place, record):
                if place.is_symlink():
                    place.unlink()
                write_file(place, CopiedFile(archive, record.sha256))
            write_file(self.record_path(record.key), _text(record), folders=True)
        # A signature of an older one is not of these bytes.
        signature_of(self.record_path(record.key)).unlink(missing_ok=True)
        return StoredArtifact(record, place, str(self.folder))

    def records(self, tell: Callable[[str], None] = lambda text: None) -> Iterator[ArtifactEntry]:
        """All that can be read, by block and version; ``tell`` is told of the others."""
        found = []
        for path in self.record_files():
            try:
                found.append(self._read(path))
            except InputError as error:
                tell(str(error.problems[0]))
        yield from sorted(found, key=lambda each: (each.record.block, each.record.version, each.record.key))

    def of(self, beginning: str) -> ArtifactEntry:
        """The one whose key begins so, or whose block is called so.

        UnknownNameError: there is none. InputError: there are several, or it cannot be read.
        """
        for path in self.folder.glob(f"[0-9a-f][0-9a-f]/{glob.escape(beginning)}*.json"):
            self._read(path)
        known = list(self.records())
        found = [each for each in known if each.record.key.startswith(beginning) or each.record.block == beginning]
        if len(found) == 1:
            return found[0]
        if not found:
            remedy = did_you_mean(beginning, sorted({each.record.block for each in known}))
            raise UnknownNameError(f"{self.folder} has no artifact {beginning!r}", remedy=remedy)
        keys = ", ".join(each.record.key[:12] for each in found)
        raise InputError(f"{beginning!r} may be any of {keys}", remedy="name one by the beginning of its key")

    def archive(self, record: Artifact) -> Path:
        """Where the archive of a record lies."""
        return self.folder / ARCHIVES / f"{record.sha256}.tar.gz"

    def check(self, found: ArtifactEntry) -> None:
        """InputError where its archive is missing or another, PolicyError where it lacks a signature it has to have."""
        self._check_archive(found.record)
        if self.signers is not None or signature_of(found.path).exists():
            self.signer(found)

    def signer(self, found: ArtifactEntry) -> Signer:
        """Who signed it; PolicyError where nobody did whom the allowed signers name."""
        place = signature_of(found.path)
        text = read_plain(place, MAX_BYTES).decode("ascii", "replace") if place.is_file() else ""
        return signer_of(f"{found.record.label} in {self.folder}", found.data, text, NAMESPACE, self.signers)

    def is_signed(self, found: ArtifactEntry) -> bool:
        """Whether somebody signed it, whoever it was."""
        return signature_of(found.path).exists()

    def sign(self, found: ArtifactEntry, key: Path) -> None:
        """Sign a record, and by its hash the archive; errors as of :func:`~hpcgen.core.support.signatures.sign`."""
        self._check_archive(found.record)
        write_file(signature_of(found.path), sign(found.data, key, NAMESPACE))

    def copy_to(self, found: ArtifactEntry, other: ArtifactStore) -> bool:
        """Bring one into another store, with its signature; whether it was not there yet."""
        self.check(found)
        place = other.record_path(found.record.key)
        if place.exists() and other.find(found.record.key) is not None:
            return False
        other.put(found.record, self.archive(found.record))
        if self.is_signed(found):
            write_file(signature_of(place), read_plain(signature_of(found.path), MAX_BYTES))
        return True

    def write_index(self) -> None:
        """Write the keys of all into one file: who reads the folder through a web server cannot list it."""
        keys = sorted(each.record.key for each in self.records())
        write_file(self.folder / INDEX, msgspec.json.encode(keys), folders=True)

    def remove(self, found: ArtifactEntry) -> None:
        """Remove a record; its archive goes with :meth:`sweep`."""
        with explained(found.path):
            found.path.unlink(missing_ok=True)
            signature_of(found.path).unlink(missing_ok=True)

    def sweep(self) -> int:
        """Remove archives that no record names, and what killed processes left: the bytes that this frees.

        What is younger than a day stays: its record may be about to come.
        """
        named = {f"{each.record.sha256}.tar.gz" for each in self.records()}
        freed, before = 0, time.time() - _UNFINISHED_S
        for path in self.folder.glob(f"{ARCHIVES}/*"):
            facts = path.lstat()
            if path.name not in named and stat.S_ISREG(facts.st_mode) and facts.st_mtime < before:
                with explained(path):
                    path.unlink(missing_ok=True)
                freed += facts.st_size
        return freed

    def record_path(self, key: str) -> Path:
        """Where the record of a key lies."""
        return self.folder / key[:2] / f"{key}.json"

    def record_files(self) -> list[Path]:
        """The files that are records by their names; whatever else lies in these folders is not the store's."""
        return [path for path in sorted(self.folder.glob("[0-9a-f][0-9a-f]/*.json")) if _RECORD.fullmatch(path.name)]

    def _read(self, path: Path) -> ArtifactEntry:
        """InputError where a record is damaged, is of another key, or was written by a newer release."""
        data: object = None
        try:
            text = read_plain(path, MAX_BYTES)
            data = msgspec.json.decode(text)
            ARTIFACT.check(data, str(path))
            record = record_from(data, Artifact)
        except OSError as failure:
            raise InputError(f"{path} cannot be read: {failure.strerror}", remedy=_AGAIN) from failure
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise ARTIFACT.not_understood(data, str(path), error) from error
        if record.key != path.stem:
            raise InputError(f"{path} is the record of another artifact: {record.key[:12]}…", remedy=_AGAIN)
        return ArtifactEntry(path, text, record)

    def _check_archive(self, record: Artifact) -> None:
        path = self.archive(record)
        if not path.is_file() or path.is_symlink():
            raise InputError(f"the archive of {record.label} ({record.key[:12]}) is missing: {path}", remedy=_AGAIN)
        if not _is(path, record):
            raise InputError(
                f"the archive of {record.label} ({record.key[:12]}) is not what its record says: {path}",
                expected=f"sha256 {record.sha256}, {record.bytes} bytes",
                remedy=_AGAIN,
            )


_AGAIN = "hpcgen cache prune removes what is damaged; the next build compiles it again"


def damaged(store: ArtifactStore) -> list[Path]:
    """Records of a store that are of no use: they cannot be read, or their archives are not as they say."""
    found = []
    for path in store.record_files():
        try:
            store._check_archive(store._read(path).record)
        except (InputError, PolicyError):
            found.append(path)
    return found


def _is(path: Path, record: Artifact) -> bool:
    """Whether a file, which is no link, is the archive of a record."""
    same = path.is_file() and not path.is_symlink() and path.stat().st_size == record.bytes
    return same and file_sha256(path) == record.sha256


def signature_of(record: Path) -> Path:
    """Where the signature of a record lies."""
    return record.with_name(f"{record.name}{SIGNED}")


def _text(record: Artifact) -> str:
    return msgspec.json.format(msgspec.json.encode(record), indent=1).decode() + "\n"
