"""With ``--json`` stdout is one JSON document, whether there is a result or an error."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command

HELLO = ("--site", "workstation", "--stack", "mpi-hello")


def error_of(hpcgen: Command, *words: str) -> dict[str, Any]:
    done = hpcgen(*words, "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exit_code"] == done.returncode != 0
    assert found["problems"][0]["message"] in found["message"]
    for line in found["message"].splitlines():
        assert line in done.stderr
    return found


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("plan", "--site", "workstation"), "UsageError", 2),
        (("plan", *HELLO, "--nodes", "x"), "UsageError", 2),
        (("plan", *HELLO, "--time", "soon"), "InputError", 3),
        (("contract", "--site", "supermuk", "--stack", "mpi-hello"), "UnknownNameError", 4),
        (("show", "site", "supermuk"), "UnknownNameError", 4),
        (("render", *HELLO, "--set", "ubuntu.version=1"), "ConflictError", 5),
        (("job", *HELLO, "--nodes", "2"), "PolicyError", 6),
        (("job", *HELLO, "-o", "."), "OutputError", 7),
        (("render", *HELLO, "-o", "/proc/kit"), "OutputError", 7),
    ],
)
def test_an_error_is_one_object(hpcgen: Command, words: tuple[str, ...], kind: str, code: int) -> None:
    found = error_of(hpcgen, *words)
    assert (found["error"], found["exit_code"]) == (kind, code)


def test_places_and_remedies_are_data(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\ntitle: t\nblocks: {mpi: {versoin: 4}}\nrun: {command: [true]}\n")
    found = error_of(hpcgen, "plan", "--site", "workstation", "--stack", "s.yaml")
    assert found["problems"][0]["where"] == {"file": "s.yaml", "line": 3, "column": 16}
    assert found["problems"][0]["remedy"] == "did you mean version?"
    conflict = error_of(hpcgen, "plan", *HELLO, "--set", "mpich.version=99")
    assert conflict["remedies"][0]["settings"].keys() == {"mpich.version"}
    job = error_of(hpcgen, "plan", *HELLO, "--ranks-per-node", "200")
    assert [each["job"] for each in job["remedies"]] == [{"ranks_per_node": 8}]
    unset = error_of(hpcgen, "plan", *HELLO, "--set", "cmake.version=3.28.4")
    assert unset["remedies"][0]["added"] == ["cmake"] and unset["problems"][0]["where"] == {"name": "--set"}


def test_a_result_that_is_printed_stays_the_only_document(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("name: s\n")
    done = hpcgen("check", "s.yaml", "--json")
    assert done.returncode == 3 and isinstance(json.loads(done.stdout), list)


def test_json_after_two_dashes_is_a_word_of_the_job(hpcgen: Command) -> None:
    done = hpcgen("plan", *HELLO, "--nodes", "2", "--", "program", "--json")
    assert (done.returncode, done.stdout) == (6, "")


def test_a_job_is_printed_with_its_script_and_preflight(hpcgen: Command) -> None:
    found = json.loads(hpcgen("job", *HELLO, "--json").stdout)
    assert (found["site"], found["engine"], found["job"]["nodes"]) == ("workstation", "docker", 1)
    assert found["script"] == hpcgen("job", *HELLO).stdout
    assert found["preflight"].startswith("#!/bin/bash")


def test_a_new_profile_comes_with_what_was_detected(hpcgen: Command, trees: Path) -> None:
    found = json.loads(hpcgen("site", "new", "x", "--detect", "--root", str(trees / "workstation"), "--json").stdout)
    assert found["facts"]["node.cpu.cores"]["how"] and "default_partition: main" in found["text"]
    assert "mpi" in " ".join(found["open"])
    assert json.loads(hpcgen("site", "new", "x", "--json").stdout).keys() == {"name", "text"}


def test_a_reader_that_goes_away_ends_it_with_141(tmp_path: Path) -> None:
    line = f"{sys.executable} -m hpcgen plan {' '.join(HELLO)} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")
