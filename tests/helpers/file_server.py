"""A server on the loopback that sends files, and misbehaves as it is told: drops, stalls, truncates, redirects."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

RANGE = re.compile(r"bytes=(\d+)-(\d*)")


class FileServer:
    """Files by path, and what goes wrong with them.

    Parameters
    ----------
    files: path → content.
    faults: path → a list of faults, used up one per request: a word (``drop:N``, ``reset:N``, ``stall:N``, ``trickle``,
        ``silent``, ``status:N``, ``to:URL``, ``html``, ``short``, ``ok``); the last one stays.
    ranges, tags: whether it answers ranges, and marks versions.
    """

    def __init__(self, port: int, scheme: str) -> None:
        self.port, self.scheme = port, scheme
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, list[str]] = {}
        self.ranges = self.tags = True
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.connections = 0
        self.closing = threading.Event()

    def url(self, path: str) -> str:
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.port}/{path}"

    def asked(self, path: str) -> list[dict[str, str]]:
        """The headers of every request for a path."""
        return [headers for name, headers in self.requests if name == path]

    def next_fault(self, path: str) -> str:
        faults = self.faults.get(path, ["ok"])
        return faults.pop(0) if len(faults) > 1 else faults[0]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    owner: FileServer

    def setup(self) -> None:
        super().setup()
        self.owner.connections += 1

    def log_message(self, *words: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        """As zypper asks whether a file is there."""
        data = self.owner.files.get(self.path.lstrip("/"))
        self.send_response(200 if data is not None else 404)
        self.send_header("Content-Length", str(len(data or b"")))
        self.end_headers()

    def do_GET(self) -> None:
        owner = self.owner
        path = self.path.rpartition("/")[2] if self.path.startswith("http") else self.path.lstrip("/")
        owner.requests.append((path, {k.lower(): v for k, v in self.headers.items()}))
        fault, _, argument = owner.next_fault(path).partition(":")
        if fault == "status":
            code, _, after = argument.partition(",")
            self.send_response(int(code))
            if after:
                self.send_header("Retry-After", after)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif fault == "to":
            self.send_response(302)
            self.send_header("Location", argument)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif fault == "silent":
            owner.closing.wait(60)
        elif path not in owner.files:
            self.send_error(404)
        else:
            self.send_file(path, fault, argument)

    def send_file(self, path: str, fault: str, argument: str) -> None:
        owner = self.owner
        data = owner.files[path]
        if fault == "html":
            data = b"<html><title>Please log in</title></html>"
        tag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
        start, end = 0, len(data)
        asked = RANGE.fullmatch(self.headers.get("Range", ""))
        if owner.ranges and asked and self.headers.get("If-Range", tag) == tag:
            start, end = int(asked[1]), min(int(asked[2]) + 1, len(data)) if asked[2] else len(data)
            self.send_response(206 if start < len(data) else 416)
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        else:
            self.send_response(200)
        if owner.tags:
            self.send_header("ETag", tag)
        rest = data[start:end]
        if fault == "short":
            rest = rest[: len(rest) // 2]
        if fault == "unframed":
            self.send_header("Connection", "close")
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if fault in ("drop", "reset", "stall"):
            self.wfile.write(rest[: int(argument)])
            self.wfile.flush()
            if fault == "stall":
                owner.closing.wait(60)
            self.close_connection = True
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
        elif fault == "trickle":
            for byte in rest:
                if owner.closing.is_set():
                    break
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                time.sleep(0.05)
        elif fault == "slow":
            for at in range(0, len(rest), 65536):
                self.wfile.write(rest[at : at + 65536])
                self.wfile.flush()
                time.sleep(float(argument))
        else:
            self.wfile.write(rest)


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A key and a certificate for localhost that signs itself."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate


def make_signed_certificate(folder: Path) -> tuple[Path, Path, Path]:
    """A key and a certificate for localhost, and the authority that signed it: some clients take no other."""
    key, request, certificate = folder / "server-key.pem", folder / "server.csr", folder / "server.pem"
    own, authority, more = folder / "authority-key.pem", folder / "authority.pem", folder / "extensions"
    more.write_text("subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    made = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    signed = ("-CA", authority, "-CAkey", own, "-CAcreateserial", "-days", "2")
    for words in (
        ("req", "-x509", *made, "-days", "2", "-subj", "/CN=authority", "-keyout", own, "-out", authority),
        ("req", "-new", *made, "-subj", "/CN=localhost", "-keyout", key, "-out", request),
        ("x509", "-req", *signed, "-in", request, "-extfile", more, "-out", certificate),
    ):
        subprocess.run(["openssl", *words], check=True, capture_output=True)
    return key, certificate, authority


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *about: Any) -> None:
        """Clients that go away are what these tests are about."""


@contextlib.contextmanager
def serving(tls: tuple[Path, Path] | None = None) -> Iterator[FileServer]:
    """A server on the loopback, with TLS by a key and a certificate."""
    handler = type("Handler", (_Handler,), {})
    server = _Quiet(("127.0.0.1", 0), handler)
    owner = FileServer(server.server_address[1], "https" if tls else "http")
    handler.owner = owner  # type: ignore[attr-defined]
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tls[1], tls[0])
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield owner
    finally:
        owner.closing.set()
        server.shutdown()
        server.server_close()
