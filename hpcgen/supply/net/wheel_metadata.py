"""METADATA of a wheel in a package index, without the wheel: its own file (PEP 658), or a part of the archive.

Source: https://packaging.python.org/en/latest/specifications/simple-repository-api/#serving-metadata; range requests
of HTTP (RFC 9110, section 14). An index need not announce the file, and some mirrors have it of some wheels alone.
"""

from __future__ import annotations

import io
import re
import zipfile

from hpcgen.supply.net.web import Web, WebError

_METADATA = re.compile(r"[^/]+\.dist-info/METADATA")
_MOST = 4 * 1024 * 1024
"""The largest METADATA, and the largest answer to one request."""
_BLOCK = 256 * 1024


def remote_metadata(web: Web, url: str, *, loopback_http: bool = False) -> str:
    """The text of METADATA. WebError: neither the file nor the wheel's parts can be had."""
    try:
        data, _ = _get(web, f"{url}.metadata", {}, loopback_http)
    except WebError as failure:
        if failure.down:
            raise
        data = _of_archive(_RemoteFile(web, url, loopback_http))
    return data.decode("utf-8", "replace")


def _of_archive(file: _RemoteFile) -> bytes:
    try:
        with zipfile.ZipFile(file) as wheel:
            found = [each for each in wheel.infolist() if _METADATA.fullmatch(each.filename)]
            if len(found) != 1 or found[0].file_size > _MOST:
                raise WebError("the wheel has no METADATA", again=False)
            return wheel.read(found[0])
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError) as failure:
        raise WebError(f"the wheel cannot be read ({failure})", again=False) from failure


class _RemoteFile(io.BytesIO):
    """A file of a server, of which blocks are fetched as they are read."""

    def __init__(self, web: Web, url: str, loopback_http: bool) -> None:
        super().__init__()
        self._web, self._url, self._loopback_http = web, url, loopback_http
        self._blocks: dict[int, bytes] = {}
        self._size = self._ask_size()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        place = offset + (self._size if whence == io.SEEK_END else self.tell() if whence == io.SEEK_CUR else 0)
        if place < 0:
            raise OSError("it is too small")
        return super().seek(place)

    def read(self, size: int | None = -1) -> bytes:
        start = self.tell()
        end = self._size if size is None or size < 0 else min(start + size, self._size)
        if end - start > _MOST:
            raise OSError("it requests too large a part")
        blocks = range(start // _BLOCK, (end - 1) // _BLOCK + 1) if end > start else range(0)
        data = b"".join(self._block(number) for number in blocks)
        first = start - blocks.start * _BLOCK
        self.seek(max(start, end))
        return data[first : first + end - start]

    def _block(self, number: int) -> bytes:
        if number not in self._blocks:
            start = number * _BLOCK
            end = min(start + _BLOCK, self._size) - 1
            data, _ = _get(self._web, self._url, {"Range": f"bytes={start}-{end}"}, self._loopback_http, partial=True)
            self._blocks[number] = data
        return self._blocks[number]

    def _ask_size(self) -> int:
        _, headers = _get(self._web, self._url, {"Range": "bytes=0-0"}, self._loopback_http, partial=True)
        size = headers.get("content-range", "").rpartition("/")[2]
        if not size.isdecimal():
            raise WebError("the server does not say how large the wheel is", again=False)
        return int(size)


def _get(
    web: Web, url: str, headers: dict[str, str], loopback_http: bool, *, partial: bool = False
) -> tuple[bytes, dict[str, str]]:
    """The body of an answer, at most ``_MOST`` bytes, and its headers."""
    answer = web.get(url, headers, loopback_http, lambda socket: None)
    try:
        if answer.status != (206 if partial else 200):
            raise WebError(f"the server says {answer.status}", again=False)
        return answer.body(_MOST), dict(answer.headers)
    finally:
        answer.close()
