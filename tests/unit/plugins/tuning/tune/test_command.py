"""``hpcgen tune`` with an engine that starts nothing but Python, here, with a NumPy that is made up."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.conftest import Command
from tests.unit.plugins.tuning.bench.test_command import image

__all__ = ["image"]
GEMM = ("--workload", "gemm", "--vary", "allocator=", "--vary", "env.OMP_PLACES=", "--layout", "1x2")
SHORT = (*GEMM, "--rounds", "1", "--compare-rounds", "2", "--trials", "2")


def tune(hpcgen: Command, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    folder = image.parent
    env = {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "BASH_ENV": str(folder / "env"), "SLURM_JOB_ID": "7"}
    return hpcgen("--collection", str(folder / "own"), "tune", str(image), *words, env=env, cwd=folder / "work")


def test_a_search_is_gone_on_with_and_measured_against_the_default(hpcgen: Command, image: Path) -> None:
    folder = image.parent
    first = tune(hpcgen, image, *SHORT, "--search-only", "--json")
    assert first.returncode == 0, first.stderr
    assert [each["state"] for each in json.loads(first.stdout)["trials"]] == ["measured"] * 2
    assert "trial 0: as the job is" in first.stderr and "best so far" in first.stderr
    assert not (folder / "own" / "measurements").exists()
    done = tune(hpcgen, image, *SHORT, "--trials", "3", "--json", "--write", str(folder / "none.yaml"))
    assert done.returncode == 3 and "there is no such file" in done.stderr
    done = tune(hpcgen, image, *SHORT, "--trials", "3", "--json")
    told = json.loads(done.stdout)
    assert [each["number"] for each in told["trials"]] == [0, 1, 2] and told["verdict"]
    rows = (folder / "own" / "measurements" / "bench.jsonl").read_text().splitlines()
    assert [json.loads(row) for row in rows] == told["measurements"]
    text = tune(hpcgen, image, *SHORT).stdout
    assert text.startswith("3 trials: 3 measured") and text.rstrip().splitlines()[-1]


def test_wrong_usage(hpcgen: Command, image: Path) -> None:
    for words, said in (
        ((), "--workload"),
        ((*SHORT, "--tasks", "2"), "--tasks requires --submit"),
        (("--workload", "gem"), "did you mean gemm?"),
        ((*SHORT, "--vary", "thread=1"), "did you mean threads?"),
        ((*SHORT, "--timeout", "soon"), "--timeout"),
    ):
        done = tune(hpcgen, image, *words)
        assert done.returncode in (2, 3, 4) and said in done.stderr, done.stderr


def test_an_array_searches_and_a_job_after_it_compares(hpcgen: Command, image: Path) -> None:
    job = ("--submit", "--no-follow", "--account", "abc", "--time", "20m", "--tasks", "8")
    done = tune(hpcgen, image, *SHORT, *job)
    assert (done.returncode, done.stdout) == (0, "7\n"), done.stderr
    work = image.parent / "work"
    array, end = ((work / f".hpcgen/jobs/tune{part}-mpi-hello-1/job.slurm").read_text() for part in ("", "-end"))
    assert "#SBATCH --array=0-7\n" in array and "#SBATCH --dependency" not in array
    assert "#SBATCH --dependency=afterany:7\n" in end and "#SBATCH --array" not in end
    assert array.rstrip().endswith("--search-only") and "--search-only" not in end
    assert "--tasks" not in array + end and (work / "tune-gemm.study").exists()
    refused = tune(hpcgen, image, *SHORT, *job[:-1], "5000")
    assert refused.returncode == 6 and "an array of 5000 tasks" in refused.stderr
