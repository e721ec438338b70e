"""A web server that shows a folder of artifacts."""

from __future__ import annotations

import time
import urllib.parse
from http.client import HTTPException
from pathlib import Path

import msgspec

from hpcgen.builders.artifacts.remote import RemotePlace
from hpcgen.builders.artifacts.store import ARCHIVES, INDEX, MAX_BYTES, SIGNED
from hpcgen.core.errors import FetchError
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.fields import Sha256
from hpcgen.supply.net.download import Download, Downloader
from hpcgen.supply.net.package_index import with_password
from hpcgen.supply.net.web import Web, WebError, explained, shown

_INDEX_BYTES = 16 * 1024 * 1024
_ATTEMPTS = 3
_LONGEST_S = 60.0
"""That one small file may take, however steadily it comes."""


class WebFolder(RemotePlace):
    """What a web server shows of a folder."""

    def __init__(self, address: str) -> None:
        parts = urllib.parse.urlsplit(address)
        self.own_machine = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
        self.address, self.web = with_password(address.rstrip("/")), Web()

    def told(self, key: str) -> tuple[bytes, bytes]:
        record = f"{key[:2]}/{key}.json"
        data = self.get(record, MAX_BYTES)
        try:
            return data, self.get(f"{record}{SIGNED}", MAX_BYTES)
        except WebError as error:
            if error.again:
                raise
        return data, b""

    def fetch(self, record: Artifact, folder: Path, target: Path) -> None:
        wanted = WantedFile(
            # Plain http is for packages; here it is this machine's own.
            kind="package" if self.own_machine else "archive",
            name=record.label,
            file=target.name,
            sha256=record.sha256,
            urls=[self.url(f"{ARCHIVES}/{target.name}")],
            size=record.bytes,
        )
        Downloader(jobs=1).fetch([Download(wanted, folder, target)])

    def listed(self) -> list[str]:
        try:
            return msgspec.json.decode(self.get(INDEX, _INDEX_BYTES), type=list[Sha256])
        except (WebError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            message = f"{shown(self.url(INDEX))} does not list what is there: {error}"
            remedy = "have `hpcgen cache push` fill the folder of the server, which writes it; builds do not need it"
            raise FetchError(message, remedy=remedy) from error

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
            raise explained(failure, urllib.parse.urlsplit(url).hostname or "") from failure
        finally:
            answer.close()
