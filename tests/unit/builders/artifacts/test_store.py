"""A store of artifacts: what is damaged or forged is not taken, and two may write at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from hpcgen.builders.artifacts.store import ArtifactStore, damaged
from hpcgen.builders.records.store import save
from hpcgen.core.errors import InputError, OutputError, PolicyError, UnknownNameError
from hpcgen.core.model.artifact import Artifact
from hpcgen.core.model.record import ArtifactOrigin
from tests.conftest import Command
from tests.helpers.ssh_keys import allowed, ssh_key
from tests.unit.builders.records.test_records import record as built

KEY = "ab" * 32


def artifact(
    folder: Path, content: bytes = b"compiled", key: str = KEY, made: str = "2026-01-02"
) -> tuple[Artifact, Path]:
    archive = folder / f"{hashlib.sha256(content).hexdigest()}.given"
    archive.write_bytes(content)
    record = Artifact(
        artifact=1,
        key=key,
        block="mpich",
        version="4.3.2",
        folders=["/opt/mpich"],
        sha256=hashlib.sha256(content).hexdigest(),
        bytes=len(content),
        base="debian:12@sha256:" + "0" * 64,
        architecture="x86_64",
        target="zen3",
        made=made,
    )
    return record, archive


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "store")


def test_what_was_put_is_found(store: ArtifactStore, tmp_path: Path) -> None:
    assert store.find(KEY) is None
    store.put(*artifact(tmp_path))
    found = store.find(KEY)
    assert found is not None and found.file.read_bytes() == b"compiled"
    assert [each.record.label for each in store.records()] == ["mpich 4.3.2"]


def _cut(record: Path, archive: Path) -> None:
    archive.write_bytes(b"compil")


def _forge(record: Path, archive: Path) -> None:
    archive.write_bytes(b"Compiled")


def _lose(record: Path, archive: Path) -> None:
    archive.unlink()


def _link(record: Path, archive: Path) -> None:
    other = archive.with_name("elsewhere")
    archive.rename(other)
    archive.symlink_to(other)


def _spoil(record: Path, archive: Path) -> None:
    record.write_text(record.read_text()[:-30])


def _rename(record: Path, archive: Path) -> None:
    record.write_text(record.read_text().replace(KEY, "cd" * 32))


@pytest.mark.parametrize("harm", [_cut, _forge, _lose, _link, _spoil, _rename])
def test_what_is_damaged_or_forged_is_not_taken_and_is_named(
    store: ArtifactStore, tmp_path: Path, harm: Callable[[Path, Path], None]
) -> None:
    record, archive = artifact(tmp_path)
    kept = store.put(record, archive)
    harm(store.folder / KEY[:2] / f"{KEY}.json", kept.file)
    told: list[str] = []
    assert store.find(KEY, told.append) is None
    assert len(told) == 1 and str(store.folder) in told[0]
    assert damaged(store) == [store.folder / KEY[:2] / f"{KEY}.json"]
    store.put(record, archive)
    assert store.find(KEY) is not None


def test_two_that_compile_the_same_leave_one_that_is_whole(store: ArtifactStore, tmp_path: Path) -> None:
    both = [artifact(tmp_path, content) for content in (b"one" * 100_000, b"other" * 100_000)]

    def put(number: int) -> None:
        store.put(*both[number % 2])
        told: list[str] = []
        assert store.find(KEY, told.append) is not None, told

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(40)))
    assert store.find(KEY) is not None


def test_a_folder_that_cannot_be_written_is_told(store: ArtifactStore, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(OutputError, match="not a folder"):
        store.put(*artifact(tmp_path))


def test_only_what_one_of_the_allowed_signers_signed_is_taken(store: ArtifactStore, tmp_path: Path) -> None:
    ours, theirs = ssh_key(tmp_path / "ours"), ssh_key(tmp_path / "theirs")
    store.put(*artifact(tmp_path))
    strict = ArtifactStore(store.folder, allowed(tmp_path / "allowed", {"we@example.org": ours}))
    told: list[str] = []
    assert strict.find(KEY, told.append) is None and "is not signed" in told[-1]
    (entry,) = store.records()
    store.sign(entry, theirs)
    assert strict.find(KEY, told.append) is None and "none of the allowed signers" in told[-1]
    store.sign(entry, ours)
    assert strict.find(KEY) is not None
    with pytest.raises(PolicyError):
        path = entry.path
        path.write_bytes(path.read_bytes() + b" ")
        strict.check(next(iter(strict.records())))
    store.put(*artifact(tmp_path, b"another"))
    assert strict.find(KEY, told.append) is None


def test_copies_go_to_another_store_with_their_signature(store: ArtifactStore, tmp_path: Path) -> None:
    store.put(*artifact(tmp_path))
    (entry,) = store.records()
    store.sign(entry, ssh_key(tmp_path / "ours"))
    other = ArtifactStore(tmp_path / "other")
    assert store.copy_to(entry, other) and not store.copy_to(entry, other)
    (there,) = other.records()
    assert other.is_signed(there) and there.data == entry.data
    store.archive(entry.record).write_bytes(b"forged")
    with pytest.raises(InputError, match="is not what its record says"):
        store.copy_to(entry, ArtifactStore(tmp_path / "third"))


def test_a_name_that_is_not_there_or_is_several_is_told(store: ArtifactStore, tmp_path: Path) -> None:
    store.put(*artifact(tmp_path))
    store.put(*artifact(tmp_path, b"other", key="ac" * 32))
    assert store.of("ab").record.key == KEY
    with pytest.raises(InputError, match="may be any of"):
        store.of("mpich")
    with pytest.raises(UnknownNameError, match="no artifact"):
        store.of("openmpi")


def test_the_commands_list_check_and_remove(store: ArtifactStore, tmp_path: Path, hpcgen: Command) -> None:
    store.put(*artifact(tmp_path))
    kept = store.put(*artifact(tmp_path, b"newer", key="ac" * 32, made="2999-01-02"))
    words = ["--cache", str(store.folder)]
    listed = msgspec.json.decode(hpcgen("cache", "list", "--json", *words).stdout)
    assert [each["block"] for each in listed] == ["mpich", "mpich"]
    assert "zen3" in hpcgen("cache", "list", *words).stdout
    assert KEY in hpcgen("cache", "show", "abab", *words).stdout
    assert hpcgen("cache", "verify", *words).returncode == 0
    foreign = kept.file.parents[1] / KEY[:2] / "notes.json"
    foreign.write_text("not the store's")
    assert "damaged" not in hpcgen("cache", "prune", *words).stderr and foreign.exists()
    kept.file.write_bytes(b"forged")
    spoiled = hpcgen("cache", "verify", *words)
    assert spoiled.returncode == 1 and "is not what its record says" in spoiled.stderr
    assert "2026-01-02" in hpcgen("cache", "prune", "--older-than", "30", "--dry-run", *words).stderr
    assert len(list(store.records())) == 2
    assert "removed 2 artifacts" in hpcgen("cache", "prune", "--older-than", "30", *words).stderr
    assert list(store.records()) == []


def test_what_the_record_of_a_build_names_goes_only_by_force(
    store: ArtifactStore, tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    save(built("0123-probe", artifacts={"mpich": ArtifactOrigin(key=KEY)}))
    store.put(*artifact(tmp_path))
    store.put(*artifact(tmp_path, b"other", key="ac" * 32))
    words = ("cache", "prune", "--max-size", "0", "--cache", str(store.folder))
    env = {"HPCGEN_RECORDS": str(tmp_path / "records")}
    kept = hpcgen(*words, env=env).stderr
    assert "mpich 4.3.2 (abababababab) stays: a build record refers to it (0123-probe)" in kept
    assert [each.record.key for each in store.records()] == [KEY]
    assert "stays" not in hpcgen(*words, "--force", env=env).stderr
    assert list(store.records()) == []
