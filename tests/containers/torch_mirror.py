"""PyTorch's wheel for the CPU by its address in the release table, from a mirror on the loopback."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpcgen.api import default_catalog
from hpcgen.blocks.ways import in_use, wheel_for
from tests.helpers.file_server import FileServer, make_certificate, serving

TORCH = "2.13.0"
FOR_THE_CPU = {"accelerator": "cpu", "install": "wheel"}


@dataclass(frozen=True)
class TorchMirror:
    """A site's mirror of files that has the wheel."""

    server: FileServer
    certificate: Path

    def added_to(self, site: dict[str, Any]) -> dict[str, Any]:
        """A profile with this mirror, and with the authority that signed its certificate."""
        network = site["network"]
        return {
            **site,
            "network": {
                **network,
                "mirrors": {**network["mirrors"], "files": self.server.url("").rstrip("/")},
                "ca_certificates": [*network["ca_certificates"], str(self.certificate)],
            },
        }


@contextlib.contextmanager
def torch_mirror_in(folder: Path) -> Iterator[TorchMirror]:
    """Start one, with the wheel from wherever this machine's pip has it."""
    wheel = _fetched(folder / "wheels")
    row = in_use(default_catalog().releases("pytorch")[TORCH], FOR_THE_CPU, "x86_64")
    here = wheel_for(row, "3.11.2", "x86_64")
    assert here is not None
    certificate = make_certificate(folder)
    with serving(certificate) as server:
        server.files[here.url.rsplit("/", 1)[1]] = wheel.read_bytes()
        yield TorchMirror(server, folder / "certificate.pem")


def _fetched(folder: Path) -> Path:
    words = ["download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", "3.11", "--dest", folder]
    subprocess.run([sys.executable, "-m", "pip", *words, f"torch=={TORCH}+cpu"], check=True)
    (found,) = folder.iterdir()
    return found
