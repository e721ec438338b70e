"""Bundles of locks that were made with a user's own collection: they bring it, and the far side renders with it."""

from __future__ import annotations

import json
import py_compile
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.own_files import collection_hash
from hpcgen.core.errors import InputError
from hpcgen.core.model.lock import Lock, Pins
from hpcgen.core.support.progress import ProgressLines
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.bundle.difference import DifferenceTarget, join, write_increment
from hpcgen.supply.bundle.own_collections import left_behind
from hpcgen.supply.bundle.verify import verify
from tests.conftest import Command
from tests.helpers.bundles import EPOCH, QUICK, make, tree
from tests.helpers.locks import lock
from tests.helpers.own_collection import BLOCK, FILES, own_collection


def own_lock(*folders: Path) -> Lock:
    return lock("ours-stack", "lab", catalog=Catalog(folders), pinned=Pins(epoch=EPOCH))


@pytest.fixture
def author(tmp_path: Path) -> Path:
    return own_collection(tmp_path / "author" / "ours", {"building_blocks/.notes": "", "data/big": "x"})


def bundle_of(folder: Path, target: Path) -> Path:
    made = own_lock(folder)
    how = Creation(policy=QUICK, catalog=Catalog([folder]))
    create_bundle(made, [], target, how)
    return target


def test_a_bundle_brings_the_collection_and_says_so(author: Path, tmp_path: Path, hpcgen: Command) -> None:
    bundle = bundle_of(author, tmp_path / "B")
    inside = tree(bundle / "collections" / "ours")
    assert inside == {name: text.encode() for name, text in FILES.items()}
    assert not verify(bundle).problems
    done = hpcgen("bundle", "verify", "B")
    assert done.returncode == 0 and "it brings ours (in collections/); its Python runs once you trust it" in done.stderr
    assert json.loads(hpcgen("bundle", "verify", "B", "--json").stdout)["collections"] == ["ours"]
    told = (bundle / "README.txt").read_text()
    assert "collections/ours\n" in told and "--trust-collections" in told
    assert subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=bundle).returncode == 0
    # The author's folder is in no file, and the same collection elsewhere gives the same bytes.
    assert not {name for name, data in tree(bundle).items() if str(tmp_path).encode() in data}
    again = bundle_of(own_collection(tmp_path / "elsewhere" / "ours"), tmp_path / "C")
    assert tree(again) == tree(bundle)


def test_a_bundle_without_a_collection_is_as_before(tmp_path: Path) -> None:
    make(tmp_path, catalog=Catalog([own_collection(tmp_path / "ours")]))
    assert not (tmp_path / "B" / "collections").exists()
    assert "in Python:" not in (tmp_path / "B" / "README.txt").read_text()


def test_a_collection_that_was_changed_on_the_way_is_reported(author: Path, tmp_path: Path) -> None:
    bundle = bundle_of(author, tmp_path / "B")
    folder = bundle / "collections" / "ours"
    (folder / "building_blocks" / "ours_tool.py").write_text("import os\n")
    (folder / "recipes" / "ours-stack.yaml").unlink()
    (folder / "building_blocks" / "evil.py").write_text("import os\n")
    problems = "\n".join(verify(bundle).problems)
    assert "collections/ours/building_blocks/ours_tool.py is truncated" in problems
    assert "collections/ours/recipes/ours-stack.yaml is missing" in problems
    assert "collections/ours/building_blocks/evil.py does not belong to the bundle" in problems
    shutil.rmtree(folder)
    manifest = json.loads((bundle / "bundle.json").read_text())
    manifest["items"] = [item for item in manifest["items"] if item["kind"] != "collection"]
    (bundle / "bundle.json").write_text(json.dumps(manifest))
    said = "the lock was made with the collection ours, and the manifest has none of its files"
    assert said in "\n".join(verify(bundle).problems)


def test_the_far_side_renders_with_it_once_it_is_trusted(author: Path, tmp_path: Path, hpcgen: Command) -> None:
    mark = tmp_path / "it-ran"
    (author / "building_blocks" / "ours_tool.py").write_text(f"{BLOCK}\nopen({str(mark)!r}, 'w').close()\n")
    bundle = bundle_of(author, tmp_path / "B")
    mark.unlink()
    shutil.rmtree(author.parent)
    for words in (["render", "--bundle", "B", "-o", "kit"], ["build", "--bundle", "B", "--dry-run"]):
        done = hpcgen(*words)
        assert done.returncode == 6, done.stderr
        assert (
            "the bundle B names the collection B/collections/ours; its Python code would run here as you" in done.stderr
        )
        assert "hpcgen --trust-collections …" in done.stderr and not mark.exists()
    done = hpcgen("--trust-collections", "render", "--bundle", "B", "-o", "kit")
    assert done.returncode == 0, done.stderr
    assert mark.exists() and "ours.conf" in (tmp_path / "kit" / "Dockerfile").read_text()
    again = hpcgen("--trust-collections", "build", "--bundle", "B", "--dry-run", "--kit", "kept", env={"PATH": "/none"})
    assert again.returncode == 69 and "whose Python" not in again.stderr, again.stderr
    assert "ours.conf" in (tmp_path / "kept" / "Dockerfile").read_text()
    assert hpcgen("--collection", "B/collections/ours", "render", "--bundle", "B").returncode == 0
    assert hpcgen("--collection", "B/collections/ours", "list", "stacks").stdout.count("ours-stack") == 1
    # What is trusted is this content: the folder's name and place do not count.
    trusted = f"sha256:{collection_hash(bundle / 'collections' / 'ours', 'ours')}"
    (tmp_path / "config.yaml").write_text(f"trusted_collections: {{{trusted}: 2026-11-22}}\n")
    bundle.rename(tmp_path / "moved")
    env = {"HPCGEN_CONFIG": str(tmp_path / "config.yaml")}
    assert hpcgen("render", "--bundle", "moved", env=env).returncode == 0
    assert not verify(tmp_path / "moved").problems
    (tmp_path / "moved" / "collections" / "ours" / "building_blocks" / "ours_tool.py").write_text(BLOCK)
    assert hpcgen("render", "--bundle", "moved", env=env).returncode == 6


def test_what_somebody_compiled_beside_it_is_not_what_runs(
    author: Path, tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", None)  # wherever whoever runs the tests keeps such files
    bundle = bundle_of(author, tmp_path / "B")
    mark = tmp_path / "it-ran"
    evil = tmp_path / "evil.py"
    evil.write_text(f"{BLOCK}\nopen({str(mark)!r}, 'w').close()\n")
    block = bundle / "collections" / "ours" / "building_blocks" / "ours_tool.py"
    cached = Path(py_compile.compile(str(block), doraise=True) or "")
    py_compile.compile(
        str(evil), str(cached), doraise=True, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    assert hpcgen("--trust-collections", "render", "--bundle", "B").returncode == 0
    assert not mark.exists()
    assert any("__pycache__" in each for each in verify(bundle).problems)


def test_increments_bring_what_changed_in_it(author: Path, tmp_path: Path) -> None:
    old = bundle_of(author, tmp_path / "old")
    (author / "site_profiles" / "lab.yaml").write_text(FILES["site_profiles/lab.yaml"] + "notes: [new]\n")
    new = bundle_of(author, tmp_path / "new")
    found = write_increment(old, new, DifferenceTarget(tmp_path / "more"))
    changed = [item.path for item in found.new if item.kind == "collection"]
    assert changed == ["collections/ours/site_profiles/lab.yaml"]
    join(old, tmp_path / "more", DifferenceTarget(tmp_path / "joined"))
    assert tree(tmp_path / "joined") == tree(new)


def test_what_cannot_go_along_is_said(author: Path, tmp_path: Path) -> None:
    made = own_lock(author)
    with pytest.raises(InputError, match="the lock's collection ours is not here"):
        create_bundle(made, [], tmp_path / "B", Creation(policy=QUICK, catalog=Catalog()))
    (author / "building_blocks" / "files" / "mit Leerzeichen").write_text("")
    with pytest.raises(InputError, match="'building_blocks/files/mit Leerzeichen' of a file cannot be in a bundle"):
        create_bundle(made, [], tmp_path / "B", Creation(policy=QUICK, catalog=Catalog([author])))
    (author / "building_blocks" / "files" / "mit Leerzeichen").unlink()
    (author / "recipes" / "ours-stack.yaml").write_text(FILES["recipes/ours-stack.yaml"] + "notes: [new]\n")
    said: list[str] = []
    how = Creation(policy=QUICK, catalog=Catalog([author]), watch=ProgressLines(said.append))
    create_bundle(made, [], tmp_path / "B", how)
    assert "note: ours:recipes/ours-stack.yaml has been edited since the lock was made" in said


def test_a_lock_of_an_older_release_is_told_apart(author: Path) -> None:
    made = own_lock(author)
    assert left_behind(made) == []
    then = {f"/home/me/ours/{name.partition(':')[2]}": sha for name, sha in made.collections.items() if ":" in name}
    assert left_behind(msgspec.structs.replace(made, collections=then)) == ["/home/me/ours"]
