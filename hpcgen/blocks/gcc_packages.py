"""GCC and its run-time libraries, by the names that distributions give their packages."""

from __future__ import annotations

_NUMBERED = {"libgomp": "libgomp1", "libquadmath": "libquadmath0", "libstdc++": "libstdc++6"}


def gcc_libraries(*names: str) -> dict[str, list[str]]:
    """Packages of GCC's run-time libraries, for ``Packages``.

    Debian's and openSUSE's names say the number of the binary interface.

    ``names``: ``libgomp``, ``libquadmath`` or ``libstdc++``, as Red Hat's packages are called.
    """
    numbered = [_NUMBERED[name] for name in names]
    return {"apt": numbered, "dnf": list(names), "zypper": list(numbered)}


def gcc_compilers(suffix: str, fortran: bool = False) -> dict[str, list[str]]:
    """Packages of the compilers of a GCC for C, C++ and, if asked for, Fortran, with the headers of the C library.

    ``suffix``: what the names of its programs end with, such as ``-13``; empty for the distribution's default.
    openSUSE's packages have the number alone: ``gcc13-c++``.
    """
    suse = f"gcc{suffix.removeprefix('-')}"
    return {
        "apt": [f"gcc{suffix}", f"g++{suffix}", "libc6-dev", *([f"gfortran{suffix}"] if fortran else [])],
        "dnf": ["gcc", "gcc-c++", "glibc-devel", *(["gcc-gfortran"] if fortran else [])],
        "zypper": [suse, f"{suse}-c++", "glibc-devel", *([f"{suse}-fortran"] if fortran else [])],
    }
