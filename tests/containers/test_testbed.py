"""The test bed itself: each tool answers, and does the least it is here for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Buildah, ChImage, HostMpi, Sid, Slurm
from leftovers import Session

DOCKERFILE = """\
FROM debian:12 AS builder
RUN mkdir -p /opt/block && echo built > /opt/block/file
FROM debian:12
COPY --from=builder /opt/block /opt/block
ENV BLOCK=/opt/block
"""


@pytest.fixture
def dockerfile(tmp_path: Path) -> Path:
    """A two-stage recipe that needs no network."""
    path = tmp_path / "Dockerfile"
    path.write_text(DOCKERFILE)
    return path


SHOW = ["sh", "-c", 'cat "$BLOCK/file" && cat /etc/debian_version']


def test_machine_facts_are_complete(machine_facts: dict[str, Any]) -> None:
    assert machine_facts["debian"]["mirror"]
    assert machine_facts["cpu"]["target"]
    assert machine_facts["cores"] >= 1
    assert all(Path(p).is_file() for p in machine_facts["ca_certificates"])


@pytest.mark.usefixtures("base_image")
def test_ch_image_builds_and_runs(ch_image: ChImage, dockerfile: Path) -> None:
    ch_image.build("testbed", dockerfile)
    lines = ch_image.exec("testbed", SHOW).stdout.split()
    assert lines[0] == "built"
    assert lines[1].startswith("12.")


@pytest.mark.usefixtures("base_image")
def test_buildah_builds_and_runs(buildah: Buildah, dockerfile: Path) -> None:
    buildah.build("testbed", dockerfile)
    lines = buildah.exec("localhost/testbed", SHOW).stdout.split()
    assert lines[0] == "built"
    assert lines[1].startswith("12.")


@pytest.mark.usefixtures("base_image")
def test_podman_runs(buildah: Buildah) -> None:
    done = buildah.run(["podman", "run", "--rm", "localhost/debian:12", "cat", "/etc/os-release"])
    assert "bookworm" in done.stdout


def test_apptainer_builds_and_runs(sid: Sid, base_image: BaseImage, tmp_path: Path) -> None:
    kit = tmp_path / "kit"
    kit.mkdir()
    (kit / "Singularity.def").write_text(
        "Bootstrap: oci-archive\n"
        "From: /base/debian12.tar\n"
        "%post\n"
        "  mkdir -p /opt/block && echo built > /opt/block/file\n"
        "%environment\n"
        "  export BLOCK=/opt/block\n"
    )
    sid.folder(kit)
    binds = [(base_image.archive.parent, "/base"), (kit, "/kit")]
    sid.run(
        ["apptainer", "build", "--fakeroot", "--sandbox", "image", "Singularity.def"],
        binds=binds,
        cwd="/kit",
    )
    done = sid.run(["apptainer", "exec", "image", *SHOW], binds=binds, cwd="/kit")
    assert "built" in done.stdout


@pytest.mark.usefixtures("base_image")
def test_clean_keeps_a_base_that_has_a_second_name(
    buildah: Buildah, testbed_session: Session, dockerfile: Path
) -> None:
    """As a build from a bundle leaves it: removed as that image, it would go with its own name."""
    buildah.build("testbed", dockerfile)
    buildah.run(["podman", "tag", "localhost/debian:12", "localhost/hpcgen/second:1"])
    testbed_session.clean("--images")
    buildah.run(["podman", "image", "exists", "localhost/debian:12"])


@pytest.mark.parametrize(
    ("tool", "version"),
    [("apptainer", "1.4"), ("buildah", "1.4"), ("ch-image", "0.4")],
)
def test_sid_has_the_newer_tools(sid: Sid, tool: str, version: str) -> None:
    assert version in sid.run([tool, "--version"]).stdout


def test_sid_user_is_not_root_and_host_variables_stay_out(sid: Sid) -> None:
    done = sid.run(["sh", "-c", "id -u; echo ${HPCGEN_TESTBED-none} $GIVEN"], env={"GIVEN": "yes"})
    assert done.stdout.split() == ["1001", "none", "yes"]


def test_slurm_runs_a_job(slurm_cluster: Callable[..., Slurm], tmp_path: Path) -> None:
    slurm = slurm_cluster("general", "fat")
    job = tmp_path / "job.slurm"
    job.write_text(
        "#!/bin/bash\n"
        "#SBATCH -J test\n"
        "#SBATCH -o ./out\n"
        "#SBATCH -D ./\n"
        "#SBATCH --partition=fat\n"
        "#SBATCH --nodes=1\n"
        "#SBATCH --ntasks-per-node=1\n"
        "#SBATCH --time=00:01:00\n"
        'srun sh -c "echo task $SLURM_PROCID in $SLURM_JOB_PARTITION"\n'
    )
    assert "fat" in slurm.test_only(job).stdout
    slurm.submit(job)
    assert (tmp_path / "out").read_text().strip() == "task 0 in fat"


def test_host_mpi_starts_two_ranks(host_mpi: HostMpi, tmp_path: Path) -> None:
    program = tmp_path / "mpi_rank"
    host_mpi.run([host_mpi.root / "bin/mpicc", "-o", program, Path(__file__).with_name("mpi_rank.c")])
    done = host_mpi.mpiexec(2, [program], env={"MPI_EXPECTED_SIZE": "2"})
    assert done.stdout.count(f"file {host_mpi.root}/lib/libmpi.so.12") == 2
    assert "rank 1 of 2" in done.stdout
