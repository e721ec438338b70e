"""Shifter: its start line, what it refuses, and the directives that it offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import InputError, PolicyError
from tests.helpers.site_engines import AMD, NVIDIA, SITE, kit, run_job

MPI = {key: value for key, value in SITE["mpi"].items() if key != "binds"}
MPI["libraries"] = ["/opt/udiImage/modules/mpich"]
IMAGE = "registry.example.org/hpc/mpi-hello:1"


def job(folder: Path, **more: Any) -> str:
    return kit(folder, "shifter", **{"mpi": MPI, **more}).files["job.slurm"].text


def words(folder: Path, script: str, image: str = IMAGE) -> list[str]:
    done = run_job(folder, script, shown="*", programs={"shifter": ""}, image=image)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_each_rank_is_started_with_the_modules_that_the_job_needs(tmp_path: Path) -> None:
    found = words(tmp_path, job(tmp_path, gpu=NVIDIA))
    start = found.index("shifter")
    assert found[start : start + 3] == ["shifter", f"--image={IMAGE}", "--module=mpich,gpu"]
    # What is set inside comes after modules, so that their folder has to be named in it.
    assert found[start + 3] == "/usr/bin/env"
    path = next(word for word in found if word.startswith("LD_LIBRARY_PATH="))
    assert path.startswith("LD_LIBRARY_PATH=/opt/udiImage/modules/mpich:/opt/mpich/lib")


def test_the_folder_and_the_file_systems_are_those_of_the_site(tmp_path: Path) -> None:
    """A volume of our own would have each rank mount the image anew."""
    (tmp_path / "work").mkdir()
    here = {"work": {"kind": "nfs", "path": f"{tmp_path}/work", "bind": True}}
    script = job(tmp_path, file_systems=here)
    assert "--volume" not in script and "/mnt/0" not in script


def test_a_job_without_mpi_leaves_out_the_modules_that_the_site_has_by_default(tmp_path: Path) -> None:
    script = kit(tmp_path, "shifter", "onnxruntime", mpi=MPI).files["job.slurm"].text
    assert "    --module=none\n" in script


def test_directives_that_set_the_image_up_once_are_offered(tmp_path: Path) -> None:
    script = job(tmp_path, gpu=NVIDIA)
    assert "#   #SBATCH --image=REGISTRY/mpi-hello:site\n#   #SBATCH --module=mpich,gpu\n" in script
    assert not [line for line in script.splitlines() if line.startswith("#SBATCH --image")]
    assert "#SBATCH --image" not in kit(tmp_path, "podman-hpc").files["job.slurm"].text


@pytest.mark.parametrize("image", ["/images/mpi-hello.sqsh", "mpi-hello.sqsh"])
def test_an_image_file_is_refused_with_what_to_do(tmp_path: Path, image: str) -> None:
    done = run_job(tmp_path, job(tmp_path), programs={"shifter": ""}, image=image)
    assert done.returncode == 66
    assert "shifter starts no files: push it to a registry, run shifterimg pull REGISTRY/NAME:TAG" in done.stderr


def test_binds_are_volumes_where_shifter_allows_them(tmp_path: Path) -> None:
    def mpi(source: str, target: str) -> dict[str, Any]:
        return {**MPI, "binds": [{"source": source, "target": target}]}

    script = job(tmp_path, mpi=mpi("/opt/cray", "/host/cray"))
    assert "    --volume=/opt/cray:/host/cray\n" in script
    assert "#   #SBATCH --volume=/opt/cray:/host/cray\n" in script
    for target in ("/var/run/host", "/opt/udiImage/x", "/etc/host"):
        with pytest.raises(InputError, match="shows nothing of the host at"):
            job(tmp_path, mpi=mpi("/var/run/host", target))
    with pytest.raises(InputError, match="cannot be bound"):
        job(tmp_path, mpi=mpi("/opt/a:b", "/host/mpich"))


def test_gpus_of_others_than_nvidia_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no known module for amd GPUs"):
        job(tmp_path, gpu=AMD)


def test_the_build_script_says_how_an_image_gets_there(tmp_path: Path) -> None:
    script = kit(tmp_path, "shifter", mpi=MPI).files["build.sh"].text
    assert "engine=${HPCGEN_ENGINE:-podman}" in script
    assert "shifterimg pull REGISTRY/NAME:TAG" in script
