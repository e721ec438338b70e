"""Jobs of a real Grid Engine, started and followed by ``hpcgen submit``, with the host's MPI in the image's place.

Hydra starts its proxies by ``qrsh -inherit``, which Grid Engine counts as a task of the job. One node: what several
do is not shown here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, HostMpi, Tool, need, script, variables
from mpi_hello import profile
from test_host_mpi import check

STARTER = """\
#!/bin/sh
# What modules do at a site: neither of these is handed on by qsub, not even by qsub -V.
PATH={mpi}/bin:/usr/bin:/usr/sbin:/bin LD_LIBRARY_PATH={mpi}/lib
export PATH LD_LIBRARY_PATH
exec "$SGE_STARTER_SHELL_PATH" "$@"
"""


@pytest.fixture(scope="module")
def grid_engine(testbed_env: dict[str, str], host_mpi: HostMpi) -> Iterator[Tool]:
    """A Grid Engine of one node with 4 slots, whatever the machine has."""
    need("qsub", "qstat", "qacct", path=testbed_env["PATH"])
    folder = Path(tempfile.mkdtemp(prefix="gridengine-", dir=testbed_env["HPCGEN_TESTBED"]))
    batch = Tool({**testbed_env, **variables(script("gridengine-start", folder, "--slots", "4", env=testbed_env))})
    starter = folder / "starter"
    starter.write_text(STARTER.format(mpi=host_mpi.root))
    starter.chmod(0o755)
    batch.run(["qconf", "-mattr", "queue", "starter_method", starter, "general"])
    yield batch
    script("gridengine-stop", folder, env=testbed_env)
    shutil.rmtree(folder, ignore_errors=True)


class Site:
    """A profile of this machine with Grid Engine, and hpcgen called for it."""

    def __init__(self, folder: Path, facts: dict[str, Any], base: BaseImage, host: HostMpi, batch: Tool) -> None:
        scheduler = {"kind": "gridengine", "parallel_environment": "mpi"}
        self.profile = profile(facts, base, host, scheduler=scheduler)
        self.profile["mpi"].update(bootstrap="sge", pmi=["hydra"])
        self.profile["partitions"]["cpu"].update(queues=[{"name": "general"}], slots=4)
        self.sites = folder / "collection" / "site_profiles"
        self.sites.mkdir(parents=True)
        self.work = folder / "work"
        self.work.mkdir()
        self.batch = batch

    def command(self, *words: str) -> list[str]:
        (self.sites / "here.yaml").write_text(json.dumps(self.profile))
        site = ["--site", "here", "--ranks-per-node", "2", "--threads", "1", "--time", "5m"]
        return [sys.executable, "-m", "hpcgen", "--collection", str(self.sites.parent), "submit", *site, *words]

    def submit(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = self.command(*words)
        return subprocess.run(
            command, cwd=self.work, env=dict(self.batch.env), capture_output=True, text=True, timeout=300
        )


@pytest.fixture
def site(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, host_mpi: HostMpi, grid_engine: Tool, tmp_path: Path
) -> Site:
    return Site(tmp_path, machine_facts, plain_base_image, host_mpi, grid_engine)


def test_a_job_is_followed_to_its_end(site: Site, mpi_hello_image: Path) -> None:
    done = site.submit(str(mpi_hello_image))
    assert done.returncode == 0, done.stdout + done.stderr
    check(done.stdout)
    assert "preflight: passed: 2 ranks with " in done.stdout
    assert "succeeded after " in done.stderr
    lines = next(site.work.glob(".hpcgen/jobs/mpi-hello-*/job.sge")).read_text().splitlines()
    asked = [line.removeprefix("#$ ") for line in lines if line.startswith("#$ ")]
    own = "-o .hpcgen/jobs/mpi-hello-1/output"
    assert asked[:5] == ["-N mpi-hello", "-cwd", "-S /bin/bash", own, "-j y"]
    assert asked[5:] == ["-pe mpi 4", "-l h_rt=00:05:00", "-q general"]
    assert "export I_MPI_HYDRA_BOOTSTRAP=sge" in lines
    assert "export I_MPI_JOB_RESPECT_PROCESS_PLACEMENT=off" in lines


def test_a_failed_job_is_reported(site: Site, mpi_hello_image: Path) -> None:
    done = site.submit("--json", str(mpi_hello_image), "--ranks-per-node", "1", "--", "sh", "-c", "echo broken; exit 7")
    assert done.returncode == 10
    result = json.loads(done.stdout)
    assert (result["state"], result["good"], result["exit_status"]) == ("failed", False, 7)
    assert done.stderr.splitlines().count("broken") == 1
    assert [Path(name).name for name in result["output"]] == ["output"]


def test_a_job_that_cannot_begin_is_reported_with_its_reason(site: Site, mpi_hello_image: Path) -> None:
    site.profile["scheduler"]["output"] = "nowhere/mpi-hello.out"
    done = site.submit(str(mpi_hello_image))
    assert done.returncode == 10
    assert "in the state Eqw" in done.stderr
    assert "nowhere/mpi-hello.out" in done.stderr
    job_id = done.stderr.split("job ", 1)[1].split()[0]
    site.batch.run(["qdel", job_id])


def test_what_it_waits_for_is_said_and_a_deleted_job_is_no_success(site: Site, mpi_hello_image: Path) -> None:
    site.profile["partitions"]["cpu"]["slots"] = 5
    waiting = site.submit("--no-follow", str(mpi_hello_image))
    assert waiting.returncode == 0, waiting.stderr
    job_id = waiting.stdout.strip()
    assert "only offers" in site.batch.run(["qstat", "-j", job_id]).stdout
    site.batch.run(["qdel", job_id])
    site.profile["partitions"]["cpu"]["slots"] = 4
    follower = subprocess.Popen(
        site.command(str(mpi_hello_image), "--", "sleep", "100"),
        cwd=site.work,
        env=dict(site.batch.env),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert follower.stderr is not None
    said = follower.stderr.readline()
    while not said.endswith(" runs\n"):
        line = follower.stderr.readline()
        assert line, said
        said += line
    site.batch.run(["qdel", said.split("job ", 1)[1].split()[0]])
    said = follower.stderr.read()
    assert follower.wait(60) == 10
    assert "in the state failed, with status 137 (the signal SIGKILL)" in said
