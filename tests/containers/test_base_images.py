"""A dated base image with its digest, at the mirror of a site: pulled by real engines, and compared where they do not.

The mirror is a registry on loopback with a certificate of its own, because ch-image speaks to no other.
"""

from __future__ import annotations

import base64
import json
import ssl
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from bare import write_bare_base
from container_tools import BaseImage, Run, Sid, Tool, need, run
from loopback_registry import MANIFEST, Registry
from test_build import BLOCK, record_in
from test_rendered_kits import site_profile

from hpcgen.backends.engines.charliecloud import CHECK, base_script
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.support.hashing import sha256_of

TAG = "bookworm-20260918"
HELD = f"proxy/library/debian:{TAG}"
INDEX = "application/vnd.oci.image.index.v1+json"
STACK = "name: small\ntitle: one block\nblocks: {late: {}}\nrun: {command: [sh], mpi: false}\n"


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    words = ["-nodes", "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *words, "-keyout", key, "-out", certificate])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server = Registry("me", "secret", tls)
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def here(testbed_env: dict[str, str], registry: Registry, tmp_path: Path) -> Tool:
    """The machine's tools, each with stores of its own and the way into the registry."""
    need("ch-image", "buildah", "skopeo", "openssl", path=testbed_env["PATH"])
    secret = base64.b64encode(b"me:secret").decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {registry.host: {"auth": secret}}}))
    (tmp_path / "registries.conf").write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    store = f'[storage]\ndriver = "vfs"\ngraphroot = "{tmp_path}/s"\nrunroot = "{tmp_path}/r"\n'
    (tmp_path / "storage.conf").write_text(store)
    own = {
        "REGISTRY_AUTH_FILE": tmp_path / "auth.json",
        "CONTAINERS_REGISTRIES_CONF": tmp_path / "registries.conf",
        "CONTAINERS_STORAGE_CONF": tmp_path / "storage.conf",
        "CH_IMAGE_STORAGE": tmp_path / "ch-image",
        "REQUESTS_CA_BUNDLE": tmp_path / "cert.pem",
        "HPCGEN_RECORDS": tmp_path / "records",
    }
    more = {"CH_IMAGE_USERNAME": "me", "CH_IMAGE_PASSWORD": "secret", "BUILDAH_ISOLATION": "chroot"}
    return Tool({**testbed_env, **{name: str(value) for name, value in own.items()}, **more})


def push(here: Tool, registry: Registry, base: BaseImage) -> tuple[str, str]:
    """Have the tag stand for an index with the base; the digests of index and manifest."""
    place = f"docker://{registry.host}/{HELD}"
    here.run(["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"oci-archive:{base.archive}", place])
    return listed(registry, registry.blobs[registry.manifests[HELD]])


def move(registry: Registry, digest: str) -> tuple[str, str]:
    """Have the tag stand for another image over the same layers; its digests."""
    manifest = json.loads(registry.blobs[digest])
    config = json.loads(registry.blobs[manifest["config"]["digest"]])
    data = json.dumps({**config, "author": "somebody else"}).encode()
    manifest["config"] |= {"digest": stored(registry, data), "size": len(data)}
    return listed(registry, json.dumps(manifest).encode())


def listed(registry: Registry, manifest: bytes) -> tuple[str, str]:
    entry = {
        "mediaType": json.loads(manifest).get("mediaType", MANIFEST),
        "digest": stored(registry, manifest),
        "size": len(manifest),
        "platform": {"architecture": "amd64", "os": "linux"},
    }
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [entry]}).encode()
    registry.manifests[HELD] = stored(registry, index)
    return registry.manifests[HELD], entry["digest"]


def stored(registry: Registry, data: bytes) -> str:
    digest = f"sha256:{sha256_of(data)}"
    registry.blobs[digest] = data
    return digest


def collection(folder: Path, profile: Mapping[str, Any], registry: Registry, digests: tuple[str, str]) -> Path:
    """This machine with the registry for a mirror, and a release table with the image that is there."""
    for name in ("site_profiles", "recipes", "building_blocks"):
        (folder / name).mkdir(parents=True)
    write_bare_base(folder)
    values = dict(Catalog().releases("debian")["12"].values)
    dated = {"name": "debian:12", "dated": TAG, "digest": digests[0], "platforms": {"amd64": digests[1]}}
    table = {"block": "debian", "releases": {"12": {"images": {"default": dated}, "values": values}}}
    (folder / "building_blocks" / "debian.yaml").write_text(yaml.safe_dump(table))
    (folder / "building_blocks" / "late.py").write_text(
        BLOCK.format(name="late", about="the late one", own=False, text="x", commands=[])
    )
    (folder / "building_blocks" / "late.yaml").write_text('block: late\nreleases: {"1": {}}\n')
    (folder / "recipes" / "small.yaml").write_text(STACK)
    mirrors = {"registry": f"{registry.host}/proxy"}
    here = {**profile, "network": {"internet": {"login": True, "compute": True}, "mirrors": mirrors}}
    (folder / "site_profiles" / "here.yaml").write_text(json.dumps(here))
    return folder


def build(here: Tool, folder: Path, engine: str, check: bool = True) -> Run:
    output = str(folder / "image") if engine == "ch-image" else "localhost/dated:1"
    named = ["--site", "here", "--stack", "small", "--engine", engine, "-o", output, "--json", "--notest"]
    options = {"HPCGEN_BUILD_OPTIONS": "--auth" if engine == "ch-image" else ""}
    words = [sys.executable, "-m", "hpcgen", "--collection", str(folder), "build", *named]
    return here.run(words, env=options, check=check)


@pytest.mark.slow
def test_ch_image_pulls_the_dated_image_and_another_one_makes_no_image(
    here: Tool, registry: Registry, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    digests = push(here, registry, base_image)
    folder = collection(tmp_path / "ours", site_profile(machine_facts, base_image), registry, digests)
    done = build(here, folder, "ch-image")
    assert f"image debian:{TAG} {digests[1]}" in record_in(done)["inputs"]
    assert "is not known" not in done.stdout
    # The tag is moved, as a registry that lies would do it.
    other = move(registry, digests[1])
    here.run(["ch-image", "pull", "--auth", f"{registry.host}/{HELD}"])
    failed = build(here, folder, "ch-image", check=False)
    assert failed.returncode == 8, failed.stdout
    assert f"it has {other[1]}, not {digests[1]}" in failed.stdout
    assert "run `ch-image pull" in failed.stdout
    # By hand, with the kit's own script.
    kit = tmp_path / "kit"
    named = ["--site", "here", "--stack", "small", "--format", "charliecloud", "-o", kit]
    here.run([sys.executable, "-m", "hpcgen", "--collection", folder, "render", *named])
    script = here.run(["bash", kit / "build.sh", "--notest", tmp_path / "by-hand"], check=False)
    assert script.returncode == 65, script.stdout
    assert not (tmp_path / "by-hand").exists()
    # Somebody's own image under the name: nobody can say what it is.
    here.run(["ch-image", "import", base_image.root_tar, f"{registry.host}/{HELD}"])
    unknown = build(here, folder, "ch-image")
    assert f"whether {registry.host}/{HELD} is {digests[1]} is not known" in unknown.stdout


@pytest.mark.slow
def test_buildah_takes_the_image_of_the_digest_although_the_tag_is_another_one(
    here: Tool, registry: Registry, base_image: BaseImage, machine_facts: dict[str, Any], tmp_path: Path
) -> None:
    digests = push(here, registry, base_image)
    folder = collection(tmp_path / "ours", site_profile(machine_facts, base_image), registry, digests)
    move(registry, digests[1])
    done = build(here, folder, "buildah")
    assert f"image debian:{TAG} {digests[1]}" in record_in(done)["inputs"]
    said = json.loads(here.run(["buildah", "inspect", "--type", "image", "localhost/dated:1"]).stdout)
    assert said["OCIv1"]["config"]["Labels"]["org.opencontainers.image.base.digest"] == digests[1]


def test_apptainer_takes_the_image_of_the_digest_although_the_tag_is_another_one(
    here: Tool,
    registry: Registry,
    base_image: BaseImage,
    machine_facts: dict[str, Any],
    sid: Sid,
    tmp_path: Path,
) -> None:
    digests = push(here, registry, base_image)
    folder = collection(tmp_path / "ours", site_profile(machine_facts, base_image), registry, digests)
    move(registry, digests[1])
    kit = tmp_path / "kit"
    named = ["--site", "here", "--stack", "small", "--format", "singularity", "-o", kit]
    here.run([sys.executable, "-m", "hpcgen", "--collection", folder, "render", *named])
    definition = (kit / "Singularity.def").read_text()
    assert f"From: {registry.host}/proxy/library/debian@{digests[1]}\n" in definition
    (kit / "cert.pem").write_bytes((tmp_path / "cert.pem").read_bytes())
    env = {
        "HPCGEN_ENGINE": "apptainer",
        "HPCGEN_BUILD_OPTIONS": "--sandbox",
        "SSL_CERT_FILE": "/kit/cert.pem",
        "APPTAINER_DOCKER_USERNAME": "me",
        "APPTAINER_DOCKER_PASSWORD": "secret",
    }
    sid.folder(kit)
    done = sid.run(["bash", "build.sh", "--notest", "image"], binds=[(kit, "/kit")], cwd="/kit", env=env)
    labels = json.loads((kit / "image" / ".singularity.d" / "labels.json").read_text())
    assert labels["org.opencontainers.image.base.digest"] == digests[1], done.stdout


def test_newer_charliecloud_keeps_the_same_of_a_pull(
    here: Tool, registry: Registry, base_image: BaseImage, sid: Sid, tmp_path: Path
) -> None:
    """0.45: build.sh and hpcgen build compare in the same way."""
    digests = push(here, registry, base_image)
    work = sid.folder(tmp_path / "work")
    name = f"{registry.host}/{HELD}"
    (work / "cert.pem").write_bytes((tmp_path / "cert.pem").read_bytes())
    check = f"check_bases {name} {digests[1]} && echo same; check_bases {name} {digests[0]} || echo another\n"
    (work / "check.sh").write_text(f"ch-image pull --auth {name}\n{base_script(CHECK)}{check}")
    env = {
        "REQUESTS_CA_BUNDLE": "/work/cert.pem",
        "CH_IMAGE_STORAGE": "/work/storage",
        "CH_IMAGE_USERNAME": "me",
        "CH_IMAGE_PASSWORD": "secret",
    }
    lines = sid.run(["bash", "/work/check.sh"], binds=[(work, "/work")], env=env).stdout.splitlines()
    assert lines[-3:] == [
        "same",
        f"error: ch-image pulled another {name} than the recipe names: it has {digests[1]}, not {digests[0]}",
        "another",
    ]
