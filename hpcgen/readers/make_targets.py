"""Targets of a Makefile that are one for each machine, and what the recipe of one makes in a folder of its own."""

from __future__ import annotations

import os
import re

USUAL_TARGETS = ("openmpi", "mpich", "mpi", "gnu", "gcc", "linux", "all")
"""Those that every image can make, the likeliest to be over MPI first."""
SAYS = re.compile(r"\t[ \t]*[@-]*[ \t]*(echo|printf|cat|true|:)(\s|$)")
"""A line of a recipe that only says something."""
_COPIED = re.compile(r"\bcp\s+(?:-\w+\s+)*([\w./+-]*[Mm]akefile[\w./+-]*)\s+[\w./+-]+\s*$")
_MADE = re.compile(r"\bcd\s+([\w./+-]+)\s*(?:;|&&).*\$[({]?MAKE[)}]?\s.*[\s\"](\.\./[\w./+-]+)\s*$")


def made_elsewhere(line: str) -> tuple[str, str]:
    """The Makefile that a line of a recipe copies, and the program that it has make in another folder make; or empty.

    ``line``: with its variables put in.
    """
    copied, made = _COPIED.search(line), _MADE.search(line)
    return copied[1] if copied else "", os.path.normpath(f"{made[1]}/{made[2]}") if made else ""
