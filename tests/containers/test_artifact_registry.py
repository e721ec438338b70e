"""Artifacts in a registry, by the real skopeo: what is not as it should be does not come into the own store."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import Run, run
from loopback_registry import Registry
from test_locking import registry

from hpcgen.builders.artifacts.registry import RegistryRepository
from hpcgen.builders.artifacts.sources import ArtifactSource
from hpcgen.builders.artifacts.store import ArtifactStore
from tests.helpers.ssh_keys import allowed, ssh_key
from tests.unit.builders.artifacts.test_store import KEY, artifact

__all__ = ["registry"]

NAME = f"hpc/artifacts:{KEY}"


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
def address(registry: Registry) -> str:
    return f"docker://{registry.host}/hpc/artifacts"


def cache(*words: object, check: bool = True) -> Run:
    return run([sys.executable, "-m", "hpcgen", "cache", *map(str, words)], check=check)


def test_what_was_pushed_is_pulled(address: str, theirs: ArtifactStore, own: ArtifactStore, tmp_path: Path) -> None:
    theirs.put(*artifact(tmp_path, b"newer", key="ac" * 32))
    pushed = cache("push", address, "--cache", theirs.folder).stdout
    assert f"copied 2 of 2 artifacts to {address}" in pushed
    assert "copied 0 of 2" in cache("push", address, "--cache", theirs.folder).stdout
    assert "copied 2 of 2 artifacts" in cache("pull", address, "--cache", own.folder).stdout
    assert "copied 0 of 0" in cache("pull", address, "--cache", own.folder).stdout
    found = own.find(KEY)
    assert found is not None and found.file.read_bytes() == b"compiled"
    assert [each.data for each in own.records()] == [each.data for each in theirs.records()]


def test_what_is_not_there_is_told_in_one_line(address: str, theirs: ArtifactStore, own: ArtifactStore) -> None:
    (entry,) = theirs.records()
    RegistryRepository(address).add(theirs, entry)
    source, told = ArtifactSource(address, own), list[str]()
    assert source.bring("cd" * 32, told.append) is None
    assert told == [f"not taken from {address}: it does not have it"]
    assert source.bring(KEY, told.append) is not None


def test_a_registry_that_takes_no_other_password_is_asked_once(
    address: str, theirs: ArtifactStore, own: ArtifactStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))
    source, told = ArtifactSource(address, own), list[str]()
    assert source.bring(KEY, told.append) is None and source.bring("cd" * 32, told.append) is None
    assert len(told) == 1 and "authentication required" in told[0]
    for word, folder in (("push", theirs.folder), ("pull", own.folder)):
        refused = cache(word, address, "--cache", folder, check=False)
        assert refused.returncode and "skopeo login 127.0.0.1" in refused.stdout, refused.stdout


def _changed(registry: Registry, change: Callable[[dict[str, Any]], None]) -> None:
    manifest = json.loads(registry.blobs[registry.manifests[NAME]])
    change(manifest)
    data = json.dumps(manifest).encode()
    registry.manifests[NAME] = f"sha256:{hashlib.sha256(data).hexdigest()}"
    registry.blobs[registry.manifests[NAME]] = data


def _blob(registry: Registry, part: str) -> str:
    manifest = json.loads(registry.blobs[registry.manifests[NAME]])
    return str((manifest["config"] if part == "config" else manifest["layers"][0])["digest"])


def _forged(registry: Registry) -> None:
    registry.blobs[_blob(registry, "layer")] = b"Compiled"


def _longer(registry: Registry) -> None:
    registry.blobs[_blob(registry, "layer")] = b"compiled" * 1_000_000


def _forged_record(registry: Registry) -> None:
    registry.blobs[_blob(registry, "config")] = registry.blobs[_blob(registry, "config")].replace(b"zen3", b"zen4")


def _record_of_another_key(registry: Registry) -> None:
    def change(manifest: dict[str, Any]) -> None:
        data = registry.blobs[manifest["config"]["digest"]].replace(KEY.encode(), b"cd" * 32)
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        registry.blobs[digest] = data
        manifest["config"] |= {"digest": digest, "size": len(data)}

    _changed(registry, change)


def _another_archive(registry: Registry) -> None:
    _changed(registry, lambda manifest: manifest["layers"].append(manifest["layers"][0]))


def _no_artifact(registry: Registry) -> None:
    _changed(registry, lambda manifest: manifest.pop("config"))


@pytest.mark.parametrize(
    ("harm", "why"),
    [
        (_forged, "got sha256:"),
        (_longer, "got sha256:"),
        (_forged_record, "digest"),
        (_record_of_another_key, "the record of another artifact"),
        (_another_archive, "names another archive than its record"),
        (_no_artifact, "is not an artifact"),
    ],
)
def test_what_is_damaged_or_forged_does_not_come(
    registry: Registry,
    address: str,
    theirs: ArtifactStore,
    own: ArtifactStore,
    harm: Callable[[Registry], None],
    why: str,
) -> None:
    (entry,) = theirs.records()
    assert RegistryRepository(address).add(theirs, entry)
    harm(registry)
    told: list[str] = []
    assert ArtifactSource(address, own).bring(KEY, told.append) is None
    assert f"not taken from {address}" in told[-1] and why in told[-1], told
    assert [path for path in own.folder.rglob("*") if path.is_file()] == []


def test_signatures_travel_and_are_demanded_before_anything_is_fetched(
    registry: Registry, address: str, theirs: ArtifactStore, tmp_path: Path
) -> None:
    ours, another = ssh_key(tmp_path / "ours"), ssh_key(tmp_path / "another")
    strict = ArtifactStore(tmp_path / "own", allowed(tmp_path / "allowed", {"we@example.org": ours}))
    (entry,) = theirs.records()
    repository, told = RegistryRepository(address), list[str]()

    def bring() -> object:
        return ArtifactSource(address, strict).bring(KEY, told.append)

    assert repository.add(theirs, entry) and bring() is None and "is not signed" in told[-1]
    # Signed later: the signature goes where the archive is.
    theirs.sign(entry, another)
    assert repository.add(theirs, entry) and not repository.add(theirs, entry)
    assert bring() is None and "none of the allowed signers" in told[-1]
    assert not any("is fetched from" in line for line in told)
    theirs.sign(entry, ours)
    # A signature that counts takes the place of one that does not.
    assert repository.add(ArtifactStore(theirs.folder, strict.signers), entry) and bring() is not None
    (there,) = strict.records()
    assert str(strict.signer(there)).startswith("we@example.org")
