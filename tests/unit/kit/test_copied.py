"""The stack's own files in a kit and on their way into a build: whole, checked, and no other than the list names."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import FormatName
from hpcgen.kit.copied import check_copied
from hpcgen.kit.folder import KitFolder, make_context, read_kit
from hpcgen.kit.kit import Kit, make_kit, store_kit
from hpcgen.planning.planner import make_plan

FORMATS = ("docker", "singularity", "charliecloud")
STACK = (
    "name: copier\ntitle: what is copied\nblocks: {{python: {{}}}}\nrun: {{command: [ls], mpi: false}}\n"
    "copy:\n  - {{from: models, to: /opt/models}}\n  - {{from: one, to: {one}}}\n"
)
BINARY = bytes(range(256)) * 9000
NAMES = ["copy/data/one", "copy/opt/models/a.bin", "copy/opt/models/run", "copy/opt/models/sub/b c.txt"]


def stack_in(folder: Path, one: str = "/data/one") -> Path:
    """A stack with its files beside it."""
    files = {"models/a.bin": BINARY, "models/sub/b c.txt": b"text\n", "models/run": b"#!/bin/sh\n", "one": b"1"}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "models/run").chmod(0o700)
    path = folder / "copier.yaml"
    path.write_text(STACK.format(one=one), "utf-8")
    return path


def kit_of(path: Path, format: FormatName = "docker") -> Kit:
    catalog = Catalog()
    site, stack, document = catalog.site("workstation"), catalog.stack(str(path)), catalog.stack_document(str(path))
    plan = make_plan(catalog, site, stack, stack_document=document, format=format, allow_unsupported=True)
    return make_kit(plan, catalog)


def stored(tmp_path: Path, format: FormatName = "docker") -> KitFolder:
    kit = kit_of(stack_in(tmp_path / "stack"), format)
    store_kit(tmp_path / "kit", kit.all_files)
    return read_kit(tmp_path / "kit")


def copied_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in (folder / "copy").rglob("*") if path.is_file())


def test_a_kit_has_the_files_and_their_hashes(tmp_path: Path) -> None:
    kit = stored(tmp_path)
    assert copied_in(kit.folder) == NAMES == sorted(kit.copied)
    assert (kit.folder / "copy/opt/models/a.bin").read_bytes() == BINARY
    assert os.access(kit.folder / "copy/opt/models/run", os.X_OK)
    lines = (kit.folder / "copy.list").read_text().splitlines()
    assert [line[65:] for line in lines] == [
        *("644 data/one", "644 opt/models/a.bin", "755 opt/models/run"),
        "644 opt/models/sub/b c.txt",
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_the_image_has_them_once(format: FormatName, tmp_path: Path) -> None:
    """By the recipe: at their places, and of the kit in the image the list alone."""
    recipe = kit_of(stack_in(tmp_path), format).recipe
    if format == "singularity":
        assert "mv -T /opt/hpcgen-kit-copy/opt/models /opt/models" in recipe
        assert "mv /opt/hpcgen-kit-copy.list /opt/hpcgen/kit/copy.list" in recipe
        assert "/opt/hpcgen/kit/copy " not in recipe
    else:
        lines = [line for line in recipe.splitlines() if line.startswith("COPY copy/")]
        assert lines == ["COPY copy/opt/models/ /opt/models/", "COPY copy/data/one /data/one"]
        assert " copy.list " in next(line for line in recipe.splitlines() if line.endswith(" /opt/hpcgen/kit/"))


def test_a_newer_kit_takes_the_place_of_an_older_ones_files(tmp_path: Path) -> None:
    kit = stored(tmp_path)
    store_kit(kit.folder, kit_of(stack_in(tmp_path / "stack", one="/data/two")).all_files)
    assert copied_in(kit.folder) == ["copy/data/two", *NAMES[1:]]
    (tmp_path / "stack/copier.yaml").write_text(STACK.partition("copy:")[0].format(), "utf-8")
    store_kit(kit.folder, kit_of(tmp_path / "stack/copier.yaml").all_files)
    assert not (kit.folder / "copy").exists() and not (kit.folder / "copy.list").exists()


def test_a_file_that_changed_since_the_plan_stops_the_kit(tmp_path: Path) -> None:
    older = stored(tmp_path)
    before = {path: path.read_bytes() for path in older.folder.rglob("*") if path.is_file()}
    kit = kit_of(tmp_path / "stack/copier.yaml")
    (tmp_path / "stack/models/a.bin").write_bytes(b"other")
    with pytest.raises(InputError, match=r"a\.bin changed since it was planned"):
        store_kit(older.folder, kit.all_files)
    with pytest.raises(InputError, match=r"a\.bin changed since it was planned"):
        store_kit(tmp_path / "new", kit.all_files)
    assert {path: path.read_bytes() for path in older.folder.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


def test_the_context_is_the_same_under_every_umask(tmp_path: Path) -> None:
    old = os.umask(0o077)
    try:
        kit = stored(tmp_path)
        make_context(kit, tmp_path / "context")
    finally:
        os.umask(old)
    inside = tmp_path / "context"
    assert copied_in(inside) == NAMES
    modes = {str(each.relative_to(inside)): stat.S_IMODE(each.stat().st_mode) for each in (inside / "copy").rglob("*")}
    assert {name for name, mode in modes.items() if mode == 0o644} == {NAMES[0], NAMES[1], NAMES[3]}
    assert {name for name, mode in modes.items() if mode == 0o755} == modes.keys() - {NAMES[0], NAMES[1], NAMES[3]}
    times = times_in(inside)
    make_context(kit, tmp_path / "again")
    assert times_in(tmp_path / "again") == times
    assert max(times.values()) < 1.3e9


def times_in(folder: Path) -> dict[str, float]:
    """When everything in there was changed, folders too: ch-image's cache knows what it copies by that."""
    return {str(each.relative_to(folder)): each.stat().st_mtime for each in (folder, *folder.rglob("*"))}


@pytest.mark.parametrize("wrong", ["changed", "link", "gone"])
def test_a_build_takes_nothing_but_what_the_plan_says(wrong: str, tmp_path: Path) -> None:
    kit = stored(tmp_path)
    file = kit.folder / "copy/opt/models/a.bin"
    file.unlink()
    if wrong == "changed":
        file.write_bytes(BINARY[:-1])
    elif wrong == "link":
        file.symlink_to(tmp_path / "stack/models/a.bin")
    with pytest.raises(InputError, match=r"a\.bin"):
        make_context(kit, tmp_path / "context")
    with pytest.raises(InputError, match=r"copy/ is not as its copy\.list says: 'copy/opt/models/a\.bin'"):
        check_copied(kit.folder, kit.copied)


@pytest.mark.parametrize("more", ["file", "link", "folder"])
def test_an_engine_that_takes_the_folder_finds_no_more_in_it(more: str, tmp_path: Path) -> None:
    kit = stored(tmp_path, "singularity")
    check_copied(kit.folder, kit.copied)
    place = kit.folder / "copy/opt/models/more"
    if more == "file":
        place.write_text("more")
    else:
        place.symlink_to("/etc/hostname" if more == "link" else "/etc")
    with pytest.raises(InputError, match="copy/opt/models/more"):
        check_copied(kit.folder, kit.copied)
    # Before anything of an engine is looked for, so does the script.
    done = subprocess.run(["bash", kit.folder / "build.sh", "--notest"], capture_output=True, text=True, check=False)
    assert (done.returncode, "has files that copy.list does not name" in done.stderr) == (65, True)


def test_a_list_that_is_not_the_plans_is_refused(tmp_path: Path) -> None:
    kit = stored(tmp_path)
    listed = kit.folder / "copy.list"
    text = listed.read_text()
    for other in (text.replace("644 data/one", "755 data/one"), f"{text}{'a' * 64} 644 etc/passwd\n", ""):
        listed.write_text(other)
        with pytest.raises(InputError, match=r"copy\.list"):
            read_kit(kit.folder)
    listed.unlink()
    with pytest.raises(InputError, match=r"copy\.list cannot be read"):
        read_kit(kit.folder)
