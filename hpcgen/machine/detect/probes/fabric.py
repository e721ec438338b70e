"""The network between nodes, by the devices that /sys shows: InfiniBand, Omni-Path, Slingshot, EFA.

Sources: the kernel's Documentation/ABI/stable/sysfs-class-infiniband; libfabric's fi_psm2(7), fi_cxi(7), fi_efa(7);
cxi's device names in libcxi.
"""

from __future__ import annotations

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_INFINIBAND = "/sys/class/infiniband"
_CXI = "/sys/class/cxi"
_COPY_DEVICES = ("gdrdrv", "xpmem")
_LIBFABRIC = "/opt/cray/libfabric/*/lib64"


def probe(machine: Machine, seen: Seen) -> None:
    """Facts below ``fabric``. The first kind that is there counts, in the order of the code."""
    devices = [f"/dev/{name}" for name in _COPY_DEVICES if machine.names("/dev", name)]
    seen.add("node.copy_devices", devices or None, "files of that name")
    cxi = machine.names(_CXI, "cxi[0-9]*")
    adapters = machine.names(_INFINIBAND)
    drivers = {
        name: (machine.real(f"{_INFINIBAND}/{name}/device/driver") or "").rsplit("/", 1)[-1] for name in adapters
    }
    omni_path = [name for name in adapters if name.startswith("hfi1_")]
    efa = [name for name in adapters if drivers[name] == "efa" or name.startswith("efa_")]
    infiniband = [name for name in adapters if name not in efa and _links(machine, name) == {"InfiniBand"}]
    if cxi:
        _add(seen, "slingshot", "cxi", [f"/dev/{name}" for name in cxi], _CXI)
        libraries = machine.glob(_LIBFABRIC)
        seen.add("fabric.libraries", libraries[-1:], f"{_LIBFABRIC}, the last by name")
    elif omni_path:
        _add(seen, "omni-path", "psm2", [f"/dev/{name}" for name in omni_path], _INFINIBAND)
    elif efa:
        _add(seen, "efa", "efa", ["/dev/infiniband"], _INFINIBAND)
    elif infiniband:
        _add(seen, "infiniband", None, ["/dev/infiniband"], f"{_INFINIBAND}/*/ports/*/link_layer")
        seen.add_unseen("fabric.provider", "verbs, mlx and psm3 all drive InfiniBand: the MPI chooses one")
    else:
        _plain(machine, adapters, seen)


def _add(seen: Seen, kind: str, provider: str | None, devices: list[str], how: str) -> None:
    seen.add("fabric.kind", kind, how)
    seen.add("fabric.provider", provider, f"libfabric's provider for the devices of {how}")
    seen.add("fabric.devices", devices, how)


def _plain(machine: Machine, adapters: list[str], seen: Seen) -> None:
    """No fabric of its own: Ethernet where there is a batch system, nothing where there is none."""
    if adapters:
        seen.notes.append(
            f"{', '.join(adapters)} of {_INFINIBAND} are on Ethernet (RoCE); whether jobs use it is unknown"
        )
    if not machine.is_dir("/sys/class"):
        seen.add_unseen("fabric.kind", "/sys/class cannot be read")
        return
    batch = seen.value("scheduler.kind") not in (None, "none")
    seen.add("fabric.kind", "ethernet" if batch else "none", f"neither {_INFINIBAND} nor {_CXI} has a device")


def _links(machine: Machine, name: str) -> set[str | None]:
    """What the adapter's ports are connected to. A port that is down counts as well: its kind is the card's."""
    return {machine.line(path) for path in machine.glob(f"{_INFINIBAND}/{name}/ports/*/link_layer")}
