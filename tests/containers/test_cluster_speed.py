"""Figures of OSU's benchmarks over two virtual nodes: recorded, held against themselves, and a throttled network.

``HPCGEN_TEST_OSU`` names the sources of OSU's benchmarks 7, such as a clone of
https://github.com/sherrywong1220/osu-micro-benchmarks-7.4, which are compiled for the host's Intel MPI. The good runs
need a machine that does little else: where many programs wait for its processors, a message takes their time slices,
and what is slow is not judged.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import REPORTS, HostMpi
from slurm_site import SlurmSite
from virtual_cluster import VirtualCluster

from hpcgen.api import default_catalog
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan

pytestmark = pytest.mark.slow
Site = SlurmSite[VirtualCluster]
NODES = 2
SIZES = {"latency": "8:8192", "bandwidth": "8:65536"}
"""Small messages and few of them: a run takes seconds."""

TOLERANCE = {"bandwidth": "0.8", "bandwidth_within_node": "0.5"}
"""Wide, since four ranks share the machine's processors, for latencies and the start most of all. TCP within a node
has about a third of the bandwidth of shared memory here.
"""


@pytest.fixture(scope="module")
def image(mpi_hello_image: Path, host_mpi: HostMpi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """mpi-hello with osu_latency and osu_bw, and the tests that the block has for several nodes."""
    sources = os.environ.get("HPCGEN_TEST_OSU", "")
    assert sources, "HPCGEN_TEST_OSU must name the sources of OSU's benchmarks"
    folder = tmp_path_factory.mktemp("osu")
    shutil.copytree(sources, folder / "src")
    host_mpi.run(
        [folder / "src/configure", *(f"{name}={host_mpi.root}/bin/mpicc" for name in ("CC", "CXX"))], cwd=folder / "src"
    )
    programs = folder / "src/c/mpi/pt2pt/standard"
    host_mpi.run(["make", "-C", programs, "osu_latency", "osu_bw"])
    # Next to the other, whose files it shares.
    made = mpi_hello_image.parent / "image-with-osu"
    shutil.copytree(mpi_hello_image, made, symlinks=True, copy_function=os.link)
    (made / "opt/osu/bin").mkdir(parents=True)
    for name in ("osu_latency", "osu_bw"):
        shutil.copy(programs / name, made / "opt/osu/bin")
    facts = made / "opt/hpcgen/kit/recipe.json"
    text = json.loads(facts.read_text()) | {"rank_tests": osu_tests()}
    facts.unlink()
    facts.write_text(json.dumps(text))
    yield made
    shutil.rmtree(made)


def osu_tests() -> list[dict[str, Any]]:
    """Those of the block for two ranks, shortened."""
    catalog = default_catalog()
    kit = make_kit(make_plan(catalog, catalog.site("slurm-cpu"), catalog.stack("net-test")), catalog)
    found = [each for each in json.loads(kit.files["recipe.json"].text)["rank_tests"] if each.get("measure")]
    for each in found:
        each["command"] += f" -x 5 -i 30 -m {SIZES[each['measure'].partition('_')[0]]}"
    return found


def run_tests(site: Site, image: Path, *words: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """``hpcgen test`` in an allocation of two nodes: its exit code, and the results by their names."""
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(site.collection), "test", str(image)]
    layout = ["--nodes", "2", "--ranks-per-node", "2", "--threads", "1", "--json", *words]
    asked = ["salloc", "-Q", "--nodes=2", "--ntasks-per-node=2", "--partition=nodes", "--time=9"]
    call = [*site.cluster.prefix, *asked, *hpcgen, *([] if "--site" in words else ["--site", "here"]), *layout]
    done = subprocess.run(call, cwd=site.work, env=site.env, capture_output=True, text=True, timeout=600)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return done.returncode, {each["name"]: each for each in json.loads(done.stdout)["results"]}


def recorded(site: Site, image: Path) -> dict[str, Any]:
    """The figures of a first run; without any in the profile nothing is judged, and that is said."""
    file = site.work / "here-measured.yaml"
    status, results = run_tests(site, image, "--record", str(file))
    assert status == 0, results
    assert results["latency"]["judgement"]["result"] == "unknown"
    assert "not judged: partitions.cpu.performance.latency is unknown" in results["latency"]["reason"]
    text = yaml.safe_load(file.read_text())
    facts: dict[str, Any] = text["partitions"]["cpu"]["performance"]
    assert set(facts) == {"latency", "bandwidth", "latency_within_node", "bandwidth_within_node", "start_up"}
    assert text["sources"]["partitions.cpu.performance"]["from"].startswith("measured by hpcgen test of ")
    return facts


def expect(site: Site, facts: dict[str, Any]) -> None:
    """Put figures into the profile."""
    for measure, fact in facts.items():
        fact["tolerance"] = TOLERANCE.get(measure, "6")
    site.profile["partitions"]["cpu"]["performance"] = facts
    site.profile["sources"] = {"partitions.cpu.performance": {"from": "a first run", "checked": "2026-11-29"}}
    site.profile["sources"]["partitions.cpu.performance"]["verified"] = "yes"
    site.write()


@contextlib.contextmanager
def throttled(site: Site) -> Iterator[None]:
    """n1, which has the sending rank, sends at a hundredth of what it could, and loses what comes faster."""
    with site.cluster.slow_network(1, "100mbit", queue="20kb"):
        yield


@contextlib.contextmanager
def no_shared_memory(site: Site) -> Iterator[None]:
    """Ranks of one node talk by TCP, too."""
    site.profile["mpi"]["environment"] = {**site.profile["mpi"]["environment"], "I_MPI_FABRICS": "ofi"}
    site.write()
    yield


def test_a_throttled_network_fails_with_its_cause_and_twenty_good_runs_pass(site: Site, image: Path) -> None:
    expect(site, recorded(site, image))
    judged = 0
    for number in range(1, 21):
        status, results = run_tests(site, image)
        figures = {name: each["judgement"] for name, each in results.items() if "judgement" in each}
        told = [
            f"{name} {each['measured']:.4g} {each['unit']} of {each['expected']:.4g}" for name, each in figures.items()
        ]
        REPORTS.append(f"good run {number}: {'; '.join(told)}")
        assert status == 0, [each["reason"] for each in results.values() if each["result"] == "failed"]
        assert len(figures) == 5
        judged += all(each["result"] == "good" for each in figures.values())
    REPORTS.append(f"{judged} of 20 good runs were judged, the others ran on a busy machine")
    assert judged >= 10
    with throttled(site):
        status, results = run_tests(site, image)
    REPORTS.append(f"throttled: {results['bandwidth']['reason']}")
    assert status == 9
    assert results["bandwidth"]["result"] == "failed"
    found = results["bandwidth"]["judgement"]
    assert any(cause.startswith("losses: n1 sent ") for cause in found["causes"]), found
    assert any(cause.startswith("the network between the nodes") for cause in found["causes"]), found
    assert results["bandwidth within a node"]["result"] == "passed"
    with no_shared_memory(site):
        status, results = run_tests(site, image)
    within = results["bandwidth within a node"]
    REPORTS.append(f"TCP within a node: {within['reason']}; latency: {results['latency within a node']['reason']}")
    assert status == 9
    failed = [each for name, each in results.items() if "within a node" in name and each["result"] == "failed"]
    assert failed and all(each["judgement"]["causes"][0].startswith("TCP: ranks of one node do not") for each in failed)
