"""A job script for pyxis with a real srun: a stand-in for the plugin takes its options and says which they were."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import HERE, BaseImage, HostMpi, Slurm
from mpi_hello import HOST_ROOT, profile, render


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in, compiled."""
    made = tmp_path_factory.mktemp("plugin") / "pyxis_options.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, HERE / "pyxis_options.c"], check=True)
    return made


def test_srun_takes_the_options_of_pyxis(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    slurm_cluster: Callable[..., Slurm],
    plugin: Path,
    tmp_path: Path,
) -> None:
    slurm = slurm_cluster("general", plugin=plugin)
    site = profile(machine_facts, plain_base_image, host_mpi, scheduler={"kind": "slurm", "output": "job.out"})
    site["containers"] = {"preferred": "pyxis", "engines": {"pyxis": {}}}
    site["mpi"].update(launcher="srun", pmi=["pmi2"])
    kit = render(site, tmp_path)
    (kit / "mpi-hello.sqsh").touch()
    slurm.run(["sbatch", "-W", "job.slurm", "/bin/pwd"], cwd=kit, env={"HPCGEN_PREFLIGHT": "0"})
    output = (kit / "job.out").read_text()
    assert output.splitlines()[-2:] == [str(kit)] * 2
    for line in (
        f"container-image {kit}/mpi-hello.sqsh",
        f"container-mounts {kit}:/mnt/0",
        f"container-mounts {host_mpi.root}:{HOST_ROOT}",
        "container-workdir /mnt/0",
    ):
        assert f"pyxis: {line}\n" in output
