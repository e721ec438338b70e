"""Conda packages from a channel of small ones: chosen, locked, bundled, and an image built without a network."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import REPORTS, BaseImage, Buildah, run
from test_offline import alone, quiet
from test_rendered_kits import site_profile

from tests.helpers.conda_channel import Channel, small_channel
from tests.helpers.file_server import FileServer, make_signed_certificate, serving

pytestmark = pytest.mark.slow
HPCGEN = [sys.executable, "-m", "hpcgen"]
STACK = {
    "name": "spoken",
    "title": "A program of a conda channel",
    "blocks": {"conda_packages": {"options": {"files": ["environment.yml"]}}},
    "run": {"mpi": False, "command": ["speak"]},
}


@pytest.fixture
def channel(tmp_path: Path) -> Iterator[tuple[Channel, FileServer, Path]]:
    """The channel, its server, and the authority that signed the server's certificate."""
    key, certificate, authority = make_signed_certificate(tmp_path)
    made = small_channel(tmp_path / "channel")
    with serving((key, certificate)) as server:
        for path in made.folder.rglob("*.*"):
            server.files[f"small/{path.relative_to(made.folder).as_posix()}"] = path.read_bytes()
        yield made, server, authority


def project(folder: Path, facts: dict[str, Any], base: BaseImage, url: str, authority: Path) -> None:
    """A project with an environment.yml, and the profile of this machine."""
    site = site_profile(facts, base)
    del site["network"]["mirrors"]["images"]
    site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(authority)]
    folder.mkdir()
    (folder / "here.yaml").write_text(json.dumps(site))
    (folder / "spoken.yaml").write_text(json.dumps(STACK))
    (folder / "environment.yml").write_text(
        f"channels: ['{url}']\ndependencies: [speak]\nvariables: {{SPOKEN: 'yes'}}\n"
    )


def trusting(folder: Path, facts: dict[str, Any], authority: Path) -> dict[str, str]:
    """The environment of programs here that trust the authority, too."""
    system = Path("/etc/ssl/certs/ca-certificates.crt")
    known = [*([system] if system.exists() else []), *map(Path, facts["ca_certificates"]), authority]
    together = folder / "trusted.pem"
    together.write_text("\n".join(each.read_text() for each in known))
    return {**os.environ, "SSL_CERT_FILE": str(together), "RATTLER_CACHE_DIR": str(folder / "cache")}


def test_packages_are_chosen_locked_bundled_and_run_without_a_network(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    buildah: Buildah,
    channel: tuple[Channel, FileServer, Path],
    tmp_path: Path,
) -> None:
    made, server, authority = channel
    folder = tmp_path / "project"
    project(folder, machine_facts, plain_base_image, server.url("small"), authority)
    env = trusting(tmp_path, machine_facts, authority)
    image = ["--image", f"debian:12=oci-archive:{plain_base_image.archive}"]
    asked = ["--site", "here.yaml", "--stack", "spoken.yaml", *image]
    run([*HPCGEN, "lock", *asked, "-o", "hpcgen.lock"], env=env, cwd=folder)
    text = (folder / "hpcgen.lock").read_text()
    assert made.sha256("speak") in text and "words-2.0-0.tar.bz2" in text and "words-3.0" not in text
    bundled = [*HPCGEN, "bundle", "create", "--lock", "hpcgen.lock", *image, "-o", "bundle"]
    REPORTS.append(run(bundled, env=env, cwd=folder).stdout.splitlines()[-1])
    assert "pkg:conda/speak@1.4?build=h1234_0" in (folder / "bundle/sbom.cdx.json").read_text()
    name = "localhost/hpcgen-conda:here"
    words = ["build", "--bundle", folder / "bundle", "--format", "docker", "--engine", "buildah", "-o", name]
    done = alone([*HPCGEN, *words], {**buildah.env, "BUILDAH_ISOLATION": "chroot"})
    quiet(done)
    assert buildah.exec(name, ["speak"]).stdout == "one\ntwo\n"
    said = buildah.exec(name, ["sh", "-c", "echo $CONDA_PREFIX $SPOKEN; cat /opt/conda/conda-meta/speak-*.json"]).stdout
    assert said.startswith("/opt/conda yes\n")
    assert f'"url": "{server.url("small")}/linux-64/speak-1.4-h1234_0.conda"' in said
    assert "/opt/python" not in buildah.exec(name, ["sh", "-c", "ls -d /opt/*"]).stdout
