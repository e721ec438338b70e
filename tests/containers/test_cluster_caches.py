"""Caches of ranks in containers on two virtual nodes: each rank has a folder on its node, and nothing of it stays."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from container_tools import BaseImage, run
from leftovers import remove
from virtual_cluster import VirtualCluster

from hpcgen.blocks.caches import HUGGING_FACE, TRITON
from hpcgen.core.support.quoting import line
from hpcgen.launch.caches import Caches

pytestmark = pytest.mark.slow
NODES = 2
HEADER = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks-per-node=2 --partition=nodes --time=5 --output=output\n"
PROGRAM = 'touch "$TRITON_CACHE_DIR/kernel"; echo "cache $(uname -n) $TRITON_CACHE_DIR $HF_HOME"; sleep '


class Jobs:
    """Jobs of two ranks on each node, each started in a container of Charliecloud by the function of job scripts."""

    def __init__(self, cluster: VirtualCluster, root: Path) -> None:
        self.cluster, self.root = cluster, root
        self.work = root.with_name("work")
        self.work.mkdir(exist_ok=True)

    def submit(self, seconds: int, *, keep: bool = False) -> str:
        caches = Caches((*TRITON, *HUGGING_FACE), "/tmp", "", "cpu", keep)
        start = f'srun --mpi=none ch-run -b "$PWD":/mnt/0 -c /mnt/0 {self.root} --'
        words = line([*caches.words(), "bash", "-c", f"{PROGRAM}{seconds}"])
        script = (
            f"{HEADER}set -euo pipefail\nexport HPCGEN_RANKS=4 HOME=/nowhere\n{caches.function()}\n{start} {words}\n"
        )
        (self.work / "job.sh").write_text(script)
        return self.cluster.on(0, ["sbatch", "--parsable", "job.sh"], cwd=self.work).stdout.strip()

    def follow(self, job: str) -> str:
        until = time.monotonic() + 90
        while self.cluster.on(0, ["squeue", "--noheader", "--jobs", job], check=False).stdout.strip():
            assert time.monotonic() < until
            time.sleep(0.3)
        return (self.work / "output").read_text()

    def folders(self) -> dict[int, list[str]]:
        """What is of caches in /tmp of each node."""
        words = ["find", "/tmp", "-maxdepth", "1", "-name", "hpcgen-*"]
        return {node: self.cluster.on(node, words).stdout.split() for node in (1, 2)}

    def wait_for(self, count: int) -> dict[int, list[str]]:
        """Until each node has so many."""
        until = time.monotonic() + 60
        while any(len(found) != count for found in self.folders().values()):
            assert time.monotonic() < until, self.folders()
            time.sleep(0.3)
        return self.folders()


@pytest.fixture(scope="module")
def jobs(cluster: VirtualCluster, plain_base_image: BaseImage) -> Iterator[Jobs]:
    root = cluster.folder / "image"
    root.mkdir()
    run(["tar", "-C", root, "--exclude=./dev/*", "-xf", plain_base_image.root_tar])
    (root / "mnt" / "0").mkdir(parents=True, exist_ok=True)
    yield Jobs(cluster, root)
    remove(root)


def test_each_rank_has_a_folder_on_its_node_while_it_runs(jobs: Jobs) -> None:
    output = jobs.follow(jobs.submit(1))
    found = re.findall(r"^cache (n[12]) (/tmp/hpcgen-cache-\S+) (\S+)$", output, re.MULTILINE)
    assert sorted(node for node, _, _ in found) == ["n1", "n1", "n2", "n2"], output
    assert len({(node, folder) for node, folder, _ in found}) == 4
    assert {downloads for _, _, downloads in found} == {"/mnt/0/.cache/huggingface"}
    assert (jobs.work / ".cache" / "huggingface").is_dir()
    assert jobs.folders() == {1: [], 2: []}


def test_a_cancelled_job_leaves_nothing(jobs: Jobs) -> None:
    job = jobs.submit(600)
    jobs.wait_for(2)
    jobs.cluster.on(0, ["scancel", job])
    jobs.wait_for(0)
    jobs.follow(job)


def test_what_a_killed_job_leaves_goes_with_the_next(jobs: Jobs) -> None:
    job = jobs.submit(600)
    left = jobs.wait_for(2)
    for node in left:
        rows = [row.split() for row in jobs.cluster.on(node, ["scontrol", "listpids", job]).stdout.splitlines()]
        # All processes of the step at once: no trap runs.
        jobs.cluster.on(node, ["kill", "-KILL", *(row[0] for row in rows if row[2] == "0")], check=False)
    jobs.follow(job)
    assert any(jobs.folders().values())
    for node, names in jobs.folders().items():
        jobs.cluster.on(node, ["touch", "--no-create", "-d", "10 minutes ago", "/tmp/none", *names])
    jobs.follow(jobs.submit(1))
    assert jobs.folders() == {1: [], 2: []}


def test_kept_code_is_of_each_rank(jobs: Jobs) -> None:
    jobs.follow(jobs.submit(1, keep=True))
    kept = sorted(path.name for path in (jobs.work / ".cache" / "kept").rglob("*.tar"))
    assert kept == ["0.tar", "1.tar", "2.tar", "3.tar"]
    assert jobs.folders() == {1: [], 2: []}
