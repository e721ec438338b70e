"""What a project's build looks for, as packages of the distribution, as blocks, or as what the user has to bring."""

from __future__ import annotations

import re

from hpcgen.catalog.project import SPACK
from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import BuildFile, WantedLibrary
from hpcgen.core.support.units import counted, some
from hpcgen.project.draft import Draft
from hpcgen.project.found import Found
from hpcgen.project.library_rows import BOOST_HEADERS, OVER_SERIAL_HDF5, LibraryRow, libraries
from hpcgen.project.spack import brought
from hpcgen.readers.apt_txt import read_apt

_NUMBERS = ("libfftw3-dev", "libgsl-dev", "libgmp-dev", "libmetis-dev", "libnuma-dev", "libopenblas-dev")
"""Without these configure goes on, and the program then cannot compute all that it is for."""
_OF_HDF5 = ("hdf5", "netcdf")
_GPU_BLOCKS = ("cuda", "rocm", "nccl", "rccl")


def choose_os_packages(found: Found, draft: Draft) -> None:
    """The block that installs packages, each with the line that asks for it; other blocks; and what is left open."""
    packages = _Packages()
    if found.tree.has("apt.txt"):
        for each in found.read(lambda folder, path: read_apt(folder, path, found.problems), "apt.txt") or []:
            packages.listed.setdefault(each.text, each.where)
    if found.build is not None and (found.build.programs or found.build.mpi is not None or found.backend is not None):
        _of_build(found.build, packages, found, draft)
    packages.put(draft)


class _Packages:
    """Names for each package manager, with their reasons."""

    def __init__(self) -> None:
        self.listed: dict[str, Position] = {}
        self.wanted: dict[str, tuple[str, Position]] = {}
        self.others: dict[str, list[str]] = {"dnf": [], "zypper": []}
        self.build_only: list[str] = []

    def add(self, apt: str, dnf: str, zypper: str, why: str, where: Position) -> None:
        for name in apt.split():
            self.wanted.setdefault(name, (f"{why} asks for {name}", where))
        for manager, names in (("dnf", dnf or apt), ("zypper", zypper or apt)):
            self.others[manager] += [name for name in names.split() if name not in self.others[manager]]

    def put(self, draft: Draft) -> None:
        apt = list(dict.fromkeys([*self.listed, *self.wanted]))
        if not apt:
            return
        # What apt.txt lists is known by Debian's names alone.
        others = {} if self.listed else {name: names for name, names in self.others.items() if names != apt}
        options = {"packages": apt, **others}
        if build_only := list(dict.fromkeys(name for name in self.build_only if name not in self.listed)):
            options["build_only"] = build_only
        if self.listed:
            why = f"{counted(len(self.listed), 'package')} of apt.txt; the names are Debian's and Ubuntu's"
            draft.add_block("os_packages", why, next(iter(self.listed.values())), **options)
        for name, (why, where) in self.wanted.items():
            if name not in self.listed:
                draft.add_block("os_packages", why, where, **options)


def _of_build(build: BuildFile, packages: _Packages, found: Found, draft: Draft) -> None:
    started = {word for job in found.jobs for line in job.launched for word in line.words}
    for tool in build.tools:
        known = next((row for row in libraries().tools if row.names == tool), LibraryRow(tool, tool))
        if tool not in started:
            packages.build_only += dict.fromkeys(filter(None, (tool, known.dnf, known.zypper)))
        packages.add(tool, known.dnf, known.zypper, f"the build by {build.kind}", Position(build.file, 1, 1))
    unknown: list[WantedLibrary] = []
    over_mpi = _over_mpi(build)
    for library in build.libraries:
        row = row_of(library.name)
        if brought(f"{library.name} {row.names if row is not None else ''}", draft):
            draft.because(("blocks", SPACK), None, f"{library.asked} finds it there", library.where)
        elif library.name == "Boost":
            _boost(library, packages, draft)
        elif row is not None and (block := over_mpi.get(row.names)):
            _block_over_mpi(block, row, library, build, draft)
        elif row is None:
            if library.name.lower() != "mpi" and not library.inside and not _own(library.name, found):
                unknown.append(library)
        elif not row.none:
            _by_row(row, library, build, packages, draft)
        if (
            row is not None
            and row.apt == "libnetcdf-dev"
            and not brought("netcdf-fortran", draft)
            and row.names not in over_mpi
            and _for_fortran(library, build)
        ):
            _by_row(row_of("netcdff") or row, library, build, packages, draft)
    for library in unknown:
        if library.required and (module := _downloads(library.name, found)):
            text = f"{library.asked}: {module} downloads it: it needs the network, and a bundle does not carry it"
            draft.remark(text, library.where)
        elif library.required:
            text = f"{library.asked}: no package of it is known: bring it, or add its package to os_packages"
            draft.leave_open(text, library.where)
    if names := [each.name for each in unknown if not each.required]:
        draft.remark(f"looked for, and not brought, since the build goes on without: {some(names)}", unknown[0].where)


def _over_mpi(build: BuildFile) -> dict[str, str]:
    """The blocks that bring libraries over the image's MPI, by the names of the libraries' rows.

    Serial ones stay the distribution's, as does what the build goes on without, but for an HDF5 that is to be over MPI;
    HDF5 also where another package is over the distribution's, or where its C++ interface is asked for, which it does
    not have over MPI.
    """
    wanted = [(row, library) for library in build.libraries if (row := row_of(library.name)) is not None]
    uses_mpi = build.mpi is not None or build.parallel_hdf5 is not None
    parallel = build.parallel_hdf5 is not None
    hdf5 = any((library.required or parallel) and row.over_mpi in _OF_HDF5 for row, library in wanted)
    found = {
        row.names: row.over_mpi
        for row, library in wanted
        if row.over_mpi
        and (uses_mpi or not (row.apt or row.bring))
        and (library.required or not row.apt or (hdf5 and row.over_mpi in _OF_HDF5))
    }
    of_mpi = [row.names for row, library in wanted if "mpi" in [part.lower() for part in library.parts]]
    if "fftw" in found.values() or any("fftw3" in names.split() for names in of_mpi):
        # Both have libfftw3.
        found |= {row.names: "fftw" for row, _ in wanted if row.apt == "libfftw3-dev"}
    parts = {part.lower() for row, library in wanted if row.over_mpi == "hdf5" for part in library.parts}
    if not parallel and (
        parts & {"cxx", "cpp", "c++"}
        or any(row.apt in OVER_SERIAL_HDF5 or row.names == "hdf5_cpp" for row, _ in wanted)
    ):
        return {names: block for names, block in found.items() if block not in _OF_HDF5}
    return found


def _block_over_mpi(block: str, row: LibraryRow, library: WantedLibrary, build: BuildFile, draft: Draft) -> None:
    """The block of a library over MPI, with its Fortran interface where the build has Fortran."""
    if not library.required and not row.apt:
        text = f"{library.asked} is not brought, since the build goes on without: the block {block} brings it"
        draft.remark(text, library.where)
        return
    why = f"{library.asked} asks for it, over the image's MPI"
    if build.mpi is None:
        draft.add_block("mpi", f"{library.asked} is over MPI; the site decides which one", library.where)
        draft.put(("build", "mpi"), True, "the program is linked with the image's MPI", library.where)
    with_fortran = block in ("hdf5", "netcdf", "petsc", "pnetcdf") and build.fortran is not None
    if not with_fortran or (library.parts and not _for_fortran(library, build)):
        draft.add_block(block, why, library.where)
        return
    draft.add_block(block, why, library.where, fortran=True)
    draft.blocks[block] = {"options": {"fortran": True}}


def _for_fortran(library: WantedLibrary, build: BuildFile) -> bool:
    return build.fortran is not None and (not library.parts or "fortran" in [part.lower() for part in library.parts])


def row_of(name: str) -> LibraryRow | None:
    """The row of a library by one of its names."""
    plain = re.sub(r"[-_]", "", name.lower())
    return next((row for row in libraries().rows if plain in re.sub(r"[-_]", "", row.names.lower()).split()), None)


def _finders(name: str, found: Found) -> list[str]:
    """Modules of the project's own that CMake finds a package by."""
    return [
        each.path
        for each in found.tree.files
        if each.path.rpartition("/")[2] == f"Find{name}.cmake" and each.path.count("/") < 4
    ]


def _own(name: str, found: Found) -> bool:
    """Whether the project itself has it, in a folder of its name or with a long module that brings it."""
    large = {each.path for each in found.tree.files if each.size > 20_000 and each.path.count("/") < 2}
    return any(top.folder and top.name.lower() == name.lower() for top in found.tree.tops) or any(
        path in large for path in _finders(name, found)
    )


def _downloads(name: str, found: Found) -> str:
    """The module of the project's own that downloads a package where it is not there; empty without one."""
    for path in _finders(name, found):
        text = found.read(lambda folder, each: folder.text(each), path) or ""
        if re.search(r"(?i)\bFetchContent_|\bconfigure_file\(|\bExternalProject_Add|\bset\(\s*_?\w*url\b", text):
            return path
    return ""


def _by_row(row: LibraryRow, library: WantedLibrary, build: BuildFile, packages: _Packages, draft: Draft) -> None:
    if row.bring:
        bring = row.to_bring()
        if library.required:
            draft.leave_open(f"{library.asked}: bring it: {bring}", library.where)
        else:
            draft.remark(f"{library.asked} is not brought, since the build goes on without: {bring}", library.where)
    elif row.block in _GPU_BLOCKS:
        if library.required and build.gpu_block:
            draft.add_block(row.block, f"{library.asked} asks for it", library.where)
    elif row.block == "python":
        if library.required and not draft.has_any(("python", "python_packages", "conda_packages")):
            draft.add_block("python", f"{library.asked} asks for it", library.where)
    elif row.block:
        if library.required:
            draft.add_block(row.block, f"{library.asked} asks for it", library.where)
    elif library.required or build.kind != "autotools" or row.apt in _NUMBERS:
        packages.add(row.apt, row.dnf, row.zypper, library.asked, library.where)


def _boost(library: WantedLibrary, packages: _Packages, draft: Draft) -> None:
    parts = [part.lower() for part in library.parts]
    if "mpi" in parts or "graph_parallel" in parts:
        known = {"unit_test_framework": "test"}
        wanted = {known.get(part, part) for part in parts} & {*libraries().boost_parts, "graph_parallel"}
        options = {"libraries": sorted(wanted - {"python", "serialization"})}
        draft.add_block("boost", f"{library.asked} asks for Boost.MPI, over the image's", library.where, **options)
        if of_python := [part for part in parts if "python" in part]:
            text = f"{library.asked}: the block boost does not compile {some(of_python)}: compile Boost in `build`"
            draft.leave_open(text, library.where)
        return
    packages.add(*BOOST_HEADERS, library.asked, library.where)
    for part in parts:
        name = {"unit_test_framework": "test", "python3": "python"}.get(part, part)
        if name in libraries().boost_parts:
            word = name.replace("_", "-")
            packages.add(f"libboost-{word}-dev", "boost-devel", f"libboost_{name}-devel", library.asked, library.where)
