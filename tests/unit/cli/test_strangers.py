"""What strangers made: nothing stops a command, and nothing in their files ends as a bug in hpcgen."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import GOLDEN, Command

STORED = GOLDEN / "workstation" / "mpi-hello"
KIT = "opt/hpcgen/kit"


@pytest.fixture
def bounded(hpcgen: Command) -> Iterator[Command]:
    """The command with a minute and 8 GB: what waits for a pipe's other end, or reads without end, fails."""

    def ended(number: int, frame: object) -> None:
        raise AssertionError("it does not end")  # no OSError, which would be told as one of the file

    before, memory = signal.signal(signal.SIGALRM, ended), resource.getrlimit(resource.RLIMIT_AS)
    signal.alarm(60)
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, memory[1]))
    yield hpcgen
    resource.setrlimit(resource.RLIMIT_AS, memory)
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
@pytest.mark.parametrize(
    "words",
    [
        ["inspect", "there"],
        ["inspect", "oci-archive:there"],
        ["check", "there"],
        ["check", "there.py"],
        ["bundle", "verify", "there"],
        ["bundle", "create", "--lock", "there", "-o", "bundle"],
        ["render", "--locked", "there"],
        ["build", "kit"],
    ],
)
def test_only_regular_files_are_read(words: list[str], kind: str, tmp_path: Path, bounded: Command) -> None:
    (tmp_path / "kit").mkdir()
    for place in (tmp_path / "there", tmp_path / "there.py", tmp_path / "kit" / "plan.json"):
        if kind == "pipe":
            os.mkfifo(place)
        elif kind == "device":
            place.symlink_to("/dev/zero")
        else:
            place.mkdir()
    done = bounded(*words)
    assert done.returncode in (3, 4), done.stderr
    assert "error:" in done.stderr


def test_the_user_s_own_files_may_be_pipes_too(tmp_path: Path, bounded: Command) -> None:
    os.mkfifo(tmp_path / "config.yaml")
    done = bounded("list", "sites", env={"HPCGEN_CONFIG": str(tmp_path / "config.yaml")})
    assert done.returncode == 3 and "not a regular file" in done.stderr
    assert bounded("list", "sites", env={"HPCGEN_CONFIG": "/dev/null"}).returncode == 0
    os.mkfifo(tmp_path / "a.json")
    done = bounded("records", env={"HPCGEN_RECORDS": str(tmp_path)})
    assert done.returncode == 0 and "not a regular file" in done.stderr


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A folder with an image's root and a kit in it."""
    shutil.copytree(STORED, tmp_path / "root" / KIT)
    return tmp_path / "root"


def changed(image: Path, change: Callable[[dict[str, Any]], object]) -> None:
    place = image / KIT / "plan.json"
    plan = json.loads(place.read_text())
    change(plan)
    place.write_text(json.dumps(plan))


@pytest.mark.parametrize("words", [["inspect", "root"], ["rebuild", "root", "-o", "kit"], ["job", "root"]])
@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(partition="no"),
        lambda plan: plan["site"].update(default_partition="no"),
        lambda plan: plan["job"].update(command=5),
        lambda plan: plan["job"].update(nodes=10**400),
        lambda plan: plan.update(job=5, stack=[5], blocks=5, site=5),
    ],
)
def test_no_plan_of_an_image_ends_as_a_bug(
    change: Callable[[dict[str, Any]], object], words: list[str], image: Path, hpcgen: Command
) -> None:
    changed(image, change)
    done = hpcgen(*words)
    assert done.returncode in ((3, 6) if words[0] == "job" else (0,)), done.stderr
    assert "Traceback" not in done.stderr


def test_labels_that_are_no_text_are_no_labels(image: Path, hpcgen: Command) -> None:
    (image / ".singularity.d").mkdir()
    (image / ".singularity.d" / "labels.json").write_bytes(b'{"io.hpcgen.content": "\xff"}')
    assert hpcgen("inspect", "root").returncode == 0
    assert hpcgen("convert", "root", "b.tar").returncode == 0


def test_lists_of_wheels_that_are_no_text_are_an_input_error(collection: Path, hpcgen: Command) -> None:
    (collection / "building_blocks" / "wheels").mkdir()
    (collection / "building_blocks" / "wheels" / "mine.txt").write_bytes(b"\xff\n")
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.errors import InputError

    with pytest.raises(InputError, match="not valid UTF-8"):
        Catalog([collection]).beside.wheels("mine")


def test_a_tab_in_the_config_file_is_no_bug(tmp_path: Path, hpcgen: Command) -> None:
    (tmp_path / "config.yaml").write_text("records: \t\n")
    from hpcgen.core.config.user_config import with_entries

    assert with_entries("records: \t\n", "licences", {"x": "2026-01-01"}) is None
