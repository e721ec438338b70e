"""Rendered kits, built and started by real engines: nothing here is written by hand but the site profile.

A stack of Python packages over MPI is built by buildah from the rendered Dockerfile and by Apptainer from the rendered
definition; ``tf-horovod`` (pip) by all three in the slow tier, since Horovod is compiled for minutes. What the rendered
Charliecloud script does with packages and with MPI, CI sees in the images that conftest.py makes for other tests.
The base is a Debian without this machine's certificates, so that the recipe has to bring them. Two ranks then sum or
train in each image and must both say that they are two.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BASE_IN_SID as BASE_IN_SID
from container_tools import CERTIFICATES as CERTIFICATES
from container_tools import REPORTS, BaseImage, Buildah, ChImage, Sid
from leftovers import remove

INTEL_MPI = ["mpi.provider=intel_mpi", "intel_mpi.version=2021.17.2"]
TF_HOROVOD = ["tensorflow.install=pip", *INTEL_MPI]
SUM = "from mpi4py.MPI import COMM_WORLD as c; print(f'rank {c.rank} size {c.size} sum {c.allreduce(c.rank + 1)}')"
MPI_PYTHON: dict[str, Any] = {
    "name": "mpi-python",
    "title": "what tf-horovod is made of, but for TensorFlow and what is compiled",
    "blocks": {"python_packages": {"options": {"packages": ["mpi4py==4.1.2"]}}, "mpi": {}},
    "run": {"command": ["python3", "-c", SUM], "gpus_per_node": 0},
}

Render = Callable[..., Path]


def site_profile(facts: dict[str, Any], base: BaseImage) -> dict[str, Any]:
    """What this machine is, as an administrator would write it down. JSON is YAML."""
    debian = facts["debian"]
    mirrors: dict[str, Any] = {
        "apt": {"debian": {"archive": debian["mirror"], "security": debian["security_mirror"]}},
        "images": {
            "debian:12": {
                "docker": base.oci,
                "charliecloud": base.ch_image,
                "singularity": f"{BASE_IN_SID}/{base.archive.name}",
                "bootstrap": "oci-archive",
            }
        },
    }
    if facts["pip"]["index_url"]:
        mirrors["pip"] = facts["pip"]["index_url"]
    network: dict[str, Any] = {
        "internet": {"login": True, "compute": True},
        "ca_certificates": facts["ca_certificates"],
        "mirrors": mirrors,
    }
    proxy = facts["proxy"]
    if proxy:
        known = {name: proxy.get(f"{name}_proxy") for name in ("http", "https")}
        network["proxy"] = {**known, "no_proxy": proxy.get("no_proxy", "")}
    return {
        "name": "here",
        "title": "this machine",
        "system": {"os": "debian", "os_version": "12", "glibc": facts["glibc"]},
        "partitions": {
            "cpu": {
                "cpu": {"target": facts["cpu"]["target"], "cores": facts["cores"]},
                "memory": {"total_gb": facts["memory_gib"]},
            }
        },
        "default_partition": "cpu",
        "containers": {
            "preferred": "charliecloud",
            "engines": {
                "charliecloud": {"version": "0.31"},
                "apptainer": {"version": "1.4.5", "fakeroot": True},
                "podman": {"version": "4.3"},
            },
        },
        "scheduler": {"kind": "none"},
        "network": network,
        "image": {"distribution": "debian"},
    }


@pytest.fixture(scope="session")
def sites(machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collection with this machine, with HLRS's as if it were here, and with the stack of Python packages."""
    collection = tmp_path_factory.mktemp("collection")
    here = site_profile(machine_facts, plain_base_image)
    # The HLRS profile itself, but for this machine's network and base.
    hlrs = {"name": "hlrs", "extends": "hlrs-testbed", "network": here["network"], "image": here["image"]}
    (collection / "site_profiles").mkdir()
    for site in (here, hlrs):
        (collection / "site_profiles" / f"{site['name']}.yaml").write_text(json.dumps(site, indent=1))
    (collection / "recipes").mkdir()
    (collection / "recipes" / "mpi-python.yaml").write_text(json.dumps(MPI_PYTHON))
    return collection


@pytest.fixture(scope="session")
def render(sites: Path, tmp_path_factory: pytest.TempPathFactory) -> Render:
    """``render(format, stack, *words)``: the folder of a kit for two ranks here, rendered by the command."""

    def kit(format: str, stack: str, *words: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{stack}-{format}")
        job = ["--site", "here", "--format", format, "--nodes", "1", "--ranks-per-node", "2", "--threads", "1"]
        render_by_command(sites, folder, "--stack", stack, *job, *words)
        return folder

    return kit


def render_by_command(collection: Path, folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "hpcgen", "--collection", collection, "render", *words, "-o", folder]
    subprocess.run(command, check=True)


def settings(chosen: list[str]) -> list[str]:
    return [word for setting in chosen for word in ("--set", setting)]


def report(what: str, started: float, size: str) -> None:
    """Note a build's time and size for the end of the session."""
    REPORTS.append(f"{what}: built in {time.monotonic() - started:.0f} s, {size.split()[0]}")


Check = Callable[[str], None]


def lines_of_ranks(output: str) -> list[str]:
    """What the two ranks printed."""
    said = sorted(line for line in output.splitlines() if line.startswith("rank "))
    assert len(said) == 2, output
    return said


def check_training(output: str) -> None:
    """Both ranks took part in one job of two, and learnt something."""
    for rank, line in enumerate(lines_of_ranks(output)):
        assert line.startswith(f"rank {rank} size 2 loss "), output


def check_sum(output: str) -> None:
    """Both ranks took part in one job of two, and know what both gave."""
    assert lines_of_ranks(output) == [f"rank {rank} size 2 sum 3" for rank in (0, 1)], output


def check_selftest(output: str, *blocks: str) -> None:
    assert " 0 failed" in output, output
    assert all(block in output for block in blocks), output


def by_buildah(kit: Path, buildah: Buildah, folder: Path, check: Check, *blocks: str) -> None:
    """Build a Docker kit, test the image and run its job."""
    tag = f"localhost/{blocks[0]}:here"
    started = time.monotonic()
    options = {"HPCGEN_ENGINE": "buildah", "HPCGEN_BUILD_OPTIONS": "--isolation chroot"}
    buildah.run(["bash", kit / "build.sh", tag], env=options)
    size = buildah.run(["buildah", "images", "--format", "{{.Size}}", tag]).stdout.replace(" ", "")
    report("buildah", started, size)
    check_selftest(buildah.exec(tag, ["/opt/hpcgen/selftest.sh"]).stdout, *blocks)
    check(buildah.run(["bash", kit / "run.sh"], env={"HPCGEN_IMAGE": tag}, cwd=folder).stdout)


def by_apptainer(kit: Path, job: Path, sid: Sid, base: BaseImage, check: Check, *blocks: str) -> None:
    """Build an Apptainer kit, test the image and run the job of another kit with it; the image goes."""
    sid.folder(kit)
    sid.folder(job)
    binds = [(kit, "/kit"), (job, "/job"), (base.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    started = time.monotonic()
    options = {"HPCGEN_ENGINE": "apptainer", "HPCGEN_BUILD_OPTIONS": "--sandbox"}
    sid.run(["bash", "build.sh", "image.sif"], binds=binds, cwd="/kit", env=options)
    size = subprocess.run(["du", "-sh", kit / "image.sif"], capture_output=True, text=True).stdout
    report("apptainer", started, size)
    selftest = ["apptainer", "exec", "image.sif", "/opt/hpcgen/selftest.sh"]
    check_selftest(sid.run(selftest, binds=binds, cwd="/kit").stdout, *blocks)
    check(sid.run(["bash", "run.sh"], binds=binds, cwd="/job", env={"HPCGEN_IMAGE": "/kit/image.sif"}).stdout)
    remove(kit / "image.sif")


@pytest.mark.slow
def test_charliecloud_builds_and_trains(render: Render, ch_image: ChImage, tmp_path: Path) -> None:
    kit = render("charliecloud", "tf-horovod", *settings(TF_HOROVOD))
    image = tmp_path / "tf-horovod"
    started = time.monotonic()
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    report("ch-image", started, ch_image.run(["du", "-sh", image]).stdout)
    selftest = ["ch-run", "--set-env", image, "--", "/opt/hpcgen/selftest.sh"]
    check_selftest(ch_image.run(selftest).stdout, "tensorflow", "horovod")
    done = ch_image.run(["bash", kit / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    check_training(done.stdout)


@pytest.mark.slow
def test_buildah_builds_and_sums(render: Render, buildah: Buildah, tmp_path: Path) -> None:
    kit = render("docker", "mpi-python", *settings(INTEL_MPI))
    by_buildah(kit, buildah, tmp_path, check_sum, "python_packages", "intel_mpi")


@pytest.mark.slow
def test_apptainer_builds_for_the_hlrs_testbed_and_sums(
    render: Render, sites: Path, sid: Sid, plain_base_image: BaseImage, tmp_path: Path
) -> None:
    """HLRS's own stack of MPI is of archives from GitHub: Intel MPI's wheels take its place."""
    kit = tmp_path / "kit"
    render_by_command(sites, kit, "--site", "hlrs", "--stack", "mpi-python", "--time", "36h", *settings(INTEL_MPI))
    assert "#PBS -l nodes=1:ppn=40,walltime=36:00:00" in (kit / "job.pbs").read_text().splitlines()
    job = render("singularity", "mpi-python", *settings(INTEL_MPI))
    by_apptainer(kit, job, sid, plain_base_image, check_sum, "python_packages", "intel_mpi")


@pytest.mark.slow
def test_buildah_builds_and_trains(render: Render, buildah: Buildah, tmp_path: Path) -> None:
    kit = render("docker", "tf-horovod", *settings(TF_HOROVOD))
    by_buildah(kit, buildah, tmp_path, check_training, "tensorflow", "horovod")


@pytest.mark.slow
def test_apptainer_builds_and_trains(render: Render, sid: Sid, plain_base_image: BaseImage) -> None:
    kit = render("singularity", "tf-horovod", *settings(TF_HOROVOD))
    by_apptainer(kit, kit, sid, plain_base_image, check_training, "tensorflow", "horovod")
