"""Statements and bills of materials beside an image in a registry, by skopeo: pushed, listed, read and checked."""

from __future__ import annotations

import hashlib
import json
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from container_tools import Run, run
from loopback_registry import MANIFEST, Registry
from test_locking import registry

from hpcgen.builders.records.provenance import provenance_text
from hpcgen.builders.records.store import save
from hpcgen.core.model.record import BuildRecord, BuiltImage, ImageKindName
from hpcgen.core.support.signatures import PROVENANCE, sign
from hpcgen.plugins.fleet.records import LockedImage, read_lock, update_lock
from hpcgen.supply.pin.referrers import CYCLONEDX, IN_TOTO, SSH_SIGNATURE, AttachedDocument, attach, manifest_of
from tests.helpers.ssh_keys import allowed, ssh_key

__all__ = ["registry"]

CONTENT = "a" * 64


@pytest.fixture
def published(registry: Registry, tmp_path: Path) -> str:
    """The name in the registry of an image beside which there is what alice signed."""
    for name in ("alice", "eve"):
        ssh_key(tmp_path / name)
        allowed(tmp_path / f"{name}s", {f"{name}@example.org": tmp_path / name})
    layout = tmp_path / "layout"
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
    described = _blob(layout, "application/vnd.oci.image.config.v1+json", json.dumps(config).encode())
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": described, "layers": []}
    first = _blob(layout, MANIFEST, json.dumps(manifest).encode())
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [first]}))
    (layout / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
    name = f"{registry.host}/hpc/one:1"
    run(["skopeo", "copy", "--quiet", "--preserve-digests", f"oci:{layout}", f"docker://{name}"])
    attach_as(name, tmp_path / "alice")
    return name


def _blob(layout: Path, kind: str, data: bytes) -> dict[str, Any]:
    sha256 = hashlib.sha256(data).hexdigest()
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs/sha256" / sha256).write_bytes(data)
    return {"mediaType": kind, "digest": f"sha256:{sha256}", "size": len(data)}


def record(kind: ImageKindName, name: str, digest: str) -> BuildRecord:
    image = BuiltImage(kind=kind, name=name, digest=digest)
    fields = {"partition": "main", "format": "docker", "engine": "buildah", "content": CONTENT, "image": image}
    started = "2026-11-20T10:00:00Z"
    return BuildRecord(id="0a1b", hpcgen="0.2.0", started=started, site="workstation", stack="mpi-hello", **fields)


def attach_as(name: str, key: Path) -> None:
    """What fleet publish --sign puts beside an image that it pushed."""
    digest, manifest = manifest_of(name)
    statement = provenance_text(record("podman", name, digest)).encode()
    signature = sign(statement, key, PROVENANCE).encode()
    parts = ((IN_TOTO, statement), (SSH_SIGNATURE, signature))
    attach(
        name,
        digest,
        manifest,
        [AttachedDocument(IN_TOTO, parts), AttachedDocument(CYCLONEDX, ((CYCLONEDX, b"{}"),))],
        None,
    )


def hpcgen(folder: Path, *words: str, check: bool = True) -> Run:
    return run([sys.executable, "-m", "hpcgen", *words], cwd=folder, check=check)


def listed(registry: Registry, published: str) -> list[dict[str, Any]]:
    """What lies beside it, by the tag, and by the API that this registry has."""
    digest = registry.manifests[published.partition("/")[2]]
    index = registry.manifests[f"hpc/one:{digest.replace(':', '-')}"]
    by_tag: list[dict[str, Any]] = json.loads(registry.blobs[index])["manifests"]
    asked = urllib.request.Request(f"http://{registry.host}/v2/hpc/one/referrers/{digest}")
    asked.add_header("Authorization", registry.wanted)
    with urllib.request.urlopen(asked) as answer:
        by_api = json.load(answer)["manifests"]
    assert {each["digest"] for each in by_tag} == {each["digest"] for each in by_api}
    assert sorted(each["artifactType"] for each in by_api)[:2] == [CYCLONEDX, IN_TOTO]
    return by_tag


def outcomes(folder: Path, name: str, *words: str) -> tuple[int, dict[str, str]]:
    done = hpcgen(folder, "verify", f"docker://{name}", *words, "--json", check=False)
    assert "[" in done.stdout, done.stdout
    return done.returncode, {each["name"]: each["outcome"] for each in json.loads(done.stdout)}


def test_a_published_image_is_verified_by_what_lies_beside_it(
    registry: Registry, published: str, tmp_path: Path
) -> None:
    assert len(listed(registry, published)) == 2
    good = {"signature": "holds", "digest": "holds"}
    digest = registry.manifests[published.partition("/")[2]]
    by_digest = f"{published.rpartition(':')[0]}@{digest}"
    assert outcomes(tmp_path, published, "--signer", "alices") == (0, good)
    assert outcomes(tmp_path, by_digest, "--signer", "alices") == (0, good)
    assert outcomes(tmp_path, published, "--signer", "eves") == (6, {**good, "signature": "does not hold"})
    # What others put there comes beside it; whose word counts the reader says.
    attach_as(published, tmp_path / "eve")
    assert len(listed(registry, published)) == 3
    for signers in ("alices", "eves"):
        assert outcomes(tmp_path, published, "--signer", signers) == (0, good)


def test_another_image_under_the_name_is_not_the_one_that_was_signed(
    registry: Registry, published: str, tmp_path: Path
) -> None:
    name = published.partition("/")[2]
    signed = registry.manifests[name]
    changed = registry.blobs[signed].replace(b"{", b"{ ", 1)
    other = f"sha256:{hashlib.sha256(changed).hexdigest()}"
    registry.blobs[other], registry.manifests[name] = changed, other
    done = hpcgen(tmp_path, "verify", f"docker://{published}", "--signer", "alices", check=False)
    assert done.returncode == 3 and "has no provenance statement" in done.stdout and other in done.stdout, done.stdout
    # The list of the signed one under the other's tag: the subject says whose it is.
    tag = "hpc/one:{}".format
    registry.manifests[tag(other.replace(":", "-"))] = registry.manifests[tag(signed.replace(":", "-"))]
    done = hpcgen(tmp_path, "verify", f"docker://{published}", "--signer", "alices", check=False)
    assert done.returncode == 3 and "has no provenance statement" in done.stdout, done.stdout


def test_fleet_publish_puts_them_beside_what_it_pushes(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image with one file, in a store of its own."""
    (tmp_path / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/s"\nrunroot = "{tmp_path}/r"\n'
    )
    monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
    monkeypatch.setenv("HPCGEN_RECORDS", str(tmp_path / "records"))
    container = run(["buildah", "from", "scratch"]).stdout.split()[-1]
    (tmp_path / "os-release").write_text("ID=debian\nVERSION_ID=12\n")
    run(["buildah", "copy", container, tmp_path / "os-release", "/etc/os-release"])
    run(["buildah", "commit", container, "localhost/one:latest"])
    ssh_key(tmp_path / "alice")
    allowed(tmp_path / "alices", {"alice@example.org": tmp_path / "alice"})
    members = [{"stack": "mpi-hello", "site": "workstation", "name": "one"}]
    (tmp_path / "fleet.yaml").write_text(json.dumps({"registry": f"{registry.host}/hpc", "members": members}))
    image = LockedImage(content=CONTENT, format="docker", engine="buildah", image="podman:one:latest")
    update_lock(tmp_path / "fleet.lock", {"one": image})
    refused = hpcgen(tmp_path, "fleet", "publish", "--sign", "alice", check=False)
    assert refused.returncode == 7 and "no local record" in refused.stdout and not registry.manifests, refused.stdout
    save(record("podman", "one:latest", f"sha256:{'0' * 64}"))
    hpcgen(tmp_path, "fleet", "publish", "--sign", "alice")
    locked = read_lock(tmp_path / "fleet.lock")["one"]
    assert registry.manifests[locked.published.partition("/")[2]] == locked.digest
    assert len(listed(registry, locked.published)) == 2
    good = {"signature": "holds", "digest": "holds"}
    assert outcomes(tmp_path, locked.published, "--signer", "alices") == (0, good)
