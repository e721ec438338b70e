"""Small real bundles for tests: a lock, files that a server or a folder has, base images made here."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import random
import tarfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from hpcgen.core.model.bundle import Manifest, WantedFile
from hpcgen.core.model.image_paths import image_name
from hpcgen.core.model.lock import ImagePin, Lock, Pins
from hpcgen.images.oci_layout import REF_NAME
from hpcgen.supply.bundle.create import Creation, create_bundle
from hpcgen.supply.net.download import RetryPolicy
from tests.helpers import locks

EPOCH = 1760000000
QUICK = RetryPolicy(connect_s=5, silence_s=1, stall_s=2, stall_bytes=1000, rounds=3, pause_s=0.01, longest_pause_s=0.2)


def content(name: str, size: int = 20_000) -> bytes:
    return random.Random(name).randbytes(size)


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def a_lock(images: Mapping[str, ImagePin] | None = None, epoch: int = EPOCH, site: str = "workstation") -> Lock:
    """A lock that pins nothing but what is given; the plan is that of the smallest stack."""
    return _lock(tuple((images or {}).items()), epoch, site)


@cache
def _lock(images: tuple[tuple[str, ImagePin], ...], epoch: int, site: str) -> Lock:
    settings = ("base.provider=debian",) if site == "workstation" else ()
    return locks.lock("mpi-hello", site, settings=settings, pinned=Pins(images=dict(images), epoch=epoch))


def wants(
    folder: Path, names: Sequence[str], kinds: Sequence[str] = ("archive", "wheel", "hpcgen", "bazel")
) -> list[WantedFile]:
    """Files that lie in a folder, of several kinds; a name is also what is in it."""
    folder.mkdir(exist_ok=True)
    found = []
    for number, name in enumerate(names):
        data = content(name)
        (folder / name).write_bytes(data)
        kind: Any = kinds[number % len(kinds)]
        urls = [(folder / name).as_uri()]
        found.append(WantedFile(kind=kind, name=f"{name} 1", file=name, sha256=sha(data), urls=urls, size=len(data)))
    return found


NAMES = [f"file-{number}.tar.gz" for number in range(8)]


def make(
    tmp_path: Path, target: str = "B", names: Sequence[str] = NAMES, lock: Lock | None = None, **how: Any
) -> Manifest:
    """A whole bundle ``tmp_path / target``."""
    how = {"policy": QUICK, "catalog": locks.CATALOG, **how}
    return create_bundle(lock or a_lock(), wants(tmp_path / "origin", names), tmp_path / target, Creation(**how))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# base images


def an_image(seed: str) -> dict[str, bytes]:
    """Blobs of an image of one layer, by digest without ``sha256:``; the manifest is the last."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        member = tarfile.TarInfo("etc/os-release")
        data = f"ID={seed}\n".encode() * 200
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    layer = gzip.compress(packed.getvalue(), mtime=0)
    diff = f"sha256:{sha(packed.getvalue())}"
    config = json.dumps(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Env": ["A=b"]},
            "rootfs": {"type": "layers", "diff_ids": [diff]},
        }
    ).encode()
    oci = "application/vnd.oci.image"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{oci}.manifest.v1+json",
            "config": {"mediaType": f"{oci}.config.v1+json", "digest": f"sha256:{sha(config)}", "size": len(config)},
            "layers": [{"mediaType": f"{oci}.layer.v1.tar+gzip", "digest": f"sha256:{sha(layer)}", "size": len(layer)}],
        }
    ).encode()
    return {sha(blob): blob for blob in (layer, config, manifest)}


def image_pin(seed: str) -> ImagePin:
    return ImagePin(digest=f"sha256:{list(an_image(seed))[-1]}", origin=f"docker://registry.example.org/{seed}")


def put_image(layout: Path, name: str, seed: str) -> None:
    """Add an image to a layout, as a tool does."""
    folder = layout / "blobs" / "sha256"
    folder.mkdir(parents=True, exist_ok=True)
    blobs = an_image(seed)
    for digest, data in blobs.items():
        (folder / digest).write_bytes(data)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    index = layout / "index.json"
    known = msgspec.json.decode(index.read_bytes())["manifests"] if index.is_file() else []
    digest, data = list(blobs.items())[-1]
    entry = {
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "digest": f"sha256:{digest}",
        "size": len(data),
        "annotations": {REF_NAME: image_name(name)},
    }
    others = [each for each in known if each["annotations"] != entry["annotations"]]
    index.write_text(json.dumps({"schemaVersion": 2, "manifests": [entry, *others]}))
