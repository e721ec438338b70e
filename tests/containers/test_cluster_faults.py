"""What else goes wrong on one of several virtual nodes, and takes its time: other releases, lost and slow nodes."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import pytest
from container_tools import REPORTS, run, script
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


class Fault(Protocol):
    """What is wrong on n2 while a job is started."""

    def __call__(self, site: Site, image: Path, spare: Path) -> AbstractContextManager[None]: ...


def other_image(site: Site, image: Path, spare: Path) -> AbstractContextManager[None]:
    """It has the folders that ch-run wants, and nothing else."""
    for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "usr/bin"):
        (spare / folder).mkdir(parents=True)
    return site.cluster.instead(2, image, spare)


def damaged_mpi(site: Site, image: Path, spare: Path) -> AbstractContextManager[None]:
    """A copy that was not finished."""
    library = (site.host.root / "lib/libmpi.so.12").resolve()
    part = spare / library.name
    part.write_bytes(library.read_bytes()[: library.stat().st_size // 2])
    return site.cluster.instead(2, library, part)


def little_shared_memory(site: Site, image: Path, spare: Path) -> AbstractContextManager[None]:
    return site.cluster.full(2, Path("/dev/shm"), "64k")


def engine_without_right(site: Site, image: Path, spare: Path) -> AbstractContextManager[None]:
    program = Path(shutil.which("ch-run", path=site.env["PATH"]) or "")
    shutil.copy(program, spare)
    (spare / "ch-run").chmod(0o644)
    return site.cluster.instead(2, program, spare / "ch-run")


def unknown_neighbour(site: Site, image: Path, spare: Path) -> AbstractContextManager[None]:
    known = (site.cluster.folder / "hosts").read_text().splitlines()
    (spare / "hosts").write_text("".join(f"{line}\n" for line in known if not line.endswith(" n1")))
    return site.cluster.instead(2, Path("/etc/hosts"), spare / "hosts")


@contextlib.contextmanager
def other_provider(site: Site, image: Path, spare: Path) -> Iterator[None]:
    """Of the user, who had it for another machine."""
    site.profile["partitions"]["cpu"]["fabric"] = {"kind": "ethernet", "provider": "tcp"}
    site.write()
    site.env["FI_PROVIDER"] = "psm3"
    yield


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (
            other_image,
            ["FAILED: image on n2: expected the same as on n1; seen: another one; copy the image there again"],
        ),
        (damaged_mpi, ["libmpi.so.12 on n2: expected the same as on n1", "FAILED: a rank by itself on n2: "]),
        (little_shared_memory, ["FAILED: /dev/shm on n2: expected 2048 kB for 2 ranks; seen: 64 kB free; remove what"]),
        (
            engine_without_right,
            ["FAILED: engine on n2: expected ch-run that can be started; seen: ", "Permission denied"],
        ),
        (unknown_neighbour, ["FAILED: host name on n2: expected an address of n1; seen: none; have /etc/hosts or"]),
        (
            other_provider,
            ["FAILED: FI_PROVIDER on n", ": expected tcp for ethernet; seen: psm3, from the environment; unset it"],
        ),
    ],
)
def test_what_is_wrong_on_one_node_is_said_of_it_at_once(
    site: Site, mpi_hello_image: Path, tmp_path: Path, fault: Fault, told: list[str]
) -> None:
    spare = tmp_path / "spare"
    spare.mkdir()
    began = time.monotonic()
    with fault(site, mpi_hello_image, spare):
        done = submit(site, mpi_hello_image)
    assert done.returncode == 10, done.stdout + done.stderr
    assert all(text in done.stdout for text in told), done.stdout
    assert "by itself on n1" not in done.stdout
    # Submission and the wait in the queue included.
    assert time.monotonic() - began < 30
    REPORTS.append(f"{fault.__name__}: {time.monotonic() - began:.0f} s")


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


FIRST_STARTS = """\
on_each_node() { srun --overlap --nodes=2 --ntasks=2 --ntasks-per-node=1 --mpi=none "$@"; }
for round in $(seq 60); do
    export new=$PWD/var-tmp/$round
    on_each_node sh -c 'mkdir -p "$new/$(uname -n)" && mount --bind "$new/$(uname -n)" /var/tmp'
    HPCGEN_PREFLIGHT=0 bash job.slurm sh -c 'echo inside' || true
    on_each_node umount --lazy /var/tmp
done
"""


def test_ranks_do_not_race_for_the_folder_of_the_mount(site: Site, mpi_hello_image: Path, tmp_path: Path) -> None:
    """On nodes where ch-run never mounted; without the folder made before, one of ten such starts fails.

    The folder lies on a disk: in memory it is made faster than a race takes.
    """
    squashfs = tmp_path / "mpi-hello.sqfs"
    run(["ch-convert", "-i", "dir", "-o", "squash", mpi_hello_image, squashfs], env=site.env)
    done = site.run("job", str(squashfs), "--nodes", "2", "--ranks-per-node", "2", "-o", "job.slurm")
    assert done.returncode == 0, done.stderr
    job = site.work / "job.slurm"
    job.write_text(job.read_text().replace("-n 4 -ppn 2", "-n 16 -ppn 8"))
    shutil.copy(job, site.cluster.folder)
    allocation = ["salloc", "-Q", "-N", "2", "--ntasks-per-node", "2", "--mem", "0", "bash", "-c", FIRST_STARTS]
    # More ranks than Slurm knows of.
    env = {**site.env, "I_MPI_JOB_RESPECT_PROCESS_PLACEMENT": "off"}
    began = time.monotonic()
    said = site.cluster.on(0, allocation, env=env, timeout=1500).stdout
    assert "File exists" not in said, said
    assert said.splitlines().count("inside") == 60 * 16, said
    REPORTS.append(f"60 first starts of 2 nodes x 8 ranks: {time.monotonic() - began:.0f} s")


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
    assert "was requeued" in said
    assert "waits" in said.partition("was put back")[2]
    assert job.returncode == 10


def until_begun(site: Site) -> None:
    """Wait until the job's program runs."""
    end = time.monotonic() + 120
    while not any("begun" in path.read_text() for path in site.work.glob("*.out")):
        assert time.monotonic() < end
        time.sleep(0.5)
