"""CPUs and memory of the node. What CPU it is, is told by its flags against archspec's table."""

from __future__ import annotations

import re
from typing import Any

from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes import topology
from hpcgen.machine.detect.probes.topology import CPUINFO
from hpcgen.machine.detect.seen import Seen

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
    topology.probe(machine, cpus, seen)
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
