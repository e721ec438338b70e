"""An image and packed data on four virtual nodes: copied or read from the shared folder, whose reads are counted.

The shared folder is a file system on a loop device, mounted by each node by itself: so each node has a page cache of
its own for it, as real nodes have, and the kernel counts what each of them reads.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from container_tools import REPORTS, run
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow
NODES = 4
FILES = 2000
READ = "find /usr /opt -xdev -type f -exec cat {} + > /dev/null; echo packed $(find /mnt/1 -type f | wc -l)"


class SharedFolder:
    """A folder that every node mounts for itself from a device of its own."""

    def __init__(self, folder: Path, content: Path) -> None:
        self.folder = folder
        self.file = folder.with_suffix(".ext4")
        run(["mkfs.ext4", "-q", "-d", content, self.file, "2G"])
        self.loops: dict[int, str] = {}
        self.before: list[float] = [0.0] * NODES

    @contextlib.contextmanager
    def mounted(self, cluster: VirtualCluster) -> Iterator[None]:
        self.folder.mkdir(exist_ok=True)
        try:
            for node in range(NODES + 1):
                self.loops[node] = run(["losetup", "-f", "--show", "-r", self.file]).stdout.strip()
                cluster.on(node, ["mount", "-o", "ro,noload", self.loops[node], self.folder])
            # The kernel counts on for a device that is taken again.
            self.before = [0.0] * NODES
            self.before = self.megabytes()
            yield
        finally:
            for node, loop in self.loops.items():
                cluster.on(node, ["umount", "--lazy", self.folder], check=False)
                run(["losetup", "-d", loop], check=False)

    def megabytes(self) -> list[float]:
        """What each node that runs jobs has read since it was mounted."""
        stats = (Path(f"/sys/block/{Path(self.loops[node]).name}/stat") for node in range(1, NODES + 1))
        read = [int(stat.read_text().split()[2]) * 512 / 1e6 for stat in stats]
        return [round(now - before, 1) for now, before in zip(read, self.before, strict=True)]


@pytest.fixture
def shared(site: SlurmSite[VirtualCluster], mpi_hello_image: Path, tmp_path: Path) -> SharedFolder:
    content = tmp_path / "content"
    (content / "many").mkdir(parents=True)
    for number in range(FILES):
        (content / "many" / str(number)).write_text(f"{number}\n")
    hpcgen = [sys.executable, "-m", "hpcgen"]
    run([*hpcgen, "convert", mpi_hello_image, content / "image.sqfs"])
    run([*hpcgen, "data", "pack", content / "many", "-o", content / "many.sqfs"])
    return SharedFolder(tmp_path / "shared", content)


def start(site: SlurmSite[VirtualCluster], shared: SharedFolder, *words: str) -> subprocess.CompletedProcess[str]:
    image, data = str(shared.folder / "image.sqfs"), f"{shared.folder}/many.sqfs:/mnt/1"
    return site.run("submit", image, "--nodes", str(NODES), "--bind", data, *words, "--", "sh", "-c", READ)


def test_an_image_is_read_once_where_it_is_copied(site: SlurmSite[VirtualCluster], shared: SharedFolder) -> None:
    size = (shared.folder.parent / "content" / "image.sqfs").stat().st_size / 1e6
    read: dict[str, list[float]] = {}
    for stage in ("none", "node"):
        with shared.mounted(site.cluster):
            began = time.monotonic()
            done = start(site, shared, "--stage", stage)
            seconds = time.monotonic() - began
            read[stage] = shared.megabytes()
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.count(f"packed {FILES}") == 2 * NODES, done.stdout + done.stderr
        told = re.findall(r"stage: copied .*", done.stdout + done.stderr)
        assert len(told) == (stage == "node")
        REPORTS.append(f"{NODES} nodes, {size:.0f} MB, stage {stage}: {seconds:.0f} s, MB read: {read[stage]} {told}")
        for node in range(1, NODES + 1):
            left = site.cluster.on(node, ["sh", "-c", "ls /tmp; grep /tmp/hpcgen- /proc/self/mounts || true"]).stdout
            assert f"hpcgen-{os.getuid()}-" not in left
    assert min(read["none"]) > size / 2
    assert sum(read["node"]) < size * 1.5 + NODES and min(read["node"]) < 5
