"""Engines that only some sites have: podman-hpc, pyxis and CSCS's Container Engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import PolicyError
from tests.helpers.site_engines import AMD, INTEL, NVIDIA, SITE, kit, run_job


def test_podman_hpc_is_started_by_srun_with_its_modules(tmp_path: Path) -> None:
    made = kit(tmp_path, "podman-hpc", gpu=NVIDIA)
    job = made.files["job.slurm"].text
    assert "    podman-hpc run --rm\n    --mpi\n    --gpu\n" in job
    assert '    -v "$folder":/mnt/0 -w /mnt/0\n' in job
    assert "-e LD_LIBRARY_PATH=/var/run/host/mpich:/opt/mpich/lib" in job
    assert "srun --export=ALL --nodes=2 --ntasks=8" in job
    assert '"$engine" migrate "$tag"' in made.files["build.sh"].text


@pytest.mark.parametrize(("answer", "status"), [("echo 0123456789ab", 0), ("true", 66), ("exit 125", 66)])
def test_podman_hpc_is_asked_for_migrated_images_too(tmp_path: Path, answer: str, status: int) -> None:
    """Nodes have no other: `image inspect` does not look where they lie, `images` does."""
    job = kit(tmp_path, "podman-hpc").files["job.slurm"].text
    program = f"[ \"$1 $2 $3\" = 'images -q mpi-hello:site' ] || exit 9\n{answer}"
    done = run_job(tmp_path, job, shown="*", programs={"podman-hpc": program})
    assert done.returncode == status, done.stderr
    assert ("there is no image mpi-hello:site" in done.stderr) == (status != 0)


@pytest.mark.parametrize(
    ("mpi", "module", "compiler"),
    [
        ({"abi": "mpi5"}, "--mpi", "mpicc_abi "),
        ({"abi": "mpi5", "flavour": "openmpi", "version": "6.0.0", "pmi": ["pmix"]}, "--openmpi-pmix", "mpicc_abi "),
        # What the engine shows is Cray's libmpi.so.12.
        ({"abi": "mpi5", "binds": [], "libraries": []}, "--mpi", "mpicc "),
    ],
)
def test_podman_hpc_has_modules_by_the_family_of_the_standards_mpi(
    tmp_path: Path, mpi: dict[str, Any], module: str, compiler: str
) -> None:
    made = kit(tmp_path, "podman-hpc", mpi={**SITE["mpi"], **mpi})
    assert f"    podman-hpc run --rm\n    {module}\n" in made.files["job.slurm"].text
    assert f"{compiler}-O2 -rdynamic -o /opt/rank_test/bin/rank_test" in made.files["Dockerfile"].text


def test_podman_hpc_has_no_module_for_other_gpus(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no module for amd GPUs"):
        kit(tmp_path, "podman-hpc", gpu=AMD)


def test_container_engine_gets_its_file_and_srun_the_option(tmp_path: Path) -> None:
    made = kit(tmp_path, "container-engine")
    job = made.files["job.slurm"].text
    assert '--mpi=pmi2 "${container[@]}" "$@"' in job and '--environment="$edf"' in job
    assert "engine=${HPCGEN_ENGINE:-podman}" in made.files["build.sh"].text
    assert 'enroot import -x mount -o mpi-hello.sqsh "podman://$tag"' in made.files["build.sh"].text


def test_pyxis_is_asked_by_options_of_srun(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    here = {"work": {"kind": "nfs", "path": f"{tmp_path}/work", "bind": True}}
    made = kit(tmp_path, "pyxis", gpu=NVIDIA, file_systems=here, fabric={"kind": "ethernet"})
    assert 'enroot import -x mount -o mpi-hello.sqsh "podman://$tag"' in made.files["build.sh"].text
    words = run_job(tmp_path, made.files["job.slurm"].text, shown="*").stdout.splitlines()
    place = f"--container-image={tmp_path}/mpi-hello.sqsh"
    options = words[words.index("--mpi=pmi2") + 1 : words.index("/usr/bin/env")]
    # The last --export counts, and enroot's hook for the driver goes by what it sets.
    assert options == [
        "--no-container-mount-home",
        "--no-container-entrypoint",
        "--export=ALL,NVIDIA_VISIBLE_DEVICES=all,NVIDIA_DRIVER_CAPABILITIES=all",
        place,
        f"--container-mounts={tmp_path}:/mnt/0",
        "--container-workdir=/mnt/0",
        "--container-mounts=/var/run/host:/var/run/host",
        f"--container-mounts={tmp_path}/work:{tmp_path}/work",
    ]
    assert any(word.startswith("LD_LIBRARY_PATH=/var/run/host/mpich:/opt/mpich/lib") for word in words)


def test_pyxis_shows_amds_gpus_without_a_hook_and_none_of_intel(tmp_path: Path) -> None:
    """Their device files are in the host's /dev, and nothing is set for NVIDIA's hook."""
    job = kit(tmp_path, "pyxis", gpu=AMD, fabric={"kind": "ethernet"}).files["job.slurm"].text
    assert "--no-container-entrypoint" in job and "NVIDIA_" not in job
    with pytest.raises(PolicyError, match="no hook for intel GPUs"):
        kit(tmp_path, "pyxis", gpu=INTEL, fabric={"kind": "ethernet"})


def test_a_stack_without_mpi_is_one_task_of_srun(tmp_path: Path) -> None:
    job = kit(tmp_path, "container-engine", "onnxruntime").files["job.slurm"].text
    assert 'srun --export=ALL --nodes=1 --ntasks=1 --cpus-per-task=128 "${container[@]}" "$@"' in job


def test_definition_file_has_the_file_systems_that_the_node_has(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    here = {"work": {"kind": "nfs", "path": f"{tmp_path}/work", "bind": True}}
    gone = {"gone": {"kind": "nfs", "path": f"{tmp_path}/gone", "bind": True}}
    job = kit(tmp_path, "container-engine", file_systems={**here, **gone}).files["job.slurm"].text
    mounts = run_job(tmp_path, job).stdout.partition("mounts = [\n")[2].partition("]")[0].splitlines()
    assert f'  "{tmp_path}/work:{tmp_path}/work",' in mounts
    assert not any("gone" in mount for mount in mounts)


def test_definition_file_is_toml_that_names_the_image_and_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "with space and 'quote'"
    folder.mkdir()
    done = run_job(folder, kit(tmp_path, "container-engine").files["job.slurm"].text)
    assert done.stdout.splitlines() == [
        f'image = "{folder}/mpi-hello.sqsh"',
        'workdir = "/mnt/0"',
        "mounts = [",
        f'  "{folder}:/mnt/0",',
        '  "/var/run/host:/var/run/host",',
        "]",
        "[annotations]",
        'com.hooks.cxi.enabled = "true"',
    ], done.stderr
    assert not list(folder.glob("edf-*"))


@pytest.mark.parametrize("sign", ["$", '"', ":", "\\"])
def test_a_folder_that_the_definition_file_cannot_name_is_refused(tmp_path: Path, sign: str) -> None:
    folder = tmp_path / f"a{sign}b"
    folder.mkdir()
    done = run_job(folder, kit(tmp_path, "container-engine").files["job.slurm"].text)
    assert done.returncode == 65 and "cannot read a path" in done.stderr
