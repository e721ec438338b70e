"""Jobs over several virtual nodes by the real Slurm: hpcgen submits, the preflight looks at every node, ranks meet."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest
from container_tools import script
from mpi_hello import HOST_ROOT
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

Site = SlurmSite[VirtualCluster]
NODES = 2


def submit(site: Site, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return site.run("submit", str(image), "--nodes", "2", *words)


def check_ranks(output: str) -> None:
    """Two ranks of one job on each node, all with the host's MPI."""
    ranks = sorted(line for line in output.splitlines() if " of 4 on " in line)
    assert ranks == ["rank 0 of 4 on n1", "rank 1 of 4 on n1", "rank 2 of 4 on n2", "rank 3 of 4 on n2"], output
    assert all(f"rank {rank} maps /opt/host-mpi/lib/libmpi.so.12" in output for rank in range(4)), output


@pytest.mark.parametrize(
    ("launcher", "more"),
    [("mpiexec", {}), ("srun", {"pmi": ["pmi2"]})],
)
def test_ranks_of_two_nodes_meet(site: Site, mpi_hello_image: Path, launcher: str, more: dict[str, Any]) -> None:
    site.profile["mpi"].update(launcher=launcher, **more)
    site.write()
    done = submit(site, mpi_hello_image)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "preflight: passed: 4 ranks with /opt/host-mpi/lib/libmpi.so.12 over tcp" in done.stdout
    check_ranks(done.stdout)


def test_an_mpich_is_the_hosts_mpi(site: Site, mpi_hello_image: Path) -> None:
    """Its own Hydra starts the ranks, and its library takes the place of the image's Intel MPI."""
    root = Path(script("make-host-mpi", "--mpich", env=site.env).strip())
    # Beside it its own libfabric, which would otherwise be the image's, of Intel MPI.
    libraries = [f"{HOST_ROOT}/lib", f"{HOST_ROOT}/lib/mpich"]
    site.profile["mpi"].update(flavour="mpich", version="5.0.2", libraries=libraries, environment={})
    site.profile["mpi"]["binds"][0]["source"] = str(root)
    site.write()
    site.env["PATH"] = f"{root / 'bin'}{os.pathsep}{site.env['PATH']}"
    done = submit(site, mpi_hello_image)
    assert done.returncode == 0, done.stdout + done.stderr
    check_ranks(done.stdout)
    assert re.search(r"^library MPICH Version:\s+5\.0\.2$", done.stdout, re.MULTILINE), done.stdout


def test_ranks_that_srun_leaves_alone_are_refused(site: Site, mpi_hello_image: Path) -> None:
    """Without a PMI each of them is a job of its own, with the number 0."""
    site.profile["mpi"].update(launcher="srun", pmi=[])
    del site.profile["mpi"]["bootstrap"]
    site.write()
    done = submit(site, mpi_hello_image)
    assert done.returncode == 10, done.stdout + done.stderr
    assert "preflight: FAILED: ranks: expected one job of 4 ranks; seen: 4 ranks in jobs of 1;" in done.stdout
    assert "rank 0 of 1" not in done.stdout


def test_what_the_profile_sets_for_mpi_reaches_the_launcher(site: Site, mpi_hello_image: Path) -> None:
    """Intel MPI's binds each rank to processors of its own, if it is not told to let them be."""
    program = ("--", "grep", "Cpus_allowed_list", "/proc/self/status")
    free = submit(site, mpi_hello_image, *program).stdout
    site.profile["mpi"]["environment"] = {}
    site.write()
    bound = submit(site, mpi_hello_image, *program).stdout
    (every,) = re.findall(r"^Cpus_allowed_list:.*$", Path("/proc/self/status").read_text(), re.MULTILINE)
    assert free.splitlines().count(every) == 4, free
    assert bound.count("Cpus_allowed_list:") == 4 and every not in bound.splitlines(), bound


def called(site: Site, image: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """``hpcgen test``, which has no time limit to ask for, behind the words of the login node."""
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(site.collection), "test", str(image)]
    layout = ["--site", "here", "--nodes", "2", "--ranks-per-node", "2", "--threads", "1", "--json"]
    command = [*site.cluster.prefix, *words, *hpcgen, *layout]
    return subprocess.run(command, cwd=site.work, env=site.env, capture_output=True, text=True, timeout=300)


def test_the_contract_is_tried_over_two_nodes(site: Site, mpi_hello_image: Path) -> None:
    """In an allocation; outside of one it is said how to get it."""
    asked = ("salloc", "--nodes=2", "--ntasks-per-node=2", "--partition=nodes", "--time=5")
    done = called(site, mpi_hello_image, *asked)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {each["name"]: each for each in json.loads(done.stdout)["results"]}
    assert (results["ranks"]["reason"], results["nodes"]["reason"]) == ("4 of 4", "n1, n2")
    assert results["one MPI library"]["reason"] == "the same for all 4"
    refused = called(site, mpi_hello_image)
    assert refused.returncode == 6
    assert "hpcgen test inside: salloc " in refused.stderr and "--nodes=2" in refused.stderr


class Fault(Protocol):
    """What is wrong on one node while a job is started."""

    def __call__(self, site: Site, image: Path) -> AbstractContextManager[None]: ...


def without_image(site: Site, image: Path) -> AbstractContextManager[None]:
    """The file system with the image is not mounted: its folder is empty."""
    return site.cluster.hidden(2, image.parent)


def without_mpi(site: Site, image: Path) -> AbstractContextManager[None]:
    """The file system with the host's MPI, its launcher and its libraries, is not mounted."""
    return site.cluster.hidden(2, site.host.root)


def with_older_cpu(site: Site, image: Path) -> AbstractContextManager[None]:
    return site.cluster.older_cpu(2)


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (without_image, "FAILED: image on n2: expected "),
        (without_mpi, "FAILED: host MPI on n2: expected libmpi.so.12; seen: none in "),
        (with_older_cpu, "FAILED: CPU on n2: expected "),
    ],
)
def test_a_node_that_lacks_something_is_named(site: Site, mpi_hello_image: Path, fault: Fault, told: str) -> None:
    with fault(site, mpi_hello_image):
        done = submit(site, mpi_hello_image)
    assert done.returncode == 10
    assert told in done.stdout, done.stdout
    assert "rank 0 of 4" not in done.stdout
    assert submit(site, mpi_hello_image).returncode == 0
