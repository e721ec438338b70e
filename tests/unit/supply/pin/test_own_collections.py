"""Locks and kits that are made with a user's own collection: what they call it, and that they hold no path of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.own_files import carried_files, collection_hash
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.core.model.lock import Lock
from hpcgen.kit.lockfile.changes import changes
from hpcgen.supply.pin.wanted import check_lock
from tests.conftest import Command
from tests.helpers.bundles import tree
from tests.helpers.locks import lock, pins
from tests.helpers.own_collection import ASKED, own_collection


def own_lock(catalog: Catalog) -> Lock:
    return lock("ours-stack", "lab", catalog=catalog, pinned=pins(wheels={}, images=()))


def test_a_lock_names_a_collection_by_its_name_and_hashes(tmp_path: Path) -> None:
    first = own_lock(Catalog([own_collection(tmp_path / "author" / "ours")]))
    assert str(tmp_path) not in first.text
    assert first.own_collections == ["ours"]
    named = {name for name in first.collections if name.startswith("ours:")}
    assert named == {
        f"ours:{file}"
        for file in (
            "building_blocks/files/ours.conf",
            "building_blocks/ours_tool.py",
            "building_blocks/ours_tool.yaml",
            "building_blocks/wheels/ours-1.0.txt",
            "recipes/ours-stack.yaml",
            "site_profiles/lab-common.yaml",
            "site_profiles/lab.yaml",
        )
    }
    # The same collection elsewhere gives the same bytes, beside one of the same name that nothing comes from too.
    (tmp_path / "other" / "ours" / "recipes").mkdir(parents=True)
    folders = [own_collection(tmp_path / "elsewhere" / "ours"), tmp_path / "other" / "ours"]
    assert own_lock(Catalog(folders)).text == first.text


def test_two_collections_of_one_name_stay_apart_in_their_order(tmp_path: Path) -> None:
    one = own_collection(tmp_path / "a" / "ours")
    other = own_collection(
        tmp_path / "b" / "ours", {"building_blocks/ours_tool.yaml": "block: ours_tool\nreleases: {}\n"}
    )
    (one / "recipes" / "ours-stack.yaml").unlink()
    found = own_lock(Catalog([one, other]))
    assert found.own_collections == ["ours", "ours-2"]
    assert "ours-2:recipes/ours-stack.yaml" in found.collections
    assert list(found.collections)[-1].startswith("building_blocks/")


def test_a_lock_without_its_collection_says_which_one(tmp_path: Path) -> None:
    folder = own_collection(tmp_path / "ours")
    made = own_lock(Catalog([folder]))
    with pytest.raises(HpcgenError, match="the lock was made with the collection ours, which is not here"):
        check_lock(made, Catalog())
    (folder / "building_blocks" / "files" / "ours.conf").write_text("colour = red\n")
    with pytest.raises(InputError, match=r"ours:building_blocks/files/ours\.conf") as raised:
        check_lock(made, Catalog([folder]))
    assert f"ours is {folder}" in str(raised.value)


def test_no_file_of_a_kit_has_the_path_of_a_collection_or_profile(hpcgen: Command, tmp_path: Path) -> None:
    folder = own_collection(tmp_path / "author" / "ours")
    profile = tmp_path / "author" / "mine.yaml"
    profile.write_text((folder / "site_profiles" / "lab.yaml").read_text().replace("name: lab", "name: mine"))
    asked = ["--site", str(profile), *ASKED[2:]]
    done = hpcgen("--collection", str(folder), "render", *asked, "-o", "kit")
    assert done.returncode == 0, done.stderr
    told = {name: data for name, data in tree(tmp_path / "kit").items() if str(tmp_path).encode() in data}
    assert not told
    plan = json.loads((tmp_path / "kit" / "plan.json").read_text())
    assert plan["command"].startswith("hpcgen --collection ours render --site mine.yaml --stack ours-stack")
    assert "ours:building_blocks/ours_tool.py" in [block["origin"] for block in plan["blocks"]]


def test_what_is_carried_of_a_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "building_blocks/.secret": "",
        "building_blocks/__pycache__/ours_tool.cpython-311.pyc": "",
        ".git/config": "",
        "results/big": "",
        "recipes/models/copied.bin": "",
        "recipes/copied.bin": "",
        "building_blocks/bazel/x.yaml": "",
    }
    folder = own_collection(tmp_path / "ours", extra)
    assert len(carried_files(folder, "ours")) == 8 and "building_blocks/bazel/x.yaml" in carried_files(folder, "ours")
    before = collection_hash(folder, "ours")
    assert before == collection_hash(own_collection(tmp_path / "b", {"building_blocks/bazel/x.yaml": ""}), "b")
    (folder / "recipes" / "ours-stack.yaml").rename(folder / "recipes" / "other.yaml")
    assert collection_hash(folder, "ours") != before
    (folder / "building_blocks" / "loop").symlink_to(folder / "recipes")
    with pytest.raises(InputError, match="a folder in a collection is a symbolic link"):
        carried_files(folder, "ours")
    (folder / "building_blocks" / "loop").unlink()
    (folder / "building_blocks" / "na\udcefve").write_text("")
    assert collection_hash(folder, "ours")
    monkeypatch.setattr("hpcgen.catalog.own_files.MOST_BYTES", 100)
    with pytest.raises(InputError, match=r"the collection ours .* is too large for a bundle"):
        carried_files(folder, "ours")


def test_a_note_in_a_profile_changes_nothing_that_the_build_uses(tmp_path: Path) -> None:
    folder = own_collection(tmp_path / "ours")
    old = own_lock(Catalog([folder]))
    for name in ("site_profiles/lab.yaml", "recipes/ours-stack.yaml"):
        (folder / name).write_text(f"# read again\n{(folder / name).read_text()}")
    [change] = changes(old, own_lock(Catalog([folder])))
    assert (change.name, "nothing that the build uses" in change.why) == ("text", True)
    (folder / "building_blocks" / "files" / "ours.conf").write_text("colour = red\n")
    told = {change.name for change in changes(old, own_lock(Catalog([folder])))}
    assert "ours:building_blocks/files/ours.conf" in told


def test_a_check_says_which_collection_is_not_here(tmp_path: Path, hpcgen: Command) -> None:
    (tmp_path / "hpcgen.lock").write_text(own_lock(Catalog([own_collection(tmp_path / "ours")])).text)
    done = hpcgen("lock", "--check", "--site", "lab", "--stack", "ours-stack")
    assert done.returncode == 4
    assert "warning: the lock was made with the collection ours, which is missing: pass --collection DIR" in done.stderr
