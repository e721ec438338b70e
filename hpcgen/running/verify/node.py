"""What the machine is that an image is started on: its CPU, its GPU, its container engine."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import sh
from hpcgen.launch.parts import USER_NAMED
from hpcgen.launch.start import start
from hpcgen.recipe.selftest import DRIVER_FILE, GPU_DEVICES

_DRIVER = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d+(?:\.\d+)+)")
_VERSION = re.compile(r"(?<!\d)\d{1,9}(?:\.\d{1,9}){1,9}")
_END = "hpcgen-node:"


class ObservedNode(msgspec.Struct, frozen=True):
    """What a node tells from inside a container.

    features: names of the first CPU's features, as Linux calls them.
    devices: the device files of GPUs that are seen.
    driver: version of NVIDIA's driver, "" if there is none.
    libraries: whether the driver's library for programs (libcuda) is found.
    """

    features: frozenset[str]
    devices: list[str]
    driver: str = ""
    libraries: bool = False


def node_command() -> list[str]:
    """A command that prints what :func:`read_node` reads, by what every image has."""
    devices = " ".join(GPU_DEVICES.values())
    steps = [
        "sed -n '1,/^$/p' /proc/cpuinfo",
        f"echo '{_END} devices'",
        f"for device in {devices}; do if [ -e $device ]; then echo $device; fi; done",
        f"echo '{_END} driver'",
        f"if [ -e {DRIVER_FILE} ]; then cat {DRIVER_FILE}; fi",
        f"echo '{_END} libraries'",
        # Bound into the image by the engine, beside the linker's cache or on its path.
        "{ ldconfig -p 2> /dev/null || /sbin/ldconfig -p; } | grep -m 1 -o '/.*/libcuda.so.1'",
        "echo $LD_LIBRARY_PATH: | tr ':' '\\n' | while read -r folder; do ls $folder/libcuda.so.1; done 2> /dev/null",
        f"echo '{_END} end'",
    ]
    return ["/bin/sh", "-c", "; ".join(steps)]


def read_node(lines: Iterable[str]) -> ObservedNode | None:
    """What the command printed; None if it did not get to its end."""
    parts: dict[str, list[str]] = {"cpu": []}
    part = "cpu"
    for line in lines:
        if line.startswith(_END):
            part = line.removeprefix(_END).strip()
            parts[part] = []
        else:
            parts[part].append(line)
    if "end" not in parts:
        return None
    driver = _DRIVER.search("\n".join(parts["driver"]))
    return ObservedNode(
        features=_features(parts["cpu"]),
        devices=[line for line in parts["devices"] if line.startswith("/dev/")],
        driver=driver[1] if driver is not None else "",
        libraries=any(line.startswith("/") for line in parts["libraries"]),
    )


def _features(lines: Iterable[str]) -> frozenset[str]:
    """x86 calls them flags, ARM Features."""
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return frozenset(value.split())
    return frozenset()


def engine_script(plan: Plan, environment: dict[str, str]) -> str:
    """bash that prints the version of the engine, if it tells one, with the site's modules loaded."""
    how = start(plan, environment)
    program = sh(how.engine.command_name())
    modules = plan.site.system.loading(how.modules)
    missing = f"echo {program} is not on PATH; exit 69"
    version = [f"{program} --version"] if how.engine.tells_version else []
    user = [USER_NAMED] if how.engine.asks_user else []
    return "\n".join([*user, *modules, f"command -v {program} || {{ {missing}; }}", *version, ""])


def engine_version(lines: Iterable[str]) -> str:
    """The version in what ``--version`` printed, which is its last line with one; "" if there is none."""
    found = [match[0] for line in lines if not line.startswith("/") and (match := _VERSION.search(line))]
    return found[-1] if found else ""
