"""Sarus Suite: what its definition file says, how Slurm is asked, what it refuses."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import InputError
from tests.helpers.site_engines import AMD, NVIDIA, SITE, kit, run_job

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ETHERNET = {"kind": "ethernet"}


def definition(folder: Path, image: str = "", **more: Any) -> dict[str, Any]:
    """The file that srun is given, read as Skybox reads it."""
    done = run_job(folder, kit(folder, "sarus-suite", **more).files["job.slurm"].text, image=image)
    assert done.returncode == 0, done.stderr
    return tomllib.loads(done.stdout)


def test_the_file_names_an_image_by_its_reference_and_asks_for_slingshot(tmp_path: Path) -> None:
    assert definition(tmp_path) == {
        "image": "localhost/mpi-hello:site",
        "workdir": "/mnt/0",
        "entrypoint": False,
        "mounts": [f"{tmp_path}:/mnt/0", "/var/run/host:/var/run/host"],
        "annotations": {"com": {"hooks": {"cxi": {"enabled": "true"}}}},
    }
    pushed = "registry.example.org/hpc/mpi-hello:1"
    assert definition(tmp_path, image=pushed)["image"] == pushed


def test_srun_is_asked_by_its_own_option(tmp_path: Path) -> None:
    job = kit(tmp_path, "sarus-suite").files["job.slurm"].text
    words = run_job(tmp_path, job, shown="*").stdout.splitlines()
    assert "--mpi=pmi2" in words and "--environment" not in job
    assert next(word for word in words if word.startswith("--edf=")).endswith(".toml")
    assert not list(tmp_path.glob("edf-*"))


def test_without_slingshot_no_hook_is_asked_for(tmp_path: Path) -> None:
    assert "annotations" not in definition(tmp_path, fabric=ETHERNET)


def test_hooks_for_nccl_and_slingshot_are_each_asked_for(tmp_path: Path) -> None:
    """One does not enable the other, and the variant of the Container Engine means nothing here."""
    job = kit(tmp_path, "sarus-suite", "tf-horovod", gpu=NVIDIA, nodes=2).files["job.slurm"].text
    (tmp_path / "work").mkdir()
    hooks = tomllib.loads(run_job(tmp_path, job).stdout)["annotations"]["com"]["hooks"]
    assert hooks == {"cxi": {"enabled": "true"}, "aws_ofi_nccl": {"enabled": "true"}}


@pytest.mark.parametrize(
    ("gpu", "devices"),
    [
        (NVIDIA, ["nvidia.com/gpu=all"]),
        (AMD, ["/dev/kfd", "/dev/dri"]),
        ({**AMD, "cdi": "amd.com/gpu=all"}, ["amd.com/gpu=all"]),
    ],
)
def test_gpus_are_devices_of_the_file(tmp_path: Path, gpu: dict[str, Any], devices: list[str]) -> None:
    assert definition(tmp_path, gpu=gpu, fabric=ETHERNET)["devices"] == devices


def test_devices_of_the_fabric_are_named_too(tmp_path: Path) -> None:
    fabric = {**SITE["fabric"], "devices": ["/dev/cxi0"]}
    assert definition(tmp_path, fabric=fabric)["devices"] == ["/dev/cxi0"]


@pytest.mark.parametrize("image", ["/scratch/mpi-hello.sqsh", "./mpi-hello.sqsh", "mpi-hello.sqsh", 'a"b', "a b"])
def test_an_image_file_is_refused_with_what_to_do(tmp_path: Path, image: str) -> None:
    done = run_job(tmp_path, kit(tmp_path, "sarus-suite").files["job.slurm"].text, image=image)
    assert (done.returncode, done.stdout) == (66, "")
    assert f"{image} is not an image name, and sarus-suite starts no files" in done.stderr
    assert "sarusctl migrate NAME" in done.stderr and "HPCGEN_IMAGE" in done.stderr


@pytest.mark.parametrize("sign", ["$", '"', ":", "\\", "`", ";", " "])
def test_a_folder_that_the_definition_file_cannot_name_is_refused(tmp_path: Path, sign: str) -> None:
    folder = tmp_path / f"a{sign}b"
    folder.mkdir()
    done = run_job(folder, kit(folder, "sarus-suite").files["job.slurm"].text)
    assert done.returncode == 65 and "cannot read a path" in done.stderr


def test_a_mount_that_the_file_cannot_say_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    mpi = {**SITE["mpi"], "binds": [*SITE["mpi"]["binds"], {"source": "/opt/my:mpi", "target": "/host"}]}
    with pytest.raises(InputError, match="the definition file reads ':'"):
        kit(tmp_path, "sarus-suite", mpi=mpi)


def test_the_build_script_puts_the_image_where_jobs_read_it(tmp_path: Path) -> None:
    script = kit(tmp_path, "sarus-suite").files["build.sh"].text
    assert "engine=${HPCGEN_ENGINE:-podman}" in script
    assert "*) stored=localhost/$tag ;;" in script and 'sarusctl migrate "$stored"' in script
