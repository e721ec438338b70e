"""spack.yaml: the packages of an environment; what it says of the machine that it was written on is left out.

Source: etc/spack/defaults and lib/spack/spack/schema of spack/spack at v1.1.0; Spack's documentation, "Environments"
and "Including Configuration".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Position, did_you_mean
from hpcgen.core.model.project import FileNote
from hpcgen.core.model.spack import SpackFile, SpackSettings, SpackSpec
from hpcgen.core.secret_rules import public
from hpcgen.core.support.units import some
from hpcgen.readers.data_files import YamlFile
from hpcgen.readers.folder import WRITTEN_BYTES, ProjectFolder, Readers
from hpcgen.readers.spack_specs import COMPILED, MPI_PACKAGES, NAME, At, SpecLists, checked, for_any_machine

_OF_HOST = "it is of the machine that the file was written on"
_DROPPED = {
    "view": "the image has one view, /opt/spack_packages/view",
    "config": "folders and settings of Spack are the image's own",
    "compilers": COMPILED,
    "mirrors": "sources come from Spack's public mirror or from the bundle",
    "upstreams": _OF_HOST,
    "modules": "the image has no modules",
    "bootstrap": "what Spack itself needs is brought by hash",
    "container": "hpcgen writes the recipe",
    "env_vars": "variables are set by `run.environment` of the stack",
    "ci": _OF_HOST,
    "gitlab-ci": _OF_HOST,
    "cdash": _OF_HOST,
}
_REFUSED = {
    "include_concrete": "name the specs themselves",
    "develop": "bring your own code by `copy` or `git` of the stack, and compile it in `build`",
    "toolchains": f"{COMPILED}: remove it, and the names of toolchains from specs",
}
_TAKEN = ("specs", "definitions", "packages", "concretizer", "concretization", "include", "repos")
_SETTINGS = ("version", "variants", "require", "prefer", "conflict")
_NOT_OF_PACKAGES = {
    "externals": f"{_OF_HOST}; the image's own MPI, compiler and GPU libraries are taken",
    "paths": f"{_OF_HOST}; the image's own MPI, compiler and GPU libraries are taken",
    "modules": _OF_HOST,
    "buildable": "the image decides what is built",
    "providers": "the image's MPI and compiler are taken",
    "compiler": COMPILED,
    "target": "packages are built for the CPU of the partition",
    "permissions": _OF_HOST,
    "package_attributes": "packages are built as their recipes say",
}
_OF_IMAGE = {
    **dict.fromkeys(("c", "cxx", "fortran", "gcc"), COMPILED),
    **dict.fromkeys(("cuda", "hip"), "the image's own GPU libraries are taken"),
    **dict.fromkeys(MPI_PACKAGES, "the image's own MPI is taken"),
}
"""Packages that Spack never builds for an image, so that settings of them have no effect."""
_TOGETHER = {"together": True, "separately": False, "together_where_possible": "when_possible"}
"""What ``concretization`` said before ``concretizer.unify`` took its place."""


class _Environment(msgspec.Struct):
    """The one key that such a file has."""

    spack: dict[str, Any] | None = None


class _Settings(msgspec.Struct):
    """What is read of an included file."""

    packages: Any = None
    concretizer: Any = None


def read_environment(folder: ProjectFolder, path: str) -> SpackFile:
    """What a spack.yaml asks for; InputError with all that is wrong with it."""
    file = YamlFile(folder, path, WRITTEN_BYTES)
    top = file.record(_Environment).spack
    if top is None:
        raise InputError("not a Spack environment", folder.shown(path), "a file that begins with `spack:`")
    notes: list[FileNote] = []
    _keys(file, top, notes)
    _repositories(file, top.get("repos"), notes)
    environment = _Packages(notes)
    specs = environment.specs(file, top.get("specs"), SpecLists(file, top.get("definitions")))
    environment.add(file, top.get("packages"), ["spack", "packages"])
    unify = _TOGETHER.get(str(top.get("concretization")), True)
    if (said := _unify(file, top.get("concretizer"), ["spack", "concretizer"], notes)) is not None:
        unify = said
    for included in _included(file, top.get("include"), notes):
        settings = included.record(_Settings)
        environment.add(included, settings.packages, ["packages"])
        _unify(included, settings.concretizer, ["concretizer"], notes)
        file.problems += included.problems
    if not specs and not file.problems:
        file.wrong("the environment has no specs", ["spack"], "`specs:` and a list", "add the packages to install")
    file.problems.raise_as(InputError)
    notes += environment.left_out()
    notes.sort(key=lambda note: (note.where.file != path, note.where.line))
    packages = {name: SpackSettings(**each) for name, each in environment.kept.items() if any(each.values())}
    said_mpi, words = environment.mpi, environment.words
    return SpackFile(path, specs, words, packages, str(unify).lower(), said_mpi, notes, dict(folder.read))


def _keys(file: YamlFile, top: dict[str, Any], notes: list[FileNote]) -> None:
    for key in map(str, top):
        if key in _REFUSED:
            file.wrong(f"`{public(key, 60)}` is not read", ["spack", key], remedy=_REFUSED[key])
        elif key in _DROPPED:
            if top[key] not in (True, None, {}, []):
                notes.append(FileNote(f"`{key}` is left out: {_DROPPED[key]}", file.place("spack", key, key=True)))
        elif key not in _TAKEN:
            remedy = did_you_mean(key, [*_TAKEN, *_DROPPED, *_REFUSED])
            file.wrong(f"`{public(key, 60)}` is not a key of Spack's environments", ["spack", key], remedy=remedy)


def _repositories(file: YamlFile, said: Any, notes: list[FileNote]) -> None:
    """Spack's own package repository is there, in the release that belongs to it; there is no other."""
    names = said if isinstance(said, list | dict) else []
    own = [each for each in names if not re.search(r"(^|/)builtin$", str(each))]
    if own:
        remedy = "only Spack's own package repository is used; compile your own package in `build` of the stack"
        text = f"`repos` has {public(str(own[0]), 60)}, whose packages Spack would not know"
        file.wrong(text, ["spack", "repos"], remedy=remedy)
    elif said:
        text = "`repos` is left out: Spack's own package repository is taken in the release that belongs to Spack's"
        notes.append(FileNote(text, file.place("spack", "repos", key=True)))


def _included(file: YamlFile, said: Any, notes: list[FileNote]) -> Iterable[YamlFile]:
    """Files of the project that an environment includes; the first decides before the later ones."""
    if not isinstance(said, list | None):
        file.wrong("`include` is not a list", ["spack", "include"], "a list such as [settings/packages.yaml]")
        return
    for number, each in enumerate(said or []):
        at: At = ["spack", "include", number]
        table = each if isinstance(each, dict) else {"path": each}
        path = str(table.get("path", ""))
        if not path or not {*table} <= {"path", "optional", "name"} or re.search(r"://|[$~]", path):
            remedy = "write what it says into this file, or name a file of the project by its path from here"
            file.wrong("only files of the project are included", at, "a path such as ../packages.yaml", remedy)
            continue
        beside = file.folder.beside(file.path, path)
        if file.folder.holds(beside) and (file.folder.top / beside).is_dir():
            names = [f"{beside}/{name}.yaml" for name in ("packages", "concretizer")]
            yield from (YamlFile(file.folder, name, WRITTEN_BYTES) for name in names if file.folder.holds(name))
        elif file.folder.holds(beside):
            yield YamlFile(file.folder, beside, WRITTEN_BYTES)
        elif table.get("optional"):
            notes.append(FileNote(f"{public(path, 60)} is not there, and is not included", file.place(*at)))
        else:
            expected = "a file in the folder of the stack"
            remedy = (
                "write the stack into a folder that has both files, and name the environment by its path from there"
            )
            file.wrong(f"{public(path, 60)!r} is not there", at, expected, remedy)


class _Packages:
    """What an environment, with the files that it includes, says of packages by their names."""

    def __init__(self, notes: list[FileNote]) -> None:
        self.notes = notes
        self.kept: dict[str, dict[str, list[str]]] = {}
        self.words: list[SpackSpec] = []
        self.mpi = ""
        self._left: dict[tuple[str, str, str], list[tuple[str, Position]]] = {}

    def specs(self, file: YamlFile, said: Any, lists: SpecLists) -> list[SpackSpec]:
        """The specs that are installed."""
        if not isinstance(said, list | None):
            file.wrong("`specs` is not a list", ["spack", "specs"], "a list such as [hdf5+mpi, zlib-ng]")
            return []
        found: dict[str, SpackSpec] = {}
        for spec, at in lists.specs(said or [], ["spack", "specs"]):
            if text := self._own(file, spec, at, named=True):
                found.setdefault(text, SpackSpec(text, file.place(*at)))
        return list(found.values())

    def add(self, file: YamlFile, said: Any, top: At) -> None:
        """What a file has in ``packages``; where an earlier one says something else of a setting, that holds, too."""
        if not isinstance(said, dict | None):
            return file.wrong("`packages` is not a table", top, "packages by their names")
        for name, settings in (said or {}).items():
            at = [*top, name]
            if not re.fullmatch(NAME, str(name)) or not isinstance(settings, dict):
                file.wrong(
                    f"{public(str(name), 60)!r} is not a package with settings", at, "a package's name and a table"
                )
                continue
            for key, value in settings.items():
                self._setting(file, name, str(key), value, [*at, key])
        return None

    def _setting(self, file: YamlFile, name: str, key: str, value: Any, at: At) -> None:
        if key not in _SETTINGS and key not in _NOT_OF_PACKAGES:
            remedy = did_you_mean(key, [*_SETTINGS, *_NOT_OF_PACKAGES])
            return file.wrong(f"`{public(key, 60)}` is not a setting of packages", at, remedy=remedy)
        if why := _NOT_OF_PACKAGES.get(key) or _OF_IMAGE.get(name):
            if value not in ([], {}, None) and (key, value) != ("buildable", True):
                self._left.setdefault((file.path, key, why), []).append((str(name), file.place(*at, key=True)))
            return None
        texts = [text for each, place in _texts(file, value, at) if (text := self._own(file, each, place, named=False))]
        kept = self.kept.setdefault(name, {})
        kept[key] = list(dict.fromkeys([*kept.get(key, []), *texts]))
        self.words += [SpackSpec(f"{name} {each}", file.place(*at)) for each in texts]
        return None

    def left_out(self) -> list[FileNote]:
        """The settings without an effect: one note for each key, at the first package that has it."""
        return [
            FileNote(f"`{key}` of {some([name for name, _ in said])} is left out: {why}", said[0][1])
            for (_, key, why), said in self._left.items()
        ]

    def _own(self, file: YamlFile, spec: str, at: At, named: bool) -> str:
        """What of a spec counts for every machine; empty where that is nothing, or where the spec is wrong."""
        if not checked(file, spec, at, named):
            return ""
        own = for_any_machine(file, spec, at, named, self.notes)
        self.mpi = self.mpi or own.mpi
        return own.text


def _texts(file: YamlFile, value: Any, at: At) -> Iterable[tuple[str, At]]:
    """The texts of a setting, which is a text or a list of texts."""
    for number, each in enumerate(value if isinstance(value, list) else [value]):
        place = [*at, number] if isinstance(value, list) else at
        if not isinstance(each, str | int | float) or isinstance(each, bool):
            remedy = "write it as a spec; of `any_of` and `one_of` the one that holds here"
            file.wrong("not part of a spec", place, "a text such as +mpi, or a list of texts", remedy)
        else:
            yield str(each), place


def _unify(file: YamlFile, said: Any, at: At, notes: list[FileNote]) -> bool | str | None:
    """How Spack holds the specs together; None where nothing is said of it."""
    if not isinstance(said, dict | None):
        file.wrong("`concretizer` is not a table", at, "a table such as {unify: true}")
        return None
    for key in said or {}:
        if key != "unify":
            text = f"`concretizer.{public(str(key), 60)}` is left out: versions are chosen for the image alone"
            notes.append(FileNote(text, file.place(*at, key, key=True)))
    unify: bool | str | None = (said or {}).get("unify")
    if unify not in (None, True, False, "when_possible"):
        file.wrong(f"unify is {public(str(unify), 60)!r}", [*at, "unify"], "true, false or when_possible")
    return unify


read_spack = Readers[SpackFile](
    "a Spack environment", "spack.yaml, or another .yaml file", ((r".+\.ya?ml", read_environment),)
).read
