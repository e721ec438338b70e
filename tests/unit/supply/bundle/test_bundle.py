"""Bundles: made, continued, the same bytes every time, checked, and every kind of damage told."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import FetchError, InputError, OutputError
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.lock import ImagePin
from hpcgen.core.support.progress import ProgressLines
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.bundle.verify import Verification, check_bundle, verify
from tests.conftest import Command
from tests.helpers.bundles import NAMES, QUICK, a_lock, content, image_pin, make, put_image, sha, tree, wants
from tests.helpers.locks import CATALOG


def sums_hold(folder: Path) -> bool:
    """What a person without hpcgen does."""
    done = subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=folder, capture_output=True)
    return done.returncode == 0


def test_a_bundle_is_what_its_parts_say(tmp_path: Path) -> None:
    manifest = make(tmp_path)
    folder = tmp_path / "B"
    assert sums_hold(folder)
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    assert sorted(line[66:] for line in lines) == sorted(set(tree(folder)) - {"SHA256SUMS"})
    for name in NAMES:
        assert (folder / "files" / sha(content(name)) / name).read_bytes() == content(name)
    assert json.loads((folder / "bundle.json").read_text())["stack"] == "mpi-hello" == manifest.stack
    assert (folder / "hpcgen.lock").read_text() == a_lock().text
    assert f'href="files/{sha(content(NAMES[1]))}/{NAMES[1]}#sha256=' in (folder / "wheels.html").read_text()
    assert NAMES[2] in (folder / "hpcgen.html").read_text()
    # Of no packages, as where a base has all that a recipe wants: its `apt-get update` asks for it.
    assert (folder / "Packages").read_text() == ""
    assert json.loads((folder / "sbom.cdx.json").read_text())["bomFormat"] == "CycloneDX"
    assert "SPDX-2.3" in (folder / "sbom.spdx.json").read_text()
    assert "sha256sum --quiet -c SHA256SUMS" in (folder / "README.txt").read_text()
    assert not (tmp_path / "B.partial").exists()
    assert not verify(folder).problems
    check_bundle(folder, a_lock().text)


def test_the_same_lock_gives_the_same_bytes(tmp_path: Path) -> None:
    make(tmp_path, "A")
    make(tmp_path, "B", list(reversed(NAMES)), jobs=1)
    # The kind of a file goes by its place in the list; apart from that all is the same.
    first, second = tree(tmp_path / "A"), tree(tmp_path / "B")
    assert first.keys() == second.keys()
    make(tmp_path, "C")
    assert first == tree(tmp_path / "C")
    make(tmp_path, "A.tar")
    (tmp_path / "A.tar").rename(tmp_path / "first.tar")
    os.utime(tmp_path / "first.tar", (1, 1))
    make(tmp_path, "A.tar")
    assert (tmp_path / "A.tar").read_bytes() == (tmp_path / "first.tar").read_bytes()


def test_files_of_two_kinds_are_there_once(tmp_path: Path) -> None:
    twice = [*wants(tmp_path / "origin", ["a.whl"], ["wheel"]), *wants(tmp_path / "origin", ["a.whl"], ["hpcgen"])]
    manifest = create_bundle(a_lock(), twice, tmp_path / "B", Creation(policy=QUICK, catalog=CATALOG))
    assert [item.kind for item in manifest.items if item.path.endswith("a.whl")] == ["hpcgen", "wheel"]
    assert "a.whl" in (tmp_path / "B" / "wheels.html").read_text()
    assert "a.whl" in (tmp_path / "B" / "hpcgen.html").read_text()
    assert sums_hold(tmp_path / "B")


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "B").mkdir()
    (tmp_path / "B" / "work").write_text("mine")
    with pytest.raises(OutputError, match="B already exists"):
        make(tmp_path)
    (tmp_path / "C.partial").mkdir()
    (tmp_path / "C.partial" / "work").write_text("mine")
    with pytest.raises(OutputError, match="there are files in it that hpcgen did not put there"):
        make(tmp_path, "C")
    assert (tmp_path / "C.partial" / "work").read_text() == "mine"
    with pytest.raises(OutputError, match="the folder it belongs in does not exist"):
        make(tmp_path, "none/B")
    (tmp_path / "E").mkdir()
    make(tmp_path, "E")
    assert sums_hold(tmp_path / "E")


def test_what_fails_before_anything_is_fetched_leaves_nothing(tmp_path: Path) -> None:
    def unknown(folder: Path) -> list[WantedFile]:
        raise InputError("nobody knows what belongs in it")

    with pytest.raises(InputError):
        create_bundle(a_lock(), unknown, tmp_path / "B", Creation(catalog=CATALOG))
    assert list(tmp_path.iterdir()) == []


def test_one_at_a_time(tmp_path: Path) -> None:
    from hpcgen.supply.bundle.workspace import workspace

    with workspace(tmp_path / "B"), pytest.raises(OutputError, match="another hpcgen is working in"):
        make(tmp_path)
    make(tmp_path)


def test_next_run_goes_on_and_trusts_nothing(tmp_path: Path) -> None:
    listed = wants(tmp_path / "origin", NAMES)
    for want in listed[4:]:
        (tmp_path / "origin" / want.file).unlink()
    with pytest.raises(FetchError) as raised:
        create_bundle(a_lock(), listed, tmp_path / "B", Creation(policy=QUICK, catalog=CATALOG))
    assert len(raised.value.problems) == 4
    assert not (tmp_path / "B").exists()
    inside = tmp_path / "B.partial" / "bundle"
    present = sorted(inside.rglob("file-*"))
    assert len(present) == 4
    present[0].write_bytes(b"half of it")
    (inside / "files" / "stranger").write_text("who is this")
    for name in NAMES[:4]:
        (tmp_path / "origin" / name).unlink()
    said: list[str] = []
    with pytest.raises(FetchError) as raised:
        create_bundle(
            a_lock(), listed, tmp_path / "B", Creation(policy=QUICK, catalog=CATALOG, watch=ProgressLines(said.append))
        )
    assert len(raised.value.problems) == 5
    assert "damaged by an earlier run and fetched again: 1 file" in said
    assert "resuming: 3 of 8 files exist" in said
    make(tmp_path)
    assert sums_hold(tmp_path / "B")
    assert not (tmp_path / "B" / "files" / "stranger").exists()
    make(tmp_path, "whole")
    assert tree(tmp_path / "B") == tree(tmp_path / "whole")


def test_older_bundle_is_taken_over_after_a_look(tmp_path: Path) -> None:
    make(tmp_path, "old")
    old = tmp_path / "old" / "files"
    damaged = old / sha(content(NAMES[0])) / NAMES[0]
    damaged.write_bytes(b"x" * 20_000)
    link = old / sha(content(NAMES[1])) / NAMES[1]
    link.unlink()
    link.symlink_to(tmp_path / "origin" / NAMES[1])
    listed = wants(tmp_path / "origin", [*NAMES, "new.tar.gz"])
    for name in NAMES[2:]:
        (tmp_path / "origin" / name).unlink()
    create_bundle(a_lock(), listed, tmp_path / "B", Creation(policy=QUICK, catalog=CATALOG, reuse=tmp_path / "old"))
    assert sums_hold(tmp_path / "B") and not verify(tmp_path / "B").problems
    with pytest.raises(InputError, match=r"origin is not a bundle: it has no bundle\.json"):
        make(tmp_path, "C", reuse=tmp_path / "origin")


def test_files_that_came_another_way(tmp_path: Path) -> None:
    listed = wants(tmp_path / "origin", NAMES)
    (tmp_path / "origin").rename(tmp_path / "stick")
    (tmp_path / "wrong").mkdir()
    (tmp_path / "wrong" / NAMES[0]).write_bytes(b"something else")
    said: list[str] = []
    how = Creation(
        policy=QUICK,
        catalog=CATALOG,
        watch=ProgressLines(said.append),
        folders=[tmp_path / "wrong", tmp_path / "stick"],
    )
    create_bundle(a_lock(), listed, tmp_path / "B", how)
    assert said.count(f"taken: {NAMES[0]}") == 1 and sums_hold(tmp_path / "B")
    assert (tmp_path / "stick" / NAMES[0]).stat().st_nlink == 1
    how = Creation(policy=QUICK, catalog=CATALOG, watch=ProgressLines(said.append), folders=[tmp_path / "wrong"])
    with pytest.raises(FetchError, match="for files that you got elsewhere, use --files DIR"):
        create_bundle(a_lock(), listed, tmp_path / "C", how)
    assert any(text.startswith(f"not used: {tmp_path}/wrong/{NAMES[0]} is a different file") for text in said)


def test_wanted_files_that_contradict_each_other(tmp_path: Path) -> None:
    import msgspec

    [want] = wants(tmp_path / "origin", ["a"])
    other = msgspec.structs.replace(want, size=1)
    with pytest.raises(InputError, match="a is listed with 1 and 20000 bytes"):
        create_bundle(a_lock(), [want, other], tmp_path / "B")


# images


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Images come from here instead of from skopeo; the list says which were fetched."""
    return serve_images(monkeypatch)


def serve_images(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    asked: list[str] = []

    def fetch(pin: ImagePin, name: str, architecture: str, layout: Path) -> None:
        asked.append(f"{name} {pin.origin} {architecture}")
        put_image(layout, name, pin.origin.rpartition("/")[2])

    monkeypatch.setattr("hpcgen.supply.pin.base_images.fetch_image", fetch)
    return asked


PINS = {"debian:12": image_pin("debian"), "example/ubuntu:1": image_pin("ubuntu")}


def test_images_lie_in_one_layout_whatever_the_order(tmp_path: Path, registry: list[str]) -> None:
    lock = a_lock(PINS)
    make(tmp_path, lock=lock)
    index = json.loads((tmp_path / "B" / "images" / "index.json").read_text())
    names = [entry["annotations"]["org.opencontainers.image.ref.name"] for entry in index["manifests"]]
    assert names == ["debian-12", "example-ubuntu-1"]
    assert registry[0] == "debian:12 docker://registry.example.org/debian x86_64"
    make(tmp_path, "C", lock=a_lock(dict(reversed(PINS.items()))), reuse=tmp_path / "B")
    assert len(registry) == 2
    assert not verify(tmp_path / "C").problems
    first, second = tree(tmp_path / "B"), tree(tmp_path / "C")
    assert {k: v for k, v in first.items() if k.startswith("images")} == {
        k: v for k, v in second.items() if k.startswith("images")
    }


def test_image_that_is_not_the_pinned_one(tmp_path: Path, registry: list[str]) -> None:
    with pytest.raises(
        FetchError, match=r"docker://elsewhere\.example\.org/ubuntu sent a different base image debian:12, not sha256:"
    ):
        make(tmp_path, lock=a_lock(PINS), images={"debian:12": "docker://elsewhere.example.org/ubuntu"})
    make(tmp_path, lock=a_lock(PINS), images={"debian:12": "docker://elsewhere.example.org/debian"})
    assert not verify(tmp_path / "B").problems
    assert "elsewhere" not in (tmp_path / "B" / "bundle.json").read_text()


def test_charliecloud_gets_each_base_as_one_tar_file(tmp_path: Path, registry: list[str]) -> None:
    lock = a_lock(PINS, site="supermuc")
    assert lock.plan.format == "charliecloud"
    manifest = make(tmp_path, lock=lock)
    roots = [item for item in manifest.items if item.path.endswith(".root.tar")]
    assert sorted(item.path.rpartition("/")[2] for item in roots) == ["debian-12.root.tar", "example-ubuntu-1.root.tar"]
    with tarfile.open(tmp_path / "B" / roots[0].path) as archive:
        assert any(name.endswith("etc/os-release") for name in archive.getnames())
    again = make(tmp_path, "C", lock=lock, reuse=tmp_path / "B")
    assert again == manifest and len(registry) == 2
    assert tree(tmp_path / "B") == tree(tmp_path / "C")


def test_tar_file_of_a_base_is_taken_over_if_the_older_bundle_has_that_very_base(
    tmp_path: Path, registry: list[str]
) -> None:
    make(tmp_path, lock=a_lock(PINS, site="supermuc"))
    manifest = tmp_path / "B" / "bundle.json"
    manifest.write_text(manifest.read_text().replace("made of ", "unpacked from "))
    moved = {**PINS, "debian:12": image_pin("debian-new")}
    said: list[str] = []
    make(tmp_path, "C", lock=a_lock(moved, site="supermuc"), reuse=tmp_path / "B", watch=ProgressLines(said.append))
    assert [line for line in said if "tar file" in line] == ["base image debian:12 as one tar file"]
    assert not verify(tmp_path / "C").problems


# tar files and pieces


def test_tar_file_is_the_same_bundle(tmp_path: Path, registry: list[str]) -> None:
    lock = a_lock(PINS)
    make(tmp_path, lock=lock)
    make(tmp_path, "B.tar", lock=lock)
    subprocess.run(["tar", "-xf", "B.tar", "-C", tmp_path / "origin"], cwd=tmp_path, check=True)
    assert tree(tmp_path / "origin" / "hpcgen-bundle") == tree(tmp_path / "B")
    with tarfile.open(tmp_path / "B.tar") as archive:
        members = archive.getmembers()
    assert members[0].name == "hpcgen-bundle/bundle.json"
    assert {(m.uid, m.gid, m.uname, m.mode, m.mtime) for m in members} == {(0, 0, "root", 0o644, 1760000000)}
    assert not verify(tmp_path / "B.tar").problems


def test_pieces_are_checked_and_joined_with_plain_tools(tmp_path: Path) -> None:
    big = wants(tmp_path / "origin", ["a"])
    data = content("big", 2_600_000)
    (tmp_path / "origin" / "a").write_bytes(data)
    import msgspec

    want = msgspec.structs.replace(big[0], sha256=sha(data), size=len(data))
    create_bundle(a_lock(), [want], tmp_path / "B.tar", Creation(split=1_000_000))
    pieces = sorted(path.name for path in tmp_path.glob("B.tar*"))
    assert pieces == ["B.tar.000", "B.tar.001", "B.tar.002", "B.tar.SHA256SUMS"]
    assert (tmp_path / "B.tar.000").stat().st_size == 1_000_000
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "B.tar.SHA256SUMS"], cwd=tmp_path, check=True)
    assert not verify(tmp_path / "B.tar.000").problems
    subprocess.run("cat B.tar.0* > B.tar", shell=True, cwd=tmp_path, check=True)
    assert not verify(tmp_path / "B.tar").problems
    (tmp_path / "B.tar").unlink()
    assert not verify(tmp_path / "B.tar").problems  # the first piece is found by the name of the whole
    (tmp_path / "B.tar.001").unlink()
    assert "the piece B.tar.001 is missing" in verify(tmp_path / "B.tar.000").problems
    with pytest.raises(InputError, match="only a tar file can be split"):
        make(tmp_path, "C", split=1_000_000)


# what can be wrong


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle ``B`` of files and images, and a ``B.tar`` of files alone; tests damage copies of them."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as here:
        serve_images(here)
        make(folder, lock=a_lock(PINS))
    make(folder, "B.tar")
    return folder


@pytest.fixture
def whole(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made / "B", tmp_path / "B")


@pytest.fixture
def whole_tar(made: Path, tmp_path: Path) -> Path:
    return shutil.copyfile(made / "B.tar", tmp_path / "B.tar")


def problems(path: Path, **more: Any) -> list[str]:
    found: Verification = verify(path, **more)
    return found.problems


def test_damaged_files_are_all_told_at_once(whole: Path) -> None:
    places = [whole / "files" / sha(content(name)) / name for name in NAMES]
    places[0].write_bytes(content(NAMES[0])[:-7])
    places[1].write_bytes(content(NAMES[1])[:-1] + b"?")
    places[2].unlink()
    places[3].write_bytes(content(NAMES[3]) + b"more")
    (whole / "files" / "extra.sh").write_text("surprise")
    found = problems(whole)
    inside = [str(place.relative_to(whole)) for place in places]
    altered = sha(content(NAMES[1])[:-1] + b"?")
    assert f"{inside[0]} is truncated: 19993 of 20000 bytes" in found
    assert f"{inside[1]} is altered: its sha256 is {altered}, expected {sha(content(NAMES[1]))}" in found
    assert f"{inside[2]} is missing" in found
    assert f"{inside[3]} is too long: 20004 bytes instead of 20000" in found
    assert "files/extra.sh does not belong to the bundle: the manifest has no such file" in found
    assert len(found) == 5


def test_many_missing_files_do_not_fill_the_screen(tmp_path: Path) -> None:
    make(tmp_path, names=[f"n{number}" for number in range(60)])
    for path in (tmp_path / "B" / "files").rglob("n*"):
        path.unlink()
    found = problems(tmp_path / "B")
    assert len(found) == 21 and found[-1] == "40 more files are missing"


def edit_manifest(folder: Path, change: Any) -> None:
    path = folder / "bundle.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def item_of(data: dict[str, Any], ending: str) -> dict[str, Any]:
    found: dict[str, Any] = next(item for item in data["items"] if item["path"].endswith(ending))
    return found


def test_a_manifest_that_was_edited(whole: Path) -> None:
    edit_manifest(whole, lambda data: item_of(data, NAMES[0]).update(sha256="0" * 64))
    found = problems(whole)
    path = f"files/{sha(content(NAMES[0]))}/{NAMES[0]}"
    assert f"bundle.json: the hash of {path} is given as {'0' * 64}" in found
    assert any(text.startswith("SHA256SUMS does not match the manifest: bundle.json, files/") for text in found)
    assert any(text.startswith(f"{path} is altered") for text in found)


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "files/../x", "files/a b", "a\nb", "files/.x", ""])
def test_paths_of_a_manifest_stay_inside(whole: Path, path: str) -> None:
    edit_manifest(whole, lambda data: item_of(data, NAMES[0]).update(path=path))
    [found] = problems(whole)
    assert found.startswith("bundle.json is not understood: ") and "path" in found


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000, "\x00" * 50])
def test_what_is_no_manifest(whole: Path, text: str) -> None:
    (whole / "bundle.json").write_text(text)
    [found] = problems(whole)
    assert found.startswith("bundle.json is not understood: ")


def test_sums_that_were_changed_or_are_gone(whole: Path) -> None:
    text = (whole / "SHA256SUMS").read_text()
    (whole / "SHA256SUMS").write_text(text.replace("README.txt", "README.md"))
    assert problems(whole) == ["SHA256SUMS does not match the manifest: README.md, README.txt"]
    (whole / "SHA256SUMS").unlink()
    assert problems(whole) == ["SHA256SUMS is missing"]


def resum(folder: Path) -> None:
    """Make manifest and sums fit what is there, as someone who means it would."""

    def change(data: dict[str, Any]) -> None:
        for item in data["items"]:
            stored = (folder / item["path"]).read_bytes()
            item.update(sha256=sha(stored), size=len(stored))
            if item["path"] == "hpcgen.lock":
                data["lock"] = sha(stored)

    edit_manifest(folder, change)
    lines = [f"{sha(data)}  {path}\n" for path, data in tree(folder).items() if path != "SHA256SUMS"]
    (folder / "SHA256SUMS").write_text("".join(sorted(lines, key=lambda line: line[66:])))


def test_a_lock_edited_by_hand(whole: Path) -> None:
    lock = whole / "hpcgen.lock"
    lock.write_text(lock.read_text().replace("mpi-hello", "mpi-hallo", 1))
    assert any(text.startswith("hpcgen.lock is altered") for text in problems(whole))
    resum(whole)
    [found] = problems(whole)
    assert found == "the bundle's hpcgen.lock is not as hpcgen lock wrote it: its seal does not match its content"


def test_a_bundle_of_another_lock(whole: Path, tmp_path: Path) -> None:
    other = a_lock(PINS, epoch=1760000001)
    (tmp_path / "other.lock").write_text(other.text)
    [found] = problems(whole, lock=tmp_path / "other.lock")
    content = a_lock(PINS).content[:12]
    assert found == (
        f"the bundle is for a lock other than {tmp_path}/other.lock's: mpi-hello for workstation, content {content}…"
    )
    with pytest.raises(InputError, match="the bundle is for a lock other than the kit's"):
        check_bundle(whole, other.text)
    (whole / "hpcgen.lock").write_text(a_lock(site="supermuc").text)
    resum(whole)
    assert any("is for another lock: its content is" in text for text in problems(whole))


def test_links_and_devices_in_a_folder(whole: Path) -> None:
    path = whole / "files" / sha(content(NAMES[0])) / NAMES[0]
    path.unlink()
    path.symlink_to("/etc/passwd")
    os.mkfifo(whole / "pipe")
    found = problems(whole)
    assert f"{path.relative_to(whole)} is a symbolic link, not a file" in found
    assert "pipe is a named pipe or socket, not a file" in found
    assert f"{path.relative_to(whole)} is missing" in found


def test_images_are_whole_and_the_pinned_ones(whole: Path) -> None:
    index = whole / "images" / "index.json"
    data = json.loads(index.read_text())
    first = data["manifests"][0]["digest"]
    data["manifests"][0]["digest"] = data["manifests"][1]["digest"]
    index.write_text(json.dumps(data))
    resum(whole)
    pinned, other = PINS["debian:12"].digest, PINS["example/ubuntu:1"].digest
    assert problems(whole) == [f"images: debian:12 is {other}, the lock pins {pinned}"]
    data["manifests"][0]["digest"] = first
    index.write_text(json.dumps(data))
    blob = whole / "images" / "blobs" / "sha256" / first[7:]
    layer = json.loads(blob.read_text())["layers"][0]["digest"]
    (whole / "images" / "blobs" / "sha256" / layer[7:]).unlink()
    edit_manifest(whole, lambda data: data["items"].remove(item_of(data, layer[7:])))
    resum(whole)
    assert problems(whole) == [f"images: the blob {layer} is needed but missing"]
    index.write_text('{"manifests": 5}')
    resum(whole)
    assert problems(whole) == ["images: index.json lists no manifests"]


EVIL: list[tuple[str, dict[str, Any], str]] = [
    ("hpcgen-bundle/../../evil", {}, "hpcgen-bundle/../../evil leads out of the folder"),
    ("/etc/evil", {}, "/etc/evil leads out of the folder"),
    ("hpcgen-bundle/a", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}, "a is a symbolic link to /etc/passwd"),
    ("hpcgen-bundle/a", {"type": tarfile.LNKTYPE, "linkname": "../x"}, "hpcgen-bundle/a is a hard link to ../x"),
    ("hpcgen-bundle/a", {"type": tarfile.CHRTYPE}, "hpcgen-bundle/a is not a regular file"),
    ("hpcgen-bundle/a", {"type": tarfile.FIFOTYPE}, "hpcgen-bundle/a is not a regular file"),
    ("hpcgen-bundle/README.txt", {}, "hpcgen-bundle/README.txt occurs twice"),
    ("hpcgen-bundle/a\x1b[31m", {}, "'hpcgen-bundle/a\\x1b[31m' is not a valid name for a file of a bundle"),
    ("hpcgen-bundle/extra", {}, "extra does not belong to the bundle"),
]


@pytest.mark.parametrize(("name", "fields", "expected"), EVIL)
def test_members_of_a_tar_file_that_do_not_belong(
    whole_tar: Path, name: str, fields: dict[str, Any], expected: str
) -> None:
    with tarfile.open(whole_tar, "a") as archive:
        member = tarfile.TarInfo(name)
        for field, value in fields.items():
            setattr(member, field, value)
        archive.addfile(member)
    found = problems(whole_tar)
    assert any(expected in text for text in found), found
    assert len(found) == 1


@pytest.mark.parametrize("cut", [100, 600, 5_000, 50_000, 150_000])
def test_a_tar_file_that_was_cut_off(whole_tar: Path, cut: int) -> None:
    os.truncate(whole_tar, cut)
    try:
        found = problems(whole_tar)
    except InputError as error:
        found = [str(error)]
        assert "is not a bundle: it has no bundle.json" in found[0]
    assert found


def test_a_tar_file_altered_anywhere_is_noticed(tmp_path: Path) -> None:
    import random

    make(tmp_path, "B.tar", names=NAMES[:2])
    data = (tmp_path / "B.tar").read_bytes()
    with tarfile.open(tmp_path / "B.tar") as archive:
        inside = [range(m.offset_data, m.offset_data + m.size) for m in archive.getmembers() if m.size]
    for seed in range(60):
        at = random.Random(seed).choice(random.Random(seed).choice(inside))
        (tmp_path / "C.tar").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert problems(tmp_path / "C.tar")


# differences


def test_increment_and_join_give_the_new_bundle(tmp_path: Path, registry: list[str]) -> None:
    from hpcgen.supply.bundle.difference import DifferenceTarget, difference, join, read_manifest, write_increment

    old = make(tmp_path, "old", lock=a_lock({"debian:12": PINS["debian:12"]}))
    new = make(tmp_path, "new", [*NAMES[2:], "fresh.whl"], lock=a_lock(PINS))
    found = difference(old, new)
    assert [item.name for item in found.new if item.kind not in ("document", "image")] == ["fresh.whl 1"]
    assert {item.name for item in found.gone if item.kind not in ("document", "image")} == {
        f"{name} 1" for name in NAMES[:2]
    }
    assert read_manifest(tmp_path / "old" / "bundle.json")[0] == old
    write_increment(
        tmp_path / "old" / "bundle.json", tmp_path / "new", DifferenceTarget(tmp_path / "inc.tar", 1_000_000)
    )
    assert (tmp_path / "inc.tar.000").stat().st_size < 200_000
    assert not problems(tmp_path / "inc.tar.000")
    write_increment(tmp_path / "old", tmp_path / "new", DifferenceTarget(tmp_path / "inc"))
    assert sums_hold(tmp_path / "inc") and not problems(tmp_path / "inc")
    make(tmp_path, "old.tar", lock=a_lock({"debian:12": PINS["debian:12"]}))
    for number, (base, more) in enumerate([("old", "inc"), ("old.tar", "inc.tar"), ("old", "inc.tar.000")]):
        join(tmp_path / base, tmp_path / more, DifferenceTarget(tmp_path / f"joined{number}"))
        assert tree(tmp_path / f"joined{number}") == tree(tmp_path / "new")


def test_join_refuses_what_does_not_fit(tmp_path: Path) -> None:
    from hpcgen.supply.bundle.difference import DifferenceTarget, join, write_increment

    make(tmp_path, "old")
    make(tmp_path, "new", [*NAMES, "fresh.whl"])
    make(tmp_path, "third", NAMES[:3])
    write_increment(tmp_path / "old", tmp_path / "new", DifferenceTarget(tmp_path / "inc"))
    with pytest.raises(InputError, match=r"inc was not made against .*third: the manifest of .*third has the sha256"):
        join(tmp_path / "third", tmp_path / "inc", DifferenceTarget(tmp_path / "joined"))
    with pytest.raises(InputError, match=r"third is not an increment: it has no increment\.json"):
        join(tmp_path / "old", tmp_path / "third", DifferenceTarget(tmp_path / "joined"))
    for name in NAMES[:2]:
        path = tmp_path / "old" / "files" / sha(content(name)) / name
        path.unlink()
    path.write_bytes(b"y" * 20_000)
    with pytest.raises(InputError) as raised:
        join(tmp_path / "old", tmp_path / "inc", DifferenceTarget(tmp_path / "joined"))
    said = [problem.message for problem in raised.value.problems]
    assert len(said) == 2 and any(text.endswith("is missing") for text in said)
    assert any(text.endswith("is altered") for text in said)
    assert not (tmp_path / "joined").exists()
    (tmp_path / "inc" / "files" / sha(content("fresh.whl")) / "fresh.whl").unlink()
    assert f"files/{sha(content('fresh.whl'))}/fresh.whl is missing" in problems(tmp_path / "inc")


# stopped


def test_killed_at_random_moments(tmp_path: Path) -> None:
    from tests.helpers.bundle_kills import kill_at_moments

    told = kill_at_moments(tmp_path, 2)
    assert len(told) == 2 and any("of 10 files were there" in line for line in told)


EVERY = 9


@pytest.mark.parametrize("target", ["B", "B.tar"])
def test_stopped_before_every_change_of_the_disk(tmp_path: Path, target: str, registry: list[str]) -> None:
    """A process that ends right before its n-th change of a name on the disk; the next run finishes.

    Every ninth n, for time; with EVERY = 1 it takes a minute.
    """
    lock, names = a_lock(PINS, site="supermuc"), NAMES[:3]
    split = {"split": 1_000_000} if target == "B.tar" else {}
    listed = wants(tmp_path / "origin", names)

    def run(place: Path) -> None:
        create_bundle(lock, listed, place / target, Creation(policy=QUICK, catalog=CATALOG, **split))

    (tmp_path / "peace").mkdir()
    run(tmp_path / "peace")
    peace = tree(tmp_path / "peace")
    stopped = 0
    for number in range(1 if target == "B" else 5, 400, EVERY):
        place = tmp_path / str(number)
        place.mkdir()
        if not _stopped_at(number, lambda place=place: run(place)):  # type: ignore[misc]
            break
        stopped += 1
        if not (place / "B").exists() and not (place / "B.tar.SHA256SUMS").exists():
            run(place)
        else:
            # It had its name; whoever asks again hears that, or finishes what was left of the work.
            with contextlib.suppress(OutputError):
                run(place)
        assert tree(place) == peace, f"stopped before change {number}"
    assert 40 < stopped * EVERY < 399


def _stopped_at(number: int, work: Any) -> bool:
    """Do the work in a process that ends before its n-th change of a name; False if there were not so many."""
    changes = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.link", "os.truncate")
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, words: object) -> None:
            nonlocal count
            count += event in changes
            if count == number:
                os._exit(9)

        try:
            sys.addaudithook(hook)
            work()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


def test_interrupted_by_a_person_or_the_batch_system(tmp_path: Path) -> None:
    """SIGINT and SIGTERM end the command soon, with its status; the same command goes on."""
    import signal
    import time

    from tests.helpers.bundle_kills import FILES
    from tests.helpers.file_server import make_certificate, serving

    key = make_certificate(tmp_path)
    for number in (signal.SIGINT, signal.SIGTERM):
        with serving(key) as server:
            server.files = dict(FILES)
            server.faults = {name: ["stall:100000"] for name in FILES}
            process = _maker(tmp_path / number.name / "B", server.url("")[:-1], key[1])
            folder = tmp_path / number.name / "B.partial" / "parts"
            while process.poll() is None and not _parts(folder):
                time.sleep(0.05)
            began = time.monotonic()
            process.send_signal(number)
            assert process.wait(10) != 0 and time.monotonic() - began < 5
        parts = _parts(folder)
        assert parts and all(FILES[path.name[-2:]].startswith(path.read_bytes()) for path in parts)


def _parts(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*-f?") if path.stat().st_size >= 100_000]


def _maker(target: Path, url: str, certificate: Path) -> subprocess.Popen[bytes]:
    from tests.helpers.bundle_kills import start

    target.parent.mkdir()
    return start(target, url, certificate)


@pytest.mark.root
def test_full_disk(tmp_path: Path) -> None:
    """On a disk of 400 kB the making ends with what is needed; with more room it goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(disk)], check=True)
    try:
        listed = wants(tmp_path / "origin", [f"n{number}" for number in range(30)])
        with pytest.raises(OutputError, match=r"cannot write .*B: 600 kB more needed, \d+ kB are free"):
            create_bundle(a_lock(), listed, disk / "B")
        import msgspec

        unsized = [msgspec.structs.replace(want, size=None) for want in listed]
        with pytest.raises(OutputError, match=r"cannot write .*B: the disk is full"):
            create_bundle(a_lock(), unsized, disk / "B")
        assert not (disk / "B").exists() and list((disk / "B.partial").rglob("n*"))
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True)
        create_bundle(a_lock(), unsized, disk / "B")
        assert sums_hold(disk / "B")
        with pytest.raises(OutputError, match=r"cannot write .*C\.tar: "):
            subprocess.run(["mount", "-o", "remount,size=1500k", str(disk)], check=True)
            create_bundle(a_lock(), unsized, disk / "C.tar")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


# the command


def test_command_checks_and_tells_as_json(whole: Path, hpcgen: Command) -> None:
    done = hpcgen("bundle", "verify", str(whole))
    assert done.returncode == 0 and done.stdout == ""
    assert "B is a whole bundle (mpi-hello for workstation, content " in done.stderr
    path = whole / "files" / sha(content(NAMES[0])) / NAMES[0]
    path.write_bytes(b"")
    (whole / "more").write_text("")
    done = hpcgen("bundle", "verify", "--json", str(whole))
    assert done.returncode == 3
    found = json.loads(done.stdout)
    inside = path.relative_to(whole)
    assert found["whole"] is False and found["problems"] == [
        "more does not belong to the bundle: the manifest has no such file",
        f"{inside} is truncated: 0 of 20000 bytes",
    ]
    assert f"hpcgen: error: {whole}: {inside} is truncated: 0 of 20000 bytes\n  remedy: copy or make" in done.stderr
    assert "hpcgen: 2 errors" in done.stderr
    done = hpcgen("bundle", "verify", str(whole / "none"))
    assert done.returncode == 3 and "none cannot be read: No such file or directory" in done.stderr
    done = hpcgen("bundle", "verify", str(whole / "images"))
    assert done.returncode == 3 and "images is not a bundle: it has no bundle.json" in done.stderr


def test_command_compares_and_joins(tmp_path: Path, hpcgen: Command) -> None:
    make(tmp_path, "old")
    make(tmp_path, "new", [*NAMES[1:], "fresh.whl"])
    done = hpcgen("bundle", "diff", "old", "new")
    assert done.returncode == 0
    assert "wheel: 4 files, 80 kB" in done.stdout or "fresh.whl" in done.stdout
    done = hpcgen("bundle", "diff", "old/bundle.json", "new", "-o", "inc.tar", "--split", "1M", "--json")
    assert {item["name"] for item in json.loads(done.stdout)["removed"]} >= {f"{NAMES[0]} 1"}
    done = hpcgen("bundle", "join", "old", "inc.tar", "-o", "joined")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "joined") == tree(tmp_path / "new")
    done = hpcgen("bundle", "join", "new", "inc.tar.000", "-o", "again")
    assert done.returncode == 3 and "inc.tar.000 was not made against new" in done.stderr
    assert not (tmp_path / "again").exists()
    done = hpcgen("bundle", "diff", "old", "new", "--split", "1M")
    assert done.returncode == 2 and "--split requires -o" in done.stderr


CREATE = [
    (["--lock", "none", "-o", "B"], 3, "the lock none cannot be read: No such file or directory"),
    (["--lock", "edited.lock", "-o", "B"], 3, "edited.lock is not as hpcgen lock wrote it: its seal does not match"),
    (["--lock", "good.lock", "-o", "B.tar", "--split", "4"], 3, "--split: '4' is not a valid size"),
    (["--lock", "good.lock", "-o", "B.tar", "--split", "4Q"], 3, "expected: a number with K, M, G or T"),
    (
        ["--lock", "good.lock", "-o", "B", "--split", "4G"],
        3,
        "--split: only a tar file can be split\n  remedy: -o B.tar",
    ),
    (
        ["--lock", "good.lock", "-o", "B", "--image", "debian:13=x"],
        4,
        "--image: the lock has no base image 'debian:13'",
    ),
    (["--lock", "good.lock", "-o", "B", "--image", "debian:12"], 3, "--image: 'debian:12' is not NAME=REFERENCE"),
    (["--lock", "good.lock", "-o", "taken"], 7, "taken already exists\n  remedy: choose another name, remove it"),
    (["--lock", "good.lock", "-o", "none/B"], 7, "cannot write none/B: the folder it belongs in does not exist"),
]


@pytest.mark.parametrize(("words", "code", "expected"), CREATE)
def test_command_refuses(tmp_path: Path, hpcgen: Command, words: list[str], code: int, expected: str) -> None:
    text = a_lock(PINS).text
    (tmp_path / "good.lock").write_text(text)
    (tmp_path / "edited.lock").write_text(text.replace("mpi-hello", "mpi-hallo", 1))
    (tmp_path / "taken").write_text("mine")
    before = tree(tmp_path)
    done = hpcgen("bundle", "create", *words)
    assert (done.returncode, done.stdout) == (code, "") and expected in done.stderr, done.stderr
    assert tree(tmp_path) == before


def test_sizes_of_pieces() -> None:
    from hpcgen.supply.bundle.parts import parse_size

    assert [parse_size(text) for text in ("4G", "4GiB", "700M", "1000000", "2 tB".replace("t", "T"))] == [
        4 * 10**9,
        4 * 2**30,
        700 * 10**6,
        10**6,
        2 * 10**12,
    ]


def test_what_holds_no_bytes_does_not_belong_to_it_either(tmp_path: Path, whole: Path) -> None:
    """An empty folder, links, a named pipe and a socket: none of them is in the manifest, in a folder or a tar file."""
    bundle = whole
    (bundle / "nothing" / "inside").mkdir(parents=True)
    (bundle / "to-a-file").symlink_to("bundle.json")
    (bundle / "to-a-folder").symlink_to("files")
    (bundle / "to-nowhere").symlink_to("/nowhere")
    os.mkfifo(bundle / "files" / "pipe")
    problems = sorted(verify(bundle).problems)
    assert problems == [
        "files/pipe is a named pipe or socket, not a file",
        "nothing/inside does not belong to it: the manifest has no file in this folder",
        "to-a-file is a symbolic link, not a file",
        "to-a-folder is a symbolic link, not a file",
        "to-nowhere is a symbolic link, not a file",
    ]
    with tarfile.open(tmp_path / "B.tar", "w") as archive:
        archive.add(bundle, "hpcgen-bundle")
    assert [each.split()[0] for each in sorted(verify(tmp_path / "B.tar").problems)] == [
        "hpcgen-bundle/files/pipe",
        "hpcgen-bundle/to-a-file",
        "hpcgen-bundle/to-a-folder",
        "hpcgen-bundle/to-nowhere",
        "nothing/inside",
    ]
