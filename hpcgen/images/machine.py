"""For which machine the programs of an image are, whatever its configuration says.

Source: elf(5), bytes 18 and 19 of a program, with the constants ``EM_`` of elf.h.
"""

from __future__ import annotations

SHELL = "/bin/sh"
"""The program that is looked at: no image of hpcgen is built without one."""
_MACHINES = {b"\x3e\0": "amd64", b"\xb7\0": "arm64"}


def machine_of(program: bytes) -> str:
    """What registries and dpkg call the machine of a program, ``unknown`` for one of no site; empty if it is none."""
    return _MACHINES.get(program[18:20], "unknown") if program.startswith(b"\x7fELF") else ""
