"""Job scripts: what their directives and command lines say, without running any of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.model.own_project import JobFile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.job_script import read_script


def read(folder: Path, *lines: str) -> JobFile:
    (folder / "job.sh").write_text("\n".join(["#!/bin/bash", *lines, ""]), "utf-8")
    found = read_script(ProjectFolder(folder), "job.sh")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("directive", "facts"),
    [
        ("#SBATCH -N 2 --ntasks-per-node=4", {"nodes": "2", "ranks_per_node": "4"}),
        ("#SBATCH -N2 -t1-0:00 # two", {"nodes": "2", "time": "1-0:00"}),
        ("#SBATCH --nodes=2-4", {"nodes": "2"}),
        ("#SBATCH --gres=gpu", {"gpus_per_node": "1"}),
        ("#SBATCH --gres=gpu:v100:2,lscratch:1", {"gpus_per_node": "2"}),
        ("#SBATCH --gres=gpu:3090:4", {"gpus_per_node": "4"}),
        ("#SBATCH --gres=lscratch:10", {}),
        ("#SBATCH --gpus-per-node a100:4", {"gpus_per_node": "4"}),
        ("#SBATCH --array=0-9%2 --mem=4G", {"array": "0-9%2"}),
        ("#SBATCH --nodes=$N --ntasks=many", {}),
        ("#PBS -l select=3:ncpus=8:mpiprocs=2:ngpus=1", {"nodes": "3", "ranks_per_node": "2", "gpus_per_node": "1"}),
        ("#PBS -l nodes=2:ppn=16,walltime=1:00:00", {"nodes": "2", "ranks_per_node": "16", "time": "1:00:00"}),
        ("#PBS -l select=1:ncpus=4+2:ncpus=8", {}),
        (
            '#BSUB -n 32 -R "span[ptile=16] rusage[mem=4GB]" -W 2:00 -q normal -P us',
            {"ranks": "32", "ranks_per_node": "16", "time": "2:00:00", "queue": "normal", "account": "us"},
        ),
        ("#BSUB -nnodes 2 -W 90/fast  # minutes", {"nodes": "2", "time": "90:00"}),
        ('#BSUB -J "many[1-10]%5" -gpu "num=4:mode=shared"', {"name": "many", "array": "1-10%5", "gpus_per_node": "4"}),
        ("#BSUB -gpu num=2/task -n $N -n 2,4 -alloc_flags smt4", {}),
        (
            "#PJM -L node=2x3x2:noncont,rscgrp=small,elapse=1:00:00 -g us",
            {"nodes": "12", "queue": "small", "time": "1:00:00", "account": "us"},
        ),
        (
            '#PJM --mpi "proc=8,max-proc-per-node=4" --omp thread=12 -L "elapse=600"',
            {"ranks": "8", "ranks_per_node": "4", "threads": "12", "time": "600"},
        ),
        ("#PJM -L node=$N -L rscunit=rscunit_ft01 -j -S", {}),
        ("#$ -pe mpi 32 -l h_rt=60,gpu=2 -P us", {"ranks": "32", "time": "60", "gpus_per_node": "2", "account": "us"}),
    ],
)
def test_directives(tmp_path: Path, directive: str, facts: dict[str, str]) -> None:
    found = read(tmp_path, directive)
    assert {each.field: each.value for each in found.facts} == facts
    assert {each.where.line for each in found.facts} <= {2}


@pytest.mark.parametrize(
    ("line", "words", "launcher"),
    [
        ("srun -n 4 --mpi pmix --cpu-bind=none ./a x", ["./a", "x"], "srun"),
        ("mpirun -np 8 --mca btl tcp,self -x A -map-by core ./a", ["./a"], "mpirun"),
        ("mpiexec.hydra -genv A 1 -ppn 2 python3 a.py", ["python3", "a.py"], "mpiexec.hydra"),
        ("time A=1 ibrun ./a > out 2>&1 &", ["./a"], "ibrun"),
        ("srun apptainer exec --nv -B /a:/b img.sif ./a 'x y'", ["./a", "x y"], "srun"),
        ("/usr/bin/env A=1 python a.py | tee log", ["python", "a.py"], ""),
        ('srun ./a "$UNKNOWN" $KNOWN', ["./a", "$UNKNOWN", "7"], "srun"),
        ("cd x && srun ./a", ["./a"], "srun"),
    ],
)
def test_command_lines(tmp_path: Path, line: str, words: list[str], launcher: str) -> None:
    found = read(tmp_path, "#SBATCH -N 1", "KNOWN=7", line)
    assert [(each.words, each.launcher) for each in found.launched] == [(words, launcher)]


@pytest.mark.parametrize(
    "line", ["module load x", "echo srun ./a", "python --version", "cd x", "mkdir -p a", "# srun ./a"]
)
def test_what_prepares_is_no_program(tmp_path: Path, line: str) -> None:
    assert read(tmp_path, "#SBATCH -N 1", line).launched == []


def test_loops_over_words_are_unrolled_and_others_are_told(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "#SBATCH -N 1",
        "for s in one two; do",
        "  srun ./a $s",
        "  srun ./b ${s}.in",
        "done",
        "for s in $(seq 9); do srun ./c $s; done",
        "if true; then srun ./d; fi",
        "srun ./e",
    )
    assert [" ".join(each.words) for each in found.launched] == [
        "./a one",
        "./b one.in",
        "./a two",
        "./b two.in",
        "./c $s",
        "./d",
        "./e",
    ]
    assert [each.repeated for each in found.launched] == [False] * 4 + [True, True, False]


def test_what_has_no_directive_and_starts_nothing_is_no_job_script(tmp_path: Path) -> None:
    (tmp_path / "x.sh").write_text("export A=1\n", "utf-8")
    assert read_script(ProjectFolder(tmp_path), "x.sh") is None


DAMAGED = ["'", "\\", "srun", "srun -n", "for", "done done", "mpirun --mca", "singularity exec", "export", "a=$("]


@pytest.mark.parametrize("text", [*DAMAGED, "srun \\\n" * 3000, "srun ./a \x1b[2J", "srun ./a \x00"])
def test_damaged_lines_are_no_error(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, "#SBATCH -N 1 'x", text).file == "job.sh"
