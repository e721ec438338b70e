"""What PBS and Torque print → kinds of nodes and queues, with the line of each fact."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.sources import read_source
from tests.conftest import ROOT, Command

OUTPUTS = ROOT / "tests" / "sites" / "pbs"


def read(path: Path) -> Seen:
    return read_source("pbs", path, SourceSettings("here"))


def written(folder: Path, text: str) -> Seen:
    (folder / "out.txt").write_text(text, "utf-8")
    return read(folder / "out.txt")


def test_hosts_that_are_alike_are_one_kind_also_of_several_vnodes() -> None:
    seen = read(OUTPUTS)
    wanted = (".nodes", ".cores", "total_gb", "gpu.count", "gpu.model", "gpu.vendor")
    assert {path: seen.value(path) for path in seen.facts if path.endswith(wanted)} == {
        "partitions.n.nodes": 4,
        "partitions.n.cpu.cores": 64,
        "partitions.n.memory.total_gb": 251.6,
        "partitions.gpu.nodes": 1,
        "partitions.gpu.cpu.cores": 64,
        "partitions.gpu.memory.total_gb": 512.0,
        "partitions.gpu.gpu.count": 4,
        "partitions.gpu.gpu.vendor": "nvidia",
        "partitions.gpu.gpu.model": "A100",
    }
    assert seen.facts["partitions.n.cpu.cores"].how.startswith(f"{OUTPUTS}/pbsnodes.txt:1, ncpus")
    assert any("left out: n005" in note for note in seen.notes)


def test_queues_lead_where_their_chunks_say_and_have_their_limits() -> None:
    seen = read(OUTPUTS)
    assert seen.value("partitions.n.queues") == [
        {"name": "small", "max_nodes": 2, "max_time": "03:00:00", "directives": ["-q prod"]},
        {"name": "large", "min_nodes": 3, "max_nodes": 4, "max_time": "24:00:00", "directives": ["-q prod"]},
    ]
    assert seen.value("partitions.gpu.queues") == [
        {"name": "gpu", "max_nodes": 1, "min_time": "00:05:00", "max_time": "48:00:00"}
    ]
    assert seen.value("default_partition") == "n"
    assert seen.value("scheduler.kind") == "pbs"
    assert (seen.value("scheduler.default_time"), seen.value("scheduler.max_array_size")) == ("00:10:00", 10000)


def test_queues_for_some_people_and_closed_ones_are_said_without_anybodys_name() -> None:
    said = " ".join(read(OUTPUTS).notes)
    assert "print-server.txt:53: the queue staff takes jobs of its acl_users alone" in said
    assert "the queue closed is not enabled and started" in said
    assert "alice" not in said


def test_a_queue_for_some_people_is_written_where_no_other_leads(tmp_path: Path) -> None:
    said = {"queue_type": "Execution", "acl_group_enable": True, "enabled": True, "started": True}
    text = "".join(f"    {name} = {value}\n" for name, value in said.items())
    seen = written(tmp_path, f"Queue: all\n{text}\nn1\n    resources_available.ncpus = 4\n    ntype = PBS\n")
    assert seen.value("partitions.n.queues") == [{"name": "all", "max_nodes": 1}]


def test_json_says_the_same_as_text(tmp_path: Path) -> None:
    nodes = {
        "g001": {
            "ntype": "PBS",
            "jobs": ["1.s"],
            "resources_available": {"host": "g001", "mem": "527831088kb", "ncpus": 64, "ngpus": 4, "Qlist": "gpu"},
        }
    }
    queue = {"queue_type": "Execution", "enabled": "True", "started": "True", "resources_max": {"walltime": "24:00:00"}}
    (tmp_path / "nodes.json").write_text(json.dumps({"pbs_version": "2022.1.1", "nodes": nodes}))
    (tmp_path / "queues.json").write_text(json.dumps({"Queue": {"gpu": queue, "workq": queue}}))
    seen = read(tmp_path)
    assert seen.value("partitions.g.queues") == [{"name": "gpu", "max_nodes": 1, "max_time": "24:00:00"}]
    assert seen.facts["partitions.g.gpu.count"].how == f"{tmp_path}/nodes.json: nodes.g001, ngpus"


TORQUE = """\
Max open servers: 4
Qmgr: p s
create queue gpuq queue_type = Execution
set queue gpuq resources_default.neednodes = gpu
set queue gpuq enabled = True
set queue gpuq started = True
set server next_job_number = 7

  wn1
     state = free
     np = 28
     properties = cpu
     ntype = cluster
     status = opsys=linux,totmem=204113112kb,physmem=197821660kb,ncpus=56
  wn2
     np = 28
     properties = gpu,big
     status = physmem=197821660kb
     gpus = 2
     gpu_status = gpu[1]=gpu_id=0:82;gpu_product_name=Tesla P100-PCIE-16GB;gpu_mode=Default,driver_ver=460.27.04
"""


def test_torque_has_other_words(tmp_path: Path) -> None:
    seen = written(tmp_path, TORQUE)
    assert seen.value("scheduler.kind") == "torque"
    assert seen.value("partitions.wn.cpu.cores") == 28
    assert seen.value("partitions.wn.memory.total_gb") == 188.7
    assert seen.value("partitions.wn.queues") is None
    gpu = {field: seen.value(f"partitions.gpuq.gpu.{field}") for field in ("count", "vendor", "model", "capability")}
    assert gpu == {"count": 2, "vendor": "nvidia", "model": "Tesla P100-PCIE-16GB", "capability": "6.0"}


def test_a_line_that_no_command_prints_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"out\.txt:2:1: 'you have no access!' is not a valid line"):
        written(tmp_path, "n1\nyou have no access!\n")
    with pytest.raises(InputError, match="neither a queue nor a node"):
        written(tmp_path, "set server scheduling = True\n")
    with pytest.raises(InputError, match="not valid JSON"):
        written(tmp_path, '{"nodes": ')


def test_the_command_writes_a_profile(hpcgen: Command, tmp_path: Path) -> None:
    done = hpcgen("site", "new", "here", "--from", "pbs", str(OUTPUTS), "-o", "here.yaml")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "here.yaml").read_text()
    assert "- -q prod" in text and "print-server.txt:" in text
