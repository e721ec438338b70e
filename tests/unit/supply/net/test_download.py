"""Downloads from servers that really drop, stall, truncate, redirect and send the wrong file."""

from __future__ import annotations

import hashlib
import http.server
import random
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hpcgen.core.errors import FetchError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.supply.net.download import Download, Downloader, RetryPolicy
from hpcgen.supply.net.part import DiskError
from tests.helpers.file_server import FileServer, make_certificate, serving

QUICK = RetryPolicy(connect_s=5, silence_s=1, stall_s=2, stall_bytes=1000, rounds=3, pause_s=0.01, longest_pause_s=0.2)
CONTENT = random.Random(4).randbytes(3_000_000)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as running:
        yield running


@pytest.fixture(scope="module")
def tls_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture
def tls(tls_files: tuple[Path, Path]) -> Iterator[FileServer]:
    with serving(tls_files) as running:
        yield running


def wanted(*urls: str, data: bytes = CONTENT, kind: str = "package", size: int | None = -1, **more: Any) -> WantedFile:
    given: dict[str, Any] = {"kind": kind, "name": "thing 1.0", "file": "thing-1.0.tar.gz", **more}
    return WantedFile(
        sha256=hashlib.sha256(data).hexdigest(), urls=list(urls), size=len(data) if size == -1 else size, **given
    )


def fetch(tmp_path: Path, *wants: WantedFile, policy: RetryPolicy = QUICK, **more: Any) -> list[Path]:
    """Fetch into ``tmp_path``; where each came to lie."""
    downloads = [
        Download(want, tmp_path / "parts", tmp_path / "files" / str(number) / want.file)
        for number, want in enumerate(wants)
    ]
    Downloader(jobs=4, policy=policy, **more).fetch(downloads)
    return [download.target for download in downloads]


def refused(tmp_path: Path, *wants: WantedFile, **more: Any) -> str:
    """The message of a download that must fail; nothing has its final name."""
    with pytest.raises(FetchError) as raised:
        fetch(tmp_path, *wants, **more)
    assert not list((tmp_path / "files").rglob("*")) or not any(p.is_file() for p in (tmp_path / "files").rglob("*"))
    return str(raised.value)


def test_many_files_come_through_few_connections(tmp_path: Path, server: FileServer) -> None:
    contents = [b"%d " % number * 100 for number in range(60)]
    for number, data in enumerate(contents):
        server.files[f"f{number}"] = data
    wants = [wanted(server.url(f"f{n}"), data=data, file=f"f{n}") for n, data in enumerate(contents)]
    assert [path.read_bytes() for path in fetch(tmp_path, *wants)] == contents
    assert server.connections <= 4
    assert not list((tmp_path / "parts").iterdir())


@pytest.mark.parametrize("tags", [True, False])
def test_dropped_connection_is_resumed_where_it_broke(tmp_path: Path, server: FileServer, tags: bool) -> None:
    server.tags = tags
    server.files["a"] = CONTENT
    server.faults["a"] = ["drop:1000000", "drop:1000000", "ok"]
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT
    server.files["b"], server.faults["b"] = CONTENT, ["reset:1000000", "reset:0", "ok"]
    [path] = fetch(tmp_path / "reset", wanted(server.url("b")))
    assert path.read_bytes() == CONTENT
    starts = [int(h["range"][6:-1]) for h in server.asked("a") if "range" in h]
    assert len(starts) == 2 and 0 < starts[0] < starts[1]
    assert all(("if-range" in h) == tags for h in server.asked("a") if "range" in h)


def test_progress_earns_more_rounds_than_fruitless_tries(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    server.faults["a"] = ["drop:200000"] * 12 + ["ok"]
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT and len(server.asked("a")) > QUICK.rounds


def test_server_that_cannot_resume_sends_all_of_it_again(tmp_path: Path, server: FileServer) -> None:
    server.ranges = False
    server.files["a"] = CONTENT
    server.faults["a"] = ["drop:500000", "ok"]
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT


def test_file_that_changed_between_two_pieces_is_fetched_anew(tmp_path: Path, server: FileServer) -> None:
    """Without an entity tag the server joins two versions; the hash tells, and the file is fetched whole."""
    server.tags = False
    old = b"\0" * len(CONTENT)
    server.files["a"] = old
    server.faults["a"] = ["drop:1000000", "status:404"]
    refused(tmp_path, wanted(server.url("a")))
    server.files["a"], server.faults["a"] = CONTENT, ["ok"]
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT
    assert ["range" in headers for headers in server.asked("a")][-2:] == [True, False]


def test_next_run_continues_what_a_run_left(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    server.faults["a"] = ["drop:1000000", "status:404"]
    assert "it does not have the file" in refused(tmp_path, wanted(server.url("a")))
    server.faults["a"] = ["ok"]
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT
    assert int(server.asked("a")[-1]["range"][6:-1]) > 0


def test_silence_and_trickle_are_stalls(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = server.files["b"] = server.files["c"] = CONTENT
    server.faults = {"a": ["stall:70000", "ok"], "b": ["trickle", "ok"], "c": ["silent", "ok"]}
    began = time.monotonic()
    policy = msgspec.structs.replace(QUICK, silence_s=0.4, stall_s=0.8)
    paths = fetch(tmp_path, *(wanted(server.url(name), file=name) for name in "abc"), policy=policy)
    assert all(path.read_bytes() == CONTENT for path in paths)
    assert time.monotonic() - began < 15


def test_stalls_without_end_are_told(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = server.files["b"] = CONTENT
    server.faults = {"a": ["stall:0"], "b": ["trickle"]}
    policy = RetryPolicy(silence_s=0.4, stall_s=1, stall_bytes=1000, rounds=1, pause_s=0.01)
    message = refused(tmp_path, *(wanted(server.url(name), file=name) for name in "ab"), policy=policy)
    assert "it stalled: no data for 0.4 s" in message
    assert "it stalled: fewer than 1000 bytes arrived in 1 s" in message
    assert message.count("run the same command again, which resumes") == 1


def test_busy_server_is_asked_again_not_before_it_says(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    server.faults["a"] = ["status:503,1", "status:429", "status:500", "ok"]
    began = time.monotonic()
    policy = RetryPolicy(pause_s=0.01, rounds=5)
    [path] = fetch(tmp_path, wanted(server.url("a")), policy=policy)
    assert path.read_bytes() == CONTENT
    assert time.monotonic() - began >= 1


def test_addresses_are_tried_in_order_and_all_are_told(tmp_path: Path, server: FileServer) -> None:
    server.files["b"] = CONTENT
    [path] = fetch(tmp_path / "1", wanted(server.url("a"), server.url("b")))
    assert path.read_bytes() == CONTENT
    server.faults = {"c": ["status:403"], "d": ["status:500"]}
    message = refused(tmp_path / "2", wanted(server.url("a"), server.url("c"), server.url("d")))
    for part in (
        "/a: the server says 404: it does not have the file",
        "/c: the server says 403",
        "/d: the server says 500",
    ):
        assert part in message


def test_all_failures_of_a_run_are_told_and_the_rest_stays(tmp_path: Path, server: FileServer) -> None:
    server.files["good"] = CONTENT
    wants = [wanted(server.url(name), file=name) for name in ("bad", "good", "worse")]
    with pytest.raises(FetchError) as raised:
        fetch(tmp_path, *wants)
    assert len(raised.value.problems) == 2 and raised.value.exit_code == 11
    assert (tmp_path / "files" / "1" / "good").read_bytes() == CONTENT


def test_truncated_and_wrong_files(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    digest = hashlib.sha256(CONTENT).hexdigest()
    server.faults["a"] = ["short"]
    half = hashlib.sha256(CONTENT[:1500000]).hexdigest()
    message = refused(tmp_path, wanted(server.url("a")))
    assert (
        f"the server sends a different file (1500000 bytes, expected 3000000): its sha256 is {half}, expected {digest}"
        in message
    )
    server.faults["a"] = ["html"]
    message = refused(tmp_path, wanted(server.url("a")))
    assert "it is a web page, perhaps the login or error page of a proxy" in message and digest in message
    server.faults["a"] = ["ok"]
    server.files["a"] = CONTENT[:-1] + b"?"
    message = refused(tmp_path, wanted(server.url("a"), size=None))
    assert f"expected {digest}" in message and "if the file has really changed, regenerate the lock" in message
    assert not list((tmp_path / "parts").iterdir())


@pytest.mark.parametrize("fault", ["ok", "unframed"])
def test_more_than_announced_is_not_taken(tmp_path: Path, server: FileServer, fault: str) -> None:
    server.files["a"] = b"<html>" + b"x" * 30_000_000
    server.faults["a"] = [fault]
    message = refused(tmp_path, wanted(server.url("a"), data=b"small"))
    said = "30000006 bytes" if fault == "ok" else "more bytes than that"
    assert f"the server sends a different file: {said}, expected 5; it is a web page" in message


def test_size_that_nobody_knows_is_no_hindrance(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    server.faults["a"] = ["unframed"]
    [path] = fetch(tmp_path, wanted(server.url("a"), size=None))
    assert path.read_bytes() == CONTENT


def test_https_with_an_authority_of_ones_own(
    tmp_path: Path, tls: FileServer, tls_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    tls.files["a"] = CONTENT
    want = wanted(tls.url("a"), kind="archive")
    message = refused(tmp_path, want)
    assert "the certificate of localhost" in message and "is not trusted" in message
    [path] = fetch(tmp_path / "given", want, ca_files=[tls_files[1]])
    assert path.read_bytes() == CONTENT
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tls_files[1]))
    [path] = fetch(tmp_path / "named", want)
    assert path.read_bytes() == CONTENT


def test_https_never_becomes_http(
    tmp_path: Path, tls: FileServer, server: FileServer, tls_files: tuple[Path, Path]
) -> None:
    server.files["a"] = CONTENT
    for kind in ("archive", "package"):
        tls.faults["a"] = [f"to:{server.url('a')}"]
        message = refused(tmp_path, wanted(tls.url("a"), kind=kind), ca_files=[tls_files[1]])
        assert f"redirects from https to http: {server.url('a')}" in message
    assert not server.requests
    assert "http is not allowed, only https" in refused(tmp_path, wanted(server.url("a"), kind="archive"))
    assert not server.requests


def test_redirects_are_followed_without_the_password(
    tmp_path: Path, tls: FileServer, server: FileServer, tls_files: tuple[Path, Path]
) -> None:
    tls.files["b"] = CONTENT
    server.faults = {"a": [f"to:{tls.url('b')}"], "loop": ["to:/loop"], "file": ["to:file:///etc/passwd"]}
    secret = server.url("a").replace("//", "//me:s3cret@")
    [path] = fetch(tmp_path, wanted(secret), ca_files=[tls_files[1]])
    assert path.read_bytes() == CONTENT
    assert server.asked("a")[0]["authorization"].startswith("Basic ")
    assert "authorization" not in tls.asked("b")[0]
    assert "redirects more than 10 times" in refused(tmp_path / "2", wanted(server.url("loop")))
    assert "file:///etc/passwd is not an https address" in refused(tmp_path / "2", wanted(server.url("file")))
    server.faults["a"] = ["status:404"]
    assert "s3cret" not in refused(tmp_path / "2", wanted(secret))


def test_file_addresses(tmp_path: Path) -> None:
    source = tmp_path / "a b.tar"
    source.write_bytes(CONTENT)
    [path] = fetch(tmp_path / "out", wanted(source.as_uri(), kind="wheel"))
    assert path.read_bytes() == CONTENT
    assert "there is no such file" in refused(tmp_path / "2", wanted((tmp_path / "none").as_uri()))
    assert "there is no such file" in refused(tmp_path / "2", wanted(tmp_path.as_uri()))
    source.write_bytes(b"other")
    assert "the server sends a different file (5 bytes" in refused(tmp_path / "2", wanted(source.as_uri()))


def test_network_that_is_not_there_is_told_soon(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    wants = [wanted(f"http://127.0.0.1:{port}/{n}", file=f"f{n}") for n in range(40)]
    began = time.monotonic()
    policy = RetryPolicy(rounds=4, pause_s=0.05)
    message = refused(tmp_path, *wants, policy=policy)
    assert f"127.0.0.1:{port} refuses connections" in message
    assert "20 more files were not fetched" in message
    assert time.monotonic() - began < 6


def test_proxy_of_the_environment(tmp_path: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY", "http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    server.files["a"] = CONTENT
    monkeypatch.setenv("http_proxy", f"http://me:pw@127.0.0.1:{server.port}")
    [path] = fetch(tmp_path, wanted("http://mirror.example.org/debian/a"))
    assert path.read_bytes() == CONTENT
    assert server.asked("a")[0]["host"] == "mirror.example.org"
    assert server.asked("a")[0]["proxy-authorization"].startswith("Basic ")
    monkeypatch.setenv("http_proxy", "socks5://127.0.0.1:1")
    assert "a protocol other than http" in refused(tmp_path / "2", wanted("http://mirror.example.org/a"))


class _Tunnel(http.server.BaseHTTPRequestHandler):
    """A proxy that connects to the loopback, whatever host is asked for."""

    port = 0
    asked: list[str] = []

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            self.send_response(200)
            self.end_headers()
            there = threading.Thread(target=_pump, args=(self.connection, line), daemon=True)
            there.start()
            _pump(line, self.connection)

    def log_message(self, *words: Any) -> None:
        pass


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass


def test_https_through_a_proxy(
    tmp_path: Path, tls: FileServer, tls_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    handler = type("Tunnel", (_Tunnel,), {"port": tls.port, "asked": []})
    proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True).start()
    try:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.server_address[1]}")
        tls.files["a"] = CONTENT
        [path] = fetch(tmp_path, wanted("https://localhost:443/a", kind="archive"), ca_files=[tls_files[1]])
        assert path.read_bytes() == CONTENT
        assert handler.asked == ["localhost:443"]
    finally:
        proxy.shutdown()
        proxy.server_close()


def test_full_disk_ends_it_at_once(tmp_path: Path, server: FileServer) -> None:
    """A limit on the size of files gives what a full disk gives: an error while writing."""
    import resource
    import signal

    server.files["a"] = CONTENT
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(DiskError):
            fetch(tmp_path, wanted(server.url("a")))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    [path] = fetch(tmp_path, wanted(server.url("a")))
    assert path.read_bytes() == CONTENT


def test_interrupt_is_heard_at_once(tmp_path: Path, server: FileServer) -> None:
    from hpcgen.core.support.progress import Watch

    class Impatient(Watch):
        def tick(self) -> None:
            if any(path.stat().st_size == 100_000 for path in (tmp_path / "parts").glob("*.gz")):
                raise KeyboardInterrupt

    server.files["a"] = CONTENT
    server.faults["a"] = ["stall:100000"]
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        fetch(tmp_path, wanted(server.url("a")), policy=RetryPolicy(), watch=Impatient())
    assert time.monotonic() - began < 5
    assert [path.stat().st_size for path in (tmp_path / "parts").iterdir() if path.suffix != ".tag"] == [100000]


def test_wrong_part_of_a_stranger_is_not_trusted(tmp_path: Path, server: FileServer) -> None:
    server.files["a"] = CONTENT
    want = wanted(server.url("a"))
    part = tmp_path / "parts" / f"{want.sha256}-{want.file}"
    part.parent.mkdir()
    for garbage in (b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)):
        part.write_bytes(garbage)
        [path] = fetch(tmp_path, want)
        assert path.read_bytes() == CONTENT
        path.unlink()


def test_a_file_that_holds_no_authorities_is_named(
    tmp_path: Path, tls: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nno\n")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "ca.pem"))
    tls.files["a"] = CONTENT
    assert f"{tmp_path}/ca.pem names no certificate authorities" in refused(tmp_path, wanted(tls.url("a")))
