"""What else goes wrong on one of several virtual nodes, and takes its time: other releases, lost and slow nodes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest
from container_tools import REPORTS, script
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow
Site = SlurmSite[VirtualCluster]
NODES = 2


def submit(site: Site, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return site.run("submit", str(image), "--nodes", "2", *words)


def test_a_node_with_another_release_of_mpi_is_named(site: Site, mpi_hello_image: Path) -> None:
    older = Path(script("make-host-mpi", "--older", env=site.env).strip())
    with site.cluster.instead(2, site.host.root, older):
        done = submit(site, mpi_hello_image)
    assert done.returncode == 10, done.stdout + done.stderr
    told = "FAILED: MPI library on n2: expected Intel(R) MPI Library 2021.17 for Linux* OS, as rank 0 has; seen: "
    assert f"{told}Intel(R) MPI Library 2021.16 for Linux* OS" in done.stdout, done.stdout


@pytest.mark.parametrize(("rate", "queue"), [("100kbit", "60kb"), ("100kbit", "2kb")], ids=["slow", "drops"])
def test_a_slow_network_is_no_alarm(site: Site, mpi_hello_image: Path, rate: str, queue: str) -> None:
    """The first has all packets wait; the second drops those that come together, and they are sent again."""
    with site.cluster.slow_network(2, rate, queue=queue):
        began = time.monotonic()
        done = submit(site, mpi_hello_image)
        print(f"{rate}, {queue}: {time.monotonic() - began:.0f} s")
        print(site.cluster.on(2, ["tc", "-s", "qdisc", "show", "dev", "eth0"]).stdout)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_hundred_good_starts_under_load_are_no_alarm(site: Site, mpi_hello_image: Path) -> None:
    """The preflight alone, in one allocation, beside twice as many busy processes as this machine has processors."""
    done = site.run("job", str(mpi_hello_image), "--nodes", "2", "-o", "job.slurm")
    assert done.returncode == 0, done.stderr
    count = f"for i in $(seq 100); do bash job.preflight.sh {mpi_hello_image}; echo status $?; done"
    allocation = ["salloc", "-Q", "-N", "2", "--ntasks-per-node", "2", "--mem", "0", "bash", "-c", count]
    processors = len(os.sched_getaffinity(0))
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * processors)]
    try:
        began = time.monotonic()
        said = site.cluster.on(0, allocation, env=site.env, cwd=site.work, timeout=3000).stdout
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert said.count("status 0") == 100, said
    assert said.count("preflight: passed: 4 ranks") == 100
    assert not any(word in said for word in ("FAILED", "warning")), said
    REPORTS.append(f"100 good starts over 2 nodes under load: {time.monotonic() - began:.0f} s")


def test_a_node_that_is_lost_in_the_middle_of_a_job_is_said(site: Site, mpi_hello_image: Path) -> None:
    """The last test, since its cluster has a node less. Slurm lets such a job begin anew once there are enough."""
    program = ("--nodes", "2", "--", "sh", "-c", "echo begun; sleep 1000")
    command = site.command("submit", str(mpi_hello_image), *program)
    with subprocess.Popen(command, cwd=site.work, env=site.env, stderr=subprocess.PIPE, text=True) as job:
        assert job.stderr is not None
        until_begun(site)
        site.cluster.kill_slurmd(2)
        said = ""
        while "waits" not in said.partition("runs")[2]:
            line = job.stderr.readline()
            assert line, said
            said += line
        print(said)
        site.cluster.on(0, ["scancel", "--name", "mpi-hello"], env=site.env)
        said += job.communicate(timeout=120)[1]
    assert "was put back into its queue" in said
    assert "waits" in said.partition("was put back")[2]
    assert job.returncode == 10


def until_begun(site: Site) -> None:
    """Wait until the job's program runs."""
    end = time.monotonic() + 120
    while not any("begun" in path.read_text() for path in site.work.glob("*.out")):
        assert time.monotonic() < end
        time.sleep(0.5)
