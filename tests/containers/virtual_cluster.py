"""Clusters of virtual nodes on this machine, with a real Slurm, and what goes wrong on one of their nodes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from container_tools import HERE, TESTBED, Argument, Run, Tool, run, script, variables

CPU_FLAGS = ("avx", "avx2", "fma")
"""What a node of an older generation lacks."""


@dataclass(frozen=True)
class VirtualCluster(Tool):
    """A login node n0 and nodes n1, n2, …; each has a network, a host name, /tmp and /dev/shm of its own.

    The faults of a node end with their context.
    """

    folder: Path
    processes: tuple[int, ...]
    partitions = ("nodes",)

    @property
    def prefix(self) -> tuple[str, ...]:
        """Words before a command that is to run on the login node."""
        return self.words(0)

    def words(self, node: int) -> tuple[str, ...]:
        """Words before a command that is to run on a node."""
        return (str(TESTBED / "on-node"), str(self.processes[node]))

    def on(
        self,
        node: int,
        command: Sequence[Argument],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Argument | None = None,
        check: bool = True,
        timeout: float = 600,
    ) -> Run:
        """Run a command on a node, in ``cwd`` or the cluster's folder."""
        return run(
            [*self.words(node), *command],
            env={**self.env, **(env or {})},
            cwd=cwd or self.folder,
            check=check,
            timeout=timeout,
        )

    @contextlib.contextmanager
    def hidden(self, node: int, path: Path) -> Iterator[None]:
        """A folder is empty there, as where a file system was not mounted."""
        with self.full(node, path, "1k"):
            yield

    @contextlib.contextmanager
    def full(self, node: int, path: Path, size: str) -> Iterator[None]:
        """A folder there has room for so much alone."""
        with self._mounted(node, "-t", "tmpfs", "-o", f"size={size},mode=1777", "tmpfs", path):
            yield

    @contextlib.contextmanager
    def instead(self, node: int, path: Path, other: Path) -> Iterator[None]:
        """A file or folder is another one there."""
        with self._mounted(node, "--bind", other, path):
            yield

    @contextlib.contextmanager
    def older_cpu(self, node: int) -> Iterator[None]:
        """Its CPU has no AVX, as far as /proc/cpuinfo tells."""
        words = (word for word in Path("/proc/cpuinfo").read_text().split(" "))
        masked = self.folder / f"cpuinfo-{node}"
        masked.write_text(" ".join(word for word in words if word.strip() not in CPU_FLAGS))
        with self.instead(node, Path("/proc/cpuinfo"), masked):
            yield

    @contextlib.contextmanager
    def slow_network(self, node: int, rate: str, *, queue: str) -> Iterator[None]:
        """It sends no faster than ``rate``; what does not fit into ``queue`` is dropped."""
        self.on(
            node, ["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "5kb", "limit", queue]
        )
        try:
            yield
        finally:
            self.on(node, ["tc", "qdisc", "del", "dev", "eth0", "root"])

    def kill_slurmd(self, node: int) -> None:
        """The node is lost: its daemon and what that started are gone."""
        (daemon,) = (
            int(path.parent.name)
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if _words(path) == ["slurmd", "-D", "-N", f"n{node}"] and str(self.folder) in _environment(path.parent)
        )
        os.kill(daemon, signal.SIGKILL)

    @contextlib.contextmanager
    def _mounted(self, node: int, *words: Argument) -> Iterator[None]:
        self.on(node, ["mount", *words])
        try:
            yield
        finally:
            self.on(node, ["umount", "--lazy", words[-1]])


def _words(cmdline: Path) -> list[str]:
    try:
        return cmdline.read_text().rstrip("\0").split("\0")
    except OSError:
        return []


def _environment(process: Path) -> str:
    try:
        return (process / "environ").read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def virtual_cluster(env: Mapping[str, str], nodes: int, *shared: Path, cpus: int = 2) -> Iterator[VirtualCluster]:
    """Start one, and stop it; ``shared`` are folders in /tmp that all nodes see, beside the project and its Python."""
    # a short path, because it becomes part of a socket's name; and one that testbed/clean knows
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir=env["HPCGEN_TESTBED"]))
    folders = [Path(sys.prefix), HERE.parents[1], Path(env["HPCGEN_TESTBED"]), *shared]
    words = [word for path in folders for word in ("--shared", str(path))]
    started = variables(script("make-cluster", folder, str(nodes), "--cpus", str(cpus), *words, env=env))
    try:
        processes = tuple(int(word) for word in started["CLUSTER_NODES"].split())
        yield VirtualCluster({**env, "SLURM_CONF": started["SLURM_CONF"]}, folder, processes)
    finally:
        script("slurm-stop", folder, env=env)
        shutil.rmtree(folder, ignore_errors=True)
