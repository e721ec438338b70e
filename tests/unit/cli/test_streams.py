"""Closed, full and left streams, and names that are too long: an exit code and words, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Command

HPCGEN = f"{sys.executable} -m hpcgen"
RENDER = "render --site workstation --stack mpi-hello"
LONG = "A" * 5000


def shell(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HPCGEN_CONFIG": ""}
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("words", ["list sites", RENDER, "plan --json --site workstation --stack mpi-hello", "--help"])
@pytest.mark.parametrize(("end", "said"), [(">&-", "it is closed"), (">/dev/full", "the disk is full")])
def test_a_result_that_nobody_gets_is_an_error(words: str, end: str, said: str, tmp_path: Path) -> None:
    done = shell(f"{HPCGEN} {words} {end}", tmp_path)
    assert done.returncode == 7
    assert f"hpcgen: error: cannot write to stdout: {said}\n" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("end", ["2>&-", "2>/dev/full"])
def test_notes_that_nobody_gets_change_nothing(end: str, tmp_path: Path) -> None:
    whole = shell(f"{HPCGEN} {RENDER}", tmp_path)
    assert whole.returncode == 0 and whole.stderr
    done = shell(f"{HPCGEN} {RENDER} {end}", tmp_path)
    assert (done.returncode, done.stdout) == (0, whole.stdout)
    assert shell(f"{HPCGEN} plan --site nosuch --stack mpi-hello {end}", tmp_path).returncode == 4


def test_a_kit_is_whole_without_any_stream(tmp_path: Path) -> None:
    assert shell(f"{HPCGEN} {RENDER} -o kit <&- >&- 2>&-", tmp_path).returncode == 0
    assert shell(f"{HPCGEN} {RENDER} -o peace", tmp_path).returncode == 0
    assert shell("diff -r kit peace", tmp_path).stdout.count("\n") <= 8, "only the command in the headers differs"


def test_a_reader_that_went_away_is_left_in_peace(tmp_path: Path) -> None:
    done = shell(f"({HPCGEN} list sites; echo $? >&2) | true", tmp_path)
    assert done.stderr == "141\n"


@pytest.mark.parametrize(
    "words",
    [
        ("check", LONG),
        ("inspect", LONG),
        ("site", "new", "zz", "--from", "slurm", LONG),
        ("affected", "--advisory", LONG),
        ("install", LONG, "--prefix", "x"),
        ("build", LONG),
        ("init", LONG),
        ("bundle", "verify", LONG),
    ],
)
def test_names_that_are_too_long_are_said_in_short(words: tuple[str, ...], hpcgen: Command) -> None:
    done = hpcgen(*words)
    assert done.returncode in (3, 4, 7), done.stderr
    assert "hpcgen: error: " in done.stderr and "bug in hpcgen" not in done.stderr


def test_a_long_path_in_a_stack_is_its_writers_mistake(hpcgen: Command, tmp_path: Path) -> None:
    stack = "name: long\ntitle: t\nblocks: {gnu: {}}\nrun: {command: [x], mpi: false}\n"
    stack += f"copy: [{{from: {LONG}, to: /opt/a}}]\n"
    (tmp_path / "long.yaml").write_text(stack)
    done = hpcgen("render", "--site", "workstation", "--stack", "long.yaml")
    assert done.returncode == 3 and "the name is too long" in done.stderr


def test_what_the_system_refuses_is_said_to_programs_too(hpcgen: Command) -> None:
    done = hpcgen("inspect", LONG, "--json")
    assert done.returncode == 3 and '"error": "InputError"' in done.stdout and '"exit_code": 3' in done.stdout
