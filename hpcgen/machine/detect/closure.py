"""All libraries that one library needs, each by the next, and where the loader finds them on a machine.

What a program opens by name at run time is in no list of needs, so it is not seen here. Sources: ld.so(8), the order of
folders; ldconfig(8), ``ld.so.conf``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from hpcgen.backends.hardware.c_library import of_glibc
from hpcgen.machine.detect.elf import Library, read_library
from hpcgen.machine.detect.machine import Machine

SYSTEM = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/local/lib",
    "/usr/local/lib64",
)
"""Folders with the libraries of everything: they must not be bound into an image."""
_MOST_LIBRARIES = 500
_MOST_FILES = 100


class NeededLibrary(msgspec.Struct, frozen=True):
    """A library that is needed.

    path: where the loader finds it; "" where it finds none, or it comes from elsewhere.
    by: the name of the first that asks for it, "" for those that were asked about.
    library: what it says of itself, None where it was not read.
    """

    name: str
    path: str
    by: str
    library: Library | None


def closure(
    machine: Machine, starts: Iterable[str], folders: Sequence[str], left: Collection[str] = ()
) -> list[NeededLibrary]:
    """These libraries and all that they need, each name once, in the order in which a loader comes to them.

    starts: their paths.
    folders: which the loader searches first, as ``LD_LIBRARY_PATH`` names them.
    left: names of libraries that come from elsewhere, so that what they need here is no matter.
    """
    # Folders of the user's own come last: they may hold a compiler's libraries, which the image has itself.
    own_path = machine.environment.get("LD_LIBRARY_PATH", "").split(":")
    searched = [*folders, *configured(machine), *SYSTEM, *(path for path in own_path if path.startswith("/"))]
    found: dict[str, NeededLibrary] = {}
    todo: list[NeededLibrary] = []
    for path in starts:
        _note(_read(machine, path.rsplit("/", 1)[1], path, ""), found, todo)
    for asking in todo:
        own = _own_folders(machine, asking)
        for name in asking.library.needed if asking.library is not None else ():
            if name in found or len(found) >= _MOST_LIBRARIES or "/" in name:
                continue
            places = (f"{folder}/{name}" for folder in [*folders, *own, *searched])
            path = next((place for place in places if machine.is_file(place)), "")
            _note(_read(machine, name, "" if of_glibc(name) or name in left else path, asking.name), found, todo)
    return list(found.values())


def _note(needed: NeededLibrary, found: dict[str, NeededLibrary], todo: list[NeededLibrary]) -> None:
    if needed.name not in found:
        found[needed.name] = needed
        todo.append(needed)


def _read(machine: Machine, name: str, path: str, by: str) -> NeededLibrary:
    library = None
    if path:
        folder, _, last = path.rpartition("/")
        path = f"{(machine.real(folder) or folder).rstrip('/')}/{last}"
        with machine.blob(path) as blob:
            library = read_library(blob) if blob is not None else None
    return NeededLibrary(name, path, by, library)


def _own_folders(machine: Machine, asking: NeededLibrary) -> list[str]:
    """Those that it names itself; ``$ORIGIN`` is the folder of the file, links followed."""
    if asking.library is None:
        return []
    origin = (machine.real(asking.path) or asking.path).rsplit("/", 1)[0]
    named = (re.sub(r"\$(ORIGIN|\{ORIGIN\})", lambda _: origin, path) for path in asking.library.runpath)
    return [path for path in named if path.startswith("/")]


def configured(machine: Machine) -> list[str]:
    """Folders that ``/etc/ld.so.conf`` names, and the files that it includes."""
    found: list[str] = []
    todo = ["/etc/ld.so.conf"]
    for file in todo:
        for line in (machine.text(file) or "").split("\n"):
            text = line.partition("#")[0].strip()
            if text.startswith("include") and len(text.split()) == 2:
                pattern = text.split()[1]
                more = machine.glob(pattern if pattern.startswith("/") else f"/etc/{pattern}")
                todo += [each for each in more if each not in todo][: _MOST_FILES - len(todo)]
            elif text.startswith("/"):
                found += re.split(r"[\s,:]+", text)
    return list(dict.fromkeys(path.rstrip("/") for path in found if path.startswith("/")))[:_MOST_LIBRARIES]
