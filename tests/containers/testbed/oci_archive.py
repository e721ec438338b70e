#!/usr/bin/env python3
"""Make an OCI archive with one layer of a tar file of a root.

Usage: oci_archive.py ROOT.tar ARCHIVE.tar NAME:TAG

No store takes part: importing a root of a gigabyte into one, and exporting it, takes minutes.
"""

import hashlib
import io
import json
import platform
import sys
import tarfile
from pathlib import Path
from typing import Any

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
KIND = "application/vnd.oci.image"


def main(root: Path, archive: Path, name: str) -> None:
    with root.open("rb") as stream:
        layer = hashlib.file_digest(stream, "sha256").hexdigest()
    size = root.stat().st_size
    with tarfile.open(archive, "w") as out:

        def add(path: str, data: bytes) -> None:
            member = tarfile.TarInfo(path)
            member.size = len(data)
            out.addfile(member, io.BytesIO(data))

        def blob(kind: str, content: dict[str, Any]) -> dict[str, Any]:
            data = json.dumps(content).encode()
            digest = hashlib.sha256(data).hexdigest()
            add(f"blobs/sha256/{digest}", data)
            return {"mediaType": f"{KIND}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}

        layers = [{"mediaType": f"{KIND}.layer.v1.tar", "digest": f"sha256:{layer}", "size": size}]
        config = {
            "architecture": ARCHITECTURES[platform.machine()],
            "os": "linux",
            "config": {"Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]},
            "history": [{"created_by": "mmdebstrap"}],
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer}"]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{KIND}.manifest.v1+json",
            "config": blob("config.v1+json", config),
            "layers": layers,
        }
        entry = {**blob("manifest.v1+json", manifest), "annotations": {"org.opencontainers.image.ref.name": name}}
        add("index.json", json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode())
        add("oci-layout", b'{"imageLayoutVersion": "1.0.0"}')
        member = tarfile.TarInfo(f"blobs/sha256/{layer}")
        member.size = size
        with root.open("rb") as stream:
            out.addfile(member, stream)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
