"""Bazel's module registries behind a server on the loopback, which notes what Bazel reads of them.

Bazel's own records do not say it: its log is of rules alone, and the lock file of modules is of Bazel 7.2 and later.
What a build reads is a file for each version of a module, ``modules/NAME/VERSION/MODULE.bazel``, and for the chosen
ones ``source.json`` (https://bazel.build/external/registry). The rest, lists that change with every release, is
handed on and not noted: a build does without it.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from hpcgen.core.support.hashing import CHUNK
from hpcgen.supply.net.web import Web, WebError, shown

DEFAULT = "https://bcr.bazel.build"
"""The registry that Bazel asks where it is told of none."""
_PATH = re.compile(r"/([0-9]{1,2})/([A-Za-z0-9_][A-Za-z0-9._+-]*(?:/[A-Za-z0-9_][A-Za-z0-9._+-]*){0,7})")
_KEPT = ("MODULE.bazel", "source.json")
_LARGEST = 16 * 1024 * 1024


class RegistryRecorder:
    """The server, while it is entered.

    ``registries``: addresses, in the order in which Bazel is to ask them. ``ca_files``: certificate authorities beside
    those of the machine.
    """

    def __init__(self, registries: Sequence[str], ca_files: Sequence[Path]) -> None:
        self.registries = [url.rstrip("/") for url in registries] or [DEFAULT]
        self.read: dict[str, bytes] = {}
        """Content by the number of the registry and the path there."""
        self.failures: list[str] = []
        self._web = Web(ca_files=ca_files)
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> RegistryRecorder:
        self._thread.start()
        return self

    def __exit__(self, *about: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def words(self) -> list[str]:
        """Options of Bazel that send it here."""
        return [f"--registry={self._place(number)}" for number in range(len(self.registries))]

    def _place(self, number: int) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{number}"

    def named(self, text: str) -> str:
        """A text with the registries' own addresses in place of those here."""
        for number, registry in enumerate(self.registries):
            text = text.replace(self._place(number) + "/", registry + "/")
        return text

    def url(self, path: str) -> str:
        """The address of something that was read."""
        number, _, rest = path.partition("/")
        return f"{self.registries[int(number)]}/{rest}"

    def get(self, number: int, path: str) -> bytes | None:
        """A file of a registry; None where it has none. WebError where it does not answer."""
        url = f"{self.registries[number]}/{path}"
        try:
            answer = self._web.get(url, {}, url.startswith("http:"), lambda line: None)
        except WebError as failure:
            if not failure.again and "404" in failure.message:
                return None
            self.failures.append(f"{shown(url)}: {failure.message}")
            raise
        try:
            data = b""
            while piece := answer.read(CHUNK):
                data += piece
                if len(data) > _LARGEST:
                    raise WebError("the file is larger than any of a registry", again=False)
        finally:
            answer.close()
        if path.rpartition("/")[2] in _KEPT:
            self.read[f"{number}/{path}"] = data
        return data


class _Handler(BaseHTTPRequestHandler):
    owner: RegistryRecorder

    def log_message(self, *words: Any) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        found = _PATH.fullmatch(self.path)
        data, status = None, 404
        if found and int(found[1]) < len(self.owner.registries):
            try:
                data = self.owner.get(int(found[1]), found[2])
            except (WebError, OSError):
                status = 502
        self.send_response(status if data is None else 200)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()
        self.wfile.write(data or b"")
