"""A system that a request describes becomes a site profile of what was said."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import InputError
from hpcgen.machine.detect.yaml_text import dump
from hpcgen.plugins.tuning.requests.described_site import described_site
from hpcgen.plugins.tuning.requests.reading import ReadRequest, request_from
from tests.conftest import Command

NODE = {"ncpus": 2, "cpu": {"arch": "x86_64", "microarch": "zen2", "ncores": 64, "nthreads": 2}, "memory": "512GiB"}
GPU_NODE = {
    "ncpus": 1,
    "cpu": {"arch": "x86_64", "ncores": 32},
    "memory": "256GiB",
    "naccel": 2,
    "accel": {"type": "gpu", "model": "P100"},
    "storage": {"file:///local": {"storage_class": "default-ssd"}},
}
CONFIGURATION = {
    "scheduler": "slurm",
    "storage": {"file:///scratch": {"storage_class": "default-high"}, "s3://far": {"storage_class": "default-common"}},
    "partitions": {"mc": {"nnodes": 100, "default": True, "node": NODE}, "gpu": {"nnodes": 5, "node": GPU_NODE}},
}
DATE = "2026-11-20"


def read(infrastructure: dict[str, Any], **job: Any) -> ReadRequest:
    inside = {"application": {"app_type": "hpc", "executable": "./a"}, **job}
    data = {"job": inside, "infrastructure": infrastructure}
    return request_from(loads(json.dumps(data, indent=1), "request.json"))


def changed(path: str, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(CONFIGURATION)
    *above, last = path.split(".")
    node: Any = data
    for step in above:
        node = node[step]
    node[last] = value
    return data


def test_what_is_said_is_in_the_profile_each_with_its_source() -> None:
    got = described_site(read({"name": "example", "configuration": CONFIGURATION}).request, DATE)
    profile = got.profile
    assert (profile["name"], profile["default_partition"], profile["scheduler"]) == ("example", "mc", {"kind": "slurm"})
    assert profile["partitions"]["mc"] == {
        "nodes": 100,
        "cpu": {"target": "zen2", "cores": 128, "sockets": 2, "threads_per_core": 2},
        "memory": {"total_gb": 512.0},
    }
    gpu = profile["partitions"]["gpu"]
    assert gpu["gpu"] == {"vendor": "nvidia", "model": "P100", "count": 2}
    assert gpu["cpu"]["target"] == "x86_64"
    assert {name: each["path"] for name, each in profile["file_systems"].items()} == {
        "scratch": "/scratch",
        "local": "/local",
    }
    covered = ("system.architecture", "default_partition", "partitions.mc", "partitions.gpu")
    assert set(profile["sources"]) == {*covered, "scheduler.kind", "file_systems"}
    assert {json.dumps(each) for each in profile["sources"].values()} == {
        json.dumps({"from": "the request's infrastructure", "checked": DATE, "verified": "no"})
    }


def test_what_is_not_said_is_missing_and_named() -> None:
    got = described_site(read(CONFIGURATION).request, DATE)
    assert got.missing == ["system.os", "containers", "network"]
    assert not {"mpi", "fabric", "containers", "network"} & set(got.profile)
    told = " ".join(each.message for each in got.findings)
    assert "lacks required facts of a profile: system.os, containers, network" in told
    assert "nothing is known of mpi, fabric, system.glibc" in told
    assert "s3://far is not a folder of the nodes" in told


def test_the_scheduler_may_be_said_by_the_target() -> None:
    silent = {key: value for key, value in CONFIGURATION.items() if key != "scheduler"}
    target = {"name": "there", "job_scheduler_type": "torque"}
    request = read(silent, target=target).request
    assert request.site is None
    profile = described_site(request, DATE).profile
    assert (profile["name"], profile["scheduler"]) == ("there", {"kind": "torque"})
    assert "scheduler" in described_site(read(silent).request, DATE).missing


def test_over_a_parent_it_is_a_whole_profile(tmp_path: Path, hpcgen: Command) -> None:
    got = described_site(read({"name": "mine", "configuration": CONFIGURATION}).request, DATE, "slurm-cpu")
    file = tmp_path / "mine.yaml"
    file.write_text(dump(got.profile), "utf-8")
    hpcgen("check", file)
    plan = json.loads(
        hpcgen("plan", "--site", str(file), "--stack", "mpi-hello", "--partition", "gpu", "--json").stdout
    )
    assert list(plan["site"]["partitions"]) == ["mc", "gpu"]
    assert plan["engine"] == "apptainer"
    assert "of mine these are taken from slurm-cpu: system.os, containers, network" in got.findings[1].message


def test_hpcgens_own_form_takes_it_too() -> None:
    text = (
        "kind: hpc\nmpi: {library: openmpi}\ninfrastructure:\n  storage: {file:///work: default-common}\n"
        "  partitions:\n    '*': {nnodes: 4, node: {ncpus: 1, cpu: {arch: aarch64, ncores: 48}, memory: 32 GB}}\n"
    )
    profile = described_site(request_from(loads(text, "request.yaml")).request, DATE).profile
    assert (profile["system"], profile["default_partition"]) == ({"architecture": "aarch64"}, "main")
    assert profile["partitions"]["main"]["memory"] == {"total_gb": 29.802322}


def test_the_partition_is_one_of_the_description() -> None:
    assert read(CONFIGURATION, job_options={"partition": "gpu"}).request.partition == "gpu"
    with pytest.raises(InputError, match=r"request.json:8:17: `infrastructure` has no partition 'gpus'\n.*mean gpu"):
        read(CONFIGURATION, job_options={"partition": "gpus"})


def test_what_no_profile_holds_is_left_out_and_said() -> None:
    for model, said in (("Alveo U280", "the vendor of Alveo U280 is unknown"), ("MI250X", "")):
        data = changed("partitions.gpu.node.accel", {"type": "gpu", "model": model})
        got = described_site(read(data).request, DATE)
        assert said in " ".join(each.message for each in got.findings)
        assert ("gpu" in got.profile["partitions"]["gpu"]) == (not said)
    got = described_site(read(changed("partitions.gpu.node.accel", {"type": "fpga", "model": "X"})).request, DATE)
    assert "a profile has no FPGAs, so X is left out" in " ".join(each.message for each in got.findings)
    mixed = changed("partitions.gpu.node.cpu", {"arch": "aarch64", "ncores": 32})
    got = described_site(read(mixed).request, DATE)
    assert list(got.profile["partitions"]) == ["mc"]
    assert "the profile is for x86_64" in " ".join(each.message for each in got.findings)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("scheduler", "slrum", "no batch system is called 'slrum'\n  remedy: did you mean slurm?"),
        ("partitions.mc.node.cpu.microarch", "zen22", "'zen22' is not a CPU that archspec knows"),
        ("partitions.mc.node.cpu.microarch", "neoverse_v1", "neoverse_v1 is a CPU of aarch64, not of x86_64"),
        ("partitions.mc.node.cpu.arch", "ppc64le", "hpcgen has no images for ppc64le"),
        ("partitions.mc.node.cpu.ncore", 2, "`ncore` is not known in `cpu`"),
        ("partitions.mc.node.memory", "lots", "`memory` must be bytes, or a number with a unit"),
        ("partitions.mc.node.memory", "0", "'0' is not a size of memory"),
        ("partitions.gpu.node.naccel", None, "`naccel` is missing in `node`"),
        ("partitions.gpu.default", True, "2 of 2 partitions is the default"),
        ("partitions.mc.default", False, "none of 2 partitions is the default"),
        ("partitions", {}, "`partitions` is empty"),
        ("storage", {"/scratch": "default-high"}, "`/scratch`"),
        ("storage", {"file:///a": {"storage_class": "default-slow"}}, "default-common, default-high"),
    ],
)
def test_a_wrong_description_is_refused_at_its_place(path: str, value: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(changed(path, value))
    assert said in str(caught.value)
    assert all(str(problem.where).startswith("request.json:") for problem in caught.value.problems)
