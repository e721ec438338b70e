"""Drift on this machine itself, with a real Slurm and a real Intel MPI: none unaltered, each altered fact found."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from container_tools import HostMpi, Slurm

ALTERED = {
    "system.os": (r"os: \w+", "os: sles"),
    "system.os_version": (r"os_version: \S+", "os_version: 99"),
    "system.glibc": (r"glibc: \S+", "glibc: 2.99"),
    "system.kernel": (r"kernel: \S+", "kernel: 2.6.32"),
    "partitions.main.cpu.target": (r"target: \S+", "target: power9le"),
    "partitions.main.cpu.cores": (r"cores: \S+", "cores: 4096"),
    "partitions.main.memory.total_gb": (r"total_gb: \S+", "total_gb: 900000"),
    "partitions.main.queues": (r"name: fat", "name: thin"),
    "containers.engines.charliecloud.version": (r"(charliecloud:\n +version:) \S+", r"\1 99.1"),
    "scheduler.kind": (r"(scheduler:\n +kind:) \S+", r"\1 torque"),
    "fabric.kind": (r"(fabric:\n +kind:) \S+", r"\1 infiniband"),
    "mpi.flavour": (r"flavour: \S+", "flavour: cray-mpich"),
    "mpi.version": (r"(flavour: intel\n +version:) \S+", r"\1 2099.1"),
    "mpi.root": (r"( root:) \S+", r"\1 /opt/not/there"),
    "mpi.binds": (r"(binds:\n +- source:) \S+", r"\1 /opt/not/there"),
    "mpi.pmi": (r"(pmi:\n +- )\w+", r"\1pmi"),
}


def doctor(slurm: Slurm, env: dict[str, str], profile: Path, *before: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the report."""
    words = ["--collection", str(profile.parent.parent), "site", "doctor", "here", "--json"]
    command = [*before, sys.executable, "-m", "hpcgen", *words]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_altered_facts_of_this_machine_are_found_one_by_one(
    slurm_cluster: Callable[..., Slurm], host_mpi: HostMpi, tmp_path: Path
) -> None:
    slurm = slurm_cluster("general", "fat")
    env = {**host_mpi.env, **slurm.env, "I_MPI_ROOT": str(host_mpi.root), "HPCGEN_CONFIG": ""}
    profile = tmp_path / "collection" / "site_profiles" / "here.yaml"
    profile.parent.mkdir(parents=True)
    new = [sys.executable, "-m", "hpcgen", "site", "new", "here", "--detect", "-o", str(profile)]
    subprocess.run(new, env=env, check=True, capture_output=True)
    written = profile.read_text()

    code, report = doctor(slurm, env, profile, "srun", "--partition", "fat", "-n", "1")
    assert (code, report["drift"]) == (0, []), report["drift"]
    assert report["partition"] == "main"
    assert {"mpi.version", "mpi.root", "mpi.pmi", "partitions.main.queues", "system.glibc"} <= set(report["agree"])

    for fact, (true, altered) in ALTERED.items():
        changed, times = re.subn(true, altered, written, count=1)
        assert times == 1, f"the profile has no {fact}:\n{written}"
        profile.write_text(changed)
        _, report = doctor(slurm, env, profile)
        assert [each["fact"] for each in report["drift"]] == [fact], (fact, report["drift"])
        assert report["drift"][0]["how"] and report["drift"][0]["remedy"]
