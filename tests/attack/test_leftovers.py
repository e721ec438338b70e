"""What hpcgen left in a folder may be a stranger's: nothing outside of the folder is deleted by it, nothing runs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, Command

KIT = ("-q", "render", "--site", "workstation", "--stack", "mpi-hello", "-o", "kit")
PLANTED = "import pathlib; pathlib.Path(__file__).with_name('it-ran').touch()\n"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    folder = tmp_path / "victim"
    (folder / "empty").mkdir(parents=True)
    (folder / "precious").write_text("precious")
    return folder


@pytest.mark.parametrize(
    "names", [["../victim/precious"], ["/VICTIM/precious"], ["files/../../victim/precious"], ["", "../victim/precious"]]
)
@pytest.mark.parametrize("marker", ["hpcgen.lock", "../victim/precious"])
def test_an_unfinished_replacement_is_held_to_its_folder(
    names: list[str], marker: str, victim: Path, hpcgen: Command, tmp_path: Path
) -> None:
    hpcgen(*KIT)
    swap = tmp_path / "kit" / ".hpcgen-swap"
    for name in ("new", "old"):
        (swap / name).mkdir(parents=True)
    (swap / "new" / "hpcgen.lock").touch()
    (swap / "marker").write_text(marker)
    (swap / "added").write_text("\n".join(names).replace("/VICTIM", str(victim)))
    done = hpcgen(*KIT)
    assert (done.returncode, (victim / "precious").read_text()) == (7, "precious")
    assert f"rm -r {swap.relative_to(tmp_path)}" in done.stderr and "Traceback" not in done.stderr


def test_a_name_that_is_no_path_comes_back_to_nowhere(hpcgen: Command, tmp_path: Path) -> None:
    hpcgen(*KIT)
    swap = tmp_path / "kit" / ".hpcgen-swap"
    for name in ("new", "old"):
        (swap / name).mkdir(parents=True)
    (swap / "new" / "hpcgen.lock").touch()
    (swap / "added").touch()
    (swap / "old" / "two\nlines").touch()
    done = hpcgen(*KIT)
    assert done.returncode == 7 and "is not what an unfinished replacement" in done.stderr


def test_a_linked_folder_is_not_followed(victim: Path, hpcgen: Command, tmp_path: Path) -> None:
    hpcgen(*KIT)
    (victim / "new").mkdir()
    (victim / "added").write_text("hpcgen.lock")
    (tmp_path / "kit" / ".hpcgen-swap").symlink_to(victim)
    assert hpcgen(*KIT).returncode == 7
    assert (victim / "precious").exists() and (tmp_path / "kit" / "hpcgen.lock").exists()


def planted_record(prefix: Path, folder: str = "evil", **changed: Any) -> None:
    record = {
        **{"install": 1, "hpcgen": "0.2.0", "name": "evil", "version": "1", "stack": "s", "site": "t"},
        **{"engine": "docker", "image": "/x", "commands": ["x"], "files": []},
        **changed,
    }
    place = prefix / "share" / "hpcgen" / folder
    place.mkdir(parents=True)
    (place / "installed.json").write_text(json.dumps(record))


def test_a_planted_record_deletes_nothing_elsewhere(victim: Path, hpcgen: Command, tmp_path: Path) -> None:
    digest = hashlib.sha256(b"precious").hexdigest()
    prefix = tmp_path / "prefix"
    for number, changed in enumerate(
        [
            {"outside": {str(victim / "precious"): digest}},
            {"outside": {f"{victim}/.devcontainer/../precious": digest}},
            {"folders": [str(victim / "empty")]},
            {"folders": ["../victim/empty"]},
            {"files": [{"path": "../victim/precious", "sha256": digest}]},
            {"name": "other"},
        ]
    ):
        planted_record(prefix / str(number), **changed)
        done = hpcgen("uninstall", "evil", "--prefix", f"prefix/{number}", "--force")
        assert done.returncode == 3, done.stdout + done.stderr
    assert (victim / "precious").exists() and (victim / "empty").exists()


def test_a_linked_folder_below_the_prefix_is_not_followed(victim: Path, hpcgen: Command, tmp_path: Path) -> None:
    prefix = tmp_path / "prefix"
    digest = hashlib.sha256(b"precious").hexdigest()
    planted_record(prefix, files=[{"path": "bin/precious", "sha256": digest}])
    (prefix / "bin").symlink_to(victim)
    done = hpcgen("uninstall", "evil", "--prefix", "prefix")
    assert done.returncode == 7 and f"{prefix / 'bin'} is a link" in done.stderr
    assert (victim / "precious").exists()


@pytest.mark.parametrize("name", ["hpcgen/__init__.py", "msgspec.py", "click.py", "random.py", "runpy.py", "json.py"])
def test_the_present_folder_is_not_where_python_looks(name: str, hpcgen: Command, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    (ours / "building_blocks").mkdir(parents=True)
    for ending in (".py", ".yaml"):
        shutil.copy(ROOT / "building_blocks" / f"hwloc{ending}", ours / "building_blocks")
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(PLANTED)
    done = hpcgen("--trust-collections", "check", "ours")
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.rglob("it-ran")) == []


def test_hpcgen_starts_its_own_python_in_one_way() -> None:
    found = [
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "hpcgen").rglob("*.py")
        if re.search(r"sys\.executable, ?[\"'](-m|-c)", path.read_text("utf-8"))
    ]
    assert [name for name in found if "/programs/" not in name] == ["hpcgen/core/support/processes.py"]
