"""hpcgen test with real engines: a good image passes, and each promise is seen to be broken once.

Left to the unit tests: a GPU's driver, since there is none here, and ranks of one job with different libraries.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from container_tools import BaseImage, HostMpi, Run, Slurm, Tool
from mpi_hello import HOST_ROOT, profile

Prove = Callable[..., tuple[Run, dict[str, dict[str, Any]]]]
PMI = ["PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT", "PMI_ID"]


@pytest.fixture(scope="module")
def site(machine_facts: dict[str, Any], plain_base_image: BaseImage, host_mpi: HostMpi) -> dict[str, Any]:
    """This machine as it is, with TCP as a fabric whose provider can be looked for."""
    return profile(machine_facts, plain_base_image, host_mpi, fabric={"kind": "ethernet", "provider": "tcp"})


@pytest.fixture
def prove(testbed_env: dict[str, str], host_mpi: HostMpi, tmp_path: Path) -> Prove:
    """``prove(image, site, *words)``: how ``hpcgen test`` ended, and its results by ``GROUP: NAME``."""
    host = {"PATH": f"{host_mpi.root}/bin:{testbed_env['PATH']}", "HPCGEN_RECORDS": str(tmp_path / "records")}
    tool = Tool({**testbed_env, **host_mpi.env, **host})

    def run(image: str, site: dict[str, Any] | None, *words: str) -> tuple[Run, dict[str, dict[str, Any]]]:
        chosen = ["--trust-image"]
        if site is not None:
            (tmp_path / "here.yaml").write_text(json.dumps(site))
            chosen = ["--site", str(tmp_path / "here.yaml")]
        # The results alone go to a file: what is for people comes with them otherwise.
        script = f'out=$1; shift; exec "{sys.executable}" -m hpcgen test "$@" --json > "$out"'
        out = tmp_path / "results.json"
        done = tool.run(["bash", "-c", script, "_", out, image, *chosen, *words], cwd=tmp_path, check=False)
        text = out.read_text() or "{}"
        results = json.loads(text).get("results", [])
        return done, {f"{each['group']}: {each['name']}": each for each in results}

    return run


def outcome(results: dict[str, dict[str, Any]], result: str) -> set[str]:
    return {name for name, each in results.items() if each["result"] == result}


def test_a_good_image_passes_and_the_report_says_so(
    mpi_hello_image: Path, site: dict[str, Any], prove: Prove, tmp_path: Path
) -> None:
    done, results = prove(str(mpi_hello_image), site, "--ranks-per-node", "2", "--junit", str(tmp_path / "junit.xml"))
    assert done.returncode == 0, done.stdout
    assert outcome(results, "skipped") == {"contract: GPU device", "contract: GPU driver"}
    assert outcome(results, "failed") == set()
    assert {"intel_mpi: library", "intel_mpi: launcher", "rank_test: libraries"} <= outcome(results, "passed")
    assert results["contract: ranks"]["reason"] == "2 of 2"
    assert f"{HOST_ROOT}/lib/libmpi.so" in results["contract: MPI library"]["reason"]
    assert results["contract: fabric provider"]["reason"].split(";")[0] == "tcp"
    root = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (root.get("tests"), root.get("failures")) == (str(len(results)), "0")
    assert len(root.findall(".//skipped")) == 2


def test_the_recorded_layout_is_used_without_another_site(mpi_hello_image: Path, prove: Prove) -> None:
    done, results = prove(str(mpi_hello_image), None)
    assert done.returncode == 0, done.stdout
    assert results["contract: ranks"]["reason"] == "2 of 2"
    assert results["contract: fabric provider"]["result"] == "skipped"


def test_facts_that_are_wrong_fail_each_with_its_reason(
    mpi_hello_image: Path, site: dict[str, Any], prove: Prove, tmp_path: Path
) -> None:
    wrong = json.loads(json.dumps(site))
    wrong["mpi"]["libraries"] = ["/opt/elsewhere/lib"]
    wrong["mpi"]["version"] = "2021.16.0"
    wrong["fabric"] = {"kind": "omni-path", "provider": "psm2"}
    wrong["containers"]["engines"]["charliecloud"]["version"] = "99.1"
    # Knights Mill has instructions that no other CPU got.
    wrong["partitions"]["cpu"]["cpu"]["target"] = "mic_knl"
    done, results = prove(str(mpi_hello_image), wrong, "--ranks-per-node", "2", "--junit", str(tmp_path / "junit.xml"))
    assert done.returncode == 9, done.stdout
    reasons = {name: results[f"contract: {name}"]["reason"] for name in ("engine", "CPU", "MPI library", "MPI version")}
    assert outcome(results, "failed") == {
        *(f"contract: {name}" for name in reasons),
        "contract: fabric provider",
    }
    assert "the profile of here says 99.1" in reasons["engine"]
    assert re.search("the profile of here says mic_knl, and this CPU lacks .*avx512er", reasons["CPU"]), reasons["CPU"]
    assert "not the host's (intel) from /opt/elsewhere/lib" in reasons["MPI library"]
    assert "rank 1: /opt/intel_mpi/lib/libmpi.so" in reasons["MPI library"]
    assert "the profile of here says 2021.16.0" in reasons["MPI version"]
    assert "the profile says psm2" in results["contract: fabric provider"]["reason"]
    assert "hpcgen: error: contract: CPU: " in done.stdout
    assert ElementTree.parse(tmp_path / "junit.xml").getroot().get("failures") == "5"


def test_ranks_that_do_not_find_each_other_fail(mpi_hello_image: Path, site: dict[str, Any], prove: Prove) -> None:
    """What a PMI that does not fit comes to: jobs of one rank each."""
    done, results = prove(str(mpi_hello_image), {**site, "unset_environment": PMI}, "--ranks-per-node", "2")
    assert done.returncode == 9, done.stdout
    assert outcome(results, "failed") == {"contract: ranks"}
    assert "jobs of 1 instead of one of 2" in results["contract: ranks"]["reason"]
    assert "rank 0 of 1" in results["contract: ranks"]["output"]


def test_a_program_that_is_gone_fails_the_test_of_its_block(
    mpi_hello_image: Path, site: dict[str, Any], prove: Prove, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    broken = json.loads(json.dumps(site))
    broken["mpi"]["binds"].append({"source": str(tmp_path / "empty"), "target": "/opt/intel_mpi/bin"})
    done, results = prove(str(mpi_hello_image), broken)
    assert done.returncode == 9, done.stdout
    assert outcome(results, "failed") == {"intel_mpi: launcher"}
    assert results["intel_mpi: launcher"]["reason"] == "status 127"
    assert "mpiexec.hydra" in results["intel_mpi: launcher"]["output"]


def test_a_container_that_does_not_start_is_told_with_what_it_said(
    mpi_hello_image: Path, site: dict[str, Any], prove: Prove
) -> None:
    nowhere = json.loads(json.dumps(site))
    nowhere["mpi"]["binds"][0]["target"] = "/nowhere"
    done, results = prove(str(mpi_hello_image), nowhere)
    assert done.returncode == 9, done.stdout
    assert outcome(results, "failed") == {"contract: self-test", "contract: ranks"}
    assert outcome(results, "passed") == {"contract: engine"}
    assert "/nowhere" in results["contract: self-test"]["output"]


def test_podman_is_proved_with_the_images_own_mpi(
    mpi_hello_image: Path, site: dict[str, Any], prove: Prove, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    tool = Tool(testbed_env)
    name = "podman:localhost/mpi-hello-proved:1"
    tool.run([sys.executable, "-m", "hpcgen", "convert", mpi_hello_image, name, "--force"], cwd=tmp_path)
    try:
        done, results = prove(name, site)
    finally:
        tool.run(["podman", "rmi", "localhost/mpi-hello-proved:1"], check=False)
    assert done.returncode == 0, done.stdout
    assert "podman 4" in results["contract: engine"]["reason"]
    assert results["contract: ranks"]["reason"] == "2 of 2"
    assert "the image's own: /opt/intel_mpi/lib/libmpi.so" in results["contract: MPI library"]["reason"]


def test_in_a_slurm_allocation_srun_starts_it(
    mpi_hello_image: Path, site: dict[str, Any], slurm_cluster: Callable[..., Slurm], tmp_path: Path
) -> None:
    """The site's own launch line: srun by PMI-2; without it, as this Slurm's default is, the ranks must fail."""
    scheduler = {"kind": "slurm", "directives": ["--export=NONE"], "output": "./%x.out"}
    batch = {**json.loads(json.dumps(site)), "scheduler": scheduler}
    batch["partitions"]["cpu"]["queues"] = [{"name": "general"}]
    lines = ["#!/bin/bash", "#SBATCH -n 2 -o slurm.out"]
    for name, pmi in (("good", ["pmi2"]), ("bad", [])):
        batch["mpi"].update(launcher="srun", pmi=pmi)
        (tmp_path / f"{name}.yaml").write_text(json.dumps(batch))
        words = f"-m hpcgen test {mpi_hello_image} --site {name}.yaml --ranks-per-node 2 --threads 1 --json"
        lines.append(f'"{sys.executable}" {words} > {name}.json; echo "{name} $?"')
    job = tmp_path / "job.sh"
    job.write_text("\n".join([*lines, ""]))
    slurm_cluster("general").run(["sbatch", "-W", job], cwd=tmp_path, env={"HPCGEN_RECORDS": str(tmp_path / "records")})
    said = (tmp_path / "slurm.out").read_text()
    good, bad = (json.loads((tmp_path / f"{name}.json").read_text())["results"] for name in ("good", "bad"))
    assert "good 0" in said, said
    assert next(each["reason"] for each in good if each["name"] == "ranks") == "2 of 2"
    assert "bad 9" in said, said
    assert [each["name"] for each in bad if each["result"] == "failed"] == ["ranks"]
    assert "jobs of 1 instead of one of 2" in next(each["reason"] for each in bad if each["name"] == "ranks")
