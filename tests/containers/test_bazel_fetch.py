"""What Bazel fetches, across the air gap, by the real Bazel: lock, bundle, a build without a network, and the program.

Debian's Bazel stands for the project's own binaries, and a small workspace for TensorFlow's: see bazel_workspace.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from bazel_workspace import served, served_modules, write_collection
from container_tools import REPORTS, BaseImage, ChImage, run, script
from test_offline import HPCGEN, TRUSTING, alone, quiet
from test_rendered_kits import site_profile

from tests.helpers.file_server import FileServer, make_certificate, serving

pytestmark = pytest.mark.slow
SIX = "six==1.16.0 --hash=sha256:8abb2f1d86890a2dfb989f9a77cfcfd3e47c2a354b01111771326f8aa26e0254"


class Workshop(NamedTuple):
    """A lock that Bazel was run for, and where all that it names comes from."""

    folder: Path
    server: FileServer
    image: str
    env: dict[str, str]

    def command(self, *words: Any, check: bool = True) -> Any:
        return run([*HPCGEN, "--collection", self.folder / "ours", *words], env=self.env, check=check)


@pytest.fixture(scope="module", params=["4.2.3", "7.7.1"])
def workshop(
    request: pytest.FixtureRequest,
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    testbed_env: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Workshop]:
    """A server with the release and what its workspace names, and the lock; from Bazel 7 on with a registry."""
    modules = request.param.startswith("7")
    archive = script("make-bazel-base", "sid" if modules else "bookworm", env=testbed_env).strip()
    folder = tmp_path_factory.mktemp("bazel")
    key = make_certificate(folder)
    with serving(key) as server:
        here = server.url("").rstrip("/")
        server.files = served_modules(here) if modules else served(here, SIX)
        values = {"registries": [f"{here}/registry"]} if modules else {}
        write_collection(folder / "ours", here, server.files, request.param, **values)
        profile = site_profile(machine_facts, plain_base_image)
        network = profile["network"]
        network["ca_certificates"] = [*network["ca_certificates"], str(key[1])]
        # The base's own suite is meant.
        network["mirrors"] = {name: at for name, at in network["mirrors"].items() if name not in ("apt", "images")}
        (folder / "here.yaml").write_text(json.dumps(profile))
        shop = Workshop(folder, server, f"debian:12=oci-archive:{archive}", dict(os.environ))
        asked = ["--site", folder / "here.yaml", "--stack", "probe", "--image", shop.image]
        shop.command("lock", *asked, "--fetch-bazel", "-o", folder / "hpcgen.lock")
        yield shop


def test_a_program_is_built_without_a_network_from_what_bazel_fetched(workshop: Workshop, ch_image: ChImage) -> None:
    folder = workshop.folder
    lock = (folder / "hpcgen.lock").read_text()
    # By its address: Bazel with modules calls a repository main~_repo_rules~data, and others otherwise.
    assert all(workshop.server.url(path) in lock for path in ("data", "liba-1.tar.gz"))
    assert "unused" not in lock.partition("pinned_bazel")[2]
    bundle = folder / "bundle"
    made = workshop.command(
        "bundle", "create", "--lock", folder / "hpcgen.lock", "--image", workshop.image, "-o", bundle
    )
    REPORTS.append(made.stdout.splitlines()[-1])
    built = alone(
        [*TRUSTING, "build", "--bundle", bundle, "--format", "charliecloud", "-o", folder / "image"],
        {**ch_image.env, "HPCGEN_BUILD_OPTIONS": "--no-cache"},
    )
    quiet(built)
    done = ch_image.run(["ch-run", folder / "image", "--", "/opt/probe/probe"])
    assert done.stdout.startswith("42 six"), done.stdout


def test_a_file_that_changed_on_its_server_is_refused(workshop: Workshop) -> None:
    before = workshop.server.files["data"]
    workshop.server.files["data"] = b"atad"
    try:
        target = workshop.folder / "other"
        words = ["--lock", workshop.folder / "hpcgen.lock", "--image", workshop.image, "-o", target]
        done = workshop.command("bundle", "create", *words, check=False)
    finally:
        workshop.server.files["data"] = before
    assert done.returncode != 0 and "data" in done.stdout and "sha256" in done.stdout, done.stdout
    assert not target.exists()


def test_a_lock_would_not_change(workshop: Workshop) -> None:
    there = ["--site", workshop.folder / "here.yaml", "--image", workshop.image]
    done = workshop.command("lock", "--check", "-o", workshop.folder / "hpcgen.lock", *there)
    assert "nothing changes" in done.stdout
