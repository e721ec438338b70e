"""What of a host's libraries an image has to be shown, so that the host's MPI works inside: folders, and single files.

Every library that the MPI and the fabric's libraries need is followed. Those of folders that hold the libraries of
everything are bound one by one, onto a folder in which images of Debian and Ubuntu have nothing of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from hpcgen.backends.hardware.c_library import of_glibc
from hpcgen.core.support.units import some
from hpcgen.machine.detect.closure import SYSTEM, NeededLibrary, closure
from hpcgen.machine.detect.machine import Machine

INSIDE = "/usr/lib64"
IN_IMAGES = ("libgcc_s.so.1", "libstdc++.so.6", "libtinfo.so.6", "libz.so.1")
"""What images have themselves: their shell, dpkg or rpm, and apt, dnf or zypper need them. Only that of Ubuntu 18.04
has an older libtinfo. The host's, which may be older, would come before them for all programs of the image."""


class HostLibraries(msgspec.Struct, frozen=True):
    """What detection says of them.

    ``folders``: of ``mpi.libraries``. ``binds``: of ``mpi.binds``. ``glibc``: of ``mpi.glibc``. ``notes``: all
    libraries by what becomes of them, for people.
    """

    folders: list[str]
    binds: list[dict[str, str | bool]]
    glibc: str | None
    notes: list[str]


def of_host(machine: Machine, root: str, starts: Iterable[str], folders: Sequence[str]) -> HostLibraries:
    """What an image needs of the host.

    root: of the MPI.
    starts: the MPI's library, and those that drive the fabric.
    folders: which the loader is to search first.
    """
    needed = closure(machine, starts, folders, IN_IMAGES)
    shown = [each for each in needed if each.path]
    more = [folder for each in shown if (folder := _folder(each.path)) not in SYSTEM]
    known = {machine.real(folder) for folder in folders}
    libraries = list(dict.fromkeys([*folders, *(folder for folder in more if folder not in known)]))
    binds = _folders_bound(machine, root, libraries, shown)
    single = {each.name: each.path for each in shown if _folder(each.path) in SYSTEM}
    targets = {name: f"{INSIDE}/{name}" for name in single}
    binds += [{"source": path, "target": targets[name], "file": True} for name, path in sorted(single.items())]
    return HostLibraries(
        [*libraries, INSIDE] if single and INSIDE not in libraries else libraries,
        binds,
        _newest(each.library.glibc for each in shown if each.library is not None),
        list(_notes(needed, single)),
    )


def _folder(path: str) -> str:
    return path.rsplit("/", 1)[0] or "/"


def _folders_bound(
    machine: Machine, root: str, libraries: Sequence[str], shown: Sequence[NeededLibrary]
) -> list[dict[str, str | bool]]:
    """The root, under its own name; what links lead to outside of it, under the name that it has there."""
    traced = machine.trace(root)
    if traced is None:
        return []
    real, links = traced
    binds: list[dict[str, str | bool]] = [{"source": f"{root}/." if links else root, "target": root}]
    places = [real] if links else []
    files = (_folder(machine.real(each.path) or each.path) for each in shown if _folder(each.path) not in SYSTEM)
    for there in (*(machine.real(folder) for folder in libraries), *files):
        if there and not any(f"{there}/".startswith(f"{place.rstrip('/')}/") for place in (real, *places)):
            places.append(there)
    for place in dict.fromkeys(places):
        if place != root and place not in SYSTEM:
            binds.append({"source": place, "target": place})
    return binds


def _newest(versions: Iterable[str | None]) -> str | None:
    found = [version for version in versions if version]
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default=None)


def _notes(needed: Sequence[NeededLibrary], single: dict[str, str]) -> Iterable[str]:
    """Each library in one of them: a person who compares this with a site's own list finds every name."""
    outside = [each for each in needed if each.by]
    if not outside:
        return
    glibc = sorted(each.name for each in outside if of_glibc(each.name))
    own = sorted(each.name for each in outside if each.name in IN_IMAGES)
    gone = [f"{each.name} (for {each.by})" for each in outside if not each.path and each.name not in (*glibc, *own)]
    there = sorted(each.path for each in outside if each.path and each.name not in single)
    asked = _newest(each.library.glibcxx for each in needed if each.library is not None)
    most = len(needed)
    yield f"the host's MPI needs {len(outside)} libraries; what it opens by name at run time is not among them"
    if there:
        yield f"in folders that are bound: {some(there, most)}"
    if single:
        where = f"bound one by one into {INSIDE}, where images of Debian and Ubuntu have nothing"
        yield f"{where}: {some(sorted(single), most)}"
    if own:
        least = f"; they need GLIBCXX_{asked} of its libstdc++" if asked else ""
        yield f"not bound, because every image has its own: {some(own, most)}{least}"
    if glibc:
        yield f"not bound, because they are of the C library, which must be the image's: {some(glibc, most)}"
    if gone:
        yield f"found nowhere, so the MPI may not start: {some(gone, most)}"
