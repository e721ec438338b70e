"""Fleets of thousands: a lock beyond a mebibyte, one plan for all members that ask the same."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hpcgen.core.config.yamlfile import MAX_BYTES, Limit
from hpcgen.core.errors import InputError
from hpcgen.plugins.fleet import records as fleet_lock
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.records import LockedImage, read_lock, require_room, update_lock
from tests.conftest import Command

IMAGE = LockedImage(
    content="a" * 64,
    format="charliecloud",
    engine="ch-image",
    tested=True,
    image="ch-image:mpi-hello-supermuc",
    digest=f"sha256:{'b' * 64}",
    published=f"registry.example.org/hpc/mpi-hello-supermuc:{'a' * 12}",
)


def write_members(folder: Path, count: int, extra: str = "") -> Path:
    lines = (f"  - {{stack: mpi-hello, site: supermuc, name: m{number:05d}{extra}}}\n" for number in range(count))
    file = folder / "fleet.yaml"
    file.write_text("members:\n" + "".join(lines))
    return file


def test_a_lock_and_a_fleet_beyond_a_mebibyte(tmp_path: Path) -> None:
    images = {f"member-{number:05d}": IMAGE for number in range(4000)}
    update_lock(tmp_path / "fleet.lock", images)
    assert (tmp_path / "fleet.lock").stat().st_size > MAX_BYTES
    assert read_lock(tmp_path / "fleet.lock") == images
    # Comments count as much as members, and are read faster.
    file = write_members(tmp_path, 4000)
    with file.open("a") as stream:
        stream.write(f"# {'x' * 98}\n" * 9000)
    assert file.stat().st_size > MAX_BYTES
    assert len(load_fleet(file).members) == 4000


def test_a_release_table_beyond_a_mebibyte_is_read(hpcgen: Command, collection: Path) -> None:
    comment = f"# {'x' * 98}\n" * 11_000
    table = collection / "building_blocks" / "gnu.yaml"
    table.parent.mkdir(exist_ok=True)
    shipped = Path(fleet_lock.__file__).parents[3] / "building_blocks" / "gnu.yaml"
    table.write_text(comment + shipped.read_text())
    done = hpcgen("--collection", "collection", "plan", "--site", "supermuc", "--stack", "mpi-hello", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert hpcgen("--collection", "collection", "check", str(table)).returncode == 0


def test_a_full_lock_is_told_by_name_before_anything_is_built(
    tmp_path: Path, hpcgen: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_members(tmp_path, 30)
    lock = tmp_path / "fleet.lock"
    update_lock(lock, {"m00000": IMAGE})
    # Comments count as much as members.
    with lock.open("a") as stream:
        stream.write(f"# {'x' * 98}\n" * ((fleet_lock.LIMIT.bytes - 25_000) // 101))
    marker = tmp_path / "docker"
    marker.write_text(f"#!/bin/sh\ntouch {tmp_path}/built\n")
    marker.chmod(0o755)
    done = hpcgen("build", "--all", env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert done.returncode == 3
    assert "fleet.lock has no room for 29 more members" in done.stderr
    assert "split the fleet: each fleet.yaml has its own lock" in done.stderr
    assert not (tmp_path / "built").exists()
    # A member that is in there already takes no more room.
    require_room(lock, ("m00000",), ("m00000",))
    monkeypatch.setattr(fleet_lock, "LIMIT", Limit(500, "split the fleet"))
    (tmp_path / "somewhere").mkdir()
    with pytest.raises(InputError, match=r"somewhere/fleet\.lock: this file is too large"):
        update_lock(tmp_path / "somewhere" / "fleet.lock", {"one": IMAGE, "two": IMAGE})


def test_members_that_ask_the_same_share_one_plan(tmp_path: Path) -> None:
    states = member_states(load_fleet(write_members(tmp_path, 50)), {})
    assert len({id(state.plan) for state in states}) == 1
    assert [state.member.name for state in states] == [f"m{number:05d}" for number in range(50)]


def test_whatever_a_plan_depends_on_is_a_question_of_its_own(hpcgen: Command, tmp_path: Path) -> None:
    settings = ("partition: fat", "settings: [gnu.fortran=true]", "format: charliecloud")
    every = ["site: supermuc", *(f"site: supermuc, {each}" for each in settings)]
    every += [
        f"site: workstation{each}"
        for each in (
            "",
            ", engine: apptainer, allow_unsupported: true",
            ", format: singularity, allow_unsupported: true",
        )
    ]
    members = (f"  - {{stack: mpi-hello, name: m{n}, {each}}}\n" for n, each in enumerate(every * 2))
    (tmp_path / "fleet.yaml").write_text("members:\n" + "".join(members))
    rows = json.loads(hpcgen("fleet", "--json").stdout)
    assert [(row["partition"], row["format"]) for row in rows] == 2 * [
        ("thin", "charliecloud"),
        ("fat", "charliecloud"),
        ("thin", "charliecloud"),
        ("thin", "charliecloud"),
        ("main", "docker"),
        ("main", "singularity"),
        ("main", "singularity"),
    ]
    assert rows[2]["content"] not in (rows[0]["content"], rows[3]["content"])


def test_one_mistake_of_many_members_is_told_with_the_place_of_each(tmp_path: Path) -> None:
    states = member_states(load_fleet(write_members(tmp_path, 3, ", partition: nowhere")), {})
    told = [(str(problem.where), problem.message[:7]) for state in states for problem in state.problems]
    assert told == [(f"{tmp_path}/fleet.yaml:{number + 2}:5", f"m0000{number}:") for number in range(3)]
