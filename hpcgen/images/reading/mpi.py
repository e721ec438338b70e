"""Libraries of MPI: family, release, binary interface, and how their ranks can be told of each other.

What ranks are told by is shown by texts of the wire protocol of PMI-1 and PMI-2 in the library, by the libraries that
it needs or opens, and by Open MPI's components. Source of the texts: src/pmi of pmodels/mpich.
"""

from __future__ import annotations

import posixpath
import re

import msgspec

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD, abi_of
from hpcgen.core.model.image_facts import ImageMpi, ImageSoftware, MpiAbi, Shown
from hpcgen.images.reading.elf_parts import text_in
from hpcgen.images.reading.files import LIBRARY, Look, SeenImage, text_of
from hpcgen.images.reading.owners import Owners, first_said, in_order, said_by
from hpcgen.machine.detect.elf import find_text, read_library
from hpcgen.machine.detect.mpi_library import MpiLibrary, mpi_library
from hpcgen.machine.detect.tree import Blob

_MOST = 50
_TEXTS = {
    "pmi": re.compile(rb"cmd=init pmi_version=|MPIR_CVAR_PMI_VERSION"),
    "pmi2": re.compile(rb"cmd=fullinit|\0MPIR_CVAR_PMI_VERSION\0"),
    "pmix": re.compile(rb"\0libpmix\.so(?:\.2)?\0"),
}
_BUILT_IN = re.compile(rb"\0(?:pmix3x|ext3x|ext2x)\0")
_NEEDED = {"libpmi.so": "pmi", "libpmi2.so": "pmi2", "libpmix.so": "pmix"}
_COMPONENTS = {"s1": "pmi", "s2": "pmi2", "cray": "pmi"}
_CARRIERS = r"/mca_(mtl|btl|pml)_(ofi|psm|psm2|ucx|openib|uct|portals4|usnic|ugni|yalla)\.so$"
_FABRICS = r"lib(fabric|ucp|psm2|psm_infinipath|ibverbs|cxi|portals|pscom)\.so\.\d+"


class _MpiTold(msgspec.Struct, frozen=True):
    """A library, and what ranks can be told by."""

    library: MpiLibrary
    pmi: tuple[str, ...]


def _examined(blob: Blob) -> _MpiTold | None:
    told = mpi_library(blob)
    if told is None:
        return None
    needed = {name for text, name in _NEEDED.items() if any(each.startswith(text) for each in told.library.needed)}
    texts = {name for name, pattern in _TEXTS.items() if told.flavour != "openmpi" and find_text(blob, pattern)}
    return _MpiTold(told, tuple(sorted(needed | texts)))


def _has_pmix(blob: Blob) -> bool | None:
    """Whether Open MPI's own library needs PMIx's, or has the component for it inside."""
    library = read_library(blob)
    if library is None:
        return None
    needs = any(each.startswith("libpmix.so") for each in library.needed)
    return True if needs or find_text(blob, _BUILT_IN) else None


MPI = Look(
    r"/.*/libmpi(?:ch|_abi|_cray|_(?:gnu|intel|cce|cray|aocc|nvidia|amd)(?:_\d+)?)?\.so\.[0-9.]+",
    _examined,
    LIBRARY,
    elf=True,
)
RUNTIME = Look(r"/.*/libopen-(?:pal|rte)\.so\.[0-9.]+", _has_pmix, LIBRARY, elf=True)
HEADERS = Look(r"/.*/mpi\.h", text_of)
COMPONENTS = Look(r"/.*/mca_(?:pmix|mtl|btl|pml)_[a-z0-9]+\.so")
PMIX = Look(
    r"/.*/libpmix\.so\.[0-9.]+", text_in(rb"[oO]penPMIx (\d[\w.]{0,20})|PMIx (\d+\.\d+[\w.]{0,20})"), LIBRARY, elf=True
)
PMI = Look(r"/.*/libpmi2?\.so\.[0-9.]+")
LOOKS = (MPI, RUNTIME, HEADERS, COMPONENTS, PMIX, PMI)
_HEADER = re.compile(r'^#define (I_MPI|MVAPICH2|MPICH)_VERSION "([\w.]{1,40})"', re.MULTILINE)
_OPEN_MPI = re.compile(r"^#define OMPI_(MAJOR|MINOR|RELEASE)_VERSION (\d{1,4})$", re.MULTILINE)
_FAMILIES = {"I_MPI": ("intel",), "MVAPICH2": ("mvapich2",), "MPICH": ("mpich", "parastation", "cray-mpich")}


def mpi_facts(view: SeenImage, owners: Owners) -> list[ImageMpi]:
    """Every library of MPI, by its path."""
    found = []
    headers = [each for path, text in view.found(HEADERS).items() if (each := _header(path, text))]
    for path, told in list(view.found(MPI).items())[:_MOST]:
        library, flavour = told.library.library, told.library.flavour
        version = said_by(told.library.version, path)
        if version is None or "." not in version.value:
            version = first_said(owners.release(flavour, path) if flavour in _RELEASED else None, version)
        components = _components(view, path) if flavour == "openmpi" else []
        found.append(
            ImageMpi(
                name=flavour,
                file=path,
                version=version,
                soname=library.soname,
                abi="mpi5" if library.soname == MPI_LIBRARIES[STANDARD] else _abi(flavour),
                pmi=list(in_order([*(Shown(each, path) for each in told.pmi), *_pmi(view, path, components, version)]))
                if flavour == "openmpi"
                else [Shown(each, path) for each in told.pmi],
                header=_nearest(path, [shown for family, shown in headers if flavour in family]),
                uses=[Shown(each, path) for each in library.needed if re.fullmatch(_FABRICS, each)]
                + [Shown(posixpath.basename(each)[4:-3], each) for each in components if re.search(_CARRIERS, each)],
            )
        )
    return found


_RELEASED = ("openmpi", "mpich", "intel", "mvapich2")


def _abi(flavour: str) -> MpiAbi:
    return "openmpi" if abi_of(flavour) == "openmpi" else "mpich"


def _components(view: SeenImage, library: str) -> list[str]:
    """Open MPI's components that lie with a library: below its folder, or below that of its prefix."""
    folder = posixpath.dirname(library)
    return sorted({real for real in view.named(COMPONENTS).values() if real.startswith(f"{folder}/")})


def _pmi(view: SeenImage, library: str, components: list[str], version: Shown | None) -> list[Shown]:
    """By Open MPI's components, by its own libraries, or by its release: since 5 it has PMIx alone."""
    found = []
    for each in components:
        name = posixpath.basename(each)[4:-3].partition("_")
        if name[0] == "pmix" and name[2] not in ("isolated", "flux"):
            found.append(Shown(_COMPONENTS.get(name[2], "pmix"), each))
    folder = posixpath.dirname(library)
    found += [Shown("pmix", path) for path in view.found(RUNTIME) if posixpath.dirname(path) == folder]
    if version is not None and (major := re.match(r"\d+", version.value)) and int(major[0]) >= 5:
        found.append(Shown("pmix", library))
    return found


def _header(path: str, text: str) -> tuple[tuple[str, ...], Shown] | None:
    """The families that an ``mpi.h`` is of, and its version."""
    said = {match[1]: match[2] for match in _HEADER.finditer(text)}
    name = next((each for each in _FAMILIES if each in said), None)
    if name is not None:
        return _FAMILIES[name], Shown(said[name], path)
    numbers = dict(_OPEN_MPI.findall(text))
    if len(numbers) == 3:
        return ("openmpi",), Shown(".".join(numbers[part] for part in ("MAJOR", "MINOR", "RELEASE")), path)
    return None


def _nearest(path: str, headers: list[Shown]) -> Shown | None:
    """The header with the longest way in common, if there is more in common than /usr."""
    ranked = sorted(headers, key=lambda each: (-len(posixpath.commonpath([path, each.file])), each.file))
    return ranked[0] if ranked and len(posixpath.commonpath([path, ranked[0].file])) > 1 else None


def pmi_facts(view: SeenImage, owners: Owners) -> list[ImageSoftware]:
    """Libraries of PMIx and PMI, by their path."""
    texts = view.found(PMIX)
    found = [
        ImageSoftware(
            name="pmix", file=path, version=first_said(said_by(texts.get(path), path), owners.release("pmix", path))
        )
        for path in sorted(set(view.named(PMIX).values()))
    ]
    for path in sorted(set(view.named(PMI).values())):
        name = "pmi2" if "/libpmi2.so" in path else "pmi"
        found.append(ImageSoftware(name=name, file=path, version=owners.release(name, path)))
    return found
