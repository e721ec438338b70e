"""Engines that only some sites have: podman-hpc, and CSCS's Container Engine."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.errors import PolicyError
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.model.job import JobRequest
from hpcgen.planning.planner import make_plan

SITE: dict[str, Any] = {
    "name": "site",
    "title": "A site with Slingshot",
    "system": {"os": "sles", "glibc": "2.31"},
    "partitions": {"main": {"cpu": {"target": "zen3", "cores": 128}, "memory": {"total_gb": 500}}},
    "default_partition": "main",
    "containers": {"preferred": "podman-hpc", "engines": {"podman-hpc": {}, "container-engine": {}, "pyxis": {}}},
    "scheduler": {"kind": "slurm"},
    "network": {"internet": {"login": True, "compute": True}},
    "fabric": {"kind": "slingshot", "provider": "cxi"},
    "mpi": {
        "flavour": "cray-mpich",
        "version": "8.1.30",
        "abi": "mpich",
        "root": "/opt/host/mpich",
        "launcher": "srun",
        "pmi": ["pmi2"],
        "binds": [{"source": "/var/run/host", "target": "/var/run/host"}],
        "libraries": ["/var/run/host/mpich"],
    },
}
NVIDIA = {"vendor": "nvidia", "model": "A100", "count": 4, "capability": "8.0"}
AMD = {"vendor": "amd", "model": "MI250X", "count": 8}


def kit(
    folder: Path,
    engine: str,
    stack: str = "mpi-hello",
    gpu: dict[str, Any] | None = None,
    ranks: int = 8,
    file_systems: dict[str, Any] | None = None,
    **more: Any,
) -> Kit:
    site = json.loads(json.dumps({**SITE, "file_systems": file_systems or {}, **more}))
    site["containers"]["preferred"] = engine
    if gpu is not None:
        site["partitions"]["main"]["gpu"] = gpu
    (folder / "site.yaml").write_text(json.dumps(site))
    catalog = Catalog()
    job = JobRequest(nodes=2, ranks_per_node=ranks // 2) if stack == "mpi-hello" else None
    return make_kit(make_plan(catalog, catalog.site(str(folder / "site.yaml")), catalog.stack(stack), job=job), catalog)


def test_podman_hpc_is_started_by_srun_with_its_modules(tmp_path: Path) -> None:
    made = kit(tmp_path, "podman-hpc", gpu=NVIDIA)
    job = made.files["job.slurm"].text
    assert "    podman-hpc run --rm\n    --mpi\n    --gpu\n" in job
    assert '    -v "$folder":/mnt/0 -w /mnt/0\n' in job
    assert "-e LD_LIBRARY_PATH=/var/run/host/mpich:/opt/mpich/lib" in job
    assert "srun --export=ALL --nodes=2 --ntasks=8" in job
    assert '"$engine" migrate "$tag"' in made.files["build.sh"].text


def test_podman_hpc_has_no_module_for_other_gpus(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no module for GPUs of amd"):
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


def test_pyxis_shows_no_other_gpus_than_nvidias(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="no hook for GPUs of amd"):
        kit(tmp_path, "pyxis", gpu=AMD, fabric={"kind": "ethernet"})


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


def run_job(folder: Path, job: str, shown: str = "--environment=*") -> subprocess.CompletedProcess[str]:
    """The job with an srun that shows the definition file that it was given, or with ``shown="*"`` its words."""
    # Not in the folder itself, whose name may have a colon.
    srun = Path(tempfile.mkdtemp(dir=folder.parent), "srun")
    show = 'printf "%s\\n" "$word"' if shown == "*" else 'cat "${word#*=}"'
    srun.write_text(f"#!/bin/bash\nfor word; do case $word in {shown}) {show};; esac; done\n")
    srun.chmod(0o755)
    (folder / "mpi-hello.sqsh").touch()
    (folder / "job.slurm").write_text(job)
    env = {**os.environ, "PATH": f"{srun.parent}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "0"}
    return subprocess.run(["bash", "job.slurm"], cwd=folder, env=env, capture_output=True, text=True)


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
