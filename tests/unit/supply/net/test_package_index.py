"""Hashed lines → files: pages in folders and from servers, good ones and bad ones."""

from __future__ import annotations

import base64
import functools
import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import FetchError, InputError
from hpcgen.supply.net import package_index
from hpcgen.supply.net.package_index import find_files
from hpcgen.supply.net.pip_settings import pip_settings
from tests.helpers.stub_packages import sha256, wheel

A, B = "a" * 64, "b" * 64
JSON = "application/vnd.pypi.simple.v1+json"

Answer = tuple[int, dict[str, str], bytes]


class Server:
    """A package index on the loopback; ``pages`` by path, each an answer or a function that gives one."""

    def __init__(self) -> None:
        self.pages: dict[str, Answer | Callable[[], Answer]] = {}
        self.seen: list[tuple[str, dict[str, str]]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                page = server.pages.get(self.path, (404, {}, b""))
                status, headers, body = page() if callable(page) else page
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that gave up is what some tests are about."""

        self.http = Quiet(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.http.server_address[1]}/simple"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def project(self, name: str, *files: dict[str, Any], **headers: str) -> None:
        page = {"meta": {"api-version": "1.1"}, "name": name, "files": files}
        self.pages[f"/simple/{name}/"] = (200, {"Content-Type": JSON, **headers}, json.dumps(page).encode())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(package_index, "_PAUSE_S", 0.01)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    started = Server()
    yield started
    started.http.shutdown()
    started.http.server_close()


def entry(file: str, digest: str = A, **more: Any) -> dict[str, Any]:
    return {"filename": file, "url": f"../../files/{file}", "hashes": {"sha256": digest}, **more}


find = functools.partial(find_files, loopback_http=True)


def test_a_folder_of_pages_is_an_index(tmp_path: Path) -> None:
    """Relative links, a base address, percent-encoding, a withdrawn file; the name as the line writes it."""
    local = wheel(tmp_path / "files", "My-Pack", "1.0+cpu")
    project = tmp_path / "simple" / "my-pack"
    project.mkdir(parents=True)
    link = local.name.replace("+", "%2B")
    (project / "index.html").write_text(
        f'<html><head><base href="../../files/"></head><a data-yanked="old" href="{link}#sha256={sha256(local)}">x</a>'
    )
    found = find_files([f"My_Pack==1.0+cpu --hash=sha256:{sha256(local)}"], [(tmp_path / "simple").as_uri()])
    assert [(each.file, each.name, each.size, each.kind) for each in found] == [
        (local.name, "my-pack 1.0+cpu", local.stat().st_size, "wheel")
    ]
    assert found[0].urls == [(tmp_path / "files").as_uri() + "/" + link]


def test_json_says_sizes_and_comes_packed(server: Server) -> None:
    server.project("numpy", entry("numpy-1.26.4-cp311-cp311-linux_x86_64.whl", A, size=18, yanked="bad"))
    status, headers, body = server.pages["/simple/numpy/"]  # type: ignore[misc]
    server.pages["/simple/numpy/"] = (status, {**headers, "Content-Encoding": "gzip"}, gzip.compress(body))
    (found,) = find([f"numpy==1.26.4 --hash=sha256:{A}"], [server.address])
    host = server.address.removesuffix("/simple")
    assert (found.size, found.urls) == (18, [f"{host}/files/numpy-1.26.4-cp311-cp311-linux_x86_64.whl"])
    assert JSON in server.seen[0][1]["accept"]


def test_html_from_a_server_is_relative_to_where_it_was_in_the_end(server: Server) -> None:
    server.pages["/simple/six/"] = (302, {"Location": "/elsewhere/six/"}, b"")
    page = f'<a href="six-1.17.0-py2.py3-none-any.whl#sha256={A.upper()}">six</a>'
    server.pages["/elsewhere/six/"] = (200, {"Content-Type": "text/html; charset=utf-8"}, page.encode())
    (found,) = find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])
    assert found.urls[0].endswith("/elsewhere/six/six-1.17.0-py2.py3-none-any.whl")


def test_every_index_that_has_the_file_is_an_address_of_it(server: Server, tmp_path: Path) -> None:
    local = wheel(tmp_path, "six", "1.17.0")
    server.project("six", entry(local.name, sha256(local)))
    (tmp_path / "six").mkdir()
    (tmp_path / "six" / "index.html").write_text(f'<a href="../{local.name}#sha256={sha256(local)}">six</a>')
    (found,) = find([f"six==1.17.0 --hash=sha256:{sha256(local)}"], [server.address, tmp_path.as_uri()])
    assert [url.partition(":")[0] for url in found.urls] == ["http", "file"]
    assert found.size == local.stat().st_size


def test_all_that_is_missing_is_said_at_once_with_what_was_looked_at(server: Server) -> None:
    server.project("six", entry("six-1.17.0-py3-none-any.whl", B))
    server.project("numpy", entry("numpy-1.26.4-py3-none-any.whl", A))
    lines = [f"{name} --hash=sha256:{A}" for name in ("six==1.17.0", "numpy==1.26.4", "h5py==3.11.0")]
    indexes = [server.address, "http://mirror.example.org/simple", "file:///nowhere/simple"]
    with pytest.raises(FetchError) as error:
        find(lines, indexes)
    six, h5py = error.value.problems
    assert f"six 1.17.0 with sha256:{A}" in six.message
    assert six.message.endswith("; available for this version: six-1.17.0-py3-none-any.whl")
    assert "six/ (1 file)" in six.message and "not used: only https" in six.message and "No such file" in six.message
    assert "pip config list" in six.remedy
    assert "h5py 3.11.0" in h5py.message and "h5py/ (the server says 404" in h5py.message


def test_http_is_not_used(server: Server) -> None:
    server.project("six", entry("six-1.17.0-py3-none-any.whl", A))
    with pytest.raises(FetchError, match="not used: only https"):
        find_files([f"six==1.17.0 --hash=sha256:{A}"], [server.address])
    assert server.seen == []


@pytest.mark.parametrize(
    "bad",
    [
        {"filename": "six-1.17.0-py3-none-any.whl", "url": "file:///etc/passwd"},
        {"filename": "six-1.17.0-py3-none-any.whl", "url": "http://example.org/six-1.17.0-py3-none-any.whl"},
        {"filename": "../../six-1.17.0-py3-none-any.whl", "url": "https://example.org/x"},
        {"filename": "six-1.17.0-py3-none-any.whl\n", "url": "https://example.org/x"},
        {"filename": "six-1.17.1-py3-none-any.whl", "url": "https://example.org/x"},
        {"filename": "seven-1.17.0-py3-none-any.whl", "url": "https://example.org/x"},
        {"filename": "six-1.17.0-py3-none-any.whl", "url": "https://[example.org/x"},
    ],
)
def test_a_server_has_no_say_over_names_and_files_of_this_machine(server: Server, bad: dict[str, str]) -> None:
    server.project("six", {**bad, "hashes": {"sha256": A}})
    with pytest.raises(FetchError, match=r"no package index has six 1\.17\.0"):
        find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])


def test_a_server_that_is_busy_or_drops_the_connection_is_asked_again(server: Server) -> None:
    server.project("six", entry("six-1.17.0-py3-none-any.whl", A))
    good = server.pages["/simple/six/"]
    assert not callable(good)
    half = (200, {**good[1], "Content-Length": str(len(good[2]))}, good[2][:20])
    answers = iter([(503, {"Retry-After": "0"}, b""), (half[0], {**half[1], "Connection": "close"}, half[2]), good])
    server.pages["/simple/six/"] = lambda: next(answers)
    assert len(find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])) == 1
    assert len(server.seen) == 3


@pytest.mark.parametrize(
    ("headers", "body", "said"),
    [
        ({"Content-Type": "text/plain"}, b"hello", "neither JSON nor HTML"),
        ({"Content-Type": JSON}, b"[1]", "not a package index"),
        ({"Content-Type": JSON}, b"{", "not a package index"),
        ({"Content-Type": JSON}, b'{"meta": {"api-version": "2.0"}, "files": []}', "version '2.0'"),
        ({"Content-Type": JSON, "Content-Encoding": "gzip"}, b"no gzip", "cannot be decompressed"),
        ({"Content-Type": "text/html"}, b'<meta name="pypi:repository-version" content="2.0">', "version '2.0'"),
        ({"Content-Type": "text/html"}, b"x" * 5000, "larger than"),
        ({"Content-Type": "text/html", "Content-Encoding": "gzip"}, gzip.compress(b"x" * 5000, mtime=0), "larger than"),
    ],
)
def test_a_page_that_is_no_index_page_is_named(
    server: Server, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str], body: bytes, said: str
) -> None:
    monkeypatch.setattr(package_index, "PAGE_BYTES", 4000)
    server.pages["/simple/six/"] = (200, headers, body)
    with pytest.raises(FetchError, match=said):
        find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])


def test_a_password_in_an_index_address_is_used_and_not_shown(server: Server) -> None:
    server.project("six", entry("six-1.17.0-py3-none-any.whl", A), entry("six-1.16.0-py3-none-any.whl", B))
    address = server.address.replace("//", "//reader:se%40cret@")
    (found,) = find([f"six==1.17.0 --hash=sha256:{A}"], [address])
    expected = "Basic " + base64.b64encode(b"reader:se@cret").decode()
    assert server.seen[0][1]["authorization"] == expected
    assert found.urls[0].startswith("http://reader:se%40cret@127.0.0.1")
    with pytest.raises(FetchError) as error:
        find([f"six==1.17.0 --hash=sha256:{B}"], [address])
    assert "cret" not in str(error.value)


def test_a_password_may_be_in_netrc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "netrc").write_text(
        "machine wheels.example.org login reader password se@cret\ndefault login x password y"
    )
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with_password = package_index.with_password
    assert with_password("https://wheels.example.org/six/") == "https://reader:se%40cret@wheels.example.org/six/"
    for address in ("https://example.org/", "https://a:b@wheels.example.org/", "http://wheels.example.org/"):
        assert with_password(address) == address


def test_a_server_that_falls_silent_is_named(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent() -> Answer:
        time.sleep(0.5)
        return 500, {}, b""

    monkeypatch.setattr(package_index, "_SILENCE_S", 0.1)
    monkeypatch.setattr(package_index, "_ATTEMPTS", 2)
    server.pages["/simple/six/"] = silent
    with pytest.raises(FetchError, match="does not answer"):
        find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])
    assert len(server.seen) == 2


def test_without_hashes_in_the_index_the_only_candidate_is_taken(server: Server) -> None:
    server.project("six", {**entry("six-1.17.0-py3-none-any.whl"), "hashes": {}})
    server.project("numpy", *({**entry(f"numpy-1.0-cp31{n}-none-any.whl"), "hashes": {"md5": "0"}} for n in (0, 1)))
    (found,) = find([f"six==1.17.0 --hash=sha256:{A}"], [server.address])
    assert found.sha256 == A
    with pytest.raises(FetchError, match="not all with a sha256"):
        find([f"numpy==1.0 --hash=sha256:{A}"], [server.address])


def test_lines_that_are_not_pinned_are_all_named() -> None:
    lines = ["# a comment", "", "six", "six==1.0", f"six>=1.0 --hash=sha256:{A}", "six==1.0 --hash=sha256:12"]
    with pytest.raises(InputError) as error:
        find_files(lines, [])
    assert len(error.value.problems) == 4


def test_lines_as_pip_and_uv_write_them_are_read(server: Server) -> None:
    server.project("six", entry("six-1.17.0-py3-none-any.whl", B))
    lines = ["six[extra]==1.17.0 ; python_version < '4' \\", f"    --hash=sha256:{A} \\", f"    --hash=sha256:{B}"]
    assert [each.sha256 for each in find(lines, [server.address])] == [B]


def test_pips_own_settings_say_where_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also its folders of packages, which have no page and no hashes."""
    local = wheel(tmp_path / "folder of wheels", "six", "1.17.0")
    wheel(tmp_path / "folder of wheels", "six", "1.16.0")
    settings = tmp_path / "pip.conf"
    settings.write_text(
        f"[global]\nindex-url = {tmp_path.as_uri()}/simple\n[download]\nfind-links = {local.parent.as_uri()}\n"
    )
    for name in ("PIP_FIND_LINKS", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    pip_settings.cache_clear()
    try:
        assert pip_settings().indexes[0] == f"{tmp_path.as_uri()}/simple"
        (found,) = find_files([f"six==1.17.0 --hash=sha256:{sha256(local)}"])
    finally:
        pip_settings.cache_clear()
    assert found.urls == [local.as_uri()]
    assert found.sha256 == hashlib.sha256(local.read_bytes()).hexdigest()


def test_of_two_files_of_pip_the_one_counts_that_counts_for_pip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Since 25.3 its list of settings has both, sorted by the names of the files."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for variable, folder in (("XDG_CONFIG_HOME", "a"), ("XDG_CONFIG_DIRS", "z")):
        settings = tmp_path / folder / "pip/pip.conf"
        settings.parent.mkdir(parents=True)
        settings.write_text(f"[global]\nindex-url = https://{folder}.example.org/simple\n")
        monkeypatch.setenv(variable, str(tmp_path / folder))
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    counts = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    pip_settings.cache_clear()
    try:
        assert list(pip_settings().indexes[:1]) == counts
    finally:
        pip_settings.cache_clear()


def test_a_pip_that_keeps_its_settings_elsewhere_is_asked_by_its_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip_settings.cache_clear()
    usual = pip_settings()
    moved = "import pip._internal.cli.cmdoptions\nimport pip._internal.models.index as moved\nmoved.PyPI = object()\n"
    (tmp_path / "sitecustomize.py").write_text(moved)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PIP_TIMEOUT", "7")  # it is asked anew
    pip_settings.cache_clear()
    try:
        assert pip_settings() == usual
    finally:
        pip_settings.cache_clear()


def test_what_is_wrong_with_pips_settings_is_said_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.conf").write_text("no section\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    pip_settings.cache_clear()
    try:
        with pytest.raises(InputError, match="Configuration file could not be loaded"):
            pip_settings()
    finally:
        pip_settings.cache_clear()


def test_a_pip_that_does_not_answer_is_an_error_for_people(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(command: list[str], **more: Any) -> Any:
        raise subprocess.TimeoutExpired(command, more["timeout"])

    monkeypatch.setenv("PIP_TIMEOUT", "8")  # it is asked anew
    monkeypatch.setattr(subprocess, "run", late)
    pip_settings.cache_clear()
    try:
        with pytest.raises(InputError, match="did not list its indexes within 600 s"):
            pip_settings()
    finally:
        pip_settings.cache_clear()


def test_one_start_of_pip_says_its_settings_and_its_default_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said for ``pip list`` alone is not the index of everything else."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = tmp_path / "pip.conf"
    settings.write_text("[list]\nindex-url = https://list.example.org/simple\n[global]\ntimeout = 7\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    started: list[object] = []
    every = subprocess.run

    def counted(command: list[str], **more: Any) -> Any:
        started.append(command)
        return every(command, **more)

    monkeypatch.setattr(subprocess, "run", counted)
    pip_settings.cache_clear()
    try:
        found = pip_settings()
    finally:
        pip_settings.cache_clear()
    assert len(started) == 1 and len(found.indexes) == 1
    assert found.indexes[0].startswith("https:") and "list.example" not in found.indexes[0]
