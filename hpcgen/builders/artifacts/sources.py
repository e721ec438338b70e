"""Places of others that artifacts are brought from into the user's own store: a folder, or one on a web server."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import msgspec

from hpcgen.builders.artifacts.store import ARCHIVES, INDEX, MAX_BYTES, ArtifactEntry, ArtifactStore, signature_of
from hpcgen.core.errors import FetchError, HpcgenError, InputError, OutputError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.fields import Sha256
from hpcgen.core.support.leftovers import work_folder
from hpcgen.core.support.refusals import explained, unwritable
from hpcgen.core.support.units import size
from hpcgen.core.support.writing import write_file
from hpcgen.recipe.artifacts import StoredArtifact
from hpcgen.supply.net.download import Download, Downloader
from hpcgen.supply.net.package_index import with_password
from hpcgen.supply.net.part import DiskError
from hpcgen.supply.net.web import Web, WebError, shown
from hpcgen.supply.net.web import explained as said_of

_MOST_BYTES = 50 * 10**9
"""Of one archive."""
_INDEX_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 3
_LONGEST_S = 60.0
"""That one small file may take, however steadily it comes."""


class ArtifactSource:
    """A place that artifacts are brought from; only what a store would take of its own comes into it.

    Parameters
    ----------
    address: a folder; or ``https://…``, where a web server shows one.
    store: the user's own, whose signers count here, too.

    ``gave`` is whether something came.
    """

    def __init__(self, address: str, store: ArtifactStore) -> None:
        self.address, self.store = address, store
        self.web = _WebFolder(address) if "://" in address else None
        self.gave = self._down = False

    def bring(self, key: str, tell: Callable[[str], None]) -> StoredArtifact | None:
        """Bring one into the store.

        Parameters
        ----------
        tell: told what comes, or why it does not.

        Raises
        ------
        OutputError: the store cannot be written.
        """
        if self._down:
            return None
        name = shown(self.address)
        try:
            if self.web is None:
                place = ArtifactStore(Path(self.address), self.store.signers)
                if not place.record_path(key).exists():
                    tell(f"{name} does not have it")
                    return None
                place.copy_to(place.read(key), self.store)
            else:
                self._fetch(self.web, key, tell)
        except OutputError:
            raise
        except DiskError as error:
            raise unwritable(self.store.folder, error.failure) from error
        except (HpcgenError, WebError) as error:
            # Who cannot be reached is not asked for the next one.
            self._down = isinstance(error, WebError) and error.down
            tell(
                f"not taken from {name}: {error.message if isinstance(error, WebError) else error.problems[0].message}"
            )
            return None
        found = self.store.find(key, tell)
        self.gave |= found is not None
        return found

    def listed(self) -> list[str]:
        """All that are there.

        Raises
        ------
        FetchError: the server does not tell.
        """
        if self.web is None:
            return [each.record.key for each in ArtifactStore(Path(self.address)).records()]
        try:
            return msgspec.json.decode(self.web.get(INDEX, _INDEX_BYTES), type=list[Sha256])
        except (WebError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            message = f"{shown(self.web.url(INDEX))} does not list what is there: {error}"
            remedy = "have `hpcgen cache push` fill the folder of the server, which writes it; builds do not need it"
            raise FetchError(message, remedy=remedy) from error

    def _fetch(self, web: _WebFolder, key: str, tell: Callable[[str], None]) -> None:
        with explained(self.store.folder):
            self.store.folder.mkdir(parents=True, exist_ok=True)
        with work_folder("hpcgen-artifact-", where=self.store.folder) as (folder, _):
            place = ArtifactStore(folder, self.store.signers)
            found = self._record(web, key, place)
            record = found.record
            if record.bytes > _MOST_BYTES:
                message = f"{record.label} has {size(record.bytes)}; at most {size(_MOST_BYTES)} are fetched"
                raise InputError(message, remedy="bring it in a folder: hpcgen cache pull FOLDER")
            tell(f"{record.label} is fetched from {shown(self.address)}, {size(record.bytes)}")
            archive = place.archive(record)
            wanted = WantedFile(
                # Plain http is for packages; here it is this machine's own.
                kind="package" if web.own_machine else "archive",
                name=record.label,
                file=archive.name,
                sha256=record.sha256,
                urls=[web.url(f"{ARCHIVES}/{archive.name}")],
                size=record.bytes,
            )
            Downloader(jobs=1).fetch([Download(wanted, folder, archive)])
            place.copy_to(found, self.store)

    def _record(self, web: _WebFolder, key: str, place: ArtifactStore) -> ArtifactEntry:
        """The record of a key, with its signature, which is checked where one is demanded."""
        path = place.record_path(key)
        remote = f"{key[:2]}/{path.name}"
        write_file(path, web.get(remote, MAX_BYTES), folders=True)
        try:
            write_file(signature_of(path), web.get(signature_of(Path(remote)).as_posix(), MAX_BYTES))
        except WebError as error:
            if error.again:
                raise
        found = place.read(key)
        if place.signers is not None:
            place.signer(found)
        return found


class _WebFolder:
    """What a web server shows of a folder."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        self.own_machine = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        self.address, self.web = with_password(address.rstrip("/")), Web()

    def url(self, path: str) -> str:
        """The address of a file."""
        return f"{self.address}/{path}"

    def get(self, path: str, most: int) -> bytes:
        """A small file; WebError where there is none, or it has more than ``most`` bytes."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._get(self.url(path), most)
            except WebError as error:
                if not error.again or error.down or attempt == _ATTEMPTS:
                    raise
                time.sleep(min(max(error.wait, float(attempt)), 30))
        raise AssertionError("unreachable")

    def _get(self, url: str, most: int) -> bytes:
        answer = self.web.get(url, {}, self.own_machine, lambda line: None)
        end, read = time.monotonic() + _LONGEST_S, answer.read

        def read_on(count: int) -> bytes:
            if time.monotonic() > end:
                raise WebError(f"it did not come within {_LONGEST_S:.0f} s", again=False)
            return read(count)

        try:
            return msgspec.structs.replace(answer, read=read_on).body(most)
        except (OSError, HTTPException, ValueError) as failure:
            raise said_of(failure, urllib.parse.urlsplit(url).hostname or "") from failure
        finally:
            answer.close()
