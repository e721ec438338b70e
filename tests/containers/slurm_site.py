"""hpcgen called at a site with Slurm, whose host has an Intel MPI: this machine, or a cluster of virtual nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Generic, TypeVar

from container_tools import BaseImage, HostMpi, Slurm
from mpi_hello import profile
from virtual_cluster import VirtualCluster

ClusterType = TypeVar("ClusterType", Slurm, VirtualCluster)


class SlurmSite(Generic[ClusterType]):
    """A profile with a Slurm's first queue, and hpcgen called for it; ``work`` is where jobs are submitted from."""

    def __init__(
        self,
        folder: Path,
        facts: dict[str, Any],
        base: BaseImage,
        host: HostMpi,
        cluster: ClusterType,
    ) -> None:
        self.profile = profile(facts, base, host, scheduler={"kind": "slurm", "output": "./%x.%j.out"})
        self.profile["mpi"].update(bootstrap="slurm", pmi=["hydra"])
        self.profile["partitions"]["cpu"]["queues"] = [{"name": cluster.partitions[0]}]
        if isinstance(cluster, VirtualCluster):
            # Every node takes all processors for its own, and would bind its first rank to the first of them.
            self.profile["mpi"]["environment"] = {"I_MPI_PIN": "off"}
        self.collection = folder / "collection"
        self.work = folder / "work"
        self.work.mkdir()
        self.write()
        path = os.pathsep.join([str(folder / "bin"), str(host.root / "bin"), host.env["PATH"]])
        self.env = {**cluster.env, **host.env, "PATH": path, "SLURM_CONF": cluster.env["SLURM_CONF"]}
        self.cluster = cluster
        self.host = host

    def write(self) -> None:
        (self.collection / "site_profiles").mkdir(parents=True, exist_ok=True)
        (self.collection / "site_profiles" / "here.yaml").write_text(json.dumps(self.profile))

    def command(self, name: str, *words: str) -> list[str]:
        """hpcgen's words for a job of two ranks on each node, where Slurm's commands work."""
        site = ["--site", "here", "--ranks-per-node", "2", "--threads", "1", "--time", "5m"]
        return self.words(name, *site, *words)

    def words(self, *words: str) -> list[str]:
        hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(self.collection), *words]
        return [*self.cluster.prefix, *hpcgen]

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.call(self.command(name, *words))

    def hpcgen(self, *words: str) -> subprocess.CompletedProcess[str]:
        """hpcgen with these words alone, where Slurm's commands work."""
        return self.call(self.words(*words))

    def call(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=self.work, env=self.env, capture_output=True, text=True, timeout=300)
