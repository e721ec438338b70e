"""Rendered kits, built and started by real engines: nothing here is written by hand but the site profile.

``tf-horovod`` (pip) is built by the rendered Charliecloud script, by buildah from the rendered Dockerfile and by
Apptainer from the rendered definition, on a Debian base without this machine's certificates, so that the recipe
has to bring them. Two ranks then train in each image and must both say that they are two.
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
from container_tools import REPORTS, BaseImage, Buildah, ChImage, Sid

SETTINGS = ["tensorflow.install=pip", "mpi.provider=intel_mpi", "intel_mpi.version=2021.17.2"]
CERTIFICATES = Path("/usr/local/share/ca-certificates")
BASE_IN_SID = "/base"

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
def render(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path_factory: pytest.TempPathFactory
) -> Render:
    """``render(format, stack, *words)``: the folder of a kit, rendered by the command."""
    collection = tmp_path_factory.mktemp("collection")
    (collection / "site_profiles").mkdir()
    profile = site_profile(machine_facts, plain_base_image)
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(profile, indent=1))

    def kit(format: str, stack: str, *words: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{stack}-{format}")
        command = [sys.executable, "-m", "hpcgen", "--collection", collection, "render", "--site", "here"]
        job = ["--nodes", "1", "--ranks-per-node", "2", "--threads", "1"]
        subprocess.run([*command, "--stack", stack, "--format", format, *job, *words, "-o", folder], check=True)
        return folder

    return kit


def settings() -> list[str]:
    return [word for setting in SETTINGS for word in ("--set", setting)]


def report(what: str, started: float, size: str) -> None:
    """Note a build's time and size for the end of the session."""
    REPORTS.append(f"{what}: built in {time.monotonic() - started:.0f} s, {size.split()[0]}")


def check_training(output: str) -> None:
    """Both ranks took part in one job of two, and learnt something."""
    said = sorted(line for line in output.splitlines() if line.startswith("rank "))
    assert len(said) == 2, output
    for rank, line in enumerate(said):
        assert line.startswith(f"rank {rank} size 2 loss "), output


def check_selftest(output: str) -> None:
    assert " 0 failed" in output, output
    assert "tensorflow" in output
    assert "horovod" in output


def test_charliecloud_builds_and_trains(render: Render, ch_image: ChImage, tmp_path: Path) -> None:
    kit = render("charliecloud", "tf-horovod", *settings())
    image = tmp_path / "tf-horovod"
    started = time.monotonic()
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    report("ch-image", started, ch_image.run(["du", "-sh", image]).stdout)
    check_selftest(ch_image.run(["ch-run", "--set-env", image, "--", "/opt/hpcgen/selftest.sh"]).stdout)
    done = ch_image.run(["bash", kit / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    check_training(done.stdout)


def test_buildah_builds_and_trains(render: Render, buildah: Buildah, tmp_path: Path) -> None:
    kit = render("docker", "tf-horovod", *settings())
    tag = "localhost/tf-horovod:here"
    started = time.monotonic()
    options = {"HPCGEN_ENGINE": "buildah", "HPCGEN_BUILD_OPTIONS": "--isolation chroot"}
    buildah.run(["bash", kit / "build.sh", tag], env=options)
    size = buildah.run(["buildah", "images", "--format", "{{.Size}}", tag]).stdout.replace(" ", "")
    report("buildah", started, size)
    check_selftest(buildah.exec(tag, ["/opt/hpcgen/selftest.sh"]).stdout)
    done = buildah.run(["bash", kit / "run.sh"], env={"HPCGEN_IMAGE": tag}, cwd=tmp_path)
    check_training(done.stdout)


def test_apptainer_builds_and_trains(render: Render, sid: Sid, plain_base_image: BaseImage) -> None:
    kit = sid.folder(render("singularity", "tf-horovod", *settings()))
    binds = [(kit, "/kit"), (plain_base_image.archive.parent, BASE_IN_SID), (CERTIFICATES, str(CERTIFICATES))]
    started = time.monotonic()
    options = {"HPCGEN_BUILD_OPTIONS": "--sandbox"}
    sid.run(["bash", "build.sh", "image.sif"], binds=binds, cwd="/kit", env=options)
    size = subprocess.run(["du", "-sh", kit / "image.sif"], capture_output=True, text=True).stdout
    report("apptainer", started, size)
    selftest = ["apptainer", "exec", "image.sif", "/opt/hpcgen/selftest.sh"]
    check_selftest(sid.run(selftest, binds=binds, cwd="/kit").stdout)
    done = sid.run(["bash", "run.sh"], binds=binds, cwd="/kit", env={"HPCGEN_IMAGE": "/kit/image.sif"})
    check_training(done.stdout)
