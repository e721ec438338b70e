"""Artifacts from folders and web servers of others: what is not as it should be does not come into the own store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from hpcgen.builders.artifacts import web_folder
from hpcgen.builders.artifacts.sources import ArtifactSource
from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.core.errors import FetchError, InputError
from tests.conftest import Command
from tests.helpers.file_server import FileServer, make_certificate, serving
from tests.helpers.ssh_keys import allowed, ssh_key
from tests.unit.builders.artifacts.test_store import KEY, artifact

RECORD = f"{KEY[:2]}/{KEY}.json"


@pytest.fixture
def theirs(tmp_path: Path) -> ArtifactStore:
    """Another's folder, with one artifact."""
    store = ArtifactStore(tmp_path / "theirs")
    store.put(*artifact(tmp_path))
    return store


@pytest.fixture
def own(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "own")


@pytest.fixture
def server(tmp_path: Path, theirs: ArtifactStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    """A web server that shows it."""
    monkeypatch.setattr(web_folder, "_ATTEMPTS", 1)
    with serving(make_certificate(tmp_path)) as found:
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(tmp_path / "certificate.pem"))
        show(found, theirs)
        yield found


def show(server: FileServer, store: ArtifactStore) -> None:
    files = (path for path in store.folder.rglob("*") if path.is_file())
    server.files |= {path.relative_to(store.folder).as_posix(): path.read_bytes() for path in files}


def test_a_folder_and_a_web_server_give_what_the_own_store_lacks(
    theirs: ArtifactStore, server: FileServer, tmp_path: Path
) -> None:
    for name, address in (("a", str(theirs.folder)), ("b", server.url("").rstrip("/")), ("c", server.url(""))):
        store = ArtifactStore(tmp_path / name)
        source = ArtifactSource(address, store)
        found = source.bring(KEY, print)
        assert found is not None and source.gave and found.file == store.archive(found.record)
        assert found.file.read_bytes() == b"compiled"
        files = sorted(str(path.relative_to(store.folder)) for path in store.folder.rglob("*") if path.is_file())
        assert files == [RECORD, f"files/{found.file.name}"]


def test_what_is_not_there_is_told_in_one_line(theirs: ArtifactStore, server: FileServer, own: ArtifactStore) -> None:
    for address in (str(theirs.folder), server.url("")):
        told: list[str] = []
        assert ArtifactSource(address, own).bring("cd" * 32, told.append) is None
        assert len(told) == 1 and "does not have it" in told[0].replace("have the file", "have it")


def test_who_cannot_be_reached_is_asked_once(own: ArtifactStore) -> None:
    with serving() as gone:
        address = gone.url("artifacts")
    source, told = ArtifactSource(address, own), list[str]()
    assert source.bring(KEY, told.append) is None and source.bring("cd" * 32, told.append) is None
    assert len(told) == 1 and "refuses connections" in told[0]


def _forged(server: FileServer, archive: str) -> None:
    server.files[archive] = b"Compiled"


def _longer(server: FileServer, archive: str) -> None:
    server.files[archive] = b"compiled" * 1_000_000


def _huge_record(server: FileServer, archive: str) -> None:
    server.files[RECORD] += b" " * (1 << 20)


def _of_another_key(server: FileServer, archive: str) -> None:
    server.files[RECORD] = server.files[RECORD].replace(KEY.encode(), b"cd" * 32)


def _huge_archive(server: FileServer, archive: str) -> None:
    server.files[RECORD] = server.files[RECORD].replace(b'"bytes": 8', b'"bytes": 80000000000')


def _no_archive(server: FileServer, archive: str) -> None:
    del server.files[archive]


def _login_page(server: FileServer, archive: str) -> None:
    server.faults[RECORD] = ["html"]


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_forged, "the server sends a different file"),
        (_longer, "the server sends a different file"),
        (_huge_record, "larger than 1 MiB"),
        (_of_another_key, "the record of another artifact"),
        (_huge_archive, "at most 50.0 GB are fetched"),
        (_no_archive, "it does not have the file"),
        (_login_page, "JSON"),
    ],
)
def test_what_is_damaged_or_forged_does_not_come(
    server: FileServer, own: ArtifactStore, harm: Callable[[FileServer, str], None], why: str
) -> None:
    (archive,) = (name for name in server.files if name.startswith("files/"))
    harm(server, archive)
    told: list[str] = []
    assert ArtifactSource(server.url(""), own).bring(KEY, told.append) is None
    assert "not taken from https://" in told[-1] and why in told[-1], told
    assert [path for path in own.folder.rglob("*") if path.is_file()] == []


def test_plain_http_is_for_this_machine_alone(
    theirs: ArtifactStore, server: FileServer, own: ArtifactStore, tmp_path: Path
) -> None:
    told: list[str] = []
    assert ArtifactSource("http://example.org/artifacts", own).bring(KEY, told.append) is None
    assert "http is not allowed" in told[0]
    with serving() as plain:
        server.faults[RECORD] = [f"to:{plain.url(RECORD)}"]
        show(plain, theirs)
        assert ArtifactSource(server.url(""), own).bring(KEY, told.append) is None
        assert "redirects from https to http" in told[1]
        assert ArtifactSource(plain.url(""), own).bring(KEY, told.append) is not None


def test_signatures_are_demanded_of_what_others_have_before_it_is_fetched(
    theirs: ArtifactStore, server: FileServer, tmp_path: Path
) -> None:
    ours, another = ssh_key(tmp_path / "ours"), ssh_key(tmp_path / "another")
    strict = ArtifactStore(tmp_path / "own", allowed(tmp_path / "allowed", {"we@example.org": ours}))
    (entry,) = theirs.records()
    told: list[str] = []
    for address in (str(theirs.folder), server.url("")):
        assert ArtifactSource(address, strict).bring(KEY, told.append) is None and "is not signed" in told[-1]
    theirs.sign(entry, another)
    show(server, theirs)
    assert ArtifactSource(server.url(""), strict).bring(KEY, told.append) is None
    assert "none of the allowed signers" in told[-1]
    assert not any(path.startswith("files/") for path, _ in server.requests)
    theirs.sign(entry, ours)
    show(server, theirs)
    assert ArtifactSource(server.url(""), strict).bring(KEY, told.append) is not None
    (there,) = strict.records()
    assert str(strict.signer(there)).startswith("we@example.org")


def test_pull_brings_all_that_a_web_server_lists(
    theirs: ArtifactStore, server: FileServer, tmp_path: Path, hpcgen: Command
) -> None:
    theirs.put(*artifact(tmp_path, b"newer", key="ac" * 32))
    words = ["--cache", str(tmp_path / "own")]
    unlisted = hpcgen("cache", "pull", server.url(""), *words)
    assert unlisted.returncode == FetchError.exit_code and "index.json" in unlisted.stderr
    assert hpcgen("cache", "push", str(tmp_path / "shown"), "--cache", str(theirs.folder)).returncode == 0
    shown = ArtifactStore(tmp_path / "shown")
    assert msgspec.json.decode((shown.folder / "index.json").read_bytes()) == [KEY, "ac" * 32]
    show(server, shown)
    pulled = hpcgen("cache", "pull", server.url(""), *words)
    assert pulled.returncode == 0 and "copied 2 of 2 artifacts" in pulled.stderr, pulled.stderr
    assert "copied 0 of 0 artifacts" in hpcgen("cache", "pull", server.url(""), *words).stderr
    (tmp_path / "own" / RECORD).unlink()
    del server.files[RECORD]
    lacking = hpcgen("cache", "pull", server.url(""), *words)
    assert lacking.returncode == 1 and "copied 0 of 1 artifact" in lacking.stderr


def test_a_registry_needs_skopeo_and_is_named_without_a_tag(
    own: ArtifactStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    source, told = ArtifactSource("docker://registry.example.org/hpc/artifacts", own), list[str]()
    assert source.bring(KEY, told.append) is None and source.bring("cd" * 32, told.append) is None
    assert len(told) == 1 and "skopeo is not on PATH" in told[0]
    for address in ("docker://registry.example.org", "docker://example.org/a:1", "docker://example.org/a@sha256:b"):
        with pytest.raises(InputError, match="names no repository of a registry"):
            ArtifactSource(address, own)
