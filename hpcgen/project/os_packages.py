"""Packages of the distribution: those of apt.txt, and the libraries that a build looks for."""

from __future__ import annotations

from hpcgen.core.errors import Position
from hpcgen.core.support.units import counted
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.readers.apt_txt import read_apt

_LIBRARIES = {
    "Armadillo": "libarmadillo-dev",
    "BLAS": "libopenblas-dev",
    "Boost": "libboost-all-dev",
    "BZip2": "libbz2-dev",
    "CURL": "libcurl4-openssl-dev",
    "Eigen3": "libeigen3-dev",
    "FFTW3": "libfftw3-dev",
    "fmt": "libfmt-dev",
    "GSL": "libgsl-dev",
    "GTest": "libgtest-dev",
    "HDF5": "libhdf5-dev",
    "LAPACK": "liblapack-dev",
    "LibXml2": "libxml2-dev",
    "nlohmann_json": "nlohmann-json3-dev",
    "OpenSSL": "libssl-dev",
    "PNG": "libpng-dev",
    "SQLite3": "libsqlite3-dev",
    "TBB": "libtbb-dev",
    "yaml-cpp": "libyaml-cpp-dev",
    "ZLIB": "zlib1g-dev",
}
"""What CMake calls a library, and the package that has its headers. Source: package lists of Debian 12, 2026-11-25."""
_NONE_NEEDED = ("Threads", "OpenMP", "PkgConfig", "CMakePackageConfigHelpers")


def choose_os_packages(found: Found, draft: Draft) -> None:
    """The block that installs them, each with the line that asks for it."""
    names: dict[str, tuple[str, Position]] = {}
    if found.tree.has("apt.txt"):
        for each in found.read(lambda folder, path: read_apt(folder, path, found.problems), "apt.txt") or []:
            names.setdefault(each.text, ("apt.txt", each.where))
    unknown = []
    for library in found.build.libraries if found.build is not None else []:
        if library.text in _LIBRARIES:
            why = f"find_package({library.text}) asks for {_LIBRARIES[library.text]}"
            names.setdefault(_LIBRARIES[library.text], (why, library.where))
        elif library.text not in _NONE_NEEDED:
            unknown.append(library)
    for library in unknown:
        text = f"find_package({library.text}): if it is not part of the project, name its package under os_packages"
        draft.remark(text, library.where)
    if not names:
        return
    options = {"packages": list(names)}
    # Names of one file are told once.
    if listed_there := [where for why, where in names.values() if why == "apt.txt"]:
        why = f"{counted(len(listed_there), 'package')} of apt.txt; the names are Debian's and Ubuntu's"
        draft.add_block("os_packages", why, listed_there[0], **options)
    for why, where in names.values():
        if why != "apt.txt":
            draft.add_block("os_packages", why, where, **options)
