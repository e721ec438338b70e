"""What the file names of wheels say of the C library that they need: https://peps.python.org/pep-0600/."""

from __future__ import annotations

import re
from collections.abc import Iterable

LEGACY = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}
"""Minor versions of glibc 2 that older names of platforms stand for."""
_PLATFORM = r"(manylinux1|manylinux2010|manylinux2014)_|manylinux_2_([0-9]+)_"


def glibc_of(file: str) -> str:
    """The oldest C library that a wheel runs with, such as ``2.28``; empty where its name asks for none."""
    platforms = file.removesuffix(".whl").rsplit("-", 1)[-1]
    minors = [LEGACY[old] if old else int(new) for old, new in re.findall(_PLATFORM, platforms)]
    return f"2.{min(minors)}" if minors else ""


def newest_glibc(files: Iterable[str]) -> str:
    """The oldest C library that all of the wheels run with; empty where none asks for one."""
    return max((glibc for file in files if (glibc := glibc_of(file))), key=as_numbers, default="")


def as_numbers(glibc: str) -> tuple[int, ...]:
    """A version of the C library to compare; an empty one is the oldest."""
    return tuple(int(part) for part in glibc.split(".") if part)
