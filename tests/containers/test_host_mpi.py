"""The reason for all of this: the host's MPI replaces the image's own, and the job is one job."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, HostMpi, Sid, Slurm
from mpi_hello import HOST_ROOT, OTHER_MPI, profile, render
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile


def check(output: str) -> None:
    assert output.count(" of 2 on ") == 2, output
    mapped = [line for line in output.splitlines() if " maps " in line and "/libmpi.so" in line]
    assert len(mapped) >= 2, output
    assert all(f"{HOST_ROOT}/lib/" in line for line in mapped), output


@pytest.fixture
def slurm_kit(
    mpi_hello_image: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage, host_mpi: HostMpi, tmp_path: Path
) -> Path:
    """The kit for a site with Slurm and srun, with the image where its job script looks for it."""
    scheduler = {"kind": "slurm", "directives": ["--export=NONE", "--get-user-env"], "output": "./%x.out"}
    site = profile(machine_facts, plain_base_image, host_mpi, scheduler=scheduler)
    site["mpi"].update(launcher="srun", pmi=["pmi2"])
    site["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    kit = render(site, tmp_path)
    # --export=NONE leaves the job without the caller's HPCGEN_IMAGE.
    (kit / "mpi-hello").symlink_to(mpi_hello_image)
    return kit


def test_slurm_job_in_charliecloud_maps_the_hosts_library(slurm_kit: Path, slurm_cluster: Callable[..., Slurm]) -> None:
    slurm_cluster("general").submit(slurm_kit / "job.slurm")
    output = (slurm_kit / "mpi-hello.out").read_text()
    check(output)
    assert f"preflight: passed: 2 ranks with {HOST_ROOT}/lib/libmpi.so" in output


def test_wrong_pmi_is_noticed(slurm_kit: Path, slurm_cluster: Callable[..., Slurm]) -> None:
    """srun without PMI starts two jobs of one rank, each of which would end well: neither may be let through."""
    job = slurm_kit / "job.slurm"
    text = job.read_text()
    assert "--mpi=pmi2" in text
    job.write_text(text.replace("--mpi=pmi2", "--mpi=none"))
    cluster, output = slurm_cluster("general"), slurm_kit / "mpi-hello.out"
    done = cluster.run(["sbatch", "-W", job, "/usr/bin/touch", "started"], cwd=slurm_kit, check=False)
    assert done.returncode == 78
    assert "preflight: FAILED: ranks: expected one job of 2 ranks; seen: 2 ranks in jobs of 1;" in output.read_text()
    assert not (slurm_kit / "started").exists()
    # Without the preflight the rank test itself has to fail.
    done = cluster.run(["sbatch", "-W", "--export=HPCGEN_PREFLIGHT=0", job], cwd=slurm_kit, check=False)
    assert done.returncode == 3
    assert "0 of 1" in output.read_text()


def test_where_a_site_names_no_mpi_the_images_own_is_used(
    mpi_hello_image: Path, machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    own = ["--set", "mpi.provider=intel_mpi", "--set", "intel_mpi.version=2021.17.2"]
    kit = render(site_profile(machine_facts, plain_base_image), tmp_path, *own)
    # Whatever a host's modules say of other MPIs: without the launch line that keeps it out, no rank starts.
    env = {**OTHER_MPI, "HPCGEN_IMAGE": str(mpi_hello_image)}
    bare = ["ch-run", "--set-env", mpi_hello_image, "--", "mpiexec", "-n", "2", "/opt/rank_test/bin/rank_test"]
    assert ch_image.run(bare, env=env, cwd=tmp_path, check=False).returncode != 0
    done = ch_image.run(["bash", kit / "run.sh"], env=env, cwd=tmp_path)
    assert done.stdout.count(" of 2 on ") == 2, done.stdout
    assert HOST_ROOT not in done.stdout and "/opt/intel_mpi/lib/libmpi.so" in done.stdout


WHERE = 'echo "local rank $SLURM_LOCALID: GPU $CUDA_VISIBLE_DEVICES, CPUs $(grep ^Cpus_allowed_list: /proc/$$/status)"'


def test_each_rank_has_its_own_gpu_and_the_cpus_next_to_it(
    mpi_hello_image: Path,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    slurm_cluster: Callable[..., Slurm],
    tmp_path: Path,
) -> None:
    """GPUs as a profile has them, in reverse order of the CPUs; nothing computes on them."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    site = profile(machine_facts, plain_base_image, host_mpi, scheduler={"kind": "slurm", "gpu_request": "none"})
    site["mpi"].update(launcher="srun", pmi=["pmi2"])
    site["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    site["partitions"]["cpu"]["gpu"] = {
        "vendor": "nvidia",
        "model": "A100",
        "count": 2,
        "cpus": [str(second), str(first)],
    }
    kit = render(site, tmp_path, "--gpus", "2", "--ranks-per-node", "2", "--threads", "1")
    (kit / "mpi-hello").symlink_to(mpi_hello_image)
    cluster, job = slurm_cluster("general"), kit / "job.slurm"
    done = cluster.run(["sbatch", "-W", "-o", "job.out", job, "/bin/sh", "-c", WHERE], cwd=kit, check=False)
    output = (kit / "job.out").read_text()
    assert done.returncode == 0, output
    assert "preflight: passed: 2 ranks with" in output
    assert f"local rank 0: GPU 0, CPUs Cpus_allowed_list:\t{second}\n" in output
    assert f"local rank 1: GPU 1, CPUs Cpus_allowed_list:\t{first}\n" in output
    # The CPUs of another machine: told before the program starts, which goes on where it is.
    job.write_text(job.read_text().replace(f"nth=2 cpus={first} ;;", "nth=2 cpus=60000 ;;"))
    done = cluster.run(["sbatch", "-W", "-o", "job.out", job, "/bin/sh", "-c", WHERE], cwd=kit, check=False)
    output = (kit / "job.out").read_text()
    assert done.returncode == 0, output
    assert "preflight: warning: binding: expected each rank on the CPUs next to its GPU; seen: rank 1 of " in output
    assert "was to keep to CPUs 60000, and has " in output


@pytest.mark.slow
def test_new_charliecloud_builds_the_same_script_and_runs(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, sid: Sid, tmp_path: Path
) -> None:
    """The script that ch-image 0.31 builds above, built and run by Charliecloud 0.45, with the image's own MPI."""
    site = site_profile(machine_facts, plain_base_image)
    kit = sid.folder(render(site, tmp_path, "--set", "mpi.provider=intel_mpi", "--set", "intel_mpi.version=2021.17.2"))
    binds = [(kit, "/kit"), (plain_base_image.root_tar.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    storage = {"CH_IMAGE_STORAGE": "/kit/storage"}
    base = f"{BASE_IN_SID}/{plain_base_image.root_tar.name}"
    words = ["ch-image", "--no-cache", "import", base, plain_base_image.ch_image]
    sid.run(words, binds=binds, cwd="/kit", env=storage)
    options = {**storage, "HPCGEN_BUILD_OPTIONS": "--no-cache"}
    sid.run(["bash", "build.sh", "mpi-hello"], binds=binds, cwd="/kit", env=options)
    done = sid.run(["bash", "run.sh"], binds=binds, cwd="/kit")
    assert done.stdout.count(" of 2 on ") == 2
    assert "/opt/intel_mpi/lib/libmpi.so" in done.stdout
