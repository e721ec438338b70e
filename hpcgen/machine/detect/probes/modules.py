"""Environment modules: whether there are any, and which are loaded or on offer."""

from __future__ import annotations

import re

from hpcgen.core.support.units import some
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+/-]{0,199}")
WORTH_KNOWING = re.compile(r"(apptainer|singularity|charliecloud|podman|enroot|sarus|.*mpi.*|.*mpich.*)(/.*)?", re.I)
_SHOWN = 20


def probe(machine: Machine, seen: Seen) -> None:
    """``system.modules``, and notes of modules that bring engines or an MPI."""
    init = machine.module_init()
    if init is None:
        return
    seen.add("system.modules", "module", init)
    names = [name for name in available(machine) if WORTH_KNOWING.fullmatch(name)]
    if names:
        seen.notes.append(f"modules of engines and MPI: {some(names, _SHOWN)}")
    elif machine.output("module-avail").text is None:
        seen.notes.append(f"modules: {machine.output('module-avail').why}")


def loaded(machine: Machine) -> list[str]:
    """Modules that are loaded now."""
    names = machine.environment.get("LOADEDMODULES", "").split(":")
    return [name for name in names if _NAME.fullmatch(name)]


def available(machine: Machine) -> list[str]:
    """Modules that ``module -t avail`` names, without the folders that they lie in."""
    lines = (line.strip().removesuffix("(default)") for line in (machine.output("module-avail").text or "").split("\n"))
    return list(dict.fromkeys(line for line in lines if _NAME.fullmatch(line) and not line.endswith("/")))
