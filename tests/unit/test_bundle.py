"""Bundles: made, continued, the same bytes every time, checked, and every kind of damage told."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from hpcgen.bundle.create import Creation, create_bundle
from hpcgen.bundle.verify import check_bundle, verify
from hpcgen.errors import FetchError, InputError, OutputError
from hpcgen.model.lock import ImagePin
from tests.unit.bundles import NAMES, QUICK, a_lock, content, image_pin, make, put_image, sha, tree, wants


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
    manifest = create_bundle(a_lock(), twice, tmp_path / "B", Creation(patience=QUICK))
    assert [item.kind for item in manifest.items if item.path.endswith("a.whl")] == ["hpcgen", "wheel"]
    assert "a.whl" in (tmp_path / "B" / "wheels.html").read_text()
    assert "a.whl" in (tmp_path / "B" / "hpcgen.html").read_text()
    assert sums_hold(tmp_path / "B")


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "B").mkdir()
    (tmp_path / "B" / "work").write_text("mine")
    with pytest.raises(OutputError, match="B is there already"):
        make(tmp_path)
    (tmp_path / "C.partial").mkdir()
    (tmp_path / "C.partial" / "work").write_text("mine")
    with pytest.raises(OutputError, match="there are files in it that hpcgen did not put there"):
        make(tmp_path, "C")
    assert (tmp_path / "C.partial" / "work").read_text() == "mine"
    with pytest.raises(OutputError, match="No such file or directory"):
        make(tmp_path, "none/B")
    (tmp_path / "E").mkdir()
    make(tmp_path, "E")
    assert sums_hold(tmp_path / "E")


def test_one_at_a_time(tmp_path: Path) -> None:
    from hpcgen.bundle.workplace import workplace

    with workplace(tmp_path / "B"), pytest.raises(OutputError, match="another hpcgen works in"):
        make(tmp_path)
    make(tmp_path)


def test_next_run_goes_on_and_trusts_nothing(tmp_path: Path) -> None:
    listed = wants(tmp_path / "origin", NAMES)
    for want in listed[4:]:
        (tmp_path / "origin" / want.file).unlink()
    with pytest.raises(FetchError) as raised:
        create_bundle(a_lock(), listed, tmp_path / "B", Creation(patience=QUICK))
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
    from hpcgen.bundle.display import Plain

    with pytest.raises(FetchError) as raised:
        create_bundle(a_lock(), listed, tmp_path / "B", Creation(patience=QUICK, watch=Plain(said.append)))
    assert len(raised.value.problems) == 5
    assert "1 files that an earlier run left were damaged; they are fetched again" in said
    assert "going on: 3 of 8 files are there" in said
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
    create_bundle(a_lock(), listed, tmp_path / "B", Creation(patience=QUICK, reuse=tmp_path / "old"))
    assert sums_hold(tmp_path / "B") and not verify(tmp_path / "B").problems
    with pytest.raises(InputError, match=r"origin is no bundle: it has no bundle\.json"):
        make(tmp_path, "C", reuse=tmp_path / "origin")


def test_wanted_files_that_contradict_each_other(tmp_path: Path) -> None:
    import msgspec

    [want] = wants(tmp_path / "origin", ["a"])
    other = msgspec.structs.replace(want, size=1)
    with pytest.raises(InputError, match="a is said to have 1 and 20000 bytes"):
        create_bundle(a_lock(), [want, other], tmp_path / "B")


# images


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Images come from here instead of from skopeo; the list says which were fetched."""
    asked: list[str] = []

    def fetch(pin: ImagePin, name: str, architecture: str, layout: Path) -> None:
        asked.append(f"{name} {pin.origin} {architecture}")
        put_image(layout, name, pin.origin.rpartition("/")[2])

    monkeypatch.setattr("hpcgen.inputs.images.fetch_image", fetch)
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
        FetchError, match=r"from docker://elsewhere\.example\.org/ubuntu as base image debian:12 is not sha256:"
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
    with pytest.raises(InputError, match="only a tar file is split"):
        make(tmp_path, "C", split=1_000_000)
