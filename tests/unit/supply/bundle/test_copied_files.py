"""The stack's own files over an air gap: in the bundle by their hashes, and from there in kits; never another file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError
from hpcgen.core.model.lock import Lock, Pins
from hpcgen.core.support.hashing import sha256_of
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.bundle.verify import verify
from hpcgen.supply.pin.wanted import wanted
from tests.conftest import Command
from tests.helpers.bundles import EPOCH, QUICK, tree
from tests.helpers.locks import lock

STACK = """name: copier
title: What is copied
blocks: {python: {}}
run: {command: [ls], mpi: false}
copy:
  - {from: models, to: /opt/models, ignore: ["*.log"]}
  - {from: one.txt, to: /data/one.txt}
"""
BINARY = bytes(range(256)) * 500
FILES = {"models/a b.bin": BINARY, "models/again": BINARY, "models/empty": b"", "models/x.log": b"no", "one.txt": b"1"}


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """A collection with the stack and its files, and next to them what is no hpcgen's."""
    for name, data in {"copier.yaml": STACK.encode(), **FILES}.items():
        path = tmp_path / "author/ours/recipes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return tmp_path / "author/ours"


def lock_of(folder: Path) -> tuple[Lock, Catalog]:
    catalog = Catalog([folder])
    return lock("copier", catalog=catalog, pinned=Pins(epoch=EPOCH)), catalog


def bundle_of(folder: Path, target: Path) -> Path:
    made, catalog = lock_of(folder)
    how = Creation(policy=QUICK, catalog=catalog)
    create_bundle(made, lambda place: wanted(made, catalog, place, own=False), target, how)
    return target


def test_a_bundle_has_them_once_each_and_names_nobody(ours: Path, tmp_path: Path) -> None:
    bundle = bundle_of(ours, tmp_path / "B")
    assert not verify(bundle).problems
    inside = tree(bundle)
    assert inside[f"files/{sha256_of(BINARY)}/copied"] == BINARY
    kept = [name for name in inside if name.endswith(("/copied", "/copied.list"))]
    assert len(kept) == 3 + 2
    items = json.loads(inside["bundle.json"])["items"]
    listed = json.loads(inside["sbom.cdx.json"])["components"]
    assert {"/opt/models", "/data/one.txt"} <= {each["name"] for each in listed}
    assert {each["origin"] for each in items if each["kind"] == "copied"} == {"a file of the stack", "made by hpcgen"}
    assert not {name for name, data in inside.items() if str(tmp_path).encode() in data}
    assert sorted(tree(bundle / "collections/ours")) == ["recipes/copier.yaml"]


def test_the_far_side_renders_from_the_bundle(ours: Path, tmp_path: Path, hpcgen: Command) -> None:
    bundle_of(ours, tmp_path / "B")
    shutil.rmtree(ours)
    done = hpcgen("render", "--bundle", "B", "-o", "kit")
    assert done.returncode == 0, done.stderr
    kit = tree(tmp_path / "kit/copy")
    assert kit == {
        "opt/models/a b.bin": BINARY,
        "opt/models/again": BINARY,
        "opt/models/empty": b"",
        "data/one.txt": b"1",
    }


def test_a_file_that_is_another_is_not_taken(ours: Path, tmp_path: Path, hpcgen: Command) -> None:
    bundle = bundle_of(ours, tmp_path / "B")
    shutil.rmtree(ours)
    (bundle / "files" / sha256_of(BINARY) / "copied").write_bytes(b"another")
    done = hpcgen("render", "--bundle", "B", "-o", "kit")
    assert done.returncode == 3 and "changed since it was planned" in done.stderr
    assert not (tmp_path / "kit").exists()
    list_ = next(bundle.glob("files/*/copied.list"))
    list_.write_text(f"{'a' * 64} 644 ../../etc/passwd\n")
    done = hpcgen("render", "--bundle", "B", "-o", "kit")
    assert done.returncode == 3 and "is damaged" in done.stderr


def test_a_lock_finds_them_beside_itself_or_in_its_stack(ours: Path, tmp_path: Path, hpcgen: Command) -> None:
    made, _ = lock_of(ours)
    (ours / "recipes/hpcgen.lock").write_text(made.text)
    (tmp_path / "hpcgen.lock").write_text(made.text)
    named = ("--collection", str(ours), "render", "--locked")
    for place in ("author/ours/recipes/hpcgen.lock", "hpcgen.lock"):
        done = hpcgen(*named, place, "-o", f"kit-{place[0]}")
        assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "kit-a") == tree(tmp_path / "kit-h")
    (ours / "recipes/models/again").write_bytes(b"changed")
    done = hpcgen(*named, "hpcgen.lock", "-o", "kit")
    assert done.returncode == 3
    assert (
        "the files that copier copies to /opt/models are not here" in done.stderr
        and "models has changed" in done.stderr
    )
    shutil.rmtree(ours / "recipes/models")
    done = hpcgen(*named, "hpcgen.lock", "-o", "kit")
    assert done.returncode == 3 and "there is no 'models' in" in done.stderr


@pytest.mark.parametrize("where", ["beside the lock", "in the present folder", "by --stack"])
def test_a_bundle_has_the_files_of_a_stack_in_no_collection(
    ours: Path, tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr("hpcgen.supply.pin.wanted.own_wheels", lambda folder: [])  # these want an index
    made, _ = lock_of(ours)
    place = {"beside the lock": "locks", "in the present folder": ".", "by --stack": "stacks"}[where]
    shutil.copytree(ours / "recipes", tmp_path / place, dirs_exist_ok=True)
    shutil.rmtree(ours)
    (tmp_path / "locks").mkdir(exist_ok=True)
    (tmp_path / "locks/hpcgen.lock").write_text(made.text)
    named = ("--stack", "stacks/copier.yaml") if where == "by --stack" else ()
    create = ("bundle", "create", "--lock", "locks/hpcgen.lock", "-o", "B", "--dry-run", "--json")
    done = hpcgen(*create, *named)
    assert done.returncode == 0, done.stderr
    names = {each["name"] for each in json.loads(done.stdout)["files"] if each["kind"] == "copied"}
    assert {"list of /opt/models", "list of /data/one.txt", "/opt/models/empty", "/data/one.txt"} < names
    if not named:
        assert hpcgen("render", "--locked", "locks/hpcgen.lock", "-o", "kit").returncode == 0
        assert tree(tmp_path / "kit/copy")["data/one.txt"] == b"1"
    (tmp_path / place / "one.txt").write_bytes(b"2")
    done = hpcgen(*create, *named)
    assert done.returncode != 0 and "one.txt has changed" in done.stderr
    (tmp_path / place / "one.txt").unlink()
    done = hpcgen(*create, *named)
    assert done.returncode != 0 and f"there is no 'one.txt' in {(tmp_path / place).absolute()}" in done.stderr


def test_a_changed_file_is_another_lock_and_diff_says_which(ours: Path) -> None:
    from hpcgen.kit.lockfile.changes import changes, changes_text

    old, _ = lock_of(ours)
    (ours / "recipes/one.txt").write_bytes(b"2")
    new, _ = lock_of(ours)
    assert old.content != new.content
    text = changes_text([change for change in changes(old, new) if change.what == "copied"])
    assert text.startswith("files of the stack (1)\n  /data/one.txt") and text.endswith("the files changed")


def test_a_bundle_is_not_made_of_what_is_gone(ours: Path, tmp_path: Path) -> None:
    made, _ = lock_of(ours)
    (ours / "recipes/one.txt").unlink()
    with pytest.raises(FetchError, match=r"the files that copier copies to /data/one\.txt are not here"):
        wanted(made, Catalog([ours]), tmp_path, own=False)
