"""CPUs and memory of the node. What CPU it is, is told by its flags against archspec's table."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.core.support.cpu_lists import read_list, read_mask
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

SHARED_MEMORY = r"^\S+ /dev/shm tmpfs (?:\S*,)?size=(\d{1,15})k"
"""The line of /proc/mounts that says how large /dev/shm is."""
_KIB_PER_GB = 1024 * 1024
"""As memory is sold and as batch systems count it: a GB of it has 2^30 bytes."""


def probe(machine: Machine, seen: Seen) -> None:
    """Facts below ``node.cpu`` and ``node.memory``, and ``system.architecture``."""
    cpus = read_cpuinfo(machine.text(CPUINFO, 16 * 1024 * 1024) or "")
    if not cpus:
        for path in ("system.architecture", "node.cpu.target"):
            seen.add_unseen(path, f"{CPUINFO} names no CPU")
    else:
        architecture = "aarch64" if "CPU implementer" in cpus[0] else "x86_64" if "flags" in cpus[0] else None
        if architecture is None:
            seen.add_unseen("system.architecture", f"{CPUINFO} is of neither x86_64 nor aarch64")
        else:
            seen.add("system.architecture", architecture, CPUINFO)
            target = target_of(cpus[0], architecture)
            seen.add("node.cpu.target", target, f"flags in {CPUINFO} against archspec's table")
            if target == architecture:
                seen.notes.append(f"archspec knows no CPU with the flags in {CPUINFO} but {target} in general")
        seen.add("node.cpu.model", re.sub(r"\s+", " ", cpus[0].get("model name", "")).strip(), CPUINFO)
    see_topology(machine, cpus, seen)
    _memory(machine, seen)


def read_cpuinfo(text: str) -> list[dict[str, str]]:
    """The CPUs of /proc/cpuinfo: those paragraphs that have a processor number."""
    found = []
    for paragraph in text.split("\n\n"):
        pairs = (line.partition(":") for line in paragraph.split("\n") if ":" in line)
        cpu = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" in cpu:
            found.append(cpu)
    return found


def target_of(cpu: dict[str, str], architecture: str) -> str:
    """archspec's name of a CPU: the most special one of its vendor whose code it all runs.

    Of those with the same code it is the one that misses least of the features that only the operating system or
    built-in functions use: hypervisors hide some. A CPU that no name of its vendor fits is named by the psABI's level
    that it reaches. On ARM the part number decides between those whose features fit, as in archspec's own detection.
    """
    import archspec.cpu

    targets = archspec.cpu.TARGETS
    root = targets[architecture]
    features = set(cpu.get("flags" if architecture == "x86_64" else "Features", "").split())
    seen = features | {"sse3"} if "pni" in features else features
    vendor = cpu.get("vendor_id", "generic") if architecture == "x86_64" else _arm_vendor(cpu)

    def fits(target: Any) -> bool:
        if target != root and (root not in target.ancestors or target.vendor not in (vendor, "generic")):
            return False
        if architecture == "aarch64" and target.vendor == "generic" and target != root:
            return False
        return code_features(target.name) <= features

    def likeness(target: Any) -> tuple[int, int, int, int, str]:
        code, missing = len(code_features(target.name)), len(target.features - seen)
        return code, -missing, len(target.ancestors), len(target.features), str(target.name)

    fitting = [target for target in targets.values() if fits(target)]
    level = max((target for target in fitting if target.vendor == "generic"), key=likeness, default=root)
    part = cpu.get("CPU part")
    same_part = [target for target in fitting if part and getattr(target, "cpu_part", "") == part]
    special = [target for target in same_part or fitting if level in target.ancestors]
    return str(max(special, key=likeness, default=level).name)


def _arm_vendor(cpu: dict[str, str]) -> str:
    from archspec.cpu.schema import TARGETS_JSON

    code = cpu.get("CPU implementer", "")
    return str(TARGETS_JSON["conversions"]["arm_vendors"].get(code, code))


def _memory(machine: Machine, seen: Seen) -> None:
    match = re.search(r"^MemTotal:\s+(\d{1,15}) kB$", machine.text("/proc/meminfo") or "", re.MULTILINE)
    if match and int(match[1]):
        seen.add("node.memory.total_gb", round(int(match[1]) / _KIB_PER_GB, 1), "MemTotal in /proc/meminfo")
    else:
        seen.add_unseen("node.memory.total_gb", "/proc/meminfo has no MemTotal")
    shared = re.search(SHARED_MEMORY, machine.text("/proc/mounts") or "", re.MULTILINE)
    if shared and int(shared[1]):
        seen.add("node.memory.shared_gb", round(int(shared[1]) / _KIB_PER_GB, 2), "/dev/shm in /proc/mounts")
    if locked := re.search(r"^Max locked memory +\S+ +(\d+|unlimited) ", machine.text("/proc/self/limits") or "", re.M):
        value = locked[1] if locked[1] == "unlimited" else round(int(locked[1]) / 2**30, 3)
        seen.add("node.memory.locked_gb", value or None, "the hard limit in /proc/self/limits")


# How the CPUs of a node belong together. Numbers of cores repeat between the dies of a socket, sometimes within one, so
# CPUs are grouped by the sets that the kernel names. Source: Linux, Documentation/admin-guide/cputopology.rst and
# Documentation/ABI/stable/sysfs-devices-node.

CPUINFO = "/proc/cpuinfo"
_CPUS = "/sys/devices/system/cpu"
_NODES = "/sys/devices/system/node"
_MOST_CPUS = 8192
"""The most that Linux can be built for."""


class Topology(msgspec.Struct, frozen=True):
    """How many there are of each; ``sockets`` is 0 where the kernel does not know, ``how`` where it says so."""

    cpus: int
    cores: int
    sockets: int
    how: str


def see_topology(machine: Machine, cpuinfo: list[dict[str, str]], seen: Seen) -> None:
    """Facts below ``node.cpu`` that are numbers, of the CPUs that are online.

    ``cpuinfo``: the CPUs of /proc/cpuinfo, which count only where /sys does not tell.
    """
    by_sys = _by_sys(machine, len(cpuinfo))
    found = by_sys or _by_cpuinfo(machine, cpuinfo)
    if found is None:
        for path in ("node.cpu.cores", "node.cpu.threads_per_core"):
            seen.add_unseen(path, f"neither {CPUINFO} nor {_CPUS} distinguishes cores from threads")
    else:
        seen.add("node.cpu.cores", found.cores, found.how)
        # Where cores differ, as many as each can have: a job must not ask for more than there are.
        seen.add("node.cpu.threads_per_core", max(1, found.cpus // found.cores), found.how)
        seen.add("node.cpu.sockets", found.sockets or None, found.how)
    if not (found and found.sockets):
        seen.add_unseen("node.cpu.sockets", f"{_CPUS} names no package")
    if domains := _domains(machine):
        seen.add("node.cpu.numa_domains", domains, f"{_NODES}/node*/cpulist")
    elif by_sys and not machine.exists(_NODES):
        seen.add("node.cpu.numa_domains", 1, f"there is no {_NODES}: Linux was built without NUMA")
    else:
        seen.add_unseen("node.cpu.numa_domains", f"{_NODES} has no domain with CPUs")


def _by_sys(machine: Machine, most: int) -> Topology | None:
    """By the sets of CPUs in /sys; None if it has fewer CPUs than /proc/cpuinfo, as in trees that 0.1.0 captured."""
    online = read_list(machine.line(f"{_CPUS}/online") or "")
    if not online:
        names = machine.names(_CPUS, "cpu[0-9]*")
        numbers = [int(name[3:]) for name in names if name[3:].isdecimal()]
        if len(numbers) < most:
            return None
        online = sorted(number for number in numbers if machine.line(f"{_CPUS}/cpu{number}/online") != "0")
    online = online[:_MOST_CPUS]
    if not online:
        return None
    cores = _groups(machine, online, "core_cpus", "thread_siblings")
    sockets = _groups(machine, online, "package_cpus", "core_siblings")
    known = machine.line(f"{_topology(online[0])}/physical_package_id") not in (None, "-1")
    together = next((group for group in cores if len(group) > 1), ())
    if len({machine.line(f"{_topology(cpu)}/core_id") for cpu in together}) > 1:
        # AMD's compute units (Bulldozer) have two cores, which Linux takes for siblings.
        return Topology(len(online), len(online), len(sockets) * known, f"{_CPUS}/cpu*/topology")
    return Topology(len(online), len(cores), len(sockets) * known, f"{_CPUS}/cpu*/topology")


def _topology(cpu: int) -> str:
    return f"{_CPUS}/cpu{cpu}/topology"


def _groups(machine: Machine, online: list[int], name: str, older: str) -> list[set[int]]:
    """The CPUs in the sets of a name, or of that which it had before Linux 5.2; what is in no set is one of its own."""
    left = set(online)
    found = []
    for cpu in online:
        if cpu in left:
            paths = (f"{_topology(cpu)}/{each}" for each in (name, older))
            cpus = next((cpus for path in paths if (cpus := _cpus(machine, f"{path}_list", path))), [])
            group = left & {cpu, *cpus}
            left -= group
            found.append(group)
    return found


def _cpus(machine: Machine, listed: str, masked: str) -> list[int]:
    """CPUs of a file with a list, or of one with a mask, which old kernels have alone."""
    return read_list(machine.line(listed) or "") or read_mask(machine.line(masked) or "")


def _by_cpuinfo(machine: Machine, cpuinfo: list[dict[str, str]]) -> Topology | None:
    """By the pairs of package and core; where there are none, as on ARM, by what /sys says of single CPUs."""
    if cpuinfo and "core id" in cpuinfo[0]:
        pairs = {(cpu.get("physical id", "0"), cpu.get("core id", "")) for cpu in cpuinfo}
        return Topology(len(cpuinfo), len(pairs), len({package for package, _ in pairs}), CPUINFO)
    threads = len(read_list(machine.line(f"{_topology(0)}/thread_siblings_list") or ""))
    cores = len(cpuinfo) // threads if threads else 0
    if not cores:
        return None
    firsts = [read_list(machine.line(path) or "") for path in machine.glob(f"{_NODES}/node[0-9]*/cpulist")]
    # A package has one domain of memory or more, and none has CPUs of two packages.
    packages = {machine.line(f"{_topology(first[0])}/physical_package_id") for first in firsts if first}
    how = f"{_CPUS}/cpu*/topology and processors of {CPUINFO}"
    return Topology(len(cpuinfo), cores, len(packages - {None, "-1"}), how)


def _domains(machine: Machine) -> int:
    """Domains that have CPUs of their own: others hold only memory, and faulty firmware has all CPUs in each."""
    taken: set[int] = set()
    count = 0
    for path in machine.glob(f"{_NODES}/node[0-9]*"):
        cpus = _cpus(machine, f"{path}/cpulist", f"{path}/cpumap")
        if cpus and taken.isdisjoint(cpus):
            taken.update(cpus)
            count += 1
    return count
