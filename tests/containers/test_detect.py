"""A profile that detection wrote on this machine is good enough to build mpi-hello from, and to run it here."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, HostMpi

Environment = dict[str, str]


def hpcgen(env: Environment, *words: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hpcgen", *map(str, words)]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True)


def link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.mark.slow
def test_a_detected_profile_builds_and_runs_mpi_hello(
    plain_base_image: BaseImage, host_mpi: HostMpi, ch_image: ChImage, tmp_path: Path
) -> None:
    """Nothing in the profile is edited.

    The machine is as a user finds it: a Debian without the site's certificates in ch-image's store, and an Intel MPI
    that a module has put on PATH. The certificates, the mirror, the base, the CPU and the MPI are found.
    """
    here = {
        "CH_IMAGE_STORAGE": str(tmp_path / "storage"),
        "I_MPI_ROOT": str(host_mpi.root),
        "PATH": f"{host_mpi.root}/bin:{host_mpi.env['PATH']}",
    }
    ch_image.run(["ch-image", "--no-cache", "list"], env=here)  # it makes its store
    # Links instead of an import: ch-image changes no base, and this takes a second instead of twenty.
    stored = Path(ch_image.env["CH_IMAGE_STORAGE"]) / "img" / plain_base_image.ch_image.replace(":", "+")
    shutil.copytree(stored, tmp_path / "storage/img/debian+12", symlinks=True, copy_function=link_or_copy)
    profile = tmp_path / "collection" / "site_profiles" / "here.yaml"
    profile.parent.mkdir(parents=True)
    env = {**host_mpi.env, **here}
    hpcgen(env, "site", "new", "here", "--detect", "-o", profile)
    collection = ("--collection", profile.parent.parent)
    hpcgen(env, *collection, "check", profile)
    job = ("--ranks-per-node", 2, "--threads", 1)
    hpcgen(env, *collection, "render", "--site", "here", "--stack", "mpi-hello", *job, "-o", tmp_path / "kit")
    image = tmp_path / "image"
    ch_image.run(["bash", tmp_path / "kit" / "build.sh", image], env={**here, "HPCGEN_BUILD_OPTIONS": "--no-cache"})
    done = host_mpi.run(["bash", tmp_path / "kit" / "run.sh"], env={**here, "HPCGEN_IMAGE": str(image)})
    assert done.stdout.count(" of 2 on ") == 2, done.stdout
    mapped = [line for line in done.stdout.splitlines() if " maps " in line and "/libmpi.so" in line]
    assert len(mapped) >= 2 and all(f"{host_mpi.root}/lib/" in line for line in mapped), done.stdout
