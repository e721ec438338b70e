"""Whether this machine builds images of an architecture: its own, or another one by an emulator that is registered.

Source: Documentation/admin-guide/binfmt-misc.rst of Linux; elf(5), bytes 18 and 19 of a program.
"""

from __future__ import annotations

import os
from pathlib import Path

from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.site import Site

REGISTERED = Path("/proc/sys/fs/binfmt_misc")
_MACHINES = {"x86_64": "3e00", "aarch64": "b700"}
_SPELT = {"arm64": "aarch64", "amd64": "x86_64"}


def here() -> str:
    """The architecture of this machine, as profiles call it where they have it."""
    machine = os.uname().machine
    return _SPELT.get(machine, machine)


def foreign(site: Site) -> Problem | None:
    """Why this machine builds no image for a site without being told to; None where it does."""
    wanted = site.system.architecture
    if wanted == here():
        return None
    emulator = emulator_of(wanted)
    way = f"--emulate, by {emulator}, which is registered here and many times slower" if emulator else _REGISTER
    return Problem(
        f"this machine is {here()}, and the image for {site.name} is for {wanted}",
        expected=f"a machine of {wanted} to build it on",
        remedy=f"build it there, or with --submit, or here with {way}",
    )


_REGISTER = "--emulate and qemu-user-static"


def runs(architecture: str) -> bool:
    """Whether programs of an architecture start here, by an emulator or without."""
    return architecture == here() or bool(emulator_of(architecture))


def check_architecture(site: Site, emulate: bool) -> None:
    """PolicyError where a build here is for another architecture, and nobody asked for an emulator or there is none."""
    problem = foreign(site)
    if problem is not None and not (emulate and runs(site.system.architecture)):
        raise PolicyError([problem])


def emulator_of(architecture: str, registered: Path = REGISTERED) -> str:
    """What programs of an architecture are started by, as the kernel knows it; empty if there is none.

    ``registered``: the folder with a file for each interpreter.
    """
    machine = _MACHINES[architecture]
    for path in sorted(registered.glob("*")):
        try:
            lines = path.read_text(encoding="ascii", errors="replace").splitlines()
        except OSError:
            continue  # `register` can only be written
        magic = next((line.split()[-1] for line in lines if line.startswith("magic ")), "")
        if lines[:1] == ["enabled"] and magic.startswith("7f454c46") and magic[36:40] == machine:
            return path.name
    return ""
