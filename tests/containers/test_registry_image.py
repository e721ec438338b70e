"""An image of a registry, read where it lies: what is in it, whether it will work here, and as the start of a stack."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, run
from loopback_registry import Registry
from test_foreign_base import project
from test_locking import registry
from test_rendered_kits import site_profile

__all__ = ["registry"]

pytestmark = pytest.mark.slow


def test_an_image_of_a_registry_is_read_held_against_a_machine_and_locked(
    registry: Registry,
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = f"docker://{registry.host}/group/base:12"
    run(["skopeo", "copy", "--quiet", f"oci-archive:{base_image.archive}", named])
    digest = registry.manifests["group/base:12"]
    folder = project(tmp_path / "own", site_profile(machine_facts, base_image), "", named)

    def hpcgen(*words: str, check: bool = True) -> str:
        return run([sys.executable, "-m", "hpcgen", "--collection", "ours", *words], cwd=folder, check=check).stdout

    said, _, read = hpcgen("inspect", named, "--json").partition("{")
    told = json.loads("{" + read)
    assert f"from {registry.host}" in said and told["image"]["name"] == f"{named}@{digest}"
    assert told["image"]["bytes"] > 1_000_000 and told["facts"]["system"]["distribution"]["value"] == "debian"
    assert f"{named}@{digest} (oci-archive" in hpcgen("inspect", f"{named}@{digest}")
    checks = hpcgen("contract", "--image", named, "--site", "here", check=False)
    assert "C library" in checks and "broken" not in checks, checks
    hpcgen("lock", "--site", "here", "--stack", "more", "--format", "docker", "-o", "more.lock")
    assert digest in (folder / "more.lock").read_text()
    packed = f"docker://{registry.host}/group/packed:1"
    plain = f"dir:{tmp_path}/plain"
    run(["skopeo", "copy", "--quiet", "--dest-decompress", f"oci-archive:{base_image.archive}", plain])
    run(["skopeo", "copy", "--quiet", "--format", "oci", "--dest-compress-format", "zstd", plain, packed])
    told, before = json.loads("{" + hpcgen("inspect", packed, "--json").partition("{")[2]), told
    assert any(blob.startswith(b"\x28\xb5\x2f\xfd") for blob in registry.blobs.values())
    assert told["facts"] == before["facts"]
    # Nobody's password, then a connection that nobody said may be without encryption.
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))
    assert f"skopeo login {registry.host}" in hpcgen("inspect", named, check=False)
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    assert re.search("HTTPS client|TLS handshake", hpcgen("inspect", named, check=False))
