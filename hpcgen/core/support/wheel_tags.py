"""The C library that wheels need, by their file names: https://peps.python.org/pep-0600/."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from packaging.tags import Tag

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


def minor_of(python: str) -> str:
    """``3.12`` of ``3.12.3``: by which wheels, lists and markers name a Python."""
    return ".".join(python.split(".")[:2])


# Which wheels run on a machine that is not this one, and which of several pip would install there.

_LEGACY = {minor: name for name, minor in LEGACY.items()}
_OLDEST = {"x86_64": 5}
_OLDEST_OTHER = 17


class WheelTarget(msgspec.Struct, frozen=True):
    """What the wheels must run on: CPython ``python`` (X.Y or X.Y.Z), with a glibc such as ``2.36``."""

    python: str
    architecture: str
    glibc: str

    @property
    def release(self) -> tuple[int, int]:
        """Major and minor version of Python."""
        major, minor = self.python.split(".")[:2]
        return int(major), int(minor)

    @property
    def newest(self) -> int:
        """The minor version of glibc 2."""
        return int(self.glibc.split(".")[1])


def platforms(target: WheelTarget) -> list[str]:
    """Names of the platforms whose wheels run there, the best first."""
    names = []
    for minor in range(target.newest, _OLDEST.get(target.architecture, _OLDEST_OTHER) - 1, -1):
        names.append(f"manylinux_2_{minor}_{target.architecture}")
        if minor in _LEGACY:
            names.append(f"{_LEGACY[minor]}_{target.architecture}")
    return [*names, f"linux_{target.architecture}"]


def tags(target: WheelTarget) -> list[Tag]:
    """The kinds of wheels that can be installed there, the best first, as pip orders them."""
    from packaging.tags import compatible_tags, cpython_tags

    number = "{}{}".format(*target.release)
    # Until 3.7 the name of the binary interface told of the memory allocator: https://peps.python.org/pep-3149/
    abi = f"cp{number}m" if target.release < (3, 8) else f"cp{number}"
    names = platforms(target)
    return [
        *cpython_tags(target.release, [abi], names),
        *compatible_tags(target.release, f"cp{number}", names),
    ]


@lru_cache(maxsize=16)
def _order(target: WheelTarget) -> dict[Tag, int]:
    """The rank of each kind of wheel; there are thousands."""
    return {tag: rank for rank, tag in enumerate(tags(target))}


def best_wheel(files: Iterable[str], target: WheelTarget) -> str | None:
    """The file that pip would choose among wheels of one version; None if none can be installed."""
    from packaging.utils import parse_wheel_filename

    order = _order(target)
    ranked = []
    for file in files:
        _, _, build, kinds = parse_wheel_filename(file)
        if ranks := [order[kind] for kind in kinds if kind in order]:
            ranked.append((-min(ranks), build, file))
    return max(ranked)[2] if ranked else None
