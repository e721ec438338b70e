"""A shell in an image, here and on a node, and the project's own files in the place of those that were copied."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Command

STACK = """\
name: project
title: A project
blocks: {python: {}}
copy: [{from: code, to: /app}]
run: {command: [python3, /app/first.py], mpi: false}
"""
ENGINE = """\
#!/bin/bash
[ "$1" != --version ] || exit 0
printf '%s\\n' "$@" > "$SAID"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def project(hpcgen: Command, tmp_path: Path) -> Command:
    """A folder with an image of its stack, unpacked, and programs in the place of an engine and of Slurm."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "first.py").write_text("print(1)\n")
    (tmp_path / "hpcgen.yaml").write_text(STACK)
    image = tmp_path / "image"
    for name in ("ch", "bin", "etc", "usr", "opt/hpcgen"):
        (image / name).mkdir(parents=True)
    programs = tmp_path / "programs"
    programs.mkdir()
    skipped = "while [[ $1 != srun && $1 != */bash ]]; do shift; done"
    slurm = f'#!/bin/bash\necho "${{0##*/}} $*" >> "$SLURM_SAID"\n{skipped}\nexec "$@"\n'
    made = {"ch-run": ENGINE, **dict.fromkeys(("salloc", "srun", "sbatch", "scontrol", "sacct"), slurm)}
    for name, text in made.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    said = {"SAID": str(tmp_path / "said"), "SLURM_SAID": str(tmp_path / "slurm")}
    env = {**os.environ, **said, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = hpcgen("render", "--site", "slurm-cpu", "-o", str(image / "opt/hpcgen/kit"), "--format", "charliecloud")
    assert done.returncode == 0, done.stderr
    return partial(hpcgen, env=env)


def shell(project: Command, *words: str) -> subprocess.CompletedProcess[str]:
    return project("shell", "image", "--site", "slurm-cpu", "--engine", "charliecloud", *words)


def test_the_project_is_seen_and_the_programs_own_status_counts(project: Command, tmp_path: Path) -> None:
    done = shell(project, "--", "sh", "-c", "echo inside; exit 3")
    assert done.stdout == "inside\n", done.stderr
    assert done.returncode == 10 and "status 3" in done.stderr
    assert f"{tmp_path}:/mnt/0" in (tmp_path / "said").read_text()
    assert (tmp_path / ".hpcgen/jobs/shell-1/start").exists()


def test_a_shell_that_ends_with_the_status_of_its_last_command_is_no_failure(project: Command) -> None:
    """Standard input is empty here, so that the shell ends at once."""
    done = shell(project)
    assert done.returncode == 0 and "exit ends it" in done.stderr, done.stderr


def test_a_node_is_asked_for_by_the_batch_systems_own_words(project: Command, tmp_path: Path) -> None:
    done = shell(project, "--nodes", "1", "--time", "10m", "--", "echo", "on a node")
    assert done.stdout == "on a node\n", done.stderr
    asked, started = (tmp_path / "slurm").read_text().splitlines()
    assert " --pty " in started and asked.startswith("salloc ") and "--time=00:10:00" in asked and "--nodes=1" in asked
    assert started.startswith("srun --export=ALL --nodes=1 --ntasks=1 --cpus-per-task=")
    words = json.loads(shell(project, "--nodes", "1", "--json").stdout)["words"]
    assert words[0] == "salloc" and "--pty" in words


def test_live_files_take_the_place_of_copied_ones(project: Command, tmp_path: Path) -> None:
    done = shell(project, "--live", "--", "true")
    assert done.returncode == 0, done.stderr
    assert f"{tmp_path}/code:/app" in (tmp_path / "said").read_text()
    assert f"live: {tmp_path}/code instead of /app" in done.stderr
    run = ("run", "image", "--site", "slurm-cpu", "--engine", "charliecloud", "--live", "--", "true")
    assert f"{tmp_path}/code:/app" in project(*run).stderr.replace(" instead of ", ":")


def test_live_says_what_it_hides(project: Command, tmp_path: Path) -> None:
    (tmp_path / "hpcgen.yaml").write_text(STACK + "build: {commands: [make]}\n")
    assert "--live hides build results in /app" in shell(project, "--live", "--", "true").stderr
    (tmp_path / "hpcgen.yaml").write_text(STACK.replace("copy: [{from: code, to: /app}]\n", ""))
    assert "copies nothing into the image" in shell(project, "--live", "--", "true").stderr
    shutil.move(tmp_path / "hpcgen.yaml", tmp_path / "away")
    assert "--live shows the files of a project" in shell(project, "--live", "--", "true").stderr


def test_data_of_the_folders_stack_is_bound_where_the_image_is_named(project: Command, tmp_path: Path) -> None:
    (tmp_path / "inputs").mkdir()
    (tmp_path / "hpcgen.yaml").write_text(STACK.replace("mpi: false", "mpi: false, binds: [inputs:/mnt/2]"))
    (tmp_path / "more").mkdir()
    done = shell(project, "--bind", "more:/mnt/1", "--", "true")
    said = (tmp_path / "said").read_text()
    assert f"{tmp_path}/inputs:/mnt/2" in said and f"{tmp_path}/more:/mnt/1" in said, done.stderr
    assert "has no folder" not in done.stderr
    (tmp_path / "hpcgen.yaml").write_text(STACK.replace("name: project", "name: another"))
    shell(project, "--", "true")
    assert "inputs" not in (tmp_path / "said").read_text()
