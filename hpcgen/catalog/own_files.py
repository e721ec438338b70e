"""The files of the user's own collections: which of them a plan names, and which go along where it goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.core.model.bundle import COLLECTED_FOLDERS
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.hashing import hash_file, sha256_of

MOST_FILES = 20_000
MOST_BYTES = 64 * 1024 * 1024
"""Of one collection in a bundle: profiles of ten thousand systems fit, somebody's data does not."""


def named_files(plan: Plan, catalog: Catalog) -> list[Path]:
    """Files of the user's collections that the plan names beside its blocks."""
    containers = plan.site.containers
    stacks = _ancestry(catalog.stack_document, plan.stack)
    named = [*(("recipes", f"{name}.yaml") for name in stacks), ("formats", f"{plan.format}.py")]
    named += [("engines", f"{name}.py") for name in sorted({plan.engine, containers.preferred, *containers.engines})]
    named.append(("schedulers", f"{plan.site.scheduler.kind}.py"))
    if plan.site.mpi is not None:
        named.append(("launchers", f"{plan.site.mpi.launcher}.py"))
    named += [("site_profiles", f"{name}.yaml") for name in _ancestry(catalog.site_document, plan.site)]
    return [path for folder, file in named if (path := _own_file(catalog, folder, file)) is not None]


def _own_file(catalog: Catalog, folder: str, file: str) -> Path | None:
    """A file of the collection that has it first; None where that is the built-in one, or no one has it."""
    own, built_in = catalog.folders[:-1], catalog.folders[-1]
    path = next((path for each in catalog.folders if (path := each / folder / file).is_file()), None)
    return path if path is not None and own and not path.is_relative_to(built_in) else None


def _ancestry(document_of: Callable[[str], Document], record: Site | Stack) -> list[str]:
    """Names of the files that a site or stack is made of, itself first; those that no collection has are left out."""
    names: list[str] = []
    following: list[object] = [record.name, record.extends]
    while following:
        name = following.pop(0)
        if not isinstance(name, str) or name in names:
            continue
        try:
            following.append(document_of(name).data.get("extends"))
        except UnknownNameError:
            continue
        names.append(name)
    return names


def carried_files(folder: Path, name: str) -> dict[str, Path]:
    """What a bundle has of a collection, by path in it, sorted: all that hpcgen reads there.

    Hidden files and what Python compiled stay behind, and so does what lies beside the folders of a collection.

    ``name``: what messages call it. InputError: it is too large for a collection, or cannot be read.
    """
    found: dict[str, Path] = {}
    size = 0
    for path in _walk(folder):
        found[path.relative_to(folder).as_posix()] = path
        size += path.stat().st_size
        if len(found) > MOST_FILES or size > MOST_BYTES:
            raise InputError(
                f"the collection {name} ({folder}) is too large for a bundle",
                expected=f"at most {MOST_FILES} files and {MOST_BYTES // 2**20} MiB in {', '.join(COLLECTED_FOLDERS)}",
                remedy="move files that hpcgen does not read out of these folders",
            )
    return dict(sorted(found.items()))


def _walk(folder: Path) -> Iterator[Path]:
    for top in COLLECTED_FOLDERS:
        for at, folders, files in os.walk(folder / top):
            folders[:] = sorted(each for each in folders if not each.startswith(".") and each != "__pycache__")
            if top == "recipes":
                # What else lies there are files that stacks copy: those of the lock go along by themselves.
                folders.clear()
                files = [each for each in files if each.endswith(".yaml")]
            # Followed, links in a circle would have no end; passed over, what hpcgen reads there would be missing.
            if linked := [Path(at, each) for each in folders if Path(at, each).is_symlink()]:
                message = "a folder in a collection is a symbolic link, which no bundle can have"
                raise InputError(message, str(linked[0]), remedy="put the folder itself there")
            paths = (Path(at, each) for each in sorted(files) if not each.startswith(".") and not each.endswith(".pyc"))
            yield from (path for path in paths if path.is_file())


def collection_hash(folder: Path, name: str) -> str:
    """sha256 of all that :func:`carried_files` lists: names and contents, wherever the collection lies."""
    listed = carried_files(folder, name)
    lines = (f"{hash_file(path)[0]}  {inside}\n" for inside, path in listed.items())
    return sha256_of("".join(lines).encode("utf-8", "surrogateescape"))


def has_code(folder: Path) -> bool:
    """Whether a collection holds Python, which runs when hpcgen looks something up in it."""
    return any(True for top in COLLECTED_FOLDERS for _ in (folder / top).glob("*.py"))
