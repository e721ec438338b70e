"""A build for another architecture than this machine's is refused before anything starts, or emulated on purpose."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from pathlib import Path

import pytest

from hpcgen.backends.hardware.emulation import emulator_of
from tests.conftest import Command

MINE = platform.machine()
OTHER, PLATFORM = {"x86_64": ("aarch64", "arm64"), "aarch64": ("x86_64", "amd64")}[MINE]
QEMU = """\
enabled
interpreter /usr/libexec/qemu-binfmt/{name}-binfmt-P
flags: POCF
offset 0
magic 7f454c460201010000000000000000000200{machine}
mask ffffffffffffff00fffffffffffffffffeffffff
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A profile of nodes with another architecture."""
    profile = {
        "extends": "workstation",
        "name": "other",
        "title": "nodes of another architecture",
        "system": {"architecture": OTHER},
        "partitions": {"main": {"cpu": {"target": OTHER}}},
    }
    (tmp_path / "other.yaml").write_text(json.dumps(profile))
    return tmp_path / "other.yaml"


def told(site: Path) -> str:
    return f"this machine is {MINE}, and the image for other is for {OTHER}"


def test_plan_check_and_fleet_say_it(hpcgen: Command, site: Path) -> None:
    plan = hpcgen("plan", "--site", str(site), "--stack", "mpi-hello")
    assert (plan.returncode, plan.stderr.count(told(site))) == (0, 1), plan.stderr
    check = hpcgen("check", str(site))
    assert (check.returncode, check.stderr.count(told(site))) == (0, 1), check.stderr
    fleet = site.with_name("fleet.yaml")
    members = [{"name": name, "site": "other.yaml", "stack": "mpi-hello"} for name in ("one", "two")]
    fleet.write_text(json.dumps({"members": members}))
    for words in (["check", str(fleet)], ["fleet", "--fleet", str(fleet)]):
        done = hpcgen(*words)
        assert (done.returncode, done.stderr.count(told(site))) == (0, 1), done.stderr
    mine = hpcgen("plan", "--site", "workstation" if MINE == "x86_64" else "alps", "--stack", "mpi-hello")
    assert "this machine is" not in mine.stderr


def test_a_build_is_refused_before_an_engine_is_looked_for(hpcgen: Command, site: Path) -> None:
    for words in (["--dry-run"], []):
        done = hpcgen("build", "--site", str(site), "--stack", "mpi-hello", *words, env={**os.environ, "PATH": "/none"})
        assert done.returncode == 6 and f"error: {told(site)}" in done.stderr, done.stderr
        assert "--emulate" in done.stderr


def test_the_script_of_a_kit_refuses_it_too(hpcgen: Command, site: Path, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    words = ["--site", str(site), "--stack", "mpi-hello", "--format", "docker", "-o", str(kit)]
    assert hpcgen("render", *words).returncode == 0
    done = subprocess.run(["bash", kit / "build.sh"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (69, "")
    assert done.stderr.startswith(f"build.sh: the image is for {OTHER}, and this machine is {MINE}\n  remedy: ")
    assert f"options+=(--platform linux/{PLATFORM})" in (kit / "build.sh").read_text()


def test_an_emulator_is_one_that_is_switched_on_for_the_architecture(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("enabled\n")
    (tmp_path / "python3.11").write_text("enabled\ninterpreter /usr/bin/python3.11\nflags:\noffset 0\nmagic a70d0d0a\n")
    assert emulator_of("aarch64", tmp_path) == ""
    (tmp_path / "qemu-aarch64").write_text(QEMU.format(name="qemu-aarch64", machine="b700"))
    assert emulator_of("aarch64", tmp_path) == "qemu-aarch64"
    assert emulator_of("x86_64", tmp_path) == ""
    off = QEMU.format(name="qemu-aarch64", machine="b700").replace("enabled", "disabled")
    (tmp_path / "qemu-aarch64").write_text(off)
    assert emulator_of("aarch64", tmp_path) == ""
    assert emulator_of("aarch64", tmp_path / "none") == ""
