"""A lock → every file that its bundle must hold, apart from base images, which come as a layout of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from hpcgen.blocks.inputs.base import Fetcher, by_kind
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import FetchError, HpcgenError, InputError, Problem
from hpcgen.core.model.bundle import WantedFile
from hpcgen.core.model.image_paths import COPIED, COPIED_LIST
from hpcgen.core.model.lock import Lock
from hpcgen.core.support.hashing import TreeFile, below
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly


def wanted(lock: Lock, catalog: Catalog, folder: Path, *, own: bool = True) -> list[WantedFile]:
    """Every file of a lock's bundle, sorted by kind and name, each content once.

    Parameters
    ----------
    folder: where files may be made that are no downloads (git trees, hpcgen's own wheel).
    own: whether hpcgen itself and what it needs is wanted too.

    Raises
    ------
    FetchError: an index does not have what the lock names.
    InputError: the lock does not fit this hpcgen's collections, or an input cannot be bundled.
    """
    from hpcgen.supply.net.package_index import find_files
    from hpcgen.supply.pin.git_trees import fetch_tree
    from hpcgen.supply.pin.own_wheels import own_wheels

    inputs = check_lock(lock, catalog).inputs
    fetcher = Fetcher(lock.plan.site.network.mirrors, lock.pins, folder, catalog.release, find_files, fetch_tree)
    found: list[WantedFile] = []
    problems: list[Problem] = []
    asks: list[Callable[[], list[WantedFile]]] = [
        partial(_packages, lock),
        *([partial(own_wheels, folder)] if own else []),
    ]
    asks.append(partial(_copied, lock, catalog, folder))
    asks += [partial(kind.wanted, of_kind, fetcher) for kind, of_kind in by_kind(inputs).items()]
    for ask in asks:
        try:
            found.extend(ask())
        except HpcgenError as error:
            problems.extend(error.problems)
    if problems:
        raise FetchError(problems)
    # The same wheel may be both in the image and needed by hpcgen: then both indexes name it.
    once = {(each.kind, each.sha256, each.file): each for each in found}
    return sorted(once.values(), key=lambda each: (each.kind, each.name, each.file))


def check_lock(lock: Lock, catalog: Catalog) -> Assembly:
    """What the lock's plan assembles to; InputError where these collections make another image of it."""
    try:
        assembly = assemble(lock.plan, catalog, lock.pins)
    except HpcgenError as error:
        raise _without_collections(lock, catalog, error) from error
    made = assembly.labels["io.hpcgen.content"]
    if made == lock.content:
        return assembly
    from hpcgen._version import __version__
    from hpcgen.supply.pin.locking import collection_files

    here = collection_files(lock.plan, catalog)
    names = sorted(name for name in {*here, *lock.collections} if here.get(name) != lock.collections.get(name))
    changed = f"these differ: {', '.join(names)}" if names else "all its files are the same"
    lie = "".join(f"; {name} is {catalog.names_of_folders.get(name, 'not here')}" for name in lock.own_collections)
    raise InputError(
        Problem(
            f"this hpcgen would not make the image that the lock pins; {changed}{lie}",
            expected=f"hpcgen {lock.hpcgen} with the collections that the lock was made with (this is {__version__})",
            remedy="install that release (it is in the bundle), add its collections, or write the lock again with: "
            f"{lock.plan.command or 'hpcgen lock'}",
        )
    )


def _without_collections(lock: Lock, catalog: Catalog, error: HpcgenError) -> HpcgenError:
    """The error of a lock's plan, or what explains it: a collection that the lock was made with is not here."""
    missing = [name for name in lock.own_collections if name not in catalog.names_of_folders]
    if not missing:
        return error
    problems = [
        Problem(
            f"the lock was made with the collection {name}, which is not here",
            remedy="name its folder before the command: hpcgen --collection DIR …; a bundle of the lock holds it",
        )
        for name in missing
    ]
    return InputError([*problems, *error.problems])


def _packages(lock: Lock) -> list[WantedFile]:
    found = []
    for stage in lock.pins.packages.values():
        for name, pin in stage.added.items():
            version = pin.version.partition(":")[2] or pin.version  # as in the archive: without the epoch
            file = f"{name}_{version}_{pin.architecture}.deb"
            title = f"{name} {pin.version}"
            urls = [pin.url]
            found.append(WantedFile(kind="package", name=title, file=file, sha256=pin.sha256, urls=urls, size=pin.size))
    return found


def _copied(lock: Lock, catalog: Catalog, folder: Path) -> list[WantedFile]:
    """The stack's own files by what is in them, and for each entry of ``copy`` their list."""
    found = []
    for copy in lock.plan.copied:
        tree = catalog.copied.tree(lock.plan, copy)
        listed = folder / f"{copy.sha256}.list"
        listed.write_text(tree.text, encoding="utf-8")
        whole = TreeFile(f"list of {copy.to}", copy.sha256, False, listed)
        for stored, file in [(COPIED_LIST, whole), *((COPIED, each) for each in tree.files)]:
            name = file.path if file is whole else f"/{below(file.path, copy.to)}"
            urls = [file.source.absolute().as_uri()] if file.source is not None else []
            found.append(
                WantedFile(kind="copied", name=name, file=stored, sha256=file.sha256, urls=urls, size=file.bytes)
            )
    return found
