"""Compiled once: blocks that one image compiled are unpacked into the next ones, by podman, ch-image and Apptainer."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Tool
from test_build import record_in
from test_rendered_kits import site_profile
from test_sources import sources

from hpcgen.api import default_catalog
from tests.helpers.file_server import FileServer, make_certificate, serving

pytestmark = pytest.mark.slow
CHOSEN = {"numactl": "2.0.16"}
STACK = {
    "name": "probe",
    "title": "The placement of processes",
    "blocks": {"numactl": {"version": CHOSEN["numactl"]}},
    "run": {"mpi": False, "command": ["/opt/numactl/bin/numactl", "--show"]},
}
IMAGE = {"podman": "localhost/artifact-probe:1", "ch-image": "image"}


@pytest.fixture
def project(machine_facts: dict[str, Any], base_image: BaseImage, tmp_path: Path) -> Iterator[tuple[FileServer, Path]]:
    """A stack whose two blocks are compiled from archives of a mirror, and the mirror."""
    key = make_certificate(tmp_path)
    with serving(key) as server:
        held = sources(machine_facts["debian"]["mirror"], list(CHOSEN), tmp_path / "sources")
        for (name, version), content in zip(CHOSEN.items(), held, strict=True):
            url = default_catalog().releases(name)[version].archives["source"].url
            server.files[url.rsplit("/", 1)[1]] = content
        site = site_profile(machine_facts, base_image)
        site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
        site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(key[1])]
        folder = tmp_path / "project"
        folder.mkdir()
        (folder / "here.yaml").write_text(json.dumps(site), "utf-8")
        (folder / "probe.yaml").write_text(json.dumps(STACK), "utf-8")
        yield server, folder


@pytest.mark.parametrize("engine", ["podman", "ch-image"])
def test_the_second_image_compiles_nothing_and_is_the_same(
    engine: str, project: tuple[FileServer, Path], testbed_env: dict[str, str]
) -> None:
    server, folder = project
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(folder / "records")})

    def build(*words: str) -> dict[str, Any]:
        name = IMAGE[engine] if engine == "podman" else str(folder / IMAGE[engine])
        command = [sys.executable, "-m", "hpcgen", "build", "--site", "here.yaml", "--stack", "probe.yaml"]
        record = record_in(here.run([*command, "--engine", engine, "-o", name, "--json", *words], cwd=folder))
        print({each: record.get(each) for each in ("content", "seconds", "artifacts")})
        return record

    def tree() -> str:
        look = "cd /opt && find numactl -type f -exec sha256sum {} + -o -type l -printf '%p -> %l\\n' | sort"
        start = (
            ["podman", "run", "--rm", IMAGE[engine]] if engine == "podman" else ["ch-run", str(folder / "image"), "--"]
        )
        return here.run([*start, "sh", "-c", look]).stdout

    first = build("--cache", "store")
    kept, asked = tree(), len(server.requests)
    second = build("--cache", "store")
    assert len(server.requests) == asked
    assert second["content"] == first["content"]
    assert tree() == kept and "numactl/lib/libnuma.so.1" in kept
    assert second["artifacts"].keys() == {"numactl"}
    assert "configure" not in {each["about"] for each in second["steps"]}
