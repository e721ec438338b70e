"""Caches of a job over two virtual nodes: each rank has a folder on its node, and nothing of it stays there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

pytestmark = pytest.mark.slow
Site = SlurmSite[VirtualCluster]
NODES = 2

BLOCK = '''\
"""Kernels."""

from hpcgen.blocks.base import Block
from hpcgen.blocks.caches import HUGGING_FACE, TRITON
from hpcgen.blocks.capabilities import Capabilities


class Kernels(Block):
    """Something that compiles and downloads."""

    name = "kernels"

    def capabilities(self, ctx):
        return Capabilities(caches=(*TRITON, *HUGGING_FACE))
'''
TABLE = "block: kernels\nupstream: {none: a test's own}\nlicence: Apache-2.0\nreleases:\n  '1': {}\n"
STACK = "name: compiling\ntitle: Compiles\nextends: mpi-hello\nblocks: {kernels: {}}\n"
PROGRAM = 'touch "$TRITON_CACHE_DIR/kernel"; echo "cache $(uname -n) $TRITON_CACHE_DIR $HF_HOME"; sleep '


@pytest.fixture
def compiling(site: Site, mpi_hello_image: Path) -> Callable[..., str]:
    """``compiling(seconds, …)``: submit mpi-hello's image by a stack with caches; what was said."""
    for name, text in (("building_blocks/kernels.py", BLOCK), ("building_blocks/kernels.yaml", TABLE)):
        (site.collection / name).parent.mkdir(exist_ok=True)
        (site.collection / name).write_text(text)
    (site.collection / "recipes").mkdir(exist_ok=True)
    (site.collection / "recipes" / "compiling.yaml").write_text(STACK)

    def submit(seconds: int, *words: str) -> str:
        program = ("--", "bash", "-c", f"{PROGRAM}{seconds}")
        done = site.run("submit", str(mpi_hello_image), "--stack", "compiling", "--nodes", "2", *words, *program)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return submit


def folders(site: Site) -> dict[int, list[str]]:
    """What is of caches in /tmp of each node."""
    listed = {node: site.cluster.on(node, ["find", "/tmp", "-maxdepth", "1", "-name", "hpcgen-*"]) for node in (1, 2)}
    return {node: done.stdout.split() for node, done in listed.items()}


def wait_for(site: Site, count: int) -> None:
    """Until each node has so many."""
    until = time.monotonic() + 60
    while any(len(found) != count for found in folders(site).values()):
        assert time.monotonic() < until, folders(site)
        time.sleep(0.5)


def test_each_rank_has_a_folder_on_its_node_while_it_runs(site: Site, compiling: Callable[..., str]) -> None:
    output = compiling(1)
    found = re.findall(r"^cache (n[12]) (/tmp/hpcgen-cache-\S+) (\S+)$", output, re.MULTILINE)
    assert sorted(node for node, _, _ in found) == ["n1", "n1", "n2", "n2"], output
    assert len({(node, folder) for node, folder, _ in found}) == 4
    assert {downloads for _, _, downloads in found} == {"/mnt/0/.cache/huggingface"}
    assert (site.work / ".cache" / "huggingface").is_dir()
    assert folders(site) == {1: [], 2: []}


def test_a_cancelled_job_leaves_nothing(site: Site, compiling: Callable[..., str]) -> None:
    job = compiling(600, "--no-follow").strip()
    wait_for(site, 2)
    site.cluster.on(0, ["scancel", job])
    wait_for(site, 0)


def test_what_a_killed_job_leaves_goes_with_the_next(site: Site, compiling: Callable[..., str]) -> None:
    job = compiling(600, "--no-follow").strip()
    wait_for(site, 2)
    for node in (2, 1):
        rows = [row.split() for row in site.cluster.on(node, ["scontrol", "listpids", job]).stdout.splitlines()]
        of_ranks = [row[0] for row in rows if row[2] == "0"]
        site.cluster.on(node, ["kill", "-KILL", *of_ranks], check=False)
    until = time.monotonic() + 60
    while site.cluster.on(0, ["squeue", "--noheader", "--jobs", job], check=False).stdout.strip():
        assert time.monotonic() < until
        time.sleep(0.5)
    left = folders(site)
    assert all(left.values()), left
    for node, names in left.items():
        site.cluster.on(node, ["touch", "-d", "10 minutes ago", *names])
    compiling(1)
    assert folders(site) == {1: [], 2: []}


def test_kept_code_comes_back_to_each_rank(site: Site, compiling: Callable[..., str]) -> None:
    compiling(1, "--keep-cache")
    kept = sorted((site.work / ".cache" / "kept").rglob("*.tar"))
    assert [path.name for path in kept] == ["0.tar", "1.tar", "2.tar", "3.tar"]
    assert folders(site) == {1: [], 2: []}
