"""Drift: every altered fact is found and named, on an unaltered machine there is none; what rests on a fact."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.provenance import facts_of
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.errors import UnknownNameError
from hpcgen.core.model.site import Site
from hpcgen.machine.detect.capture import stub
from hpcgen.machine.detect.commands import ProgramOutput
from hpcgen.machine.detect.elf import Library
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.doctor import Report, report_on, which_partition
from hpcgen.machine.doctor.examine import look
from hpcgen.machine.doctor.rules import (
    COMPARISONS,
    by_compressor,
    by_cpus,
    by_fabric,
    by_model,
    by_pmi,
    by_provider,
    by_size,
    by_target,
    by_version,
    rule_for,
    rules,
)
from tests.conftest import Command
from tests.helpers.trees import NAMES

MPI = "/opt/intel/oneapi/mpi/2021.9.0"
FILES = {
    "/etc/os-release": 'ID="rocky"\nVERSION_ID="8.10"\n',
    "/lib64/libc.so.6": "GNU C Library (GNU libc) stable release version 2.28.\n",
    "/proc/sys/kernel/osrelease": "4.18.0-553.el8_10.x86_64\n",
    "/proc/sys/user/max_user_namespaces": "10000\n",
    "/proc/meminfo": "MemTotal:       527951872 kB\n",
    "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n",
    "/sys/devices/system/node/node0/cpulist": "0-23\n",
    "/sys/devices/system/node/node1/cpulist": "24-47\n",
    "/sys/class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "/dev/infiniband/uverbs0": "",
    "/usr/bin/apptainer": "",
    "/usr/libexec/apptainer/bin/starter-suid": "",
    "/boot/config-4.18.0-553.el8_10.x86_64": "CONFIG_SQUASHFS=m\n# CONFIG_SQUASHFS_ZSTD is not set\n",
    **{
        f"/sys/bus/pci/devices/0000:{bus}:00.0/{name}": text
        for bus in ("17", "65", "ca", "e3")
        for name, text in (("class", "0x030200\n"), ("vendor", "0x10de\n"), ("device", "0x20b0\n"))
    },
}
FLAGS = (
    "fpu tsc msr cx8 cmov mmx fxsr sse sse2 ht syscall nx lm pni pclmulqdq ssse3 fma cx16 sse4_1 sse4_2 movbe popcnt "
    "aes xsave avx f16c rdrand lahf_lm abm 3dnowprefetch fsgsbase bmi1 avx2 bmi2 rdseed adx clflushopt clwb avx512f "
    "avx512dq avx512cd avx512bw avx512vl avx512_vnni xsaveopt xsavec sse3"
)
COMMANDS = {
    "apptainer-version": "apptainer version 1.3.6-1.el8\n",
    "srun-mpi-list": "MPI plugin types are...\n\tnone\n\tpmi2\n\tpmix\n",
    "sinfo": "gpu*|up|40|96|515000|gpu:4|2|24|2|1-00:00:00|1-20\n",
    "scontrol-node": "NodeName=g01 Arch=x86_64 Partitions=gpu\n",
    "scontrol-config": "MaxArraySize            = 10001\n",
    "module-avail": "/apps/modules:\nintel-mpi/2021.9\ngcc/12\n",
}
PROFILE = """\
name: cluster
title: A cluster
system: {os: rocky, os_version: 8.10, glibc: 2.28, kernel: 4.18, user_namespaces: true, architecture: x86_64}
default_partition: gpu
partitions:
  gpu:
    cpu:
      {target: cascadelake, model: Intel Xeon Gold 6248R, cores: 48, sockets: 2, threads_per_core: 2, numa_domains: 2}
    memory: {total_gb: 512}
    gpu:
      {vendor: nvidia, model: A100-SXM4-40GB, count: 4, memory_gb: 40, capability: 8.0, driver: 550.54.15}
    queues: [{name: gpu, max_nodes: 20, max_time: "24:00:00"}]
  cpu:
    cpu: {target: zen2, cores: 128, sockets: 2}
    memory: {total_gb: 256}
containers:
  preferred: apptainer
  engines:
    apptainer: {version: 1.3.6}
    podman: {allowed: false, reason: not reviewed}
  unprivileged_build: true
scheduler: {kind: slurm, max_array_size: 10001}
network:
  internet: {login: true, compute: false}
fabric: {kind: infiniband, provider: mlx, devices: [/dev/infiniband]}
mpi:
  flavour: intel
  version: 2021.9
  abi: mpich
  root: /opt/intel/oneapi/mpi/2021.9.0
  libraries: [/opt/intel/oneapi/mpi/2021.9.0/lib/release]
  binds: [{source: /opt/intel/oneapi/mpi/2021.9.0, target: /opt/intel/oneapi/mpi/2021.9.0}]
  modules: [intel-mpi/2021.9]
  launcher: srun
  pmi: [pmi2]
  glibc: 2.17
sources: {}
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `hpcgen site capture` would write on a GPU node of a Slurm cluster."""
    folder = tmp_path_factory.mktemp("tree")
    files: dict[str, str | bytes] = dict(FILES)
    cpus = [
        f"processor\t: {thread}\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) Gold 6248R CPU @ 3.00GHz\n"
        f"physical id\t: {thread % 48 // 24}\ncore id\t\t: {thread % 24}\nflags\t\t: {FLAGS}\n"
        for thread in range(96)
    ]
    files["/proc/cpuinfo"] = "\n".join(cpus)
    version = b"\0Intel(R) MPI Library 2021.9.0 for Linux* OS\n\0"
    files[f"{MPI}/bin/mpiexec"] = "#!/bin/sh\n"
    files[f"{MPI}/lib/release/libmpi.so.12"] = stub(Library("libmpi.so.12", ("libc.so.6",), glibc="2.17"), version)
    for path, content in files.items():
        place = folder / "root" / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
    (folder / "commands").mkdir()
    for name, text in COMMANDS.items():
        (folder / "commands" / name).write_text(text)
    (folder / "environment").write_text("USER=ada\nMODULEPATH=/apps/modules\nPATH=/usr/bin\n")
    return folder


def examined(collection: Path, machine: Machine, profile: str, **how: Any) -> Report:
    (collection / "site_profiles" / "cluster.yaml").write_text(profile)
    return report_on(Catalog([collection]), "cluster", machine, **how)


def test_nothing_is_told_of_an_unaltered_machine(collection: Path, tree: Path) -> None:
    report = examined(collection, Machine.captured(tree), PROFILE)
    assert report.drift == ()
    assert (report.partition, report.chosen) == ("gpu", "the best match of 2 by CPU, GPU and memory")
    assert len(report.agree) > 30
    # The facts of the other partition are no facts of this node, and all others were seen.
    assert report.unseen == ()


ALTERED = [
    ("system.os", "os: rocky", "os: sles", "warning"),
    ("system.os_version", "os_version: 8.10", "os_version: 8.8", "warning"),
    ("system.kernel", "kernel: 4.18", "kernel: 5.14", "warning"),
    ("system.glibc", "glibc: 2.28", "glibc: 2.31", "error"),
    ("system.glibc", "glibc: 2.28", "glibc: 2.17", "warning"),
    ("system.user_namespaces", "user_namespaces: true", "user_namespaces: false", "warning"),
    ("partitions.gpu.cpu.target", "target: cascadelake", "target: icelake", "error"),
    ("partitions.gpu.cpu.target", "target: cascadelake", "target: haswell", "warning"),
    ("partitions.gpu.cpu.target", "target: cascadelake", "target: zen3", "error"),
    ("partitions.gpu.cpu.model", "Gold 6248R", "Gold 6148", "warning"),
    ("partitions.gpu.cpu.cores", "cores: 48", "cores: 64", "error"),
    ("partitions.gpu.cpu.sockets", "cores: 48, sockets: 2", "cores: 48, sockets: 4", "warning"),
    ("partitions.gpu.cpu.threads_per_core", "threads_per_core: 2", "threads_per_core: 1", "warning"),
    ("partitions.gpu.cpu.numa_domains", "numa_domains: 2", "numa_domains: 8", "warning"),
    ("partitions.gpu.memory.total_gb", "total_gb: 512", "total_gb: 1024", "error"),
    ("partitions.gpu.gpu.model", "A100-SXM4-40GB", "H100-SXM5-80GB", "error"),
    ("partitions.gpu.gpu.count", "count: 4", "count: 8", "error"),
    ("partitions.gpu.gpu.memory_gb", "memory_gb: 40", "memory_gb: 80", "error"),
    ("partitions.gpu.gpu.capability", "capability: 8.0", "capability: 9.0", "error"),
    ("partitions.gpu.gpu.driver", "driver: 550.54.15", "driver: 570.86.10", "error"),
    ("partitions.gpu.gpu.driver", "driver: 550.54.15", "driver: 535.104", "warning"),
    ("partitions.gpu.queues", "[{name: gpu, ", "[{name: accelerated, ", "error"),
    ("partitions.gpu.queues", "max_nodes: 20", "max_nodes: 40", "warning"),
    ("partitions.gpu.queues", '"24:00:00"', '"48:00:00"', "warning"),
    ("containers.engines.apptainer.version", "{version: 1.3.6}", "{version: 1.4.0}", "error"),
    ("containers.engines.apptainer.version", "{version: 1.3.6}", "{version: 1.3.2}", "warning"),
    ("containers.engines.apptainer.squashfs", "{version: 1.3.6}", "{version: 1.3.6, squashfs: zstd}", "error"),
    ("containers.engines.podman.allowed", "{allowed: false, reason", "{allowed: true, reason", "warning"),
    ("scheduler.kind", "scheduler: {kind: slurm,", "scheduler: {kind: pbs,", "error"),
    ("fabric.kind", "kind: infiniband", "kind: slingshot", "error"),
    ("fabric.provider", "provider: mlx", "provider: psm2", "error"),
    ("fabric.devices", "devices: [/dev/infiniband]", "devices: [/dev/hfi1_0]", "error"),
    ("mpi.flavour", "flavour: intel", "flavour: mpich", "error"),
    ("mpi.version", "version: 2021.9\n", "version: 2021.11\n", "error"),
    ("mpi.version", "version: 2021.9\n", "version: 2021.6\n", "warning"),
    ("mpi.root", "root: /opt/intel/oneapi/mpi/2021.9.0", "root: /opt/intel/oneapi/mpi/2021.8.0", "error"),
    ("mpi.libraries", "libraries: [/opt/intel/oneapi/mpi/2021.9.0/lib/release]", "libraries: [/opt/gone]", "error"),
    ("mpi.binds", "{source: /opt/intel/oneapi/mpi/2021.9.0, ", "{source: /lrz/sys, ", "error"),
    ("mpi.modules", "intel-mpi/2021.9]", "intel-mpi/2021.10]", "warning"),
    ("mpi.pmi", "pmi: [pmi2]", "pmi: [pmi2, pmi]", "error"),
    ("scheduler.max_array_size", "max_array_size: 10001", "max_array_size: 20001", "error"),
    ("scheduler.max_array_size", "max_array_size: 10001", "max_array_size: 1001", "warning"),
    ("mpi.glibc", "glibc: 2.17", "glibc: 2.14", "error"),
]


def test_a_pmi_that_is_offered_is_no_drift_whatever_the_mpi_understands(collection: Path, tree: Path) -> None:
    """Where srun offers PMIx alone, detection would start Intel MPI by its own mpiexec; the profile may know better."""
    machine = Machine.captured(tree)
    machine.answers["srun-mpi-list"] = ProgramOutput("MPI plugin types are...\n\tpmix\n")
    assert examined(collection, machine, PROFILE.replace("pmi: [pmi2]", "pmi: [pmix]")).drift == ()


@pytest.mark.parametrize(
    ("fact", "true", "altered", "severity"), ALTERED, ids=[f"{row[0]}-{row[3]}-{n}" for n, row in enumerate(ALTERED)]
)
def test_each_altered_fact_is_found_and_named_alone(
    collection: Path, tree: Path, fact: str, true: str, altered: str, severity: str
) -> None:
    assert PROFILE.count(true) == 1
    machine = Machine.captured(tree)
    report = examined(collection, machine, PROFILE.replace(true, altered), partition="gpu")
    # Of an MPI whose root is gone the other facts are unseen, and nothing else is told.
    assert [(each.fact, each.severity) for each in report.drift] == [(fact, severity)]
    found = report.drift[0]
    line = (collection / "site_profiles" / "cluster.yaml").read_text().splitlines()[found.where.line - 1]
    assert fact.rpartition(".")[2] in line
    assert found.where.file.endswith("cluster.yaml")
    assert found.how
    assert f"cluster.yaml:{found.where.line}" in found.remedy


def test_the_fabric_of_the_nodes_is_compared_and_not_the_sites(collection: Path, tree: Path) -> None:
    nodes = "    fabric: {kind: infiniband, provider: PROVIDER}\n  cpu:\n    fabric: {kind: efa}\n    cpu:"
    own = PROFILE.replace("  cpu:\n    cpu:", nodes)
    own = own.replace("fabric: {kind: infiniband, provider: mlx, devices", "fabric: {kind: slingshot, devices")
    machine = Machine.captured(tree)
    assert examined(collection, machine, own.replace("PROVIDER", "tcp"), partition="gpu").drift == ()
    report = examined(collection, Machine.captured(tree), own.replace("PROVIDER", "psm2"), partition="gpu")
    assert [each.fact for each in report.drift] == ["partitions.gpu.fabric.provider"]


def test_an_mpi_of_another_family_is_found_with_its_binary_interface(collection: Path, tree: Path) -> None:
    """One without the other is no profile that loads."""
    profile = PROFILE.replace("flavour: intel", "flavour: openmpi").replace("abi: mpich", "abi: openmpi")
    report = examined(collection, Machine.captured(tree), profile, partition="gpu")
    assert {("mpi.flavour", "error"), ("mpi.abi", "error")} <= {(each.fact, each.severity) for each in report.drift}


def test_the_standards_interface_holds_where_its_library_is_there(collection: Path, tree: Path, tmp_path: Path) -> None:
    tree = shutil.copytree(tree, tmp_path / "own", symlinks=True)
    profile = PROFILE.replace("abi: mpich", "abi: mpi5").replace("version: 2021.9\n", "version: 2021.18\n")
    folder = tree / "root" / MPI.lstrip("/") / "lib" / "release"
    version = b"\0Intel(R) MPI Library 2021.18.0 for Linux* OS\n\0"
    (folder / "libmpi.so.12").write_bytes(stub(Library("libmpi.so.12", ("libc.so.6",), glibc="2.17"), version))
    report = examined(collection, Machine.captured(tree), profile, partition="gpu")
    assert [(each.fact, each.severity) for each in report.drift] == [("mpi.abi", "error")]
    (folder / "libmpi_abi.so.1").write_bytes(stub(Library("libmpi_abi.so.1", ("libc.so.6",)), version))
    report = examined(collection, Machine.captured(tree), profile, partition="gpu")
    assert report.drift == ()
    assert "mpi.abi" in report.agree


def test_gpus_that_only_one_of_the_two_has(collection: Path, tree: Path) -> None:
    gpu = PROFILE[PROFILE.index("    gpu:\n") : PROFILE.index("    queues:")]
    report = examined(collection, Machine.captured(tree), PROFILE.replace(gpu, ""), partition="gpu")
    assert [(each.fact, each.severity) for each in report.drift] == [("partitions.gpu.gpu", "warning")]
    report = examined(collection, Machine.captured(tree), PROFILE, partition="cpu")
    assert {each.fact for each in report.drift} >= {"partitions.cpu.cpu.cores", "partitions.cpu.gpu"}


def test_a_node_without_the_gpus_that_the_profile_has(collection: Path, tree: Path, tmp_path: Path) -> None:
    shutil.copytree(tree, tmp_path / "other", symlinks=True)
    for path in (tmp_path / "other" / "root" / "sys" / "bus" / "pci" / "devices").glob("*/class"):
        path.write_text("0x020000\n")
    report = examined(collection, Machine.captured(tmp_path / "other"), PROFILE, partition="gpu")
    assert [each.fact for each in report.drift if ".gpu." in each.fact] == ["partitions.gpu.gpu.model"]
    assert report.drift[0].severity == "error"


def test_a_fact_of_a_parent_is_corrected_there_or_said_anew(collection: Path, tree: Path) -> None:
    parent = PROFILE.replace("name: cluster", "name: family").replace("glibc: 2.28", "glibc: 2.31")
    (collection / "site_profiles" / "family.yaml").write_text(parent)
    report = examined(collection, Machine.captured(tree), "name: cluster\ntitle: One of them\nextends: family\n")
    assert [each.fact for each in report.drift] == ["system.glibc"]
    assert Path(report.drift[0].where.file).name == "family.yaml"
    assert "that is a parent: write it in " in report.drift[0].remedy


def test_another_mpi_than_the_profiles_says_nothing_of_it(collection: Path, tree: Path) -> None:
    nowhere = PROFILE.replace(f"  root: {MPI}\n", "").replace("flavour: intel", "flavour: mpich")
    report = examined(collection, Machine.captured(tree), nowhere)
    assert report.drift == ()
    unseen = {each.fact: each.why for each in report.unseen}
    assert unseen["mpi.flavour"] == "the profile has no mpi.root, so it is unclear which MPI is meant"
    assert "mpi.pmi" in report.agree
    elsewhere = PROFILE.replace(MPI, "/apps/mpi")
    report = examined(collection, Machine.captured(tree), elsewhere)
    assert {each.fact for each in report.drift} == {"mpi.root", "mpi.libraries", "mpi.binds"} - {
        "mpi.libraries",
        "mpi.binds",
    }
    assert f"another one: 2021.9.0 in {MPI}" in {each.fact: each.why for each in report.unseen}["mpi.version"]


# which node it is


def test_the_job_or_the_user_says_which_partition(tree: Path) -> None:
    site, seen = convert(loads(PROFILE, "p"), Site), Seen()
    assert which_partition(site, seen, None, "gpu") == ("gpu", "the job runs in gpu")
    assert which_partition(site, seen, "cpu", "gpu") == ("cpu", "asked for")
    with pytest.raises(UnknownNameError, match="did you mean cpu"):
        which_partition(site, seen, "cpus", "")


def test_the_partition_is_found_by_what_the_node_has(tree: Path) -> None:
    site, seen = convert(loads(PROFILE, "p"), Site), Seen()
    for path, value in (("cpu.target", "zen2"), ("cpu.cores", 128), ("memory.total_gb", 251.4)):
        seen.add(f"node.{path}", value, "here")
    assert which_partition(site, seen, None, "")[0] == "cpu"


def test_a_login_node_is_asked_for_nothing_that_only_compute_nodes_have(collection: Path, tree: Path) -> None:
    altered = PROFILE.replace("cores: 48", "cores: 64").replace("[/dev/infiniband]", "[/dev/hfi1_0]")
    report = examined(collection, Machine.captured(tree), altered, login=True)
    assert report.drift == ()
    assert report.partition == ""
    assert "fabric.devices" in {each.fact for each in report.unseen}


# paths of a machine itself


def test_paths_are_looked_for_on_the_machine_itself(tmp_path: Path) -> None:
    profile = f"""mpi:
  root: {tmp_path}/mpi
  libraries: [{tmp_path}/mpi/lib, {tmp_path}/mpi/gone]
  binds: [{{source: {tmp_path}/link/.}}]
containers: {{image_directory: {tmp_path}/images}}
network: {{ca_certificates: [{tmp_path}/mpi]}}
file_systems: {{scratch: {{path: {tmp_path}/scratch}}}}
"""
    (tmp_path / "mpi" / "lib").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "mpi")
    found = look(Machine("/", {}), facts_of(loads(profile, "profile")))
    assert {each.fact.path: each.gone for each in found} == {
        "mpi.root": (),
        "mpi.libraries": (f"{tmp_path}/mpi/gone",),
        "mpi.binds": (),
        "containers.image_directory": (f"{tmp_path}/images",),
        "network.ca_certificates": (),
        "file_systems.scratch.path": (f"{tmp_path}/scratch",),
    }
    assert {each.kind.severity for each in found if each.gone} == {"error", "warning"}


def test_a_captured_tree_that_lacks_a_path_says_nothing_of_it(collection: Path, tree: Path) -> None:
    profile = PROFILE.replace("preferred: apptainer", "preferred: apptainer\n  image_directory: /scratch/images")
    report = examined(collection, Machine.captured(tree), profile)
    assert report.drift == ()
    assert [each.fact for each in report.unseen] == ["containers.image_directory"]


# two values


@pytest.mark.parametrize(
    ("said", "seen", "difference"),
    [
        ("4.18", "4.18.0-553.el8_10.x86_64", None),
        ("4.18.0-553.el8", "4.18", None),
        ("2.28", "2.3", "lower"),
        ("2.3", "2.28", "higher"),
        ("550.54.15", "550.054.15", None),
        ("1.3.6", "1.3.6-1.el8", None),
        ("4.1.0", "4.1.0rc1", "lower"),
        ("4.1.0rc1", "4.1.0", "higher"),
        ("v5.0", "5.0.3", None),
        ("15", "15.4", None),
        ("6.1", 6.1, None),
        ("2019.6.166", "2021.9", "higher"),
    ],
)
def test_versions_are_compared_by_what_they_mean(said: str, seen: Any, difference: str | None) -> None:
    assert by_version(said, seen) == difference


VERSIONS = st.from_regex(r"[0-9]{1,3}(\.[0-9]{1,4}){0,3}((-|~|rc)[a-z0-9.]{1,8})?", fullmatch=True)


@given(VERSIONS, VERSIONS)
def test_a_version_agrees_with_itself_and_two_are_seen_from_both_sides(one: str, other: str) -> None:
    assert by_version(one, one) is None
    assert by_version(one, other) == {"lower": "higher", "higher": "lower", None: None}[by_version(other, one)]


@pytest.mark.parametrize(
    ("compare", "said", "seen", "difference"),
    [
        (by_cpus, ["49-55", "57-63"], ["48-63", "48-63"], None),
        (by_cpus, ["49-55", "57-63"], ["0-15", "48-63"], "other"),
        (by_cpus, ["49-55", "57-63"], ["48-63"], "other"),
        (by_model, "Intel Xeon Platinum 8174", "Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz", None),
        (by_model, "AMD EPYC 7763", "AMD EPYC 7763 64-Core Processor", None),
        (by_model, "Intel Xeon E5-2630 v4", "Intel(R) Xeon(R) CPU E5-2630 v4 @ 2.20GHz", None),
        (by_model, "Intel Xeon E5-2630 v4", "Intel(R) Xeon(R) CPU E5-2630 v3 @ 2.40GHz", "other"),
        (by_model, "GeForce GTX 1080 Ti", "NVIDIA GeForce GTX 1080", "other"),
        (by_model, "Tesla V100", "Tesla V100-SXM2-16GB", None),
        (by_size, "96", 93.8, None),
        (by_size, "96", 62.5, "lower"),
        (by_size, "96", 188.0, "higher"),
        (by_size, "40", 39.59, None),
        (by_target, "skylake_avx512", "x86_64_v4", "lower"),
        (by_target, "zen2", "zen3", "higher"),
        (by_target, "broadwell", "haswell", None),
        (by_target, "power9le", "power8le", "lower"),
        (by_target, "zen2", "icelake", "other"),
        (by_pmi, ["hydra"], ["pmi2", "pmix"], None),
        (by_pmi, ["pmix"], ["pmi2"], "lower"),
        (by_provider, "opx", "omni-path", None),
        (by_provider, "mlx", "infiniband", None),
        (by_provider, "psm2", "infiniband", "other"),
        (by_provider, "cxi", "ethernet", "other"),
        (by_compressor, "gzip", "gzip", None),
        (by_compressor, "zstd", "gzip", "lower"),
        (by_compressor, "gzip", "zstd", "higher"),
        (by_fabric, "none", "ethernet", None),
        (by_fabric, "infiniband", "ethernet", "other"),
    ],
)
def test_other_values_are_compared_by_what_they_mean(
    compare: Any, said: Any, seen: Any, difference: str | None
) -> None:
    assert compare(said, seen) == difference


def test_every_rule_is_found_by_its_path() -> None:
    for rule in rules():
        assert rule.compare in COMPARISONS
        assert rule_for(rule.path.replace("*", "any")) is rule


# what rests on it, and the command


def test_stacks_locks_and_kits_that_rest_on_a_fact_are_named(
    hpcgen: Command, collection: Path, tree: Path, tmp_path: Path
) -> None:
    altered = PROFILE.replace("version: 2021.9\n", "version: 2021.11\n").replace("driver: 550.54.15", "driver: 590.1")
    (collection / "site_profiles" / "cluster.yaml").write_text(altered)
    words = ["--collection", str(collection)]
    kit = tmp_path / "kept" / "hello"
    kit.parent.mkdir()
    done = hpcgen(*words, "render", "--site", "cluster", "--stack", "mpi-hello", "-o", str(kit))
    assert done.returncode == 0, done.stderr
    (tmp_path / "kept" / "other.lock").write_text("nothing of hpcgen's")
    doctor = [*words, "site", "doctor", "cluster", "--root", str(tree), "--locks", str(tmp_path / "kept"), "--json"]
    done = hpcgen(*doctor)
    assert done.returncode == 9
    depends = {each["fact"]: each["depends"] for each in json.loads(done.stdout)["drift"]}
    assert f"kit {kit}" in depends["mpi.version"]
    assert "stack mpi-hello" in depends["mpi.version"]
    assert "stack onnxruntime" not in depends["mpi.version"]
    assert "stack mpi-hello" not in depends["partitions.gpu.gpu.driver"]
    assert f"kit {kit}" not in depends["partitions.gpu.gpu.driver"]


def test_the_command_for_people_and_for_monitoring(hpcgen: Command, collection: Path, tree: Path) -> None:
    profile = collection / "site_profiles" / "cluster.yaml"
    profile.write_text(PROFILE)
    words = ["--collection", str(collection), "site", "doctor", "cluster", "--root", str(tree)]
    done = hpcgen(*words)
    assert (done.returncode, done.stdout) == (0, "")
    assert "compared as a node of gpu" in done.stderr
    assert "no drift" in done.stderr
    profile.write_text(PROFILE.replace("glibc: 2.28", "glibc: 2.31").replace("kernel: 4.18", "kernel: 4.12"))
    done = hpcgen(*words)
    assert done.returncode == 9
    assert "error: system.glibc: " in done.stdout
    assert "  machine: 2.28 (/lib64/libc.so.6, " in done.stdout
    assert "depends on it: stack " in done.stdout
    assert "1 errors, 1 warnings" in done.stderr
    report = json.loads(hpcgen(*words, "--json").stdout)
    assert report["counts"] == {"error": 1, "warning": 1, "note": 0}


def test_warnings_alone_are_no_failure(hpcgen: Command, collection: Path, tree: Path) -> None:
    (collection / "site_profiles" / "cluster.yaml").write_text(PROFILE.replace("1.3.6", "1.3.2"))
    done = hpcgen("--collection", str(collection), "site", "doctor", "cluster", "--root", str(tree))
    assert done.returncode == 0
    assert "warning: containers.engines.apptainer.version" in done.stdout


def test_a_profile_that_was_detected_here_does_not_drift_here(
    hpcgen: Command, collection: Path, tmp_path: Path
) -> None:
    # A machine of any kind, with a container engine, without which a profile is not whole.
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "apptainer").write_text("#!/bin/sh\necho apptainer version 1.4.5\n")
    (tmp_path / "bin" / "apptainer").chmod(0o755)
    env = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    profile = collection / "site_profiles" / "here.yaml"
    assert hpcgen("site", "new", "here", "--detect", "-o", str(profile), env=env).returncode == 0
    done = hpcgen("--collection", str(collection), "site", "doctor", "here", "--json", env=env)
    assert done.returncode == 0, done.stdout
    assert json.loads(done.stdout)["drift"] == []


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_that_was_detected_on_a_captured_tree_does_not_drift_there(
    hpcgen: Command, collection: Path, trees: Path, name: str
) -> None:
    profile = collection / "site_profiles" / "there.yaml"
    assert hpcgen("site", "new", "there", "--detect", "--root", str(trees / name), "-o", str(profile)).returncode == 0
    report = report_on(Catalog([collection]), "there", Machine.captured(trees / name))
    assert report.drift == ()
    assert len(report.agree) > 15


@pytest.mark.parametrize(
    ("name", "site", "facts"),
    [
        ("slingshot-cray-amd", "lumi-g", {"partitions.gpu.cpu.cores"}),
        # The tree is from before the update of the driver.
        ("gh200-slingshot", "alps", {"partitions.gh200.gpu.driver"}),
    ],
)
def test_a_built_in_profile_on_a_tree_that_stands_for_its_system(
    name: str, site: str, facts: set[str], trees: Path
) -> None:
    report = report_on(Catalog(), site, Machine.captured(trees / name))
    assert {each.fact for each in report.drift} <= facts
    errors = {each.fact for each in report.drift if each.severity == "error"}
    assert errors == facts & {"partitions.gh200.gpu.driver"}


def test_wrong_usage(hpcgen: Command) -> None:
    assert hpcgen("site", "doctor", "supermuc", "--login", "--partition", "thin").returncode == 2
    assert hpcgen("site", "doctor", "supermuk").returncode == 4
    assert hpcgen("site", "doctor", "supermuc", "--partition", "thing").returncode == 4
