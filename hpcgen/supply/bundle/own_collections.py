"""Collections and copied files of a lock in its bundle, so that the offline machine finds them in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.own_files import carried_files
from hpcgen.core.errors import InputError, Problems
from hpcgen.core.model.image_paths import COLLECTIONS, COPIED, COPIED_LIST, file_path
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import PlannedCopy
from hpcgen.core.support.hashing import MAX_BYTES, FileTree, parse_list, read_plain, sha256_of
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


# The stack's own files in a bundle: each by its sha256, and a list for each entry of the stack's ``copy``.


def bundled_tree(bundle: Path, copy: PlannedCopy) -> FileTree | None:
    """The files of an entry as they lie in a bundle's folder; None where it has no list of them.

    InputError: the list is damaged.
    """
    place = bundle / file_path(copy.sha256, COPIED_LIST)
    try:
        text = read_plain(place, MAX_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as failure:
        raise InputError(
            f"{place} cannot be read: {failure}", remedy="hpcgen bundle verify lists the damaged files"
        ) from failure
    files = parse_list(text, str(place))
    return FileTree([msgspec.structs.replace(each, source=bundle / file_path(each.sha256, COPIED)) for each in files])
