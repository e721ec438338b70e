"""The collections of a lock in its bundle: as folders there, so that the offline machine can look them up in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.own_files import carried_files
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.bundle_paths import COLLECTIONS
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import sha256_of
from hpcgen.supply.bundle.reading import SAFE

OLD_NAME = re.compile(r"/.*?(?=/building_blocks/)")
"""Of a collection's file in a lock of hpcgen 0.1.0: by its path on the machine that made the lock."""


class CollectedFile(msgspec.Struct, frozen=True):
    """One file of a collection: ``COLLECTION:FILE``, where it lies in the bundle, and its bytes."""

    name: str
    path: str
    data: bytes


def collected(lock: Lock, catalog: Catalog) -> Iterator[CollectedFile]:
    """Every file of the lock's collections, in order.

    A whole collection goes along, not only the files that the lock names: blocks may read what lies beside them, and
    the offline machine can plan other sites and stacks with it.

    Raises
    ------
    InputError: a collection is not here, or too large, or a file has a name that no bundle can have.
    """
    problems = Problems()
    for name in lock.own_collections:
        folder = catalog.names_of_folders.get(name)
        if folder is None:
            problems.add(
                f"the lock's collection {name} is not here", remedy="name it: hpcgen --collection DIR bundle …"
            )
            continue
        for inside, path in carried_files(folder, name).items():
            place = f"{COLLECTIONS}/{name}/{inside}"
            if SAFE.fullmatch(place) is None:
                expected = "letters without accents, digits and . _ + ~ % ! @ = -"
                problems.add(f"the name {inside!r} of a file cannot be in a bundle", str(folder), expected, "rename it")
                continue
            yield CollectedFile(f"{name}:{inside}", place, path.read_bytes())
    problems.raise_as(InputError)


def edited(lock: Lock, files: list[CollectedFile]) -> list[str]:
    """Files that are not as they were when the lock was made; what it pins is not made of the difference."""
    there = {file.name: sha256_of(file.data) for file in files}
    own = (name for name in lock.collections if name.partition(":")[0] in lock.own_collections)
    return [name for name in own if there.get(name) != lock.collections[name]]


def left_behind(lock: Lock) -> list[str]:
    """Collections that a lock of hpcgen 0.1.0 was made with, by their folders then, which no bundle of it has."""
    found = (OLD_NAME.match(name) for name in lock.collections)
    return list(dict.fromkeys(each[0] for each in found if each is not None))


def bundled_collections(bundle: Path, lock: Lock) -> list[Path]:
    """The folders of a bundle that are the lock's collections, in order; InputError where one is missing."""
    folders = [bundle / COLLECTIONS / name for name in lock.own_collections]
    problems = Problems()
    for folder in folders:
        if not folder.is_dir():
            message = f"the bundle {bundle} has no collection {folder.name}, which its lock was made with"
            problems.add(
                message, remedy="hpcgen bundle verify lists other missing files; copy or make the bundle again"
            )
    problems.raise_as(InputError)
    return folders
