"""Bundles with what blocks compiled in the place of their sources: made, checked, taken, refused with the reason."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from hpcgen.builders import BuildOptions, Watcher
from hpcgen.builders.artifacts.bundled import artifacts_for, hold_taken
from hpcgen.builders.artifacts.making import with_artifacts
from hpcgen.builders.artifacts.store import ArtifactStore
from hpcgen.core.errors import InputError
from hpcgen.recipe.artifact_recipes import keyed_blocks
from hpcgen.supply.bundle.verify import verify
from hpcgen.supply.pin.wanted import wanted
from tests.conftest import Command
from tests.helpers.bundles import a_lock, make
from tests.helpers.locks import CATALOG
from tests.helpers.ssh_keys import allowed, ssh_key
from tests.unit.builders.artifacts.test_store import artifact

LOCK = a_lock()
BUNDLED = msgspec.structs.replace(LOCK.plan, supply="bundle")


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    """A folder with one of the two blocks that the lock compiles."""
    found = ArtifactStore(tmp_path / "store")
    keys = {each.name: each.key for each in keyed_blocks(LOCK.plan, CATALOG, LOCK.pins)}
    assert keys.keys() == {"libfabric", "mpich"}
    record, archive = artifact(tmp_path, key=keys["mpich"])
    found.put(record, archive)
    return found


@pytest.fixture
def bundle(tmp_path: Path, store: ArtifactStore) -> Path:
    said: list[str] = []
    carried = artifacts_for(LOCK, CATALOG, store, said.append)
    assert carried.keys() == {"mpich"} and len(said) == 1 and "the bundle has its sources" in said[0]
    make(tmp_path, artifacts=carried)
    return tmp_path / "B"


def taken(bundle: Path, signers: Path | None = None) -> tuple[BuildOptions, list[str]]:
    """How a build takes a bundle, with no store, and what it says."""
    watcher, said = Watcher(), list[str]()
    watcher.note = said.append  # type: ignore[method-assign]
    return with_artifacts(BUNDLED, CATALOG, LOCK, "", BuildOptions(bundle=bundle, signers=signers), watcher), said


def test_sources_of_what_goes_along_compiled_are_not_wanted(tmp_path: Path) -> None:
    every = {each.file for each in wanted(LOCK, CATALOG, tmp_path, own=False)}
    less = {each.file for each in wanted(LOCK, CATALOG, tmp_path, own=False, compiled=["mpich"])}
    assert {name.partition("-")[0] for name in every - less} == {"mpich"} and less < every


def test_a_build_takes_what_the_bundle_has_with_no_store(bundle: Path, store: ArtifactStore) -> None:
    (entry,) = store.records()
    options, said = taken(bundle)
    assert options.quick is not None and options.quick.origins.keys() == {"mpich"}
    assert f"taken from {bundle}/artifacts" in said[0] and "no signature was required" in said[1]
    assert options.quick.recipe.count("./configure") == 1
    hold_taken(bundle, None, options.quick.origins)
    assert not verify(bundle).problems
    (found,) = (
        each for each in json.loads((bundle / "sbom.cdx.json").read_text())["components"] if "mpich" in str(each)
    )
    assert {"name": "hpcgen:artifact", "value": entry.record.key} in found["properties"]
    assert entry.record.key in (bundle / "sbom.spdx.json").read_text()
    readme = (bundle / "README.txt").read_text()
    assert "build --bundle . -o IMAGE" in readme and "../kit" not in readme.partition("Contents:")[0]


def test_a_build_that_does_not_take_it_is_refused_with_the_reason(
    tmp_path: Path, store: ArtifactStore, bundle: Path
) -> None:
    with pytest.raises(InputError, match=r"no sources of mpich 4.3.2, only compiled artifacts"):
        hold_taken(bundle, None, {})
    signers = allowed(tmp_path / "allowed", {"we@example.org": ssh_key(tmp_path / "ours")})
    options, said = taken(bundle, signers)
    assert options.quick is None and "is not signed" in said[0]
    with pytest.raises(InputError, match="is not signed"):
        hold_taken(bundle, signers, {})
    (entry,) = store.records()
    store.sign(entry, tmp_path / "ours")
    make(tmp_path, "signed", artifacts=artifacts_for(LOCK, CATALOG, store, print))
    options, said = taken(tmp_path / "signed", signers)
    assert options.quick is not None and len(said) == 1
    damaged = next((bundle / "artifacts/files").iterdir())
    damaged.write_bytes(b"Compiled")
    assert any("artifacts/files" in each for each in verify(bundle).problems)
    assert taken(bundle)[0].quick is None


def test_bundle_create_asks_for_the_folder_and_says_what_is_left_out(
    tmp_path: Path, store: ArtifactStore, hpcgen: Command
) -> None:
    (tmp_path / "hpcgen.lock").write_text(LOCK.text)
    # What is there already ends it before anything is fetched.
    words = ["bundle", "create", "--lock", str(tmp_path / "hpcgen.lock"), "-o", str(store.folder)]
    own = {"HPCGEN_CONFIG": ""}
    assert "--cache DIR" in hpcgen(*words, "--artifacts", env=own).stderr
    assert "--cache requires --artifacts" in hpcgen(*words, "--cache", str(store.folder), env=own).stderr
    said = hpcgen(*words, "--artifacts", "--cache", str(store.folder), env=own).stderr
    assert "without the sources of mpich 4.3.2" in said and "libfabric" in said.partition("the bundle has its")[0]
