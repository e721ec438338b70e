"""Classes by name: hpcgen's own, those of collections, and those of installed packages.

A registry of ``engines`` finds a name, in this order, in ``engines/NAME.py`` of a collection, among its own rows, and
among the entry points of the group ``hpcgen.engines``. Nothing is imported before it is asked for by name.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Generic, TypeVar

from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.core.support.places import place_in

T = TypeVar("T")

COLLECTIONS: list[Path] = []
"""Folders of the collections in use, the first wins; a catalog adds its own, and they stay for the whole process."""


class Registry(Generic[T]):
    """Classes of one kind by name.

    kind: what one of them is called in messages, such as ``engine``.
    folder: the folder of a collection that holds one file each; with ``hpcgen.`` before it, the entry-point group.
    built_in: hpcgen's own, by name, as ``module:Class``.

    The class in a collection's ``NAME.py`` is the one whose own attribute ``name`` is NAME.
    """

    def __init__(self, kind: str, folder: str, built_in: Mapping[str, str]) -> None:
        self.kind, self.folder, self.built_in = kind, folder, built_in
        self._files: dict[Path, type[T]] = {}
        self._loading = threading.Lock()

    def names(self) -> list[str]:
        """Every known name: hpcgen's own in their order, then the others, sorted."""
        files = (path.stem for folder in COLLECTIONS for path in (folder / self.folder).glob("[!_]*.py"))
        others = {*files, *dict(self._entry_points())} - set(self.built_in)
        return [*self.built_in, *sorted(others)]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and (
            name in self.built_in or self._file(name) is not None or name in dict(self._entry_points())
        )

    def find(self, name: str, where: str = "") -> type[T]:
        """The class of a name.

        UnknownNameError: nothing is called so; it names the nearest, and ``where`` the name was read. InputError: the
        file of a collection cannot be loaded, or holds no such class.
        """
        if path := self._file(name):
            return self._from_file(name, path)
        target = self.built_in.get(name) or dict(self._entry_points()).get(name)
        if target is None:
            raise UnknownNameError(f"no {self.kind} is called {name!r}", where, remedy=did_you_mean(name, self.names()))
        found: type[T] = load_target(target)
        return found

    def _file(self, name: str) -> Path | None:
        if name.startswith("_") or "/" in name:
            return None
        paths = (folder / self.folder / f"{name}.py" for folder in COLLECTIONS)
        return next((path for path in paths if path.is_file()), None)

    def _from_file(self, name: str, path: Path) -> type[T]:
        with self._loading:  # loaded twice it would be two classes of one name
            if path not in self._files:
                found = (each for each in vars(load_file(path)).values() if isinstance(each, type))
                named = next((each for each in found if vars(each).get("name") == name), None)
                if named is None:
                    expected = f"a class with name = {name!r}"
                    raise InputError(f"{path} has no {self.kind} named {name!r}", expected=expected)
                self._files[path] = named
            return self._files[path]

    def _entry_points(self) -> Iterator[tuple[str, str]]:
        return entry_points(f"hpcgen.{self.folder}")


def use_collection(folder: Path) -> None:
    """Let every registry find what a collection holds."""
    if folder not in COLLECTIONS:
        COLLECTIONS.append(folder)


def entry_points(group: str) -> Iterator[tuple[str, str]]:
    """Names and targets (``module`` or ``module:Class``) of installed packages; none if HPCGEN_ENTRY_POINTS is 0."""
    return ((name, target) for name, target, _ in described_entry_points(group))


def described_entry_points(group: str) -> Iterator[tuple[str, str, str]]:
    """The same, each with the line in which its package says what it is; "" where it says nothing."""
    if os.environ.get("HPCGEN_ENTRY_POINTS", "1") == "0":
        return
    for folder, text in _listings(tuple(sys.path)):
        if f"[{group}]" in text:
            for line in sorted(text.split(f"[{group}]", 1)[1].split("\n[", 1)[0].strip().splitlines()):
                name, equals, target = line.partition("=")
                if equals:
                    yield name.strip(), target.strip(), _summary(folder)


def load_target(target: str) -> Any:
    """What ``module:attribute`` is called; its module is imported."""
    module, _, attribute = target.partition(":")
    return getattr(importlib.import_module(module), attribute)


@functools.lru_cache(maxsize=4)
def _listings(places: tuple[str, ...]) -> list[tuple[str, str]]:
    """The entry points of every installed package that speaks of hpcgen, each with the folder of its metadata.

    Reading all packages' metadata costs more than a render, so this is a quick look at the file names.
    """
    found = []
    for place in places:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info") and not name.startswith("hpcgen-"):
                folder = f"{place or '.'}/{name}"
                with contextlib.suppress(OSError), open(f"{folder}/entry_points.txt", "rb") as stream:
                    text = stream.read()
                    if b"[hpcgen." in text:
                        found.append((folder, text.decode("utf-8")))
    return found


def _summary(folder: str) -> str:
    """Source: packaging.python.org, Core metadata specifications: a field of one line, before the empty line."""
    with contextlib.suppress(OSError), open(f"{folder}/METADATA", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if line.startswith("Summary:"):
                return line.partition(":")[2].strip()
            if not line.strip():
                break
    return ""


class _SourceAlone(importlib.machinery.SourceFileLoader):
    """Neither reads nor writes ``__pycache__``.

    A bundle stays as it is, and what its user trusts is the Python that is in it, not what somebody compiled beside it.
    """

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_file(path: Path) -> ModuleType:
    """Load a collection's Python file under a name of its own, so that collections cannot shadow each other."""
    module_name = f"hpcgen_{path.parent.name}_{path.stem}_{abs(hash(path.as_posix())):x}"
    bundled = "collections" in path.absolute().parts[-4:-3]  # BUNDLE/collections/NAME/building_blocks/X.py
    loader = _SourceAlone(module_name, str(path)) if bundled else None
    spec = importlib.util.spec_from_file_location(module_name, path, loader=loader)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} cannot be loaded as Python", remedy="give it a name ending in .py")
    module = importlib.util.module_from_spec(spec)
    # Options structs look their annotations up through sys.modules.
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        place = place_in(error, str(path))
        said = error.msg if isinstance(error, SyntaxError) else error
        raise InputError(
            f"{path} cannot be loaded: {type(error).__name__}: {said}",
            where=place[0] if place else None,
            remedy="correct the file; --debug before the subcommand shows the traceback",
        ) from error
    return module
