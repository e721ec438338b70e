"""Arrays, chains, checkpoints and requeued jobs with a real Slurm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from test_submit import Site

STACK = """\
name: mine
title: A program that is told to write its state
extends: mpi-hello
run: {checkpoint: [sh, -c, 'echo 7 > state']}
"""
PROGRAM = 'if [ -e state ]; then echo "goes on from $(cat state)"; exit; fi; echo begins; sleep 1000'


@pytest.fixture
def site(site: Site) -> Site:
    (site.collection / "recipes").mkdir()
    (site.collection / "recipes" / "mine.yaml").write_text(STACK)
    return site


def ended(site: Site) -> None:
    until = time.monotonic() + 120
    while site.cluster.run(["squeue", "-h"]).stdout:
        assert time.monotonic() < until
        time.sleep(0.5)


def test_an_array_and_a_job_after_it(site: Site, mpi_hello_image: Path) -> None:
    image, one = str(mpi_hello_image), ("--ranks-per-node", "1")
    array = site.run("submit", image, *one, "--array", "3%1", "--", "sh", "-c", "sleep 1; echo > task-$HPCGEN_TASK")
    assert array.returncode == 0, array.stderr
    assert "an array is not followed: look at it with `squeue -j" in array.stderr
    after = ("--after", array.stdout.strip())
    last = site.run("submit", image, *one, *after, "--", "sh", "-c", "echo $(ls -d task-*)")
    assert last.returncode == 0, last.stderr
    assert "waits (Dependency)" in last.stderr
    assert last.stdout.endswith("\ntask-0 task-1 task-2\n")
    ended(site)


@pytest.mark.slow
def test_a_job_writes_its_state_and_goes_on_from_it(site: Site, mpi_hello_image: Path) -> None:
    """Slurm looks at time limits twice a minute, and lets a requeued job wait for two minutes."""
    asked = ("--stack", "mine", "--ranks-per-node", "1", "--time", "5m", "--checkpoint", "290s", "--requeue")
    done = site.run("submit", str(mpi_hello_image), *asked, "--", "sh", "-c", PROGRAM)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert "job.slurm: checkpoint written" in lines
    assert lines.index("begins") < lines.index("goes on from 7")
