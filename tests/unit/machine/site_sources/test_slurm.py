"""slurm.conf → kinds of nodes and queues, with the line of each fact."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings
from hpcgen.machine.site_sources.slurm import limit_of
from hpcgen.machine.site_sources.slurm_conf import HostListError, HostLists
from hpcgen.machine.site_sources.sources import read_source
from tests.conftest import ROOT

AURELIA = ROOT / "tests" / "sites" / "aurelia"


def read(path: Path) -> Seen:
    return read_source("slurm", path, SourceSettings("aurelia"))


def written(folder: Path, text: str, **others: str) -> Path:
    for name, content in others.items():
        (folder / f"{name}.conf").write_text(content, "utf-8")
    (folder / "slurm.conf").write_text(text, "utf-8")
    return folder / "slurm.conf"


def test_nodes_that_are_alike_are_one_kind_called_like_their_partition() -> None:
    seen = read(AURELIA / "slurm")
    assert {path: seen.value(path) for path in seen.facts if path.endswith((".nodes", ".cores", "total_gb"))} == {
        "partitions.batch.nodes": 180,
        "partitions.batch.cpu.cores": 128,
        "partitions.batch.memory.total_gb": 251.0,
        "partitions.gpu.nodes": 16,
        "partitions.gpu.cpu.cores": 64,
        "partitions.gpu.memory.total_gb": 502.9,
        "partitions.fat.nodes": 4,
        "partitions.fat.cpu.cores": 128,
        "partitions.fat.memory.total_gb": 2011.7,
    }
    assert seen.facts["partitions.gpu.cpu.cores"].how.endswith("slurm/nodes.conf:5")


def test_queues_have_the_limits_of_their_lines_and_of_default() -> None:
    seen = read(AURELIA / "slurm")
    assert seen.value("partitions.batch.queues") == [
        {"name": "batch", "max_nodes": 64, "max_time": "48:00:00"},
        {"name": "long", "max_nodes": 20, "max_time": "336:00:00"},
    ]
    assert seen.value("partitions.gpu.queues") == [{"name": "gpu", "max_nodes": 16, "max_time": "24:00:00"}]
    assert seen.value("partitions.fat.queues") == [{"name": "fat", "max_nodes": 4}]
    assert seen.value("default_partition") == "batch"
    assert seen.value("scheduler.default_time") == "01:00:00"


def test_gpus_come_from_gres_and_what_their_name_tells() -> None:
    seen = read(AURELIA / "slurm")
    gpu = {path.rpartition(".")[2]: fact.value for path, fact in seen.facts.items() if ".gpu.gpu." in path}
    assert gpu == {"count": 4, "vendor": "nvidia", "model": "a100", "capability": "8.0"}


def test_the_whole_cluster() -> None:
    seen = read(AURELIA / "slurm")
    assert seen.value("scheduler.account") == "required"
    assert seen.facts["scheduler.account"].how.endswith(
        "slurm.conf:11, AccountingStorageEnforce=associations,limits,qos"
    )
    assert seen.value("scheduler.max_array_size") == 10001
    assert seen.value("mpi.pmi") == ["pmix"]
    assert any("includes /etc/slurm/secrets.conf" in note and "skipped" in note for note in seen.notes)
    assert "partitions.batch.cpu.target" in seen.unseen


def test_mistakes_are_told_together_with_their_lines(tmp_path: Path) -> None:
    text = "NodeName=c[1-4 CPUs=4\nPartitionName=a Nodes=c[3-1]\nthis is not a line\n"
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert "slurm.conf:3:1: 'this is not a line' is not a line of slurm.conf" in str(caught.value)
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text.replace("this is not a line\n", "")))
    assert "slurm.conf:1:1: 'c[1-4': a bracket that is not closed" in str(caught.value)
    assert "slurm.conf:2:1: 'c[3-1]': the range 3-1 ends before it begins" in str(caught.value)


def test_a_partition_of_unknown_nodes_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"slurm.conf:2:1: partition a has 1 nodes that no NodeName describes, such as c9"
    ):
        read(written(tmp_path, "NodeName=c[1-8] CPUs=4\nPartitionName=a Nodes=c[1-9]\n"))


def test_a_file_without_nodes_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no nodes are described"):
        read(written(tmp_path, "ClusterName=x\n"))


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="include each other too deeply"):
        read(written(tmp_path, "Include slurm.conf\n"))


def test_cpus_that_do_not_agree_are_told(tmp_path: Path) -> None:
    line = "NodeName=c1 CPUs=10 Sockets=2 CoresPerSocket=8 ThreadsPerCore=2\n"
    seen = read(written(tmp_path, f"{line}PartitionName=a Nodes=ALL\n"))
    assert "slurm.conf:1: CPUs=10 does not agree with 2 × 8 cores" in seen.unseen["partitions.a.cpu.cores"]


@pytest.mark.parametrize(
    ("line", "sockets", "cores", "threads"),
    [
        ("CPUs=96 Boards=1 SocketsPerBoard=2 CoresPerSocket=24 ThreadsPerCore=2", 2, 48, 2),
        ("Boards=2 SocketsPerBoard=2 CoresPerSocket=8", 4, 32, 1),
        ("Boards=2 Sockets=2 CoresPerSocket=8", 4, 32, 1),
        ("CPUs=64 CoresPerSocket=16 ThreadsPerCore=2", 2, 32, 2),
        ("Procs=24 CoresPerSocket=12", 2, 24, 1),
        ("CPUs=48 Sockets=2 CoresPerSocket=24 ThreadsPerCore=2", 2, 48, 2),
        ("CPUs=64 ThreadsPerCore=2", None, 32, 2),
        ("CPUs=8 SocketsPerBoard=4", 4, 8, 1),
    ],
)
def test_cores_in_every_form_of_a_node(tmp_path: Path, line: str, sockets: int, cores: int, threads: int) -> None:
    seen = read(written(tmp_path, f"NodeName=c1 {line}\nPartitionName=a Nodes=ALL\n"))
    found = [seen.value(f"partitions.a.cpu.{field}") for field in ("sockets", "cores", "threads_per_core")]
    assert found == [sockets, cores, threads]
    assert not any("CPUs" in why for why in seen.unseen.values())


@pytest.mark.parametrize(
    "line",
    [
        "CPUs=90 Boards=1 SocketsPerBoard=2 CoresPerSocket=24 ThreadsPerCore=2",
        "CPUs=24 CoresPerSocket=16",
        "CPUs=9 ThreadsPerCore=2",
        "CPUs=9 Sockets=2",
    ],
)
def test_cpus_that_contradict_the_rest_are_an_open_question(tmp_path: Path, line: str) -> None:
    seen = read(written(tmp_path, f"NodeName=c1 {line}\nPartitionName=a Nodes=ALL\n"))
    assert "does not agree with" in seen.unseen["partitions.a.cpu.cores"]


@pytest.mark.parametrize("kept", ["CoreSpecCount=4", "CpuSpecList=0-3,32-35"])
def test_what_slurm_keeps_for_the_system_is_not_for_jobs(tmp_path: Path, kept: str) -> None:
    node = f"NodeName=n1 CPUs=64 ThreadsPerCore=2 RealMemory=190000 MemSpecLimit=16000 {kept}\n"
    seen = read(written(tmp_path, f"{node}PartitionName=a Nodes=ALL MaxCPUsPerNode=48\n"))
    assert seen.value("partitions.a.memory.usable_gb") == 169.9
    assert (seen.value("partitions.a.cpu.cores"), seen.value("partitions.a.cpu.system_cores")) == (32, 4)
    assert any("get 48 of the 64 CPUs of a node (MaxCPUsPerNode)" in note for note in seen.notes)


@pytest.mark.parametrize(
    ("gres", "count", "model", "named"),
    [
        (
            "gpu:h100:2,gpu:h100_4g.40gb:2,gpu:h100_1g.10gb:6",
            2,
            "h100",
            "2 × h100_4g.40gb, 6 × h100_1g.10gb are slices",
        ),
        ("gpu:a100_3g.39gb:4,gpu:a100_1g.10gb:8", None, None, "4 × a100_3g.39gb"),
        ("gpu:3g.20gb:2,gpu:a100:1", 1, "a100", "2 × 3g.20gb are slices"),
        ("gpu:a100:no_consume:4,shard:64", 4, "a100", "shard 64"),
        ("gpu:no_consume:4", 4, None, ""),
        ("gpu:rtx_2080:2(S:0-1,3),mps:2K", 2, "rtx_2080", "mps 2048"),
    ],
)
def test_a_slice_is_no_gpu(tmp_path: Path, gres: str, count: int | None, model: str | None, named: str) -> None:
    seen = read(written(tmp_path, f"NodeName=n1 CPUs=8 Gres={gres}\nPartitionName=a Nodes=ALL\n"))
    assert (seen.value("partitions.a.gpu.count"), seen.value("partitions.a.gpu.model")) == (count, model)
    assert named in " ".join(seen.notes)
    assert count is not None or "slices of GPUs alone" in seen.unseen["partitions.a.gpu"]


def test_gres_conf_beside_it_has_the_type_of_gpus(tmp_path: Path) -> None:
    gres = "AutoDetect=off\nNodeName=n[1-2] Name=gpu Type=A100 File=/dev/nvidia[0-3]\nName=mps Count=400\n"
    path = written(tmp_path, "NodeName=n[1-2] CPUs=8 Gres=gpu:4\nPartitionName=a Nodes=ALL\n", gres=gres)
    assert (read(path).value("partitions.a.gpu.count"), read(path).value("partitions.a.gpu.model")) == (4, "a100")
    (tmp_path / "gres.conf").write_text("no line of it\n")
    seen = read(path)
    assert seen.value("partitions.a.gpu.count") == 4
    assert any("gres.conf was not read" in note for note in seen.notes)


def test_memory_of_jobs_that_ask_for_none_and_the_most(tmp_path: Path) -> None:
    text = (
        "DefMemPerCPU=1024\nMaxMemPerCPU=3968\nNodeName=n1 CPUs=8 RealMemory=64000\n"
        "PartitionName=a Nodes=ALL\nPartitionName=b Nodes=ALL DefMemPerNode=2048 MaxMemPerCPU=0\n"
    )
    seen = read(written(tmp_path, text))
    assert seen.value("partitions.a.queues") == [
        {"name": "a", "max_nodes": 1, "default_memory": {"cpu": 1.0}, "max_memory": {"cpu": 3.88}},
        {"name": "b", "max_nodes": 1, "default_memory": {"node": 2.0}},
    ]
    assert seen.value("scheduler.memory_request") is None


def test_without_the_nodes_memory_jobs_must_not_ask_for_any(tmp_path: Path) -> None:
    seen = read(written(tmp_path, "NodeName=n1 CPUs=8\nPartitionName=a Nodes=ALL\n"))
    assert seen.value("scheduler.memory_request") == "none"


def test_weights_say_which_nodes_jobs_get_where_no_feature_does(tmp_path: Path) -> None:
    nodes = "NodeName=a[1-3] CPUs=8 Weight=10\nNodeName=b[1-2] CPUs=16 Weight=50\n"
    seen = read(written(tmp_path, f"{nodes}PartitionName=p Nodes=ALL\n"))
    assert any("the nodes of a in partition p: by Weight=10 jobs get them first" in note for note in seen.notes)
    assert any("by Weight=50 jobs get them last, after those of Weight=10" in note for note in seen.notes)
    seen = read(written(tmp_path, f"{nodes.replace('50', '10')}PartitionName=p Nodes=ALL\n"))
    assert any("a job may get any" in note for note in seen.notes)


def test_features_select_a_kind_where_a_partition_has_several(tmp_path: Path) -> None:
    nodes = "NodeName=a[1-3] CPUs=8 Features=all,old\nNodeName=b[1-2] CPUs=16 Features=all,new,ib\nNodeName=c1 CPUs=4\n"
    seen = read(written(tmp_path, f"{nodes}PartitionName=p Nodes=a[1-3],b[1-2]\nPartitionName=c Nodes=c1\n"))
    assert seen.value("partitions.a.directives") == ["--constraint=old"]
    assert seen.value("partitions.b.directives") == ["--constraint=ib"]
    assert seen.value("partitions.c.directives") is None


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("60", "01:00:00"),
        ("60:30", "01:00:30"),
        ("1:30:00", "01:30:00"),
        ("2-12", "60:00:00"),
        ("1-00:30:00", "24:30:00"),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_times_as_slurm_writes_them(text: str, limit: str | None) -> None:
    assert limit_of(text) == limit


def test_lists_of_nodes() -> None:
    names = HostLists().names
    assert names("c[008-010,20],login1") == ["c008", "c009", "c010", "c20", "login1"]
    assert names("r[1-2]n[1-2], x") == ["r1n1", "r1n2", "r2n1", "r2n2", "x"]
    for text in ("a[1-2", "a]1[", "a[[1]]", "a[x]", "a[3-1]"):
        with pytest.raises(HostListError):
            names(text)


LARGE = "NodeName=c[00001-20000] CPUs=8\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("".join(f"NodeName=a[1-60000]{n}\n" for n in range(3000)), "more than 1000000 names together"),
        (f"NodeName=a[{','.join(['0-199999'] * 9000)}]\n", "more than 1000000 names together"),
        ("NodeName=a[0-999999]b[0-999999]\n", "more than 1000000 names together"),
        (
            LARGE + "NodeSet=s Nodes=c[00001-20000]\n" + "".join(f"PartitionName=p{n} Nodes=s\n" for n in range(3000)),
            "more than 1000000 names together",
        ),
        (
            "NodeName=c[00001-20000] Features="
            + ",".join(f"f{n}" for n in range(2000))
            + "\n".join(f"NodeSet=s{n} Feature=f{n}\n" for n in range(2000)),
            "more than 1000000 names together",
        ),
        (
            "".join(f"NodeName=a{n} RealMemory={n + 1}\n" for n in range(3000)),
            "slurm.conf:1001:1: more than 1000 kinds",
        ),
        (
            LARGE + "".join(f"PartitionName=p{n} Nodes=ALL\n" for n in range(9000)),
            "slurm.conf:5002:1: more than 5000 partitions",
        ),
        (LARGE + "X=1 " + " ".join(f"K{n}=1" for n in range(500)), "at most 200"),
    ],
)
def test_a_file_without_end_names_its_limit(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(written(tmp_path, text))
    assert said in str(caught.value)


def test_the_largest_clusters_are_read(tmp_path: Path) -> None:
    """20,000 nodes of 200 kinds, which 200 partitions name again, one by one."""
    lines = [f"NodeName=c{n:05} CPUs=64 RealMemory={190000 + n % 200}" for n in range(20_000)]
    for part in range(200):
        lines.append(f"PartitionName=p{part} Nodes=" + ",".join(f"c{n:05}" for n in range(part, 20_000, 40)))
    lines += [f"PartitionName=all{n} Nodes=ALL" for n in range(50)]
    seen = read(written(tmp_path, "\n".join(lines)))
    assert sum(fact.value for path, fact in seen.facts.items() if path.endswith(".nodes")) == 20_000
