"""Several commands in one job: what is asked for, the script that starts them, and what it says of them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from hpcgen.launch.script import StepState, read_step
from hpcgen.running.follow import StepLines
from tests.conftest import Command

STACK = """\
name: mine
title: Mine
blocks: {mpi: {}}
run:
  checkpoint: [touch, state]
  steps:
    - {name: prepare, command: [work, 0, "a b"]}
    - {name: train, command: [work, 3]}
    - {name: evaluate, command: [work, 0]}
"""
ENGINE = """\
#!/bin/bash
while [ "$1" != work ]; do shift; done
shift
echo "work: ${2:-nothing}"
exit "$1"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A collection with a stack of steps, and programs in the place of launcher and engine."""
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "mine.yaml").write_text(STACK)
    (tmp_path / "bin").mkdir()
    (tmp_path / "image").mkdir()
    for name, text in {"ch-run": ENGINE, "mpiexec": ENGINE}.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def job(hpcgen: Command, here: Path, *words: str, stack: str = "mine") -> subprocess.CompletedProcess[str]:
    asked = ("--site", "supermuc", "--stack", stack, "--account", "abc", *words)
    return hpcgen("--collection", str(here), "job", *asked)


def started(hpcgen: Command, here: Path, *words: str, arguments: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """The status of the job script, and what it printed."""
    asked = job(hpcgen, here, *words)
    assert asked.returncode == 0, asked.stderr
    lines = [line for line in asked.stdout.splitlines() if not line.startswith("module ")]
    (here / "job.sh").write_text("\n".join(lines))
    env = {**os.environ, "PATH": f"{here / 'bin'}:{os.environ['PATH']}", "HPCGEN_IMAGE": str(here / "image")}
    done = subprocess.run(
        ["bash", "job.sh", *arguments],
        cwd=here,
        env={**env, "SLURM_JOB_ID": "12"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, [line for line in done.stdout.splitlines() if "preflight skipped" not in line]


@pytest.mark.parametrize("words", [(), ("--checkpoint", "10m")])
def test_the_first_step_that_fails_ends_the_job(hpcgen: Command, here: Path, words: tuple[str, ...]) -> None:
    status, said = started(hpcgen, here, *words)
    assert status == 3
    assert [line for line in said if line.startswith("work")] == ["work: a b", "work: nothing"]
    found = [state for line in said if (state := read_step(line)) is not None]
    assert [(each.title, each.exit_status) for each in found] == [
        ("prepare (1 of 3)", None),
        ("prepare (1 of 3)", 0),
        ("train (2 of 3)", None),
        ("train (2 of 3)", 3),
    ]


def test_steps_that_are_asked_for_replace_those_of_the_stack(hpcgen: Command, here: Path) -> None:
    status, said = started(hpcgen, here, "--step", "one=work 0 '$HOME; x'", "--step", "two=work 0")
    assert status == 0
    assert [line for line in said if line.startswith("work")] == ["work: $HOME; x", "work: nothing"]
    assert re.search(r" two \(2 of 2\) ended with status 0 after \d s$", said[-1])


def test_a_command_replaces_the_steps(hpcgen: Command, here: Path) -> None:
    assert "step()" not in job(hpcgen, here, "--", "work", "0").stdout
    assert started(hpcgen, here, arguments=("work", "0", "alone")) == (0, ["work: alone"])


def test_a_stack_without_a_command_leaves_it_to_each_job(hpcgen: Command, here: Path) -> None:
    stack = STACK.partition("run:")[0] + "run: {}\n"
    (here / "recipes" / "mine.yaml").write_text(stack)
    assert hpcgen("check", str(here / "recipes" / "mine.yaml")).returncode == 0
    asked = job(hpcgen, here)
    assert asked.returncode == 0 and "names no command, so each job has to" in asked.stderr
    status, said = started(hpcgen, here)
    assert (status, said) == (64, ["job.slurm: the stack mine names no command: pass it after the script's name"])
    assert started(hpcgen, here, arguments=("work", "0", "alone")) == (0, ["work: alone"])


def test_the_command_line_of_a_plan_has_its_steps(hpcgen: Command) -> None:
    asked = ("--site", "workstation", "--stack", "mpi-hello", "--step", "a=echo 'x y'", "--step", "b=true")
    done = hpcgen("render", *asked)
    assert done.returncode == 0, done.stderr
    assert "--step 'a=echo '\"'\"'x y'\"'\"'' --step b=true" in done.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--step", "work 0"], "is not a step: write NAME=COMMAND"),
        (["--step", "One=work"], "is not a step: write NAME=COMMAND"),
        (["--step", "one="], "the step one has no command"),
        (["--step", "one='"], "the command of the step one cannot be read"),
        (["--step", "one=a", "--step", "one=b"], "two steps are called one"),
        (["--step", "one=a", "--", "b"], "exclude each other"),
    ],
)
def test_what_is_no_step(hpcgen: Command, here: Path, words: list[str], says: str) -> None:
    done = job(hpcgen, here, *words)
    assert done.returncode == 2
    assert says in done.stderr.replace("\n", " ")


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("{steps: [{name: a, command: [x]}, {name: a, command: [y]}]}", "two steps are called a"),
        ("{steps: [{name: a, command: []}]}", "the step a starts nothing"),
        ("{steps: [{name: 'a b', command: [x]}]}", "name"),
    ],
)
def test_a_stack_that_says_its_steps_wrongly(hpcgen: Command, here: Path, run: str, says: str) -> None:
    (here / "recipes" / "wrong.yaml").write_text(f"name: wrong\ntitle: Wrong\nblocks: {{mpi: {{}}}}\nrun: {run}\n")
    done = job(hpcgen, here, stack="wrong")
    assert done.returncode == 3, done.stderr
    assert says in done.stderr


def test_steps_are_found_in_output_that_comes_in_pieces() -> None:
    lines = StepLines()
    text = b"x\nhpcgen-step: 2026-01-01T00:00:00Z a (1 of 2) begins\nnoise"
    for number in range(len(text)):
        lines.feed(text[number : number + 1])
    lines.feed(b" hpcgen-step: 2026-01-01T00:00:00Z b (2 of 2) begins\n" + b"y" * 5000)
    assert lines.steps == [StepState("a", 1, 2)]
    lines.feed(b"\nhpcgen-step: 2026-01-01T00:00:07Z a (1 of 2) ended with status 4 after 7 s\n")
    assert lines.steps == [StepState("a", 1, 2, 4, 7)]
