"""GPUs of the node: counted on the PCI bus, named by their drivers or by a table of device numbers."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any

from hpcgen.backends.hardware.amdgpu import driver_release
from hpcgen.core.support.cpu_lists import list_text, read_list
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_PCI = "/sys/bus/pci/devices"
_VENDORS = {"0x10de": "nvidia", "0x1002": "amd", "0x8086": "intel"}
_NVIDIA = "/proc/driver/nvidia"
_KFD = "/sys/class/kfd/kfd/topology/nodes"
_VERSION = re.compile(r"\d{1,9}(\.\d{1,9}){1,3}")
_NVRM = re.compile(r"Kernel Module(?: for \S+)?\s+(\d{1,9}(?:\.\d{1,9}){1,2})\b")


def probe(machine: Machine, seen: Seen) -> None:
    """Facts below ``node.gpu``. A node without GPUs has none of them."""
    paths = {path: device for path in machine.glob(f"{_PCI}/*") if (device := _device(machine, path))}
    devices = list(paths.values())
    vendor, number = Counter(devices).most_common(1)[0][0] if devices else ("", "")
    if not devices:
        # On a login node that is the truth; of a node whose /sys is hidden nobody can tell.
        if not machine.is_dir(_PCI):
            seen.add_unseen("node.gpu", f"{_PCI} cannot be read")
        return
    others = sorted({f"{device[0]} {device[1]}" for device in devices if device != (vendor, number)})
    if others:
        seen.notes.append(f"{_PCI} also has GPUs of other kinds: {', '.join(others)}; a profile has one kind per node")
    seen.add("node.gpu.vendor", vendor, f"{_PCI}/*/vendor")
    seen.add("node.gpu.count", devices.count((vendor, number)), f"{_PCI}/*/class")
    cpus = _next_to(machine, sorted(path for path, device in paths.items() if device == (vendor, number)))
    seen.add("node.gpu.cpus", cpus, f"{_PCI}/*/local_cpulist, the first hardware thread of each core")
    row = table().get(vendor, {}).get(number, {})
    chip = table()["chips"].get(row.get("chip"), {})
    how = f"PCI device {number} in hpcgen's table of GPUs"
    seen.add("node.gpu.model", row.get("model", f"{vendor} GPU, PCI device {number}"), how)
    seen.add("node.gpu.memory_gb", int(row.get("memory_gb") or 0) or None, how)
    seen.add("node.gpu.capability", chip.get("capability"), f"{how}, chip {row.get('chip')}")
    seen.add("node.gpu.target", chip.get("target"), f"{how}, chip {row.get('chip')}")
    if vendor == "nvidia":
        if row:
            seen.add("node.gpu.data_center", row.get("data_center", True), how)
        _nvidia(machine, seen)
    elif vendor == "amd":
        _amd(machine, seen)
    for field in ("model", "memory_gb", "driver", *{"nvidia": ["capability"], "amd": ["target"]}.get(vendor, [])):
        seen.add_unseen(f"node.gpu.{field}", f"no driver says so, nor does hpcgen's table for PCI device {number}")


def _device(machine: Machine, path: str) -> tuple[str, str] | None:
    """Vendor and device number of what computes or draws. Source of the classes: the PCI ID repository."""
    kind = machine.line(f"{path}/class") or ""
    vendor = _VENDORS.get(machine.line(f"{path}/vendor") or "")
    number = (machine.line(f"{path}/device") or "").removeprefix("0x").lower()
    # 0300 VGA, 0302 3D, 0380 display, 1200 processing accelerator.
    if vendor is None or kind[:6] not in ("0x0300", "0x0302", "0x0380", "0x1200"):
        return None
    # Graphics in a CPU, in a server's management chip or in a desktop is no GPU for jobs of Intel's and AMD's.
    if vendor != "nvidia" and number not in table()[vendor]:
        return None
    return vendor, number


def _next_to(machine: Machine, paths: list[str]) -> list[str] | None:
    """The CPUs next to each device, in the order of their addresses, which is that of the drivers' numbers.

    None where the kernel does not say so, or where all are equally near.
    """
    found = []
    for path in paths:
        near = read_list(machine.line(f"{path}/local_cpulist") or "")
        found.append([cpu for cpu in near if cpu == min(_siblings(machine, cpu), default=cpu)])
    kinds = {tuple(cpus) for cpus in found}
    divided = len(kinds) > 1 and () not in kinds and len(set().union(*kinds)) == sum(map(len, kinds))
    return [list_text(cpus) for cpus in found] if divided else None


def _siblings(machine: Machine, cpu: int) -> list[int]:
    """The hardware threads of a CPU's core."""
    return read_list(machine.line(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or "")


def _nvidia(machine: Machine, seen: Seen) -> None:
    for path in machine.glob(f"{_NVIDIA}/gpus/*/information"):
        match = re.search(r"^Model:\s+(\S.*)$", machine.text(path) or "", re.MULTILINE)
        if match and "unknown" not in match[1].lower():
            seen.add("node.gpu.model", match[1].strip(), path)
            break
    match = _NVRM.search(machine.text(f"{_NVIDIA}/version") or "")
    if match:
        seen.add("node.gpu.driver", match[1], f"{_NVIDIA}/version")
    elif _VERSION.fullmatch(version := machine.line("/sys/module/nvidia/version") or ""):
        seen.add("node.gpu.driver", version, "/sys/module/nvidia/version")


def _amd(machine: Machine, seen: Seen) -> None:
    """The driver's own words. Source: the kernel's drivers/gpu/drm/amd/amdkfd/kfd_topology.c and amdgpu's sysfs."""
    if module := machine.line("/sys/module/amdgpu/version"):
        how = f"{module} in /sys/module/amdgpu/version"
        seen.add("node.gpu.driver", driver_release(module) or None, how)
        seen.add_unseen("node.gpu.driver", f"which release of AMD's driver has {how} is not known")
    for path in machine.glob(f"{_KFD}/*/properties"):
        match = re.search(r"^gfx_target_version (\d{5,6})$", machine.text(path) or "", re.MULTILINE)
        if match and int(match[1]):
            number = int(match[1])
            # 90010 is 9.0.10, which is written gfx90a.
            name = f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"
            seen.add("node.gpu.target", name, f"gfx_target_version in {path}")
            break
    for path in machine.glob(f"{_PCI}/*/mem_info_vram_total"):
        size = machine.line(path) or ""
        if re.fullmatch("[0-9]{1,18}", size) and int(size) >= 2**30:
            seen.add("node.gpu.memory_gb", round(int(size) / 2**30), path)
            break


@lru_cache(maxsize=1)
def table() -> dict[str, Any]:
    """The table of GPUs, ``gpus.yaml``."""
    from hpcgen.core.config.yamlfile import load

    found: dict[str, Any] = load(Path(__file__).parent.parent / "gpus.yaml").data
    return found
