"""``hpcgen run``: a program is started, read from, and ended with hpcgen.

There is no Docker engine in any test of hpcgen, so ``docker`` is a small program here that starts the command itself;
the container tier runs real images.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

DOCKER = """\
#!/bin/bash
# `docker image inspect` knows every image; `docker run … IMAGE mpiexec -n 1 COMMAND` starts the command here.
[ "$1" != image ] || exit 0
while [ "$1" != mpiexec ]; do
    case $1 in -e) [[ $2 != *=* ]] || export "$2"; shift ;; esac
    shift
done
shift 3
exec "$@"
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    # The preflight asks a node of this kind for nothing that a CPU may lack.
    profile = {"name": "here", "extends": "workstation", "partitions": {"main": {"cpu": {"target": "x86_64"}}}}
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles" / "here.yaml").write_text(json.dumps(profile))
    return {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HPCGEN_COLLECTIONS": str(tmp_path)}


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "hpcgen", "run", "--site", "here", "--stack", "mpi-hello", "--", *words]


def test_it_reads_the_terminal_and_writes_to_it(env: dict[str, str], tmp_path: Path) -> None:
    words = command("sh", "-c", 'read line; echo "$line $HPCGEN_RANKS $OMP_NUM_THREADS"; pwd; echo aside >&2')
    done = subprocess.run(words, env=env, cwd=tmp_path, input="hello\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"hello 1 8\n{tmp_path}\n"
    assert "aside\n" in done.stderr


def test_its_status_is_told(env: dict[str, str]) -> None:
    done = subprocess.run(command("sh", "-c", "exit 3"), env=env, capture_output=True, text=True)
    assert done.returncode == 10
    assert done.stderr.endswith("hpcgen: error: sh ended with status 3\n")
    killed = subprocess.run(command("sh", "-c", "kill -SEGV $$"), env=env, capture_output=True, text=True)
    assert "ended with the signal SIGSEGV" in killed.stderr


def test_without_a_command_it_asks_for_one(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bare.yaml").write_text("name: bare\ntitle: t\nblocks: {python: {}}\nrun: {mpi: false}\n")
    words = ["run", "--site", "here", "--stack", "./bare.yaml"]
    done = subprocess.run(
        [sys.executable, "-m", "hpcgen", *words], env=env, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 3 and "no program to start: the stack bare names none" in done.stderr, done.stderr
    assert "-- COMMAND" in done.stderr


def test_as_json_it_tells_how_it_ended_and_leaves_stdout_to_that(env: dict[str, str]) -> None:
    words = command("sh", "-c", "echo heard; exit 3")
    words.insert(words.index("--"), "--json")
    done = subprocess.run(words, env=env, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert (done.returncode, found["exit_status"], found["job"]["command"][0]) == (10, 3, "sh")
    assert found["seconds"] > 0 and "heard\n" in done.stderr


def test_a_reader_that_goes_away_is_no_error(env: dict[str, str]) -> None:
    line = " ".join(f"'{word}'" for word in command("yes"))
    done = subprocess.run(
        ["bash", "-c", f"{line} | head -n 1; exit ${{PIPESTATUS[0]}}"], env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (141, "y\n")
    assert "error" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_was_started_ends_with_hpcgen(env: dict[str, str], tmp_path: Path, number: signal.Signals) -> None:
    """The signal reaches hpcgen alone, as that of a batch system may."""
    mark = tmp_path / "pid"
    words = command("sh", "-c", f"echo $$ > {mark}.part; mv {mark}.part {mark}; exec sleep 300")
    process = subprocess.Popen(words, env=env, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 30
    while not mark.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(30) == 130
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)
