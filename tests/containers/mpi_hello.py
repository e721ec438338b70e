"""The stack mpi-hello for this machine with an Intel MPI as its host's, for all tests that start it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from container_tools import BaseImage, HostMpi

HOST_ROOT = "/opt/host-mpi"

OTHER_MPI = {
    "OMPI_MCA_pml": "yalla",
    "OPAL_PREFIX": "/nowhere/openmpi",
    "PMIX_INSTALL_PREFIX": "/nowhere/pmix",
    "PMIX_MCA_mca_base_component_path": "/nowhere/pmix/lib/pmix",
    "PRTE_PREFIX": "/nowhere/prrte",
    "I_MPI_OFI_LIBRARY": "/nowhere/lib/libfabric.so.1",
    "I_MPI_PMI_LIBRARY": "/nowhere/lib/libpmi2.so",
    "FI_PROVIDER_PATH": "/nowhere/lib/libfabric",
    "SSL_CERT_FILE": "/nowhere/ca-bundle.pem",
}
"""What modules of a host set for MPIs that an image has not; the files are the host's alone."""


def profile(facts: dict[str, Any], base: BaseImage, host: HostMpi, **more: Any) -> dict[str, Any]:
    """This machine with an Intel MPI of its own, bound into the image at another path than the image's."""
    from test_rendered_kits import site_profile

    result = site_profile(facts, base)
    result["mpi"] = {
        "flavour": "intel",
        "version": "2021.17.2",
        "abi": "mpich",
        "root": HOST_ROOT,
        "libraries": [f"{HOST_ROOT}/lib"],
        "binds": [{"source": str(host.root), "target": HOST_ROOT}],
        "launcher": "mpiexec",
    }
    return {**result, **more}


def render(site: dict[str, Any], folder: Path, *words: str) -> Path:
    collection = folder / "collection"
    (collection / "site_profiles").mkdir(parents=True)
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    command = [sys.executable, "-m", "hpcgen", "--collection", collection, "render", "--site", "here"]
    job = ["--stack", "mpi-hello", "--ranks-per-node", "2", "--threads", "1", "--time", "5m"]
    subprocess.run([*command, *job, *words, "-o", folder / "kit"], check=True)
    return folder / "kit"
