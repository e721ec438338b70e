"""Cores, threads, sockets and domains of memory, as Linux tells them in /sys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpcgen.core.support.cpu_lists import read_mask
from hpcgen.machine.detect.capture import capture
from hpcgen.machine.detect.machine import Recorder
from hpcgen.machine.detect.probes import cpu as topology
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.detect.tree import MachineTree
from tests.helpers.hwloc import FACTS, machines
from tests.helpers.trees import CPU, make_tree, seen_in

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"
Files = dict[str, str | bytes]


def cpu(number: int, siblings: str, package: str, **more: str) -> Files:
    """The files of one CPU: those with which it shares a core and a socket, as lists."""
    sets = {"core_cpus_list": siblings, "package_cpus_list": package, "physical_package_id": "0", "core_id": "0"}
    return {f"{CPUS}/cpu{number}/topology/{name}": f"{text}\n" for name, text in {**sets, **more}.items()}


def counted(seen: Seen) -> tuple[int | None, ...]:
    return tuple(seen.value(f"node.cpu.{fact}") for fact in FACTS)


def found(folder: Path, files: Files, online: str) -> tuple[int | None, ...]:
    return counted(seen_in(make_tree(folder, {f"{CPUS}/online": f"{online}\n", **files})))


def test_numbers_of_cores_that_repeat_between_dies(tmp_path: Path) -> None:
    """Magny-Cours, and CPUs of several dies: (physical id, core id) is the same for several cores."""
    files: Files = {f"{NODES}/node0/cpulist": "0-1\n", f"{NODES}/node1/cpulist": "2-3\n"}
    cpus = []
    for number in range(4):
        files |= cpu(number, str(number), "0-3", core_id=str(number % 2), die_id=str(number // 2))
        cpus.append(f"processor: {number}\nphysical id: 0\ncore id: {number % 2}\nflags: fpu\n")
    files["/proc/cpuinfo"] = "\n".join(cpus)
    assert found(tmp_path, files, "0-3") == (4, 1, 1, 2)


def test_hardware_threads_of_two_sockets(tmp_path: Path) -> None:
    files: Files = {}
    for number in range(8):
        package = "0-1,4-5" if number % 4 < 2 else "2-3,6-7"
        files |= cpu(number, f"{number % 4},{number % 4 + 4}", package, core_id=str(number % 2))
    assert found(tmp_path, files, "0-7") == (4, 2, 2, 1)


def test_the_two_cores_of_a_compute_unit_are_two(tmp_path: Path) -> None:
    """AMD's Bulldozer: Linux names them as siblings, with a number of their own each."""
    files: Files = {}
    for number in range(4):
        pair = "0-1" if number < 2 else "2-3"
        files |= cpu(number, pair, "0-3", core_id=str(number))
    assert found(tmp_path, files, "0-3") == (4, 1, 1, 1)


def test_cpus_that_are_offline_do_not_count(tmp_path: Path) -> None:
    files: Files = {f"{CPUS}/cpu0/online": "0\n", f"{CPUS}/cpu3/online": "0\n"}
    for number in (1, 2):
        files |= cpu(number, str(number), "1-2")
    files["/proc/cpuinfo"] = "\n".join(CPU.format(number=number) for number in range(4))
    assert found(tmp_path / "a", files, "1-2") == (2, 1, 1, 1)
    old = make_tree(tmp_path / "b", files)
    assert counted(seen_in(old)) == (2, 1, 1, 1), "by the file of each CPU, where there is none for all"


def test_the_sets_of_old_kernels_are_masks(tmp_path: Path) -> None:
    files: Files = {f"{NODES}/node0/cpumap": "00000000,0000000f\n"}
    for number in range(4):
        names = {"thread_siblings": "00000000,00000005" if number % 2 == 0 else "00000000,0000000a"}
        names |= {"core_siblings": "00000000,0000000f", "physical_package_id": "0", "core_id": str(number % 2)}
        files |= {f"{CPUS}/cpu{number}/topology/{name}": f"{text}\n" for name, text in names.items()}
    assert found(tmp_path, files, "0-3") == (2, 2, 1, 1)


def test_masks() -> None:
    assert read_mask("00000001,0000000f") == [0, 1, 2, 3, 32]
    assert read_mask("f" * 20_000) == read_mask("0-3") == read_mask("") == []


def test_a_domain_without_cpus_and_one_with_those_of_another_do_not_count(tmp_path: Path) -> None:
    files: Files = cpu(0, "0", "0-1") | cpu(1, "1", "0-1")
    for node, text in enumerate(("0-1", "0-1", "", "0-1")):
        files[f"{NODES}/node{node}/cpulist"] = f"{text}\n"
    assert found(tmp_path, files, "0-1") == (2, 1, 1, 1)


def test_without_cpuinfo_the_numbers_are_known(tmp_path: Path) -> None:
    tree = make_tree(tmp_path, {f"{CPUS}/online": "0-1\n", **cpu(0, "0-1", "0-1"), **cpu(1, "0-1", "0-1")})
    (tree / "root/proc/cpuinfo").unlink()
    seen = seen_in(tree)
    assert counted(seen) == (1, 2, 1, 1)
    assert "node.cpu.target" in seen.unseen


def test_a_list_that_ends_with_a_zero(tmp_path: Path) -> None:
    """As kernels of 5.15 were seen to: the files were refused as binary, and nothing was known."""
    files: Files = cpu(0, "0-1", "0-1") | cpu(1, "0-1", "0-1")
    files[f"{NODES}/node0/cpulist"] = "0-1\n"
    ended = {path: f"{text!s}\0" for path, text in files.items()}
    assert found(tmp_path, {**ended}, "0-1") == (1, 2, 1, 1)


def test_without_sys_the_pairs_of_cpuinfo_count_and_domains_stay_open(tmp_path: Path) -> None:
    assert counted(seen_in(make_tree(tmp_path))) == (2, 1, 1, None)


def test_sockets_that_the_kernel_does_not_know_stay_open(tmp_path: Path) -> None:
    files: Files = cpu(0, "0", "0", physical_package_id="-1") | cpu(1, "1", "1", physical_package_id="-1")
    seen = seen_in(make_tree(tmp_path, {f"{CPUS}/online": "0-1\n", **files}))
    assert counted(seen) == (2, 1, None, 1)
    assert "node.cpu.sockets" in seen.unseen


def test_a_tree_of_an_older_hpcgen_has_single_files_of_sys(tmp_path: Path) -> None:
    arm = "\n".join(f"processor: {number}\nCPU implementer: 0x43\n" for number in range(8))
    files: Files = {"/proc/cpuinfo": arm, f"{CPUS}/cpu0/topology/thread_siblings_list": "0-3\n"}
    files |= {f"{CPUS}/cpu{number}/topology/physical_package_id": f"{number}\n" for number in (0, 4)}
    files |= {f"{NODES}/node{number}/cpulist": f"{4 * number}-{4 * number + 3}\n" for number in (0, 1)}
    assert counted(seen_in(make_tree(tmp_path, files))) == (2, 4, 2, 2)


def test_a_captured_tree_has_one_file_for_each_core_and_socket(tmp_path: Path) -> None:
    files: Files = {f"{CPUS}/online": "0-255\n", f"{NODES}/node0/cpulist": "0-255\n"}
    for number in range(256):
        half = number % 128
        package = "0-63,128-191" if half < 64 else "64-127,192-255"
        files |= cpu(number, f"{half},{half + 128}", package, core_id=str(half % 64))
    tree = make_tree(tmp_path / "tree", files)
    capture(Recorder(str(tree / "root"), {}, MachineTree(str(tree))), tmp_path / "again")
    assert counted(seen_in(tmp_path / "again")) == counted(seen_in(tree)) == (128, 2, 2, 1)
    read = [path for path in (tmp_path / "again/root/sys").rglob("*") if path.is_file()]
    assert 130 < len(read) < 140


def test_sets_of_strangers_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set that was taken whole would say 1000000, and keep the machine busy for hours."""
    assert topology._MOST_CPUS == 8192
    monkeypatch.setattr(topology, "_MOST_CPUS", 256)
    files: Files = {f"{CPUS}/cpu0/topology/core_cpus_list": "0-999999\n" * 1000}
    assert found(tmp_path, files, "0-999999") == (1, 256, None, 1)


@pytest.mark.slow
def test_the_machines_of_hwloc() -> None:
    """HPCGEN_TEST_HWLOC names a checkout of https://github.com/open-mpi/hwloc."""
    compared = list(machines(Path(os.environ["HPCGEN_TEST_HWLOC"])))
    for name, expected, detected in compared:
        print(f"{name}: expected {expected}, detected {detected}")
    assert len(compared) >= 44
    assert [each for each in compared if each[1] != each[2]] == []
