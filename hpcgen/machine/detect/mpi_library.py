"""Whose MPI a library is, and of which release, by what stands in it."""

from __future__ import annotations

import re

import msgspec

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD
from hpcgen.machine.detect.elf import Library, find_text, read_library
from hpcgen.machine.detect.tree import Blob

SYMBOLS = ("MPII_Version_string", "MPIR_Version_string")
VENDOR = re.compile(rb"CRAY MPICH|Intel\(R\) MPI Library|MVAPICH")
VERSIONS = {
    "cray-mpich": re.compile(rb"CRAY MPICH version (\d{1,9}\.\d{1,9}\.\d{1,9})"),
    "intel": re.compile(
        rb"Intel\(R\) MPI Library (?:%s for Linux\* OS\n\0)?"
        rb"(20\d\d(?:\.\d{1,9}){0,9}(?: Update \d{1,9})?)(?:\0| for Linux)"
    ),
    # Names of its source files in messages, where the symbol with its version was stripped.
    "mpich": re.compile(rb"/mpich-(\d{1,9}\.\d{1,9}(?:\.\d{1,9}){0,9})/src/"),
    "openmpi": re.compile(
        rb"\0v(\d{1,9}\.\d{1,9}\.\d{1,9})[0-9a-z]{0,40}\0Open MPI\0|Open MPI v(\d{1,9}\.\d{1,9}\.\d{1,9})"
    ),
}


class MpiLibrary(msgspec.Struct, frozen=True):
    """A library of MPI, its family, and its release as far as it says it."""

    library: Library
    flavour: str
    version: str | None


def mpi_library(blob: Blob) -> MpiLibrary | None:
    """What an open library says; None for anything that is no library of MPI."""
    library = read_library(blob, SYMBOLS)
    if library is None or not library.soname:
        return None
    flavour = _flavour(library, find_text(blob, VENDOR))
    if flavour is None:
        return None
    match = find_text(blob, VERSIONS[flavour]) if flavour in VERSIONS else None
    told = next((group.decode() for group in match.groups() if group), None) if match else None
    if flavour == "mpich":
        told = next(iter(library.strings.values()), told)
    return MpiLibrary(library, flavour, told.replace(" Update ", ".") if told else None)


def _flavour(library: Library, vendor: re.Match[bytes] | None) -> str | None:
    """Whose library it is. An old Open MPI has a libmpi.so.12 as well: what it needs tells."""
    if (
        any(name.startswith(("libopen-pal", "libopen-rte")) for name in library.needed)
        or library.soname == "libmpi.so.40"
    ):
        return "openmpi"
    if vendor is not None:
        return {b"CRAY MPICH": "cray-mpich", b"MVAPICH": "mvapich2"}.get(vendor[0], "intel")
    if any(name.startswith("libpscom") for name in library.needed):
        return "parastation"
    if library.soname.startswith(("libmpi.so.12", "libmpich.so.12")):
        return "mpich"
    if library.soname == MPI_LIBRARIES[STANDARD] and library.strings:
        return "mpich"
    return None
