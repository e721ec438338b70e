"""Measurements over virtual nodes: PyTorch trains over them, in a job of a real Slurm by the host's mpiexec."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, HostMpi
from leftovers import kept_while_used
from mpi_hello import profile
from slurm_site import SlurmSite
from test_rendered_kits import INTEL_MPI, render_by_command, settings
from torch_mirror import TorchMirror
from virtual_cluster import VirtualCluster

from hpcgen.plugins.tuning.measurements.lines import read_lines

pytestmark = pytest.mark.slow
Site = SlurmSite[VirtualCluster]
NODES = 2


@pytest.fixture(scope="module")
def ddp(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    host_mpi: HostMpi,
    ch_image: ChImage,
    torch_mirror: TorchMirror,
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """The image of pytorch-ddp, with room for the host's MPI."""
    with kept_while_used(request, tmp_path_factory, "ddp") as folder:
        profiles = folder / "collection" / "site_profiles"
        profiles.mkdir(parents=True)
        here = torch_mirror.added_to(profile(machine_facts, plain_base_image, host_mpi))
        (profiles / "here.yaml").write_text(json.dumps(here))
        words = ["--site", "here", "--stack", "pytorch-ddp", *settings(INTEL_MPI)]
        render_by_command(folder / "collection", folder / "kit", *words)
        options = {"HPCGEN_BUILD_OPTIONS": "--no-cache"}
        ch_image.run(["bash", folder / "kit" / "build.sh", folder / "image"], cwd=folder, env=options)
        yield folder / "image"


def test_a_training_over_two_nodes_is_measured(site: Site, ddp: Path) -> None:
    rows = site.work / "rows.jsonl"
    words = ["--workload", "mlp,gan3d,allreduce,gemm", "--layout", "2x1", "--rounds", "1", "--seconds", "1"]
    job = ["--nodes", "2", "--submit", "--time", "10m"]
    done = site.hpcgen("bench", str(ddp), "--site", "here", *words, *job, "--to", str(rows))
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    found = {(row.workload.name, row.metric): row for row in read_lines(rows, "rows")}
    for workload in ("mlp", "gan3d"):
        row = found[workload, "samples_per_second"]
        assert (row.nodes, row.ranks_per_node, row.software.mpi) == (2, 2, "host")
    assert ("allreduce", "gigabytes_per_second") in found
    assert 0.3 < found["mlp", "memory_gb"].value < 8


def test_rounds_are_measured_by_tasks_and_gathered_at_the_end(site: Site, ddp: Path) -> None:
    rows = site.work / "rows.jsonl"
    words = ["--workload", "gemm,mnist-cnn", "--vary", "threads=1,2", "--rounds", "3", "--seconds", "1"]
    job = ["--submit", "--tasks", "2", "--time", "10m"]
    done = site.hpcgen("bench", str(ddp), "--site", "here", *words, *job, "--to", str(rows))
    assert done.returncode == 0, done.stdout + done.stderr
    print(done.stdout)
    assert "the baseline of the comparison" in done.stdout
    # The job at the end had nothing to measure.
    (output,) = site.work.glob("bench-end-pytorch-ddp.*.out")
    assert "round 1 of 3" not in output.read_text()
    found = [row for row in read_lines(rows, "rows") if row.metric == "samples_per_second"]
    assert [(row.threads_per_rank, row.repetitions) for row in found] == [(1, 3), (2, 3)]
    assert len(list((site.work / "bench-rounds-1").glob("*-round-*.json"))) == 6
