"""Memory of jobs by a real Slurm that holds them to it: what they ask for, what they get, what the preflight sees.

Its jobs get 1 GiB for each CPU where they ask for none, as at many sites, and a control group keeps them to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from container_tools import REPORTS, Slurm
from slurm_site import SlurmSite

pytestmark = pytest.mark.slow
SHOWN = """
{
    scontrol show job "$SLURM_JOB_ID"
    cat "/sys/fs/cgroup/memory$(sed -n 's/.*:memory://p' /proc/self/cgroup)/../../memory.limit_in_bytes"
} > got
"""
"""Put before the job's own lines: what it got, and the limit of its control group."""


@pytest.fixture(scope="module")
def cluster(slurm_cluster: Callable[..., Slurm]) -> Slurm:
    return slurm_cluster("general", memory=1024)


def got(site: SlurmSite[Slurm], image: Path, *words: str) -> tuple[str, int, str]:
    """What Slurm gave a job of two ranks, the limit of its control group in MiB, and what it wrote."""
    done = site.run("job", str(image), "-o", "job.slurm", *words)
    assert done.returncode == 0, done.stderr
    job = site.work / "job.slurm"
    header, options, rest = re.split(r"((?:^#SBATCH .*\n)+)", job.read_text(), maxsplit=1, flags=re.MULTILINE)
    job.write_text(header + options + SHOWN + rest)
    site.cluster.run(["sbatch", "-W", "-o", "said", job.name], cwd=site.work, env=site.env, check=False)
    shown, limit, _ = re.split(r"^(\d+)\n", (site.work / "got").read_text(), flags=re.MULTILINE)
    (tres,) = re.findall(r"TRES=(\S+)", shown)
    REPORTS.append(f"{' '.join(words)}: {tres}; control group {int(limit) >> 20} MiB")
    return tres, int(limit) >> 20, (site.work / "said").read_text()


@pytest.mark.parametrize("asked", ["mem", "mem-per-cpu"])
def test_a_job_gets_the_memory_of_its_ranks(site: SlurmSite[Slurm], mpi_hello_image: Path, asked: str) -> None:
    site.profile["scheduler"]["memory_request"] = asked
    site.write()
    tres, limit, said = got(site, mpi_hello_image)
    assert ("mem=2G" in tres, limit) == (True, 2048), said
    tres, limit, said = got(site, mpi_hello_image, "--memory-per-rank", "3")
    assert ("mem=6G" in tres, limit) == (True, 6144), said
    assert "preflight: passed: 2 ranks with " in said
    assert "rank 1 of 2 on " in said


def test_the_preflight_refuses_a_job_with_less_than_its_ranks_need(
    site: SlurmSite[Slurm], mpi_hello_image: Path
) -> None:
    """Where the profile says that jobs ask for none, and the node has enough."""
    site.profile["scheduler"]["memory_request"] = "none"
    site.write()
    tres, limit, said = got(site, mpi_hello_image, "--memory-per-rank", "3")
    assert ("mem=2G" in tres, limit) == (True, 2048), said
    assert "preflight: FAILED: memory on " in said or "preflight: FAILED: memory: " in said, said
    assert "expected 6 GB for 2 ranks; seen: 2 GB for the job (cgroup); request more: the profile's " in said
    assert "rank 0 of 2" not in said
