"""Measurements as a job of a real Slurm, and a search as an array that loses nothing by a killed task or controller."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, Slurm, script
from leftovers import remove
from test_rendered_kits import render_by_command, site_profile

from hpcgen.plugins.tuning.measurements.lines import read_lines
from hpcgen.plugins.tuning.tune.study import NAME, Trial, trial_of

TRIALS = 12
NUMPY = ["--add", "python_packages", "--set", "python_packages.packages=numpy==2.2.6"]
JOB = ["--site", "here", "--stack", "mpi-python", "--set", "mpi.provider=intel_mpi", *NUMPY, "--ranks-per-node", "1"]


def trials_of(path: Path) -> list[Trial]:
    import optuna
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    backend = JournalFileBackend(str(path), JournalFileOpenLock(str(path)))
    study = optuna.load_study(study_name=NAME, storage=optuna.storages.JournalStorage(backend))
    return [trial_of(each) for each in study.get_trials()]


def kill_one(path: Path, after: int) -> Trial:
    """Kill the process of the first trial with such a number that is being measured."""
    for _ in range(1200):
        if path.exists() and path.stat().st_size:
            running = [each for each in trials_of(path) if each.state == "running" and each.number >= after]
            if running and running[0].where:
                os.kill(int(running[0].where.rpartition(" ")[2]), signal.SIGKILL)
                return running[0]
        time.sleep(0.2)
    raise AssertionError("no trial was begun")


def bench_as_a_job(collection: Path, image: Path, work: Path, cluster: Slurm) -> None:
    words = ["bench", str(image), "--workload", "gemm", "--vary", "threads=1,2", "--rounds", "2", "--seconds", "1"]
    command = [sys.executable, "-m", "hpcgen", "--collection", str(collection), *words, "--submit", "--time", "10m"]
    done = subprocess.run(command, cwd=work, env=cluster.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the baseline of the comparison" in done.stdout, done.stdout
    rows = read_lines(collection / "measurements" / "bench.jsonl", "rows")
    assert [row.threads_per_rank for row in rows if row.metric == "gflops"] == [1, 2]


def search_with_a_kill(collection: Path, image: Path, work: Path, cluster: Slurm) -> None:
    words = ["tune", str(image), "--workload", "gemm", "--vary", "threads=1,2", "--trials", str(TRIALS)]
    words += ["--rounds", "2", "--compare-rounds", "2", "--submit", "--tasks", "8", "--time", "15m", "--no-follow"]
    command = [sys.executable, "-m", "hpcgen", "--collection", str(collection), *words]
    done = subprocess.run(command, cwd=work, env=cluster.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    study = work / "tune-gemm.study"
    killed = kill_one(study, after=3)
    script("slurm-restart-controller", cluster.folder, env=cluster.env)
    while cluster.run(["squeue", "-h"]).stdout.strip():
        time.sleep(2)
    found = trials_of(study)
    assert found[0].settings == {} and found[0].state == "measured"
    assert found[killed.number].state == "lost"
    again = [each.state for each in found if each.settings == killed.settings]
    assert again[0] == "lost" and again[1] in ("measured", "ended early", "refused"), again
    assert TRIALS <= sum(each.state in ("measured", "ended early") for each in found) <= TRIALS + 7
    assert not [each for each in found if each.state in ("running", "waiting")]
    assert len({each.where for each in found if each.where}) > 1
    (output,) = work.glob("tune-end-mpi-python.*.out")
    said = output.read_text()
    assert "times as fast as the default" in said or "No conclusion" in said, said


@pytest.mark.slow
def test_measurements_as_a_job_and_an_array_that_goes_on_when_a_task_is_killed(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    ch_image: ChImage,
    slurm_cluster: Callable[..., Slurm],
    tmp_path: Path,
) -> None:
    cluster = slurm_cluster("general")
    site = site_profile(machine_facts, plain_base_image)
    site["scheduler"] = {"kind": "slurm", "output": "./%x.%j.out"}
    site["partitions"]["cpu"]["queues"] = [{"name": cluster.partitions[0]}]
    collection, work, image = tmp_path / "collection", tmp_path / "work", tmp_path / "image"
    (collection / "site_profiles").mkdir(parents=True)
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    work.mkdir()
    render_by_command(collection, tmp_path / "kit", *JOB, "--format", "charliecloud")
    options = {"HPCGEN_BUILD_OPTIONS": "--no-cache"}
    ch_image.run(["bash", tmp_path / "kit" / "build.sh", image], cwd=tmp_path, env=options)
    bench_as_a_job(collection, image, work, cluster)
    search_with_a_kill(collection, image, work, cluster)
    remove(image)
