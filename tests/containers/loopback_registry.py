"""A registry on loopback that images can be pushed to and pulled from, with a password; as much as the tools ask for.

Requests and answers as in the OCI distribution specification 1.1, "Push", "Pull" and "Listing Referrers".
"""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from uuid import uuid4

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
"""What a manifest is that does not say it."""
INDEX = "application/vnd.oci.image.index.v1+json"


class Registry(ThreadingHTTPServer):
    """``manifests``: the digest of each NAME:TAG that was pushed. ``tls``: the connection is encrypted by that."""

    def __init__(self, user: str, password: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_side=True)
        self.wanted = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
        self.manifests: dict[str, str] = {}
        self.blobs: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self.server_address[1]}"


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Registry

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        body = self._body()
        if self.headers.get("Authorization") != self.server.wanted:
            self._answer(401, {"WWW-Authenticate": 'Basic realm="test"'})
            return
        getattr(self, f"_{self.command.lower()}")(self.path.partition("?")[0], body)

    do_HEAD = do_POST = do_PATCH = do_PUT = do_GET

    def _get(self, path: str, body: bytes) -> None:
        _, asked, subject = path.partition("/referrers/")
        if asked:
            about = {digest: json.loads(self.server.blobs[digest]) for digest in set(self.server.manifests.values())}
            found = [
                {"digest": digest, "artifactType": each.get("artifactType")}
                for digest, each in about.items()
                if each.get("subject", {}).get("digest") == subject
            ]
            self._answer(200, {"Content-Type": INDEX}, json.dumps({"schemaVersion": 2, "manifests": found}).encode())
            return
        if path.endswith("/tags/list"):
            name = path.removeprefix("/v2/").removesuffix("/tags/list")
            tags = [each.rpartition(":")[2] for each in self.server.manifests if each.rpartition(":")[0] == name]
            self._answer(200, {"Content-Type": "application/json"}, json.dumps({"name": name, "tags": tags}).encode())
            return
        named = self.server.manifests.get(path.removeprefix("/v2/").replace("/manifests/", ":"))
        blob = self.server.blobs.get(named or path.rpartition("/")[2])
        kind = (
            json.loads(blob).get("mediaType", MANIFEST)
            if blob and "/manifests/" in path
            else "application/octet-stream"
        )
        self._answer(200 if blob is not None or path == "/v2/" else 404, {"Content-Type": kind}, blob or b"")

    _head = _get

    def _post(self, path: str, body: bytes) -> None:
        place = f"{path.rstrip('/')}/{uuid4().hex}"
        self.server.uploads[place] = b""
        self._answer(202, {"Location": place})

    def _patch(self, path: str, body: bytes) -> None:
        self.server.uploads[path] += body
        self._answer(202, {"Location": path, "Range": f"0-{len(self.server.uploads[path]) - 1}"})

    def _put(self, path: str, body: bytes) -> None:
        data = self.server.uploads.pop(path, b"") + body
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.server.blobs[digest] = data
        if "/manifests/" in path:
            self.server.manifests[path.removeprefix("/v2/").replace("/manifests/", ":")] = digest
        self._answer(201, {"Location": path, "Docker-Content-Digest": digest})

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
