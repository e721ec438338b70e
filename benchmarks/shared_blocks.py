#!/usr/bin/env python3
"""What a fleet of eight images costs: no store of compiled blocks, an empty one, a full one, an option changed.

Four stacks on two profiles, which differ in CPU target and MPI. It needs podman or ch-image, Debian's source archives
and an index of packages; it takes two hours an engine. podman's own cache is empty at the beginning of each case, and
used within it; ch-image's is off, which it is quicker without.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from builds import TESTBED, Bench, Project, environment
from timing import Command, measured

sys.path[:0] = [str(TESTBED.parent), str(TESTBED.parents[2])]

VERSIONS = {"numactl": "2.0.16", "jemalloc": "5.3.0", "hypre": "2.26.0", "fftw": "3.3.10"}
SOURCES = {name: "fftw3" if name == "fftw" else name for name in VERSIONS}
MPIS = {"haswell": "mpich", "x86_64_v2": "openmpi"}
CASES = {"no store": "both", "empty store": "both", "full store": "both", "an option of fftw": "double"}
"""What fftw is compiled for in each; a later case needs what the ones before it left in the store."""
ROW_SOURCE = {"from": "Debian 12", "checked": "2026-11-29", "as_of": "2026-11-29", "verified": "yes"}
BLOCKS: dict[str, dict[str, Any]] = {
    "numactl": {"version": VERSIONS["numactl"]},
    "jemalloc": {"version": VERSIONS["jemalloc"], "options": {"obtain": "source"}},
    "hypre": {"version": VERSIONS["hypre"]},
    "fftw": {"version": VERSIONS["fftw"]},
    "mpi4py": {"options": {"install": "source"}},
    "rank_test": {},
}
STACKS = {
    "hello": ("rank_test", "numactl", "jemalloc"),
    "ranks": ("rank_test", "mpi4py", "numactl"),
    "solvers": ("rank_test", "hypre", "jemalloc"),
    "both": ("rank_test", "hypre", "fftw", "mpi4py"),
}


def write_collection(folder: Path, stacks: Sequence[str], precision: str, engine: str) -> None:
    """The stacks, and the fleet of all of them on both profiles, built by one program."""
    program = {"ch-image": "charliecloud"}.get(engine, engine)
    members = []
    for name, blocks in ((each, STACKS[each]) for each in stacks):
        chosen = {block: dict(BLOCKS[block]) for block in blocks}
        if "fftw" in chosen:
            chosen["fftw"]["options"] = {"precision": precision}
        run = {"command": ["/opt/rank_test/bin/rank_test"], "gpus_per_node": 0}
        for target, mpi in MPIS.items():
            stack = f"{name}-{mpi}"
            wheels = {mpi: {"options": {"obtain": "wheels"}}, "mpi": {"provider": mpi}}
            described = {"name": stack, "title": stack, "blocks": {**chosen, **wheels}, "run": run}
            (folder / f"recipes/{stack}.yaml").write_text(json.dumps(described), "utf-8")
            members.append({"stack": stack, "site": target.replace("_", "-"), "test": False, "engine": program})
    (folder / "fleet.yaml").write_text(json.dumps({"collections": ["."], "members": members}), "utf-8")


def write_profiles(folder: Path, server: Any) -> None:
    """This machine as two profiles, whose mirror has the archives that the tables' rows name."""
    from container_tools import BaseImage
    from test_rendered_kits import site_profile
    from test_sources import sources

    facts = json.loads(subprocess.run([sys.executable, TESTBED / "machine_facts.py"], capture_output=True).stdout)
    held = sources(facts["debian"]["mirror"], list(SOURCES.values()), folder / "sources")
    for (name, version), content in zip(VERSIONS.items(), held, strict=True):
        server.files[f"{name}-{version}.tar"] = content
        digest = hashlib.sha256(content).hexdigest()
        row = {"archives": {"source": {"url": f"https://example.org/{name}-{version}.tar", "sha256": digest}}}
        if name == "jemalloc":
            row["ways"] = [{"only": {"obtain": ["source"]}}]
        table = {"block": name, "source": ROW_SOURCE, "releases": {version: row}}
        (folder / f"building_blocks/{name}.yaml").write_text(json.dumps(table), "utf-8")
    base = BaseImage("debian:12", "localhost/debian:12", folder / "none", folder / "none")
    for target in MPIS:
        site = site_profile(facts, base) | {"name": target.replace("_", "-")}
        site["partitions"]["cpu"]["cpu"]["target"] = target
        site["network"]["mirrors"]["files"] = server.url("").rstrip("/")
        site["network"]["ca_certificates"] = [*site["network"]["ca_certificates"], str(folder / "certificate.pem")]
        (folder / f"site_profiles/{site['name']}.yaml").write_text(json.dumps(site), "utf-8")


def main() -> None:
    """Build the fleet four times with each engine, and print what each took and fetched."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", action="append", choices=["podman", "ch-image"])
    parser.add_argument("--stack", action="append", choices=[*STACKS], help="only this one; repeatable")
    parser.add_argument("--case", action="append", choices=[*CASES], help="only this one; repeatable")
    asked = parser.parse_args()
    subprocess.run([TESTBED / "make-base"], check=True, capture_output=True)
    from tests.helpers.file_server import make_certificate, serving

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name in ("site_profiles", "recipes", "building_blocks"):
            (folder / name).mkdir()
        with serving(make_certificate(folder)) as server:
            write_profiles(folder, server)
            for engine in asked.engine or ["podman", "ch-image"]:
                measure(engine, asked.stack or [*STACKS], asked.case or [*CASES], folder, server)


def measure(engine: str, stacks: Sequence[str], cases: Sequence[str], folder: Path, server: Any) -> None:
    """The cases, each with no images and records of another."""
    store = ["--cache", str(folder / f"store-{engine}")]
    first = 0.0
    engines = Bench(engine, Project(folder / f"project-{engine}"), folder, environment())
    for case in cases:
        precision, words = CASES[case], [] if case == "no store" else store
        engines.forget()
        write_collection(folder, stacks, precision, engine)
        before = len(server.requests)
        own = {
            "CH_IMAGE_CACHE": "disabled",
            "HPCGEN_RECORDS": str(folder / f"records-{engine}-{case}"),
            "BUILDAH_ISOLATION": "chroot",
        }
        command = [str(Path(sys.executable).with_name("hpcgen")), "build", "--all", "--force", *words]
        log = f"{folder}/log"
        text = f"cd {folder} && {subprocess.list2cmdline(command)} > {log} 2>&1"
        try:
            wall, processor, _ = measured(Command(["/bin/sh", "-c", text], {**engines.env, **own}))
        except SystemExit:
            print(Path(log).read_text("utf-8")[-3000:], file=sys.stderr)
            raise
        fetched = sorted(path for path, _ in server.requests[before:])
        counted = {name: sum(path.startswith(name) for path in fetched) for name in VERSIONS}
        first = first or wall
        share = f"({wall / first:.2f} of the first)"
        print(f"{engine}, {case}: {wall:.0f} s {share}, processors {processor:.0f} s; archives fetched {counted}")
        told = [line for line in Path(log).read_text("utf-8").splitlines() if "blocks of" in line]
        print(*told[:1], sep="\n", flush=True)


if __name__ == "__main__":
    main()
