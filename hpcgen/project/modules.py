"""Which packages imports come from, which files of a project a program reaches by them, and from which folders."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from hpcgen.core.model.own_project import ImportedName, PythonSource
from hpcgen.core.support.templates import table
from hpcgen.project.found import Found
from hpcgen.project.members import member_roots


class ImportNames(Struct, frozen=True, forbid_unknown_fields=True):
    """The table, whose comments say what each part is."""

    otherwise: dict[str, tuple[str, ...]]
    alike: frozenset[str]
    comes_with: dict[str, frozenset[str]]
    gone: frozenset[str]
    of_block: frozenset[str]
    of_conda: dict[str, tuple[str, ...]]
    mistaken: dict[str, str]


def import_names() -> ImportNames:
    """The table of imports and their packages."""
    return table(Path(__file__).with_name("import_names.yaml"), ImportNames)


def is_standard(name: str) -> bool:
    """Whether every Python has a module, or had it in the past."""
    return name in sys.stdlib_module_names or name in import_names().gone | import_names().of_block


def packages_with(name: str, known: Collection[str] = ()) -> tuple[str, ...]:
    """The packages of the index that have an imported name; none where that is not known.

    ``name``: dotted, as it is imported. ``known``: packages that are called like what they have, but for ``_`` and
    ``-``.
    """
    first, known_names = name.partition(".")[0], import_names()
    for each in (name, ".".join(name.split(".")[:3]), ".".join(name.split(".")[:2]), first):
        if each in known_names.otherwise:
            return known_names.otherwise[each]
    plain = first.replace("_", "-").lower()
    return (plain,) if first in known_names.alike or plain in known else ()


def conda_name(package: str) -> str:
    """What conda-forge calls a package of the index."""
    names = (of_conda[0] for name, of_conda in import_names().of_conda.items() if package in packages_with(name))
    return next(names, package)


def conda_names(name: str) -> tuple[str, ...]:
    """What conda calls packages that have an imported name."""
    return import_names().of_conda.get(name.partition(".")[0], ())


class Modules:
    """The Python files of a project by the names that imports have for them."""

    def __init__(self, found: Found) -> None:
        self.sources = {each.file: each for each in found.sources}
        self._found = found
        self._there = {each.path for each in found.tree.files if each.path.endswith(".py")}

    @cached_property
    def _members(self) -> list[str]:
        return member_roots(self._found)

    @cached_property
    def own_names(self) -> set[str]:
        """First parts of names that may be files or folders of the project, wherever it looks for them."""
        parts = [path.removesuffix(".py").split("/") for path in self._there]
        return {part for each in parts for part in each}

    def reached(self, programs: Iterable[PythonSource]) -> list[PythonSource]:
        """The programs, and all that they import of the project; only what they cannot do without."""
        found: dict[str, PythonSource] = {}
        for program in programs:
            start, left, seen = program.file.rpartition("/")[0], [program], set[str]()
            while left:
                source = left.pop(0)
                if source.file not in seen:
                    seen.add(source.file)
                    found.setdefault(source.file, source)
                    left += [self.sources[path] for _, path in self._imported(source, start) if path in self.sources]
        return list(found.values())

    def roots(self, program: PythonSource) -> list[str]:
        """Folders, beside the program's own, that what it reaches is imported from; empty for that of the project."""
        own = program.file.rpartition("/")[0]
        reached = self.reached([program])
        found = [root for each in reached for root, _ in self._imported(each, own, sure=True)]
        return list(dict.fromkeys(root for root in found if root != own))

    def imported_by(self, source: PythonSource) -> list[str]:
        """The files of the project that a source imports, itself left out."""
        start = source.file.rpartition("/")[0]
        return [path for _, path in self._imported(source, start) if path != source.file]

    def needs_folder(self, program: PythonSource) -> bool:
        """Whether it finds modules in its own folder by their names alone, as a script does and ``-m`` does not."""
        own = program.file.rpartition("/")[0]
        plain = [each for each in program.imports if each.package]
        return any(found[0] == own for each in plain if each.sure and (found := self._file(each, own, own, True)))

    def top(self, file: str) -> str:
        """The folder in which the dotted name of a file begins."""
        folder, below = file.removesuffix("/__main__.py").rpartition("/")[0], ""
        while folder and (f"{folder}/__init__.py" in self._there or self._is_namespace(file, folder, below)):
            folder, _, below = folder.rpartition("/")
        return folder

    def _is_namespace(self, file: str, folder: str, below: str) -> bool:
        """Whether a file calls the folder ``below`` by the name of the one around it, which has no ``__init__.py``."""
        name = f"{folder.rpartition('/')[2]}.{below}"
        imports = self.sources[file].imports if below and file in self.sources else []
        return any(f"{each.name}.".startswith(f"{name}.") for each in imports)

    def dotted(self, file: str) -> str:
        """What ``-m`` calls a file of a package."""
        below = file[len(self.top(file)) :].strip("/").removesuffix(".py").removesuffix("/__main__")
        return below.replace("/", ".")

    def module(self, name: str) -> str:
        """The file that a dotted name means; empty where the project has none."""
        path = name.replace(".", "/")
        ends = (f"{path}.py", f"{path}/__main__.py", f"{path}/__init__.py")
        roots = ("", "src/", *(f"{root}/" for root in self._members))
        return next((f"{below}{end}" for below in roots for end in ends if f"{below}{end}" in self._there), "")

    def _imported(self, source: PythonSource, start: str, *, sure: bool = False) -> Iterator[tuple[str, str]]:
        """Files that a source imports, each with the folder in which its name begins.

        ``start``: the folder of the program. ``sure``: without the source's own, which only some programs look into.
        """
        here = source.file.rpartition("/")[0]
        for each in source.imports:
            if each.sure and (found := self._file(each, here, start, sure)) is not None:
                yield found

    def _file(self, imported: ImportedName, here: str, start: str, sure: bool) -> tuple[str, str] | None:
        plain = imported.name.lstrip(".")
        dots = len(imported.name) - len(plain)
        if dots:
            parts = here.split("/") if here else []
            path = self._path("/".join([*parts[: len(parts) - dots + 1], *filter(None, plain.split("."))]))
            # Relative ones are found wherever the module itself is.
            return (start, path) if path else None
        folders = [start, "", "src", *above(start), *self._members]
        if not sure and not is_standard(imported.package) and not packages_with(plain):
            folders.append(here)
        # What is no file of a package is compiled, or an attribute.
        for name in dict.fromkeys((plain.replace(".", "/"), plain.partition(".")[0])):
            for folder in dict.fromkeys(folders):
                if path := self._path(f"{folder}/{name}".lstrip("/")):
                    return folder, path
        return None

    def _path(self, below: str) -> str:
        ends = (".py", "/__init__.py")
        return next((f"{below}{end}" for end in ends if below and f"{below}{end}" in self._there), "")


def above(folder: str) -> Iterator[str]:
    """The folders around a path, the nearest first, the project's own left out."""
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        yield folder
