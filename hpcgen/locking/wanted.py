"""A lock → every file that its bundle must hold, apart from base images, which come as a layout of their own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from hpcgen.blocks.inputs import Archive, BazelFiles, GitTree, Input, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.errors import FetchError, HpcgenError, InputError, Problem
from hpcgen.model.bundle import Wanted
from hpcgen.model.lock import Lock
from hpcgen.model.plan import PlannedBlock
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.stages import Assembly

OfBlocks = list[tuple[PlannedBlock, Any]]
"""Inputs of one kind, each with its block."""


class _Asked(NamedTuple):
    lock: Lock
    catalog: Catalog
    folder: Path


def wanted(lock: Lock, catalog: Catalog, folder: Path, *, own: bool = True) -> list[Wanted]:
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
    inputs = check_lock(lock, catalog).inputs
    asked = _Asked(lock, catalog, folder)
    found: list[Wanted] = []
    problems: list[Problem] = []
    asks: list[Callable[[], list[Wanted]]] = [lambda: _packages(lock), lambda: _own(folder) if own else []]
    asks += [
        partial(fetch, [each for each in inputs if isinstance(each[1], kind)], asked) for kind, fetch in FETCHED.items()
    ]
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
    assembly = assemble(lock.plan, catalog, lock.pins)
    made = assembly.labels["io.hpcgen.content"]
    if made == lock.content:
        return assembly
    from hpcgen._version import __version__
    from hpcgen.locking.locking import collection_files

    here = collection_files(lock.plan, catalog)
    names = sorted(name for name in {*here, *lock.collections} if here.get(name) != lock.collections.get(name))
    changed = f"these differ: {', '.join(names)}" if names else "all its files are the same"
    raise InputError(
        Problem(
            f"this hpcgen would not make what the lock says; {changed}",
            expected=f"hpcgen {lock.hpcgen} with the collections that the lock was made with (this is {__version__})",
            remedy="install that release (it is in the bundle), add its collections, or write the lock again with: "
            f"{lock.plan.command or 'hpcgen lock'}",
        )
    )


def _archives(inputs: OfBlocks, asked: _Asked) -> list[Wanted]:
    mirror = asked.lock.plan.site.network.mirrors.files
    found = []
    for block, item in inputs:
        licence = asked.catalog.releases(block.name)[block.version].licence
        urls = [*([f"{mirror.rstrip('/')}/{item.name}"] if mirror is not None else []), item.url]
        found.append(
            Wanted(kind="archive", name=item.name, file=item.name, sha256=item.sha256, urls=urls, licence=licence)
        )
    return found


def _packages(lock: Lock) -> list[Wanted]:
    found = []
    for stage in lock.pins.packages.values():
        for name, pin in stage.added.items():
            version = pin.version.partition(":")[2] or pin.version  # as in the archive: without the epoch
            file = f"{name}_{version}_{pin.architecture}.deb"
            title = f"{name} {pin.version}"
            urls = [pin.url]
            found.append(Wanted(kind="package", name=title, file=file, sha256=pin.sha256, urls=urls, size=pin.size))
    return found


def _wheels(inputs: OfBlocks, asked: _Asked) -> list[Wanted]:
    from hpcgen.net.package_index import find_files

    lines = {line for _, item in inputs for line in item.requirements}
    mirror = asked.lock.plan.site.network.mirrors.pip
    return find_files(sorted(lines), [mirror] if mirror is not None else None) if lines else []


def _bazel(inputs: OfBlocks, asked: _Asked) -> list[Wanted]:
    from hpcgen.locking.bazel import bazel_wanted

    return [wanted for _, item in inputs for wanted in bazel_wanted(item)]


def _trees(inputs: OfBlocks, asked: _Asked) -> list[Wanted]:
    from hpcgen.blocks.git_trees import tree_file
    from hpcgen.locking.git_trees import fetch_tree

    found = []
    for _, item in inputs:
        name, key = tree_file(item), f"{item.url}@{item.commit}"
        sha256, pinned = fetch_tree(item, asked.folder), asked.lock.pins.trees.get(key)
        if sha256 != pinned:
            raise InputError(
                Problem(
                    f"the git tree {key} makes another archive than the lock says",
                    expected=f"sha256 {pinned}, not {sha256}",
                    remedy="write the lock again",
                )
            )
        urls = [(asked.folder / name).absolute().as_uri()]
        found.append(Wanted(kind="archive", name=key, file=name, sha256=sha256, urls=urls))
    return found


FETCHED: dict[type[Input], Callable[[OfBlocks, _Asked], list[Wanted]]] = {
    Archive: _archives,
    Wheels: _wheels,
    BazelFiles: _bazel,
    GitTree: _trees,
}
"""How a bundle gets the files of all inputs of a kind."""


def _own(folder: Path) -> list[Wanted]:
    from hpcgen.locking.own_wheels import own_wheels

    return own_wheels(folder)
