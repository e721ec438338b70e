"""Kits for a site with Slingshot, and their jobs with an srun that shows what it is given."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.kit.kit import Kit, make_kit
from hpcgen.planning.planner import make_plan

SITE: dict[str, Any] = {
    "name": "site",
    "title": "A site with Slingshot",
    "system": {"os": "sles", "glibc": "2.31"},
    "partitions": {"main": {"cpu": {"target": "zen3", "cores": 128}, "memory": {"total_gb": 500}}},
    "default_partition": "main",
    "scheduler": {"kind": "slurm"},
    "network": {"internet": {"login": True, "compute": True}},
    "fabric": {"kind": "slingshot", "provider": "cxi"},
    "mpi": {
        "flavour": "cray-mpich",
        "version": "8.1.30",
        "abi": "mpich",
        "root": "/opt/host/mpich",
        "launcher": "srun",
        "pmi": ["pmi2"],
        "binds": [{"source": "/var/run/host", "target": "/var/run/host"}],
        "libraries": ["/var/run/host/mpich"],
    },
}
NVIDIA = {"vendor": "nvidia", "model": "A100", "count": 4, "capability": "8.0"}
AMD = {"vendor": "amd", "model": "MI250X", "count": 8}
INTEL = {"vendor": "intel", "model": "Max 1550", "count": 6}


def kit(
    folder: Path,
    engine: str,
    stack: str = "mpi-hello",
    gpu: dict[str, Any] | None = None,
    ranks: int = 8,
    nodes: int = 1,
    file_systems: dict[str, Any] | None = None,
    **more: Any,
) -> Kit:
    site = json.loads(json.dumps({**SITE, "file_systems": file_systems or {}, **more}))
    site["containers"] = {"preferred": engine, "engines": {engine: {}}}
    if gpu is not None:
        site["partitions"]["main"]["gpu"] = gpu
    (folder / "site.yaml").write_text(json.dumps(site))
    catalog = Catalog()
    job = JobRequest(nodes=2, ranks_per_node=ranks // 2) if stack == "mpi-hello" else JobRequest(nodes=nodes)
    return make_kit(make_plan(catalog, catalog.site(str(folder / "site.yaml")), catalog.stack(stack), job=job), catalog)


def run_job(
    folder: Path,
    job: str,
    shown: str = "--environment=* | --edf=*",
    programs: Mapping[str, str] | None = None,
    image: str = "",
) -> subprocess.CompletedProcess[str]:
    """The job with an srun that shows the definition file that it was given, or with ``shown="*"`` its words.

    Parameters
    ----------
    programs: further programs, as lines of shell by name.
    image: what HPCGEN_IMAGE says.
    """
    # Not in the folder itself, whose name may have a colon.
    place = Path(tempfile.mkdtemp(dir=folder.parent))
    show = 'printf "%s\\n" "$word"' if shown == "*" else 'cat "${word#*=}"'
    srun = f"for word; do case $word in {shown}) {show};; esac; done"
    for name, text in {"srun": srun, **(programs or {})}.items():
        (place / name).write_text(f"#!/bin/bash\n{text}\n")
        (place / name).chmod(0o755)
    (folder / "mpi-hello.sqsh").touch()
    (folder / "job.slurm").write_text(job)
    env = {**os.environ, "PATH": f"{place}:{os.environ['PATH']}", "HPCGEN_PREFLIGHT": "0"}
    env |= {"HPCGEN_IMAGE": image} if image else {}
    return subprocess.run(["bash", "job.slurm"], cwd=folder, env=env, capture_output=True, text=True)
