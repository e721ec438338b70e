"""Jobs of a real Slurm, started and followed by ``hpcgen submit``, with the host's MPI in the image's place.

Charliecloud runs in the job itself. Apptainer lies in the sid root, so a program of its name on ``PATH`` enters that:
image, host MPI and job folder are bound, and the variables of the launcher's PMI handed on. The image's own launcher
and Docker are not of use with a batch system. A time limit is not tested: Slurm's are of a minute at least.
"""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import TESTBED, BaseImage, HostMpi, Sid, Slurm
from leftovers import kept_while_used
from mpi_hello import profile, render
from slurm_site import SlurmSite
from test_host_mpi import check
from test_rendered_kits import BASE_IN_SID, CERTIFICATES

Site = SlurmSite[Slurm]
WRAPPER = """\
#!/bin/bash
# apptainer of the sid root, with what a job has: its folder, the image, the host's MPI, the launcher's variables.
set -euo pipefail
options=()
while IFS= read -r name; do
    options+=(-e "$name=${{!name}}")
done < <(compgen -e | grep -E '^(PMI|I_MPI|HYDRA|FI_|OMP|HPCGEN_RANKS|SLURM_)')
exec {enter} "${{options[@]}}" -b "$PWD:$PWD" -b {images}:{images} -b {mpi}:{here} -C "$PWD" -- apptainer "$@"
"""


def test_charliecloud_job_is_followed_to_its_end(site: Site, mpi_hello_image: Path) -> None:
    done = site.run("submit", str(mpi_hello_image))
    assert done.returncode == 0, done.stderr
    check(done.stdout)
    assert "succeeded" in done.stderr
    (output,) = site.work.glob("mpi-hello.*.out")
    assert done.stdout == output.read_text()


def test_srun_with_a_clean_environment(site: Site, mpi_hello_image: Path) -> None:
    """``--export=NONE`` takes every variable from the job: the image has to be written in the script."""
    site.profile["scheduler"]["directives"] = ["--export=NONE", "--get-user-env"]
    del site.profile["mpi"]["bootstrap"]
    site.profile["mpi"].update(launcher="srun", pmi=["pmi2"])
    site.write()
    done = site.run("submit", "--json", str(mpi_hello_image))
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["state"], result["exit_status"]) == ("COMPLETED", 0)
    check(Path(result["output"][0]).read_text())


def test_run_in_an_allocation_and_outside(site: Site, mpi_hello_image: Path) -> None:
    outside = site.run("run", str(mpi_hello_image))
    assert "not in an allocation of here" in outside.stderr
    check(outside.stdout)
    inside = site.cluster.run(["salloc", "-Q", "-n", "2", *site.command("run", str(mpi_hello_image))], env=site.env)
    assert "not in an allocation" not in inside.stdout
    check(inside.stdout)


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("echo working; sleep 1; echo broken >&2; exit 7", ["the state FAILED", "with status 7"]),
        ("echo working; kill -SEGV $$", ["in the state FAILED"]),
    ],
)
def test_a_failed_job_is_reported_and_its_output_shown_once(
    site: Site, mpi_hello_image: Path, program: str, says: list[str]
) -> None:
    done = site.run("submit", str(mpi_hello_image), "--ranks-per-node", "1", "--", "sh", "-c", program)
    assert done.returncode == 10
    assert done.stdout.startswith("preflight: passed: 1 rank with ")
    assert "\nworking\n" in done.stdout
    assert "broken" not in program or "broken" in done.stdout
    assert "working" not in done.stderr and "broken" not in done.stderr
    assert all(text in done.stderr for text in says), done.stderr


def test_a_cancelled_job_is_reported_and_ctrl_c_cancels_none(site: Site, mpi_hello_image: Path) -> None:
    command = site.command("submit", str(mpi_hello_image), "--", "sleep", "100")
    follower = subprocess.Popen(command, cwd=site.work, env=site.env, stderr=subprocess.PIPE, text=True)
    assert follower.stderr is not None
    said = follower.stderr.readline()
    while " runs on " not in said:
        line = follower.stderr.readline()
        assert line, said
        said += line
    job_id = said.split("job ", 1)[1].split()[0]
    follower.send_signal(signal.SIGINT)
    said += follower.stderr.read()
    assert follower.wait(30) == 130
    assert f"job {job_id} continues" in said
    assert site.cluster.run(["squeue", "-h", "-o", "%T", "-j", job_id]).stdout == "RUNNING\n"
    again = subprocess.Popen(
        site.command("submit", str(mpi_hello_image), "--", "sleep", "100"),
        cwd=site.work,
        env=site.env,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert again.stderr is not None
    waiting = again.stderr.readline()
    while " waits" not in waiting:
        waiting += again.stderr.readline()
    other = waiting.split("job ", 1)[1].split()[0]
    site.cluster.run(["scancel", other, job_id])
    said = again.stderr.read()
    assert again.wait(60) == 10
    assert "in the state CANCELLED" in said


@pytest.fixture(scope="module")
def sandbox(
    sid: Sid,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """mpi-hello, built by Apptainer as a folder."""
    with kept_while_used(request, tmp_path_factory, "sandbox") as folder:
        site = profile(machine_facts, plain_base_image, host_mpi)
        kit = sid.folder(render(site, folder, "--format", "singularity"))
        binds = [(kit, "/kit"), (plain_base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
        options = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
        sid.run(["bash", "build.sh", "mpi-hello"], binds=binds, cwd="/kit", env=options)
        yield kit / "mpi-hello"


@pytest.mark.slow
def test_apptainer_job_is_followed_to_its_end(site: Site, sandbox: Path, host_mpi: HostMpi, tmp_path: Path) -> None:
    # A folder that both machines have by one name, as the preflight and Apptainer want it.
    here = tmp_path / "impi"
    here.symlink_to(host_mpi.root)
    names = {"enter": TESTBED / "enter-sid", "images": sandbox.parent, "mpi": host_mpi.root, "here": here}
    wrapper = tmp_path / "bin" / "apptainer"
    wrapper.parent.mkdir()
    wrapper.write_text(WRAPPER.format(**names))
    wrapper.chmod(0o755)
    site.work.chmod(0o755)
    site.profile["containers"]["preferred"] = "apptainer"
    site.profile["mpi"]["binds"] = [{"source": str(here), "target": site.profile["mpi"]["root"]}]
    site.write()
    done = site.run("submit", str(sandbox))
    assert done.returncode == 0, done.stderr
    check(done.stdout)
    assert "preflight: passed: 2 ranks with " in done.stdout
    assert "apptainer exec" in (site.work / ".hpcgen/jobs/mpi-hello-1/job.slurm").read_text()
    # With a PMI that does not fit, the preflight stops it.
    site.profile["mpi"].update(launcher="srun", pmi=[])
    del site.profile["mpi"]["bootstrap"]
    site.write()
    done = site.run("submit", str(sandbox), "--", "/usr/bin/touch", "started")
    assert done.returncode == 10
    assert "the preflight stopped it" in done.stderr
    assert "preflight: FAILED: ranks: expected one job of 2 ranks; seen: 2 ranks in jobs of 1;" in done.stdout
    assert not (site.work / "started").exists()
