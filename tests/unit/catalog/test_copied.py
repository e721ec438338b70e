"""What a stack copies is known by what is in the files, and what cannot be copied is told with its place."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.checking import check_file
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Plan, PlannedCopy
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.hashing import parse_list
from hpcgen.planning.planner import make_plan
from tests.conftest import Command

HEAD = "name: copier\ntitle: what is copied\nblocks: {python: {}}\nrun: {command: [ls], mpi: false}\n"


def stack_file(folder: Path, copy: str, head: str = HEAD) -> Path:
    """A stack with a line for each entry, from line 6 on, and a folder of files beside it."""
    files = {"models/a.bin": b"\0\1\xff", "models/sub/b c.txt": b"text\n", "models/run": b"#!/bin/sh\n", "one": b"1"}
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    (folder / "models/run").chmod(0o700)
    path = folder / "copier.yaml"
    path.write_text(f"{head}copy:\n{copy}\n", "utf-8")
    return path


MODELS = "  - {from: models, to: /opt/models}"


def planned(path: Path, catalog: Catalog | None = None) -> Plan:
    catalog = catalog or Catalog()
    site, stack = catalog.site("workstation"), catalog.stack(str(path))
    return make_plan(catalog, site, stack, stack_document=catalog.stack_document(str(path)))


def test_the_plan_has_what_is_in_the_files(tmp_path: Path) -> None:
    plan = planned(stack_file(tmp_path / "here", f"{MODELS}\n  - {{from: one, to: /data/x/one}}"))
    folder, file = plan.copied
    assert (folder.to, folder.files, folder.bytes, folder.single) == ("/opt/models", 3, 18, False)
    assert (file.to, file.files, file.bytes, file.single) == ("/data/x/one", 1, 1, True)


def test_a_path_that_the_system_does_not_take_is_a_mistake_of_the_stack(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="name is too long"):
        planned(stack_file(tmp_path, f"  - {{from: {'a' * 300}, to: /opt/a}}"))


def test_where_when_and_for_whom_they_were_written_is_all_the_same(tmp_path: Path) -> None:
    first = planned(stack_file(tmp_path / "here", MODELS))
    there = stack_file(tmp_path / "there", MODELS)
    os.utime(there.parent / "models/a.bin", (1, 1))
    (there.parent / "models/a.bin").chmod(0o600)
    (there.parent / "models/empty").mkdir()
    # An image that was built there, with its kit.
    for name in (".git", "sub/__pycache__", "image/opt/hpcgen/kit"):
        (there.parent / "models" / name).mkdir(parents=True)
        (there.parent / "models" / name / "left").write_text("behind")
    assert planned(there).copied == first.copied


@pytest.mark.parametrize(
    "change",
    [
        lambda models: (models / "a.bin").write_bytes(b"\0\1\xfe"),
        lambda models: (models / "a.bin").chmod(0o755),
        lambda models: (models / "a.bin").rename(models / "b.bin"),
        lambda models: (models / "more").write_bytes(b""),
    ],
)
def test_another_byte_mode_name_or_file_is_another_image(change: Callable[[Path], object], tmp_path: Path) -> None:
    path = stack_file(tmp_path, MODELS)
    catalogs = Catalog(), Catalog()
    before = planned(path, catalogs[0])
    change(tmp_path / "models")
    after = planned(path, catalogs[1])
    assert before.copied != after.copied
    assert content(before, catalogs[0]) != content(after, catalogs[1])


def content(plan: Plan, catalog: Catalog) -> str:
    """The plan hash."""
    from hpcgen.recipe.assemble import assemble

    return assemble(plan, catalog).labels["io.hpcgen.content"]


def test_a_plan_without_files_has_the_hash_that_it_had(tmp_path: Path) -> None:
    (tmp_path / "plain.yaml").write_text(HEAD.replace("copier", "plain"), "utf-8")
    catalog = Catalog()
    plain = planned(tmp_path / "plain.yaml", catalog)
    assert plain.copied == []
    assert content(plain, catalog) != content(planned(stack_file(tmp_path, MODELS)), Catalog())


@pytest.mark.parametrize(
    ("ignore", "left"),
    [
        ('"*.bin"', {"run", "sub/b c.txt"}),
        ("sub", {"a.bin", "run"}),
        ("sub/", {"a.bin", "run"}),
        ('"sub/*"', {"a.bin", "run"}),
        ('"b *"', {"a.bin", "run"}),
        ('"?.bin", "[r]un"', {"sub/b c.txt"}),
    ],
)
def test_what_is_ignored_stays_behind(ignore: str, left: set[str], tmp_path: Path) -> None:
    catalog = Catalog()
    path = stack_file(tmp_path, f"  - {{from: models, to: /opt/models, ignore: [{ignore}]}}")
    plan = planned(path, catalog)
    assert {file.path for file in catalog.copied.tree(plan, plan.copied[0]).files} == left


def test_a_folder_with_files_that_may_be_secret_is_refused_by_their_names(tmp_path: Path) -> None:
    path = stack_file(tmp_path, MODELS)
    (tmp_path / "models/api_key.txt").write_text("hunter2")
    (tmp_path / "models/tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"may be secret.*: api_key\.txt\n") as raised:
        planned(path)
    assert raised.value.problems[0].where is not None
    said = "  - {from: models, to: /opt/models, not_secret: ['api_*']}\n  - {from: models/api_key.txt, to: /data/key}"
    folder, file = planned(stack_file(tmp_path, said)).copied
    assert (folder.files, file.files) == (5, 1)
    assert planned(stack_file(tmp_path, MODELS[:-1] + ", ignore: [api_key.txt]}")).copied[0].files == 4


def test_a_link_to_a_file_is_the_file(tmp_path: Path) -> None:
    path = stack_file(tmp_path, MODELS)
    wanted = planned(path).copied
    (tmp_path / "models/a.bin").rename(tmp_path / "blob")
    (tmp_path / "models/a.bin").symlink_to("../blob")
    assert planned(path).copied == wanted


def test_a_stack_that_extends_another_copies_what_lies_beside_that(tmp_path: Path) -> None:
    for name in ("theirs", "ours"):
        (tmp_path / name / "recipes").mkdir(parents=True)
    stack_file(tmp_path / "theirs/recipes", MODELS)
    ours = tmp_path / "ours/recipes/own.yaml"
    ours.write_text("name: own\ntitle: own\nextends: copier\nrun: {command: [pwd]}\n", "utf-8")
    catalog = Catalog([tmp_path / "ours", tmp_path / "theirs"])
    site, stack = catalog.site("workstation"), catalog.stack("own")
    assert make_plan(catalog, site, stack, stack_document=catalog.stack_document("own")).copied[0].files == 3


def test_a_stack_made_in_python_copies_from_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hpcgen

    catalog = Catalog()
    wanted = planned(stack_file(tmp_path, MODELS), catalog).copied
    monkeypatch.chdir(tmp_path)
    data = {"name": "made", "title": "made", "blocks": {"python": {}}, "run": {"command": ["ls"], "mpi": False}}
    stack = hpcgen.load_stack({**data, "copy": [{"from": "models", "to": "/opt/models"}]}, catalog=catalog)
    assert isinstance(stack, Stack)
    assert hpcgen.plan("workstation", stack, catalog=catalog).copied == wanted


def refused(path: Path) -> str:
    """What ``hpcgen check`` says of a stack, and that a plan of it says the same."""
    with pytest.raises(InputError) as checked:
        check_file(Catalog(), path)
    with pytest.raises(InputError) as told:
        planned(path)
    assert set(told.value.problems) <= set(checked.value.problems)
    return str(checked.value)


@pytest.mark.parametrize(
    ("copy", "said"),
    [
        ("  - {from: nothing, to: /opt/x}", ":6:12: there is no 'nothing' in "),
        ("  - {from: ../other, to: /opt/x}", ":6:12: '../other' leads out of the folder of the stack's file"),
        ("  - {from: /etc/hosts, to: /opt/x}", ":6:12: `from` must be a path from the folder of the stack's file"),
        ("  - {from: outside, to: /opt/x}", ":6:12: 'outside' leads out of the folder"),
        ("  - {from: models, to: usr}", ":6:24: `to` must be a path in the image"),
        ("  - {from: models, to: /usr/lib}", ":6:24: `to` must be a path in the image"),
        ("  - {from: models, to: /opt}", ":6:24: `to` must be"),
        ("  - {from: models, to: /opt/hpcgen/kit}", ":6:24: `to` must be"),
        ("  - {from: models, to: /opt/x/../../usr}", ":6:24: `to` must be"),
        ("  - {from: models, to: '/opt/x y'}", ":6:24: `to` must be"),
        ("  - {from: models, to: /opt/python/lib}", ":6:24: /opt/python is where the block python is installed"),
        (f"{MODELS}\n  - {{from: one, to: /opt/models/one}}", ":7:21: /opt/models/one and /opt/models are"),
        ("  - {from: models, to: /opt/x, ignore: ['*']}", ":6:12: nothing is copied from 'models'"),
    ],
)
def test_mistakes_have_their_place(copy: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("x")
    folder = tmp_path / "here"
    path = stack_file(folder, copy)
    (folder / "outside").symlink_to(tmp_path)
    assert f"{path}{said}" in refused(path)


def test_all_that_cannot_be_copied_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stack_file(tmp_path / "here", MODELS)
    models = tmp_path / "here/models"
    os.mkfifo(models / "pipe")
    (models / "out").symlink_to("/etc/hostname")
    (models / "up").symlink_to("sub")
    (models / "gone").symlink_to("nowhere")
    (models / "two\nlines").write_text("x")
    (models / "back\\slash").write_text("x")
    with socket.socket(socket.AF_UNIX) as made, monkeypatch.context() as moved:
        # A socket's path may not be long.
        moved.chdir(models)
        made.bind("socket")
    said = refused(path)
    for each in ("models/pipe' is a device", "models/out' leads out", "models/up' is a link to a folder"):
        assert each in said
    for each in ("models/gone' is a link to something", "has control characters", "has a backslash", "/socket' is a"):
        assert each in said
    assert said.count(f"{path}:6:12: ") == 7


def test_what_the_hosts_file_systems_hide_is_refused(tmp_path: Path) -> None:
    path = stack_file(tmp_path, "  - {from: models, to: /data/models}")
    catalog = Catalog()
    site = catalog.site("workstation")
    system = {"kind": "nfs", "path": "/data", "bind": True, "use": "data"}
    data = {**msgspec.to_builtins(site), "file_systems": {"data": system}}
    hidden = msgspec.convert(data, type(site))
    with pytest.raises(
        InputError, match=r":6:24: jobs would not see all of /data/models: on workstation the host's /data"
    ):
        make_plan(catalog, hidden, catalog.stack(str(path)), stack_document=catalog.stack_document(str(path)))


@pytest.mark.parametrize("line", ["", "x", "a" * 64, f"{'a' * 64} 777 x", f"{'a' * 64} 644 ../x", f"{'a' * 64} 644 /x"])
def test_a_strangers_list_leads_nowhere_else(line: str) -> None:
    with pytest.raises(InputError, match="damaged"):
        parse_list(f"{line}\n", "the list")


def test_a_strangers_plan_copies_to_no_other_place() -> None:
    for target in ("/etc", "/opt/hpcgen", "/opt/../etc", "/data/../etc", "/opt/a b", "/opt/$x"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"to": target, "sha256": "a" * 64, "files": 1, "bytes": 1}, PlannedCopy)


def test_plan_and_render_say_what_is_copied(tmp_path: Path, hpcgen: Command) -> None:
    stack_file(tmp_path, MODELS)
    asked = ("--site", "workstation", "--stack", "copier.yaml")
    told = hpcgen("plan", *asked)
    assert told.returncode == 0, told.stderr
    assert "copied to    files  size" in told.stdout and "/opt/models  3      18 B" in told.stdout
    assert "the files that the stack copies are in a kit only" in hpcgen("render", *asked).stderr
