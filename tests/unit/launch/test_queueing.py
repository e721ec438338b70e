"""Arrays, chains and checkpoints: the header, the task's number, the script that waits for a signal."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.model.batch import BatchSystem
from tests.conftest import Command

STACK = """\
name: mine
title: Mine
blocks: {mpi: {}}
run: {command: [work], checkpoint: [touch, a b]}
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A collection with a stack that has a checkpoint command."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text(STACK)
    return tmp_path


def script(hpcgen: Command, here: Path, *words: str, site: str = "supermuc", stack: str = "mine") -> str:
    asked = ("--site", site, "--stack", stack, "--account", "abc", *words)
    done = hpcgen("--collection", str(here), "job", *asked)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_options_in_the_header_of_slurm(hpcgen: Command, here: Path) -> None:
    text = script(hpcgen, here, *("--after", "12", "--array", "20%4", "--checkpoint", "10m", "--requeue"))
    asked = [line for line in text.splitlines() if line.startswith("#SBATCH ")]
    for option in ("--array=0-19%4", "--dependency=afterany:12", "--signal=B:USR1@600", "--requeue"):
        assert f"#SBATCH {option}" in asked
    assert "export HPCGEN_TASK=$((SLURM_ARRAY_TASK_ID))" in text


def test_a_plain_job_has_none_of_it(hpcgen: Command, here: Path) -> None:
    text = script(hpcgen, here)
    assert not any(word in text for word in ("--array", "--signal", "--requeue", "checkpoint()", "HPCGEN_TASK"))


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("slurm", "--dependency=afterany:7"),
        ("pbs", "-W depend=afterany:7"),
        ("torque", "-W depend=afterany:7"),
        ("gridengine", "-hold_jid 7"),
        ("flux", "--dependency=afterany:7"),
        ("none", ""),
    ],
)
def test_a_job_after_another(kind: str, after: str) -> None:
    assert scheduler_for(BatchSystem(kind=kind)).after("7") == after


@pytest.mark.parametrize(
    ("site", "stack", "words", "says"),
    [
        ("supermuc", "mpi-hello", ["--checkpoint", "5m"], "names no command for it"),
        ("supermuc", "mine", ["--checkpoint", "5m", "--time", "4m"], "before the end of a job of"),
        ("supermuc", "mine", ["--array", "2000"], "no more than 1001"),
        ("hlrs-testbed", "mpi-hello", ["--array", "2"], "cannot submit arrays to Torque"),
        ("workstation", "mpi-hello", ["--after", "7"], "no job dependencies"),
        ("workstation", "mpi-hello", ["--requeue"], "--requeue"),
        ("supermuc", "mine", ["--array", "x"], "is not a number of tasks"),
    ],
)
def test_what_cannot_be_had_is_refused(
    hpcgen: Command, here: Path, site: str, stack: str, words: list[str], says: str
) -> None:
    asked = ("--site", site, "--stack", stack, "--account", "abc", *words)
    done = hpcgen("--collection", str(here), "job", *asked)
    assert done.returncode in (2, 6), done.stderr
    assert says in done.stderr


ENGINE = """\
#!/bin/bash
while [ "$1" != work ] && [ "$1" != touch ]; do shift; done
exec "$@"
"""
WORK = """\
#!/bin/bash
touch began
until [ -e "a b" ]; do sleep 0.1; done
echo went on
exit 5
"""


def test_the_program_goes_on_while_its_state_is_written(here: Path, hpcgen: Command) -> None:
    """The script itself, with programs in the place of launcher, engine and batch system."""
    text = script(hpcgen, here, *("--checkpoint", "10m", "--requeue"))
    (here / "bin").mkdir()
    programs = {"ch-run": ENGINE, "work": WORK, "mpiexec": ENGINE, "scontrol": '#!/bin/sh\necho "$@" > asked\n'}
    for name, program in programs.items():
        (here / "bin" / name).write_text(program)
        (here / "bin" / name).chmod(0o755)
    lines = [line for line in text.splitlines() if not line.startswith("module ")]
    (here / "job.sh").write_text("\n".join(lines))
    (here / "image").mkdir()
    env = {**os.environ, "PATH": f"{here / 'bin'}:{os.environ['PATH']}", "HPCGEN_IMAGE": str(here / "image")}
    env["SLURM_JOB_ID"] = "12"
    process = subprocess.Popen(
        ["bash", "job.sh"], cwd=here, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    until = time.monotonic() + 20
    while not (here / "began").exists():
        assert time.monotonic() < until and process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    process.send_signal(signal.SIGUSR1)
    said = process.communicate(timeout=20)[0]
    assert process.returncode == 5
    assert "the time limit is near: checkpoint" in said and "checkpoint written" in said and "went on" in said
    assert (here / "asked").read_text() == "requeue 12\n"
