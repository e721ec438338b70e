"""Blocks compiled from the very archives of their release tables, as far as Debian's source packages hold these.

A stack has jemalloc before every program, and numactl; it is built by buildah from the rendered recipe, which fetches
the archives from a mirror on the loopback.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Buildah
from test_rendered_kits import by_buildah, render_by_command, site_profile

from hpcgen.api import default_catalog
from tests.helpers.file_server import FileServer, make_certificate, serving

pytestmark = pytest.mark.slow
CHOSEN = {"jemalloc": "5.3.0", "numactl": "2.0.16"}
STACK = {
    "name": "probe",
    "title": "An allocator before every program, and the placement of processes",
    "blocks": {
        "jemalloc": {"version": CHOSEN["jemalloc"], "options": {"obtain": "source", "preload": True}},
        "numactl": {"version": CHOSEN["numactl"]},
    },
    "run": {"mpi": False, "command": ["/opt/jemalloc/bin/malloc_test"], "gpus_per_node": 0},
}


def sources(mirror: str, packages: list[str], folder: Path, suite: str = "bookworm") -> Iterator[bytes]:
    """The original archives of source packages of a Debian, by apt with lists of its own."""
    (folder / "lists" / "partial").mkdir(parents=True)
    (folder / "sources.list").write_text(f"deb-src [trusted=yes] {mirror} {suite} main\n")
    places = {"Dir::Etc::SourceList": folder / "sources.list", "Dir::Etc::SourceParts": os.devnull}
    settings = {**places, "Dir::State::Lists": folder / "lists", "Dir::Cache": folder, "APT::Sandbox::User": "root"}
    apt = ["apt-get", "--quiet", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run([*apt, "source", "--download-only", "--tar-only", *packages], cwd=folder, check=True)
    for package in packages:
        (archive,) = folder.glob(f"{package}_*.orig.tar.*[!c]")
        yield archive.read_bytes()


@pytest.fixture
def mirror(machine_facts: dict[str, Any], tmp_path: Path) -> Iterator[tuple[FileServer, Path]]:
    """The archives by the names that the tables' addresses end with, and the server's certificate."""
    key = make_certificate(tmp_path)
    with serving(key) as server:
        held = sources(machine_facts["debian"]["mirror"], list(CHOSEN), tmp_path / "sources")
        for (name, version), content in zip(CHOSEN.items(), held, strict=True):
            url = default_catalog().releases(name)[version].archives["source"].url
            server.files[url.rsplit("/", 1)[1]] = content
        yield server, key[1]


def test_an_allocator_serves_every_program(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    buildah: Buildah,
    mirror: tuple[FileServer, Path],
    tmp_path: Path,
) -> None:
    server, certificate = mirror
    site = site_profile(machine_facts, plain_base_image)
    site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(certificate)]
    ours, kit = tmp_path / "ours", tmp_path / "kit"
    for folder, content in (("site_profiles", site), ("recipes", STACK)):
        (ours / folder).mkdir(parents=True)
        (ours / folder / f"{content['name']}.yaml").write_text(json.dumps(content))
    render_by_command(ours, kit, "--site", "here", "--stack", "probe", "--format", "docker")

    def served(output: str) -> None:
        assert "jemalloc serves malloc" in output

    by_buildah(kit, buildah, tmp_path, served, *CHOSEN)


def test_an_allocator_of_the_distribution_serves_every_program(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, buildah: Buildah, tmp_path: Path
) -> None:
    name = "libtcmalloc_minimal.so.4"
    ours, kit = tmp_path / "ours", tmp_path / "kit"
    blocks = {"gperftools": {"options": {"preload": True}}}
    run = {"mpi": False, "command": ["grep", "-om1", name, "/proc/self/maps"], "gpus_per_node": 0}
    site, stack = site_profile(machine_facts, plain_base_image), {**STACK, "blocks": blocks, "run": run}
    for folder, content in (("site_profiles", site), ("recipes", stack)):
        (ours / folder).mkdir(parents=True)
        (ours / folder / f"{content['name']}.yaml").write_text(json.dumps(content))
    render_by_command(ours, kit, "--site", "here", "--stack", "probe", "--format", "docker")

    def served(output: str) -> None:
        assert name in output

    by_buildah(kit, buildah, tmp_path, served, "gperftools")
