"""What detection finds on machines of every kind, and that the profile it writes can be used as it is."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from hpcgen.machine.detect.capture import stub
from hpcgen.machine.detect.elf import Library, read_library
from hpcgen.machine.detect.probes.batch import parse_sinfo, wall_time
from hpcgen.machine.detect.probes.cpu import read_cpuinfo, target_of
from hpcgen.machine.detect.tree import MachineTree
from tests.conftest import ROOT, Command
from tests.helpers.trees import INTEL, NAMES, OPENMPI, TREES, library, link, make_tree, seen_in

LRZ = "/lrz/sys/intel/impi2019u6/compilers_and_libraries_2020.0.154/linux/mpi/intel64"
CRAY = "/opt/cray/pe/mpich/8.1.32/ofi/gnu/12.3"

EXPECTED: dict[str, dict[str, Any]] = {
    "sles-omnipath": {
        "system.os": "sles",
        "system.os_version": "15.3",
        "system.glibc": "2.31",
        "system.kernel": "5.3.18-150300.59.87-default",
        "system.user_namespaces": True,
        "node.cpu.target": "skylake_avx512",
        "node.cpu.cores": 48,
        "node.cpu.sockets": 2,
        "node.cpu.threads_per_core": 2,
        "node.cpu.numa_domains": 2,
        "node.memory.total_gb": 93.3,
        "node.gpu.vendor": None,
        "node.queues": [
            {"name": "test", "max_nodes": 16, "max_time": "00:30:00"},
            {"name": "micro", "max_nodes": 16, "max_time": "48:00:00"},
            {"name": "general", "min_nodes": 17, "max_nodes": 768, "max_time": "48:00:00"},
        ],
        "fabric.kind": "omni-path",
        "fabric.provider": "psm2",
        "fabric.devices": ["/dev/hfi1_0"],
        "mpi.flavour": "intel",
        "mpi.version": "2019.6",
        "mpi.abi": "mpich",
        "mpi.root": LRZ,
        "mpi.libraries": [f"{LRZ}/lib/release", f"{LRZ}/lib", f"{LRZ}/libfabric/lib"],
        "mpi.binds": [
            {"source": f"{LRZ}/.", "target": LRZ},
            {"source": f"/dss/dsshome1{LRZ}", "target": f"/dss/dsshome1{LRZ}"},
        ],
        "mpi.glibc": "2.14",
        "mpi.modules": ["mpi.intel/2019"],
        "mpi.pmi": ["pmi2"],
        "containers.preferred": "charliecloud",
        "scheduler.directives": ["--ear=off"],
        "file_systems.hppfs": {"kind": "gpfs", "path": "/hppfs", "bind": True},
    },
    "el8-infiniband-nvidia": {
        "system.os": "rocky",
        "system.glibc": "2.28",
        "node.cpu.target": "cascadelake",
        "node.cpu.cores": 48,
        "node.gpu.vendor": "nvidia",
        "node.gpu.model": "Tesla V100-SXM2-32GB",
        "node.gpu.count": 4,
        "node.gpu.memory_gb": 32,
        "node.gpu.capability": "7.0",
        "node.gpu.data_center": True,
        "node.gpu.driver": "535.129.03",
        "node.nodes": 3,
        "fabric.kind": "infiniband",
        "fabric.provider": None,
        "fabric.devices": ["/dev/infiniband"],
        "mpi.flavour": "openmpi",
        "mpi.version": "4.1.4",
        "mpi.abi": "openmpi",
        "mpi.glibc": "2.27",
        "mpi.pmi": ["pmix", "pmi2"],
        "containers.engines.apptainer.version": "1.2.5",
        "containers.engines.apptainer.fakeroot": True,
        "containers.engines.singularity.version": None,
        "network.ca_certificates": ["/etc/pki/ca-trust/source/anchors/site-ca.pem"],
    },
    "slingshot-cray-amd": {
        "node.cpu.target": "zen3",
        "node.cpu.cores": 64,
        "node.cpu.numa_domains": 4,
        "node.gpu.vendor": "amd",
        "node.gpu.model": "Instinct MI250X",
        "node.gpu.count": 8,
        "node.gpu.memory_gb": 64,
        "node.gpu.target": "gfx90a",
        "node.gpu.driver": "6.3",
        "fabric.kind": "slingshot",
        "fabric.provider": "cxi",
        "fabric.libraries": ["/opt/cray/libfabric/1.22.0/lib64"],
        "mpi.flavour": "cray-mpich",
        "mpi.version": "8.1.32",
        "mpi.abi": "mpich",
        "mpi.libraries": [f"{CRAY}/lib-abi-mpich", f"{CRAY}/lib", "/opt/cray/libfabric/1.22.0/lib64"],
        "mpi.modules": ["cray-mpich/8.1.32", "cray-mpich-abi/8.1.32"],
        "mpi.launcher": "srun",
        "mpi.pmi": None,
        "containers.engines.singularity.version": "4.1.3",
        "containers.unprivileged_build": False,
        "file_systems.flash": {"kind": "lustre", "path": "/flash", "bind": True},
    },
    "gh200-slingshot": {
        "system.architecture": "aarch64",
        "node.cpu.target": "neoverse_v2",
        "node.cpu.cores": 288,
        "node.cpu.sockets": 4,
        "node.cpu.numa_domains": 4,
        "node.gpu.model": "NVIDIA GH200 120GB",
        "node.gpu.count": 4,
        "node.gpu.capability": "9.0",
        "node.gpu.driver": "550.54.15",
        "fabric.kind": "slingshot",
        "mpi.flavour": None,
        "node.queues": [
            {"name": "normal", "max_nodes": 998, "max_time": "24:00:00"},
            {"name": "debug", "max_nodes": 2, "max_time": "00:30:00"},
        ],
    },
    "workstation": {
        "system.os": "ubuntu",
        "system.user_namespaces": False,
        "node.cpu.target": "broadwell",
        "node.cpu.cores": 2,
        "node.gpu.vendor": None,
        "scheduler.kind": "none",
        "fabric.kind": "none",
        "containers.preferred": "docker",
        "containers.unprivileged_build": False,
        "network.mirrors.apt.ubuntu": {
            "archive": "http://mirror.example.org/ubuntu",
            "security": "http://mirror.example.org/ubuntu-security",
        },
        "network.proxy": {"https": "http://proxy.example.org:3128", "no_proxy": "localhost,.example.org"},
    },
}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_found_on_each_kind_of_machine(name: str, trees: Path) -> None:
    seen = seen_in(trees / name)
    assert {path: seen.value(path) for path in EXPECTED[name]} == EXPECTED[name]


@pytest.mark.parametrize("name", NAMES)
def test_a_written_profile_passes_check_and_renders(name: str, trees: Path, hpcgen: Command, collection: Path) -> None:
    profile = collection / "site_profiles" / f"{name}.yaml"
    done = hpcgen("site", "new", name, "--detect", "--root", str(trees / name), "-o", str(profile))
    assert done.returncode == 0, done.stderr
    words = ("--collection", str(collection))
    assert profile.read_text().startswith("# yaml-language-server: $schema=")
    checked = hpcgen(*words, "check", str(profile))
    assert checked.returncode == 0, checked.stderr
    rendered = hpcgen(*words, "render", "--site", name, "--stack", "mpi-hello", "-o", "kit")
    assert rendered.returncode == 0, rendered.stderr
    assert broken(hpcgen, collection, name) == []


def broken(hpcgen: Command, collection: Path, site: str) -> list[str]:
    """The checks of the contract that a site breaks, or what else stopped it."""
    done = hpcgen("--collection", str(collection), "contract", "--site", site, "--stack", "mpi-hello", "--json")
    if done.returncode not in (0, 6):
        return [done.stderr]
    return [row["name"] for row in json.loads(done.stdout) if row["outcome"] == "broken"]


SINFO = "general*|up|10|2|7900|(null)|1|2|1|1-00:00:00|1-10\n"
MPIS = {"intel": library("libmpi.so.12", INTEL), "openmpi": library("libmpi.so.40", OPENMPI)}
MPIS["mpich"] = library("libmpi.so.12", strings={"MPII_Version_string": "4.2.1"})


def test_an_mpich_without_symbols_tells_its_release_by_the_names_of_its_sources(tmp_path: Path) -> None:
    text = b"\0/mpich-4.3.2/src/mpi/init/mpir_init.c\0"
    files: dict[str, str | bytes] = {"/sw/wheel/lib/libmpi.so.12": library("libmpi.so.12", text)}
    seen = seen_in(make_tree(tmp_path, files, environment={"MPI_ROOT": "/sw/wheel"}))
    assert (seen.value("mpi.flavour"), seen.value("mpi.version")) == ("mpich", "4.3.2")


@pytest.mark.parametrize(
    ("flavour", "offered", "launcher", "pmi"),
    [
        ("intel", ("pmi2", "pmix"), "srun", ["pmi2", "pmix"]),
        ("mpich", ("pmi2", "pmix"), "srun", ["pmi2", "pmix"]),
        ("openmpi", ("pmi2", "pmix"), "srun", ["pmix", "pmi2"]),
        ("intel", ("pmix",), "mpiexec", ["hydra"]),
        ("openmpi", ("pmi2",), "mpirun", ["pmix"]),
    ],
)
def test_ranks_are_started_by_what_the_mpi_understands(
    flavour: str,
    offered: tuple[str, ...],
    launcher: str,
    pmi: list[str],
    tmp_path: Path,
    hpcgen: Command,
    collection: Path,
) -> None:
    """Jobs ask for the first PMI of a profile: with another they would be many jobs of one rank, and not be planned."""
    root = f"/sw/{flavour}"
    files: dict[str, str | bytes] = {
        f"{root}/lib/{'libmpi.so.40' if flavour == 'openmpi' else 'libmpi.so.12'}": MPIS[flavour],
        f"{root}/bin/mpiexec": "",
        f"{root}/bin/mpirun": "",
    }
    listed = "MPI plugin types are...\n\tnone\n" + "".join(f"\t{name}\n" for name in offered)
    commands = {"sinfo": SINFO, "srun-mpi-list": listed, "apptainer-version": "apptainer version 1.3.6\n"}
    tree = make_tree(tmp_path / "tree", files, commands, {"MPI_ROOT": root})
    seen = seen_in(tree)
    assert (seen.value("mpi.launcher"), seen.value("mpi.pmi")) == (launcher, pmi)
    profile = collection / "site_profiles" / "lab.yaml"
    assert hpcgen("site", "new", "lab", "--detect", "--root", str(tree), "-o", str(profile)).returncode == 0
    assert broken(hpcgen, collection, "lab") == []
    doctor = hpcgen("--collection", str(collection), "site", "doctor", "lab", "--root", str(tree))
    assert doctor.returncode == 0, doctor.stdout


def test_an_engine_that_tells_no_version_and_one_behind_srun_are_told(tmp_path: Path) -> None:
    """Shifter's help has the numbers of other things; Sarus Suite is a plugin of Slurm, not a program."""
    said = {
        "shifter-version": "Usage:\n    shifter --image=docker:ubuntu/17.10\n",
        "sarusctl-version": "sarusctl 0.4.1\n",
    }
    seen = seen_in(make_tree(tmp_path, {}, said))
    assert seen.value("containers.engines.shifter.version") is None
    assert seen.value("containers.engines.shifter") == {}
    assert "sarusctl 0.4.1 is installed: the engine sarus-suite, if srun has --edf" in seen.notes


def test_a_folder_says_more_of_a_version_than_the_year(tmp_path: Path) -> None:
    year = library("libmpi.so.12", b"\0Intel(R) MPI Library 2021 for Linux* OS\n\0")
    found = {}
    for name in ("2021.9.0", "2019.9.0", "latest"):
        tree = make_tree(tmp_path / name, {f"/opt/intel/oneapi/mpi/{name}/lib/libmpi.so.12": year})
        found[name] = seen_in(tree).value("mpi.version")
    assert found == {"2021.9.0": "2021.9.0", "2019.9.0": "2021", "latest": "2021"}


def test_stubs_in_the_trees_are_what_the_writer_makes() -> None:
    """Nothing but names and versions is in them, so nobody has to trust a binary."""
    found = 0
    for path in TREES.glob("*/root/**/*.so.*"):
        if not path.is_file() or not path.stat().st_size:
            continue
        with MachineTree("/").blob(str(path)) as blob:
            assert blob is not None
            symbols = ("MPII_Version_string",)
            said = read_library(blob, symbols)
            assert said is not None
            architecture = "aarch64" if blob.at(18, 2) == b"\xb7\0" else "x86_64"
            whole = blob.at(0, blob.size)
        bare = stub(said, b"", architecture)
        text = whole[len(bare) :]
        assert stub(said, text, architecture) == whole, path
        assert len(text) < 100, path
        found += 1
    assert found >= 10


# CPUs


def archspec_targets() -> list[Any]:
    spec = find_spec("archspec")
    assert spec is not None and spec.origin is not None
    folder = Path(spec.origin).parent / "json" / "tests" / "targets"
    params = []
    for path in sorted(folder.glob("linux-*")):
        cpus = read_cpuinfo(path.read_text())
        if cpus and ("flags" in cpus[0] or "CPU implementer" in cpus[0]):
            params.append(pytest.param(cpus[0], path.name.split("-", 2)[2], id=path.name))
    return params


@pytest.mark.parametrize(("cpu", "target"), archspec_targets())
def test_cpus_are_named_as_archspec_names_them(cpu: dict[str, str], target: str) -> None:
    """The machines of archspec's own tests."""
    assert target_of(cpu, "aarch64" if "CPU implementer" in cpu else "x86_64") == target


def test_a_virtual_cpu_is_named_by_the_code_it_runs() -> None:
    """Hypervisors hide features that compilers do not use; without them archspec would name the level below."""
    zen4 = "fma avx512f avx512_bf16 avx512_vpopcntdq gfni vaes"
    cpu = read_cpuinfo((ROOT / "tests" / "cpus" / "zen4-virtual").read_text())[0]
    assert set(zen4.split()) < set(cpu["flags"].split()) and "pku" not in cpu["flags"]
    assert target_of(cpu, "x86_64") == "zen4"
    without = {**cpu, "flags": cpu["flags"].replace(" avx512_bf16", "")}
    assert target_of(without, "x86_64") == "x86_64_v4"


# MPI


def test_an_old_open_mpi_is_not_taken_for_mpich(tmp_path: Path) -> None:
    """Open MPI 1.10 has a libmpi.so.12, too: what it needs tells."""
    old = library("libmpi.so.12", needed=("libopen-rte.so.12", "libopen-pal.so.13"))
    seen = seen_in(make_tree(tmp_path, {"/opt/openmpi-1.10.7/lib/libmpi.so.12": old}))
    assert (seen.value("mpi.flavour"), seen.value("mpi.abi")) == ("openmpi", "openmpi")
    assert seen.value("mpi.version") == "1.10.7"


def test_what_the_environment_names_goes_before_what_is_installed(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "/opt/intel/oneapi/mpi/2021.11/lib/libmpi.so.12": library("libmpi.so.12", INTEL),
        "/sw/openmpi/lib/libmpi.so.40": library("libmpi.so.40", OPENMPI),
    }
    without = seen_in(make_tree(tmp_path / "a", files))
    assert (without.value("mpi.flavour"), without.value("mpi.version")) == ("intel", "2021.11")
    loaded = seen_in(make_tree(tmp_path / "b", files, environment={"MPI_HOME": "/sw/openmpi"}))
    assert (loaded.value("mpi.flavour"), loaded.value("mpi.version")) == ("openmpi", "4.1.6")
    assert any("intel 2021.11" in note for note in loaded.notes)


def test_mpich_tells_its_version_by_a_symbol(tmp_path: Path) -> None:
    mpich = library("libmpi.so.12", strings={"MPII_Version_string": "4.2.1"}, needed=("libc.so.6",), glibc="2.34")
    seen = seen_in(make_tree(tmp_path, {"/opt/mpich/lib/libmpi.so.12": mpich}))
    facts = [seen.value(f"mpi.{field}") for field in ("flavour", "version", "abi", "root", "glibc")]
    assert facts == ["mpich", "4.2.1", "mpich", "/opt/mpich", "2.34"]


def test_an_mpi_that_also_has_the_standards_interface_keeps_its_own_and_says_so(tmp_path: Path) -> None:
    """Only a person knows whether images are linked with that one."""
    files: dict[str, str | bytes] = {
        "/opt/mpich/lib/libmpi.so.12": library("libmpi.so.12", strings={"MPII_Version_string": "5.0.2"}),
        "/opt/mpich/lib/libmpi_abi.so.1": library("libmpi_abi.so.1", strings={"MPII_Version_string": "5.0.2"}),
    }
    seen = seen_in(make_tree(tmp_path / "both", files))
    assert seen.value("mpi.abi") == "mpich"
    (said,) = [note for note in seen.notes if "standard" in note]
    assert said == (
        "/opt/mpich/lib/libmpi_abi.so.1: mpich 5.0.2 also has the binary interface of the MPI 5 standard, "
        "for which `mpi.abi` is mpi5"
    )
    # As MPICH 5.0.0 and 5.0.1 call it: no program asks for that name.
    files["/opt/mpich/lib/libmpi_abi.so.1"] = library("libmpi_abi.so.0")
    assert not any("standard" in note for note in seen_in(make_tree(tmp_path / "other", files)).notes)
    alone = {"/opt/mpich/lib/libmpi_abi.so.1": library("libmpi_abi.so.1", strings={"MPII_Version_string": "5.0.2"})}
    assert seen_in(make_tree(tmp_path / "alone", dict(alone))).value("mpi.abi") == "mpi5"


def test_an_mpi_among_the_systems_libraries_is_not_bound(tmp_path: Path) -> None:
    """/usr/lib64 holds the libraries of everything; to bind it into an image would break the image."""
    folder = "/usr/lib/x86_64-linux-gnu"
    tree = make_tree(tmp_path, {f"{folder}/libmpi.so.40": library("libmpi.so.40", OPENMPI)})
    link(tree, f"{folder}/openmpi/lib/libmpi.so.40", "../../libmpi.so.40")
    seen = seen_in(tree)
    assert seen.value("mpi.flavour") is None
    assert "mpi" in seen.unseen
    assert any("openmpi 4.1.6" in note and "must not be bound" in note for note in seen.notes)


def test_a_library_folder_elsewhere_is_bound_under_its_own_name(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {"/storage/mpi-libs/libmpi.so.40": library("libmpi.so.40", OPENMPI)})
    link(tree, "/opt/openmpi/lib", "/storage/mpi-libs")
    assert seen_in(tree).value("mpi.binds") == [
        {"source": "/opt/openmpi", "target": "/opt/openmpi"},
        {"source": "/storage/mpi-libs", "target": "/storage/mpi-libs"},
    ]


def test_an_mpi_of_unknown_version_is_left_open(tmp_path: Path, hpcgen: Command) -> None:
    tree = make_tree(tmp_path / "tree", {"/opt/mpich/lib/libmpi.so.12": library("libmpi.so.12")})
    done = hpcgen("site", "new", "lab", "--detect", "--root", str(tree))
    assert "open: mpi.version:" in done.stderr
    assert "\nmpi:" not in done.stdout
    assert "# mpi is not complete" in done.stdout


def test_the_newest_need_of_the_c_library_counts(tmp_path: Path) -> None:
    with_relr = stub(Library("libx.so", glibc="2.9"))
    path = tmp_path / "libx.so"
    for content, newest in ((with_relr, "2.9"), (with_relr.replace(b"GLIBC_2.9\0", b"GLIBC_2.3\0"), "2.3")):
        path.write_bytes(content)
        with MachineTree("/").blob(str(path)) as blob:
            assert blob is not None
            said = read_library(blob)
        assert said is not None and said.glibc == newest


# GPUs, fabric, batch systems


def pci(number: int, vendor: str, device: str, kind: str) -> dict[str, str | bytes]:
    folder = f"/sys/bus/pci/devices/0000:{number:02x}:00.0"
    return {f"{folder}/vendor": vendor, f"{folder}/device": device, f"{folder}/class": kind}


def test_an_unknown_gpu_is_counted_and_its_capability_left_open(tmp_path: Path) -> None:
    seen = seen_in(make_tree(tmp_path, pci(1, "0x10de\n", "0xffff\n", "0x030200\n")))
    assert (seen.value("node.gpu.vendor"), seen.value("node.gpu.count")) == ("nvidia", 1)
    assert seen.value("node.gpu.capability") is None
    assert "node.gpu.capability" in seen.unseen


def near(number: int, cpus: str) -> dict[str, str | bytes]:
    return {f"/sys/bus/pci/devices/0000:{number:02x}:00.0/local_cpulist": f"{cpus}\n"}


def test_the_cpus_next_to_each_gpu(tmp_path: Path) -> None:
    gpus = {**pci(1, "0x10de", "0x20b2", "0x030200"), **pci(0x41, "0x10de", "0x20b2", "0x030200")}
    cores = {
        f"/sys/devices/system/cpu/cpu{n}/topology/thread_siblings_list": f"{n % 4},{n % 4 + 4}\n" for n in range(8)
    }
    crossed = {**near(1, "2-3,6-7"), **near(0x41, "0-1,4-5")}
    seen = seen_in(make_tree(tmp_path / "crossed", {**gpus, **cores, **crossed}))
    assert seen.value("node.gpu.cpus") == ["2-3", "0-1"]
    for name, lists in (("one-domain", ("0-7", "0-7")), ("overlapping", ("0-3", "0-7")), ("hidden", ("", "0-3"))):
        files = {**gpus, **cores, **near(1, lists[0]), **near(0x41, lists[1])}
        assert seen_in(make_tree(tmp_path / name, files)).value("node.gpu.cpus") is None, name


def test_graphics_of_the_mainboard_are_no_gpu(tmp_path: Path) -> None:
    files = {**pci(1, "0x8086", "0x1616", "0x030000"), **pci(2, "0x102b", "0x0536", "0x030000")}
    assert seen_in(make_tree(tmp_path, files)).value("node.gpu.vendor") is None


def test_a_geforce_is_no_data_centre_gpu(tmp_path: Path) -> None:
    seen = seen_in(make_tree(tmp_path, pci(1, "0x10de", "0x1b06", "0x030000")))
    assert (seen.value("node.gpu.capability"), seen.value("node.gpu.data_center")) == ("6.1", False)


def test_infiniband_cards_on_ethernet_are_told_apart(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"/sys/class/infiniband/mlx5_0/ports/1/link_layer": "Ethernet\n"}
    seen = seen_in(make_tree(tmp_path, files))
    assert seen.value("fabric.kind") == "none"
    assert any("mlx5_0" in note and "RoCE" in note for note in seen.notes)


def test_efa(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"/sys/class/infiniband/efa_0/ports/1/link_layer": "Unspecified\n"}
    seen = seen_in(make_tree(tmp_path, files))
    assert (seen.value("fabric.kind"), seen.value("fabric.provider")) == ("efa", "efa")


def test_a_login_node_leaves_the_queues_open(tmp_path: Path) -> None:
    line = "general*|up|100|96|180000|(null)|2|24|2|2-00:00:00|1-infinite\n"
    seen = seen_in(make_tree(tmp_path, commands={"sinfo": line}))
    assert seen.value("scheduler.kind") == "slurm"
    assert seen.value("node.queues") is None
    assert "login node" in seen.unseen["node.queues"]
    assert any("100 nodes of 2 × 24 cores" in note for note in seen.notes)


def test_sinfo_lines_that_are_none_are_passed_over() -> None:
    good, down = "good|up|4|8|16000|(null)|1|8|1|infinite|1-infinite", "down|down|4|8|1|x|1|8|1|1:00|1"
    text = f"nonsense\n|||\nx;rm|up|1|1|1|a|1|1|1|1|1\n{good}\n{down}\n"
    assert [(row.partition, row.nodes, row.limit, row.max_nodes) for row in parse_sinfo(text)] == [
        ("good", 4, None, None)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2-00:00:00", "48:00:00"), ("12:00:00", "12:00:00"), ("30:00", "00:30:00"), ("90:00", "01:30:00")],
)
def test_times_of_slurm(text: str, expected: str) -> None:
    assert wall_time(text) == expected


def test_queues_of_torque(tmp_path: Path) -> None:
    text = (
        "Queue: batch\n    queue_type = Execution\n    resources_max.nodect = 5\n"
        "    resources_max.walltime = 24:00:00\n    enabled = True\n    started = True\n\n"
        "Queue: route\n    queue_type = Route\n    enabled = True\n    started = True\n"
    )
    version = "Version: 6.1.2\nCommit: 661e092552de43a785c15d39a3634a541d86898e\n"
    seen = seen_in(make_tree(tmp_path, commands={"qstat-queues": text, "qstat-version": version}))
    assert seen.value("scheduler.kind") == "torque"
    assert seen.value("node.queues") == [{"name": "batch", "max_nodes": 5, "max_time": "24:00:00"}]


GRID_ENGINE = """\
qname                 {name}
qtype                 {kind}
pe_list               {environments}
h_rt                  {limit}
"""


def test_queues_and_environments_of_grid_engine(tmp_path: Path) -> None:
    queue = GRID_ENGINE.format(name="all.q", kind="BATCH INTERACTIVE", environments="mpi", limit="48:00:00")
    other = GRID_ENGINE.format(name="login.q", kind="INTERACTIVE", environments="make", limit="INFINITY")
    seen = seen_in(make_tree(tmp_path, commands={"qconf-queues": f"{queue}\n{other}"}))
    assert seen.value("scheduler.kind") == "gridengine"
    assert seen.value("node.queues") == [{"name": "all.q", "max_time": "48:00:00"}]
    assert seen.value("scheduler.parallel_environment") == "mpi"


def test_of_several_environments_a_person_chooses(tmp_path: Path) -> None:
    environments = "NONE,[@thin=mpi smp],[@fat=mpi_fat]"
    text = GRID_ENGINE.format(name="all.q", kind="BATCH", environments=environments, limit="INFINITY")
    seen = seen_in(make_tree(tmp_path, commands={"qconf-queues": text}))
    assert seen.value("node.queues") == [{"name": "all.q"}]
    assert seen.value("scheduler.parallel_environment") is None
    assert "mpi, smp, mpi_fat" in seen.unseen["scheduler.parallel_environment"]


# the network and image stores


def test_an_address_with_a_password_stays_out(tmp_path: Path, hpcgen: Command) -> None:
    files: dict[str, str | bytes] = {
        "/etc/pip.conf": "[global]\nindex-url = https://me:s3cret@pypi.example.org/simple\n"
    }
    environment = {"https_proxy": "http://me:s3cret@proxy.example.org:3128"}
    done = hpcgen("site", "new", "lab", "--detect", "--root", str(make_tree(tmp_path / "t", files, None, environment)))
    assert "s3cret" not in done.stdout + done.stderr
    assert done.stderr.count("has a secret in its address") == 2


def test_mirrors_of_old_and_new_apt_sources(tmp_path: Path) -> None:
    release = "ID=debian\nVERSION_ID=12\nVERSION_CODENAME=bookworm\n"
    old = "# deb http://old.example.org/debian bookworm main\n"
    old += "deb [arch=amd64] http://apt.example.org/debian bookworm main\n"
    new = "Types: deb deb-src\nURIs: https://apt.example.org/security/\nSuites: bookworm-security\nComponents: main\n"
    off = "Types: deb\nURIs: https://off.example.org/debian\nSuites: bookworm\nEnabled: no\n"
    files: dict[str, str | bytes] = {
        "/etc/os-release": release,
        "/etc/apt/sources.list": old,
        "/etc/apt/sources.list.d/security.sources": new,
        "/etc/apt/sources.list.d/off.sources": off,
    }
    assert seen_in(make_tree(tmp_path, files)).value("network.mirrors.apt.debian") == {
        "archive": "http://apt.example.org/debian",
        "security": "https://apt.example.org/security",
    }


def test_base_images_in_the_stores_are_used(tmp_path: Path) -> None:
    names = '[{"names": ["localhost/debian:12", "localhost/private/thing:1"]}, {"names": null}, 7]'
    files: dict[str, str | bytes] = {
        "/store/img/debian+12/etc/hostname": "",
        "/store/img/secret-project+1/x": "",
        "/var/lib/containers/storage/overlay-images/images.json": names,
    }
    tree = make_tree(tmp_path, files, environment={"USER": "root", "CH_IMAGE_STORAGE": "/store"})
    seen = seen_in(tree)
    assert seen.value("network.mirrors.images") == {
        "debian:12": {"charliecloud": "debian:12", "docker": "localhost/debian:12"}
    }
    assert seen.value("image.distribution") == "debian"


# the command


def test_a_file_that_is_there_is_never_replaced(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("mine\n")
    done = hpcgen("site", "new", "lab", "--detect", "-o", "lab.yaml")
    assert done.returncode == 7
    assert (tmp_path / "lab.yaml").read_text() == "mine\n"


def test_a_name_that_is_none(hpcgen: Command) -> None:
    done = hpcgen("site", "new", "My Lab")
    assert done.returncode == 3
    assert "cannot be a profile's name" in done.stderr


def test_a_skeleton_says_what_is_missing(hpcgen: Command, tmp_path: Path) -> None:
    done = hpcgen("site", "new", "lab", "-o", "lab.yaml")
    assert done.returncode == 0
    checked = hpcgen("check", "lab.yaml")
    assert checked.returncode == 3
    for field in ("title", "os", "target", "cores", "total_gb", "preferred", "kind", "login"):
        assert f"`{field}` is empty" in checked.stderr


def test_root_without_detect_is_wrong_usage(hpcgen: Command) -> None:
    assert hpcgen("site", "new", "lab", "--root", str(ROOT)).returncode == 2


def test_sources_carry_the_date_and_how_each_fact_was_seen(hpcgen: Command, trees: Path) -> None:
    import datetime

    before = datetime.date.today()
    done = hpcgen("site", "new", "lab", "--detect", "--root", str(trees / "workstation"))
    days = {before.isoformat(), datetime.date.today().isoformat()}
    assert any(
        f"  system.kernel:\n    from: /proc/sys/kernel/osrelease\n    checked: {day}\n    as_of: {day}\n"
        "    dated_by: reading\n    verified: yes\n" in done.stdout
        for day in days
    )
    assert "  network.internet:\n    from: assumed, because detection does not use the network\n" in done.stdout
