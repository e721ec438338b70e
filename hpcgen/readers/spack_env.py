"""spack.yaml: the packages of an environment; what it says of the machine that it was written on is left out.

Source: etc/spack/defaults and lib/spack/spack/schema of spack/spack at v1.1.0; Spack's documentation, "Environments".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, did_you_mean
from hpcgen.core.model.project import FileNote
from hpcgen.core.model.spack import SpackFile, SpackSettings, SpackSpec
from hpcgen.core.secret_rules import LEAVE_OUT, public, secret_in
from hpcgen.readers.data_files import YamlFile
from hpcgen.readers.folder import WRITTEN_BYTES, ProjectFolder, Readers

_OF_HOST = "it is of the machine that the file was written on"
_DROPPED = {
    "view": "the image has one view, /opt/spack_packages/view",
    "config": "folders and settings of Spack are the image's own",
    "compilers": "packages are compiled by the distribution's GCC",
    "mirrors": "sources come from Spack's public mirror or from the bundle",
    "upstreams": _OF_HOST,
    "modules": "the image has no modules",
    "bootstrap": "what Spack itself needs is brought by hash",
    "container": "hpcgen writes the recipe",
    "env_vars": "variables are set by `run.environment` of the stack",
    "ci": _OF_HOST,
    "cdash": _OF_HOST,
}
_REFUSED = {
    "include": "write the specs and settings of the included files into this one",
    "include_concrete": "name the specs themselves",
    "definitions": "write each spec into `specs`",
    "develop": "bring your own code by `copy` or `git` of the stack, and compile it in `build`",
    "repos": "only Spack's own package repository is used; compile your own package in `build` of the stack",
    "toolchains": "packages are compiled by the distribution's GCC: remove it, and the names of toolchains from specs",
}
_TAKEN = ("specs", "packages", "concretizer")
_SETTINGS = ("version", "variants", "require", "prefer", "conflict")
_NOT_OF_PACKAGES = {
    "externals": f"{_OF_HOST}; the image's own MPI, compiler and GPU libraries are taken",
    "buildable": "the image decides what is built",
    "providers": "the image's MPI and compiler are taken",
    "compiler": "packages are compiled by the distribution's GCC",
    "target": "packages are built for the CPU of the partition",
    "permissions": _OF_HOST,
    "package_attributes": "packages are built as their recipes say",
}
_NAME = r"[a-z0-9][a-z0-9_-]{0,99}"
_SPEC = re.compile(r"[A-Za-z0-9_.,:=@%^~+*/\"'\[\] -]{1,1000}")
_MACHINE = re.compile(r"(?:^|\s)(target|arch|architecture|os|operating_system|platform|dev_path)\s*=")
_COMPILER = re.compile(r"%%?\s*(?:\[[^]]*\]\s*)?(?:[a-z,]+=)?([A-Za-z0-9][A-Za-z0-9_-]*)")
_LANGUAGES = re.compile(r"\b(c|cxx|fortran)=")


class _Environment(msgspec.Struct):
    """The one key that such a file has, and its old name."""

    spack: dict[str, Any] | None = None


def read_environment(folder: ProjectFolder, path: str) -> SpackFile:
    """What a spack.yaml asks for; InputError with all that is wrong with it."""
    file = YamlFile(folder, path, WRITTEN_BYTES)
    top = file.record(_Environment).spack
    if top is None:
        raise InputError("this is no environment of Spack", folder.shown(path), "a file that begins with `spack:`")
    notes: list[FileNote] = []
    for key in map(str, top):
        if key in _REFUSED:
            file.wrong(f"`{public(key, 60)}` is not read", ["spack", key], remedy=_REFUSED[key])
        elif key in _DROPPED:
            if top[key] not in (True, None, {}, []):
                notes.append(FileNote(f"`{key}` is left out: {_DROPPED[key]}", file.place("spack", key, key=True)))
        elif key not in _TAKEN:
            remedy = did_you_mean(key, [*_TAKEN, *_DROPPED, *_REFUSED])
            file.wrong(f"`{public(key, 60)}` is not a key of Spack's environments", ["spack", key], remedy=remedy)
    specs = _specs(file, top.get("specs"))
    packages, words = _packages(file, top.get("packages"), notes)
    unify = _unify(file, top.get("concretizer"), notes)
    if not specs and not file.problems:
        file.wrong("the environment has no specs", ["spack"], "`specs:` and a list", "add the packages to install")
    file.problems.raise_as(InputError)
    notes.sort(key=lambda note: note.where.line)
    return SpackFile(path, specs, words, packages, unify, notes, dict(folder.read))


def _specs(file: YamlFile, listed: Any) -> list[SpackSpec]:
    if listed is not None and not isinstance(listed, list):
        file.wrong("`specs` is no list", ["spack", "specs"], "a list such as [hdf5+mpi, zlib-ng]")
        return []
    found = []
    for number, each in enumerate(listed or []):
        at: list[str | int] = ["spack", "specs", number]
        if isinstance(each, str) and each.strip().startswith("$"):
            file.wrong(f"{public(each, 60)!r} names a list of `definitions`", at, remedy=_REFUSED["definitions"])
        elif not isinstance(each, str):
            file.wrong("a spec is no text", at, "a spec such as hdf5@1.14+mpi", "write out each spec of a matrix")
        elif _checked(file, each, at, named=True):
            found.append(SpackSpec(each.strip(), file.place(*at)))
    return found


def _checked(file: YamlFile, spec: str, at: list[str | int], named: bool) -> bool:
    """Whether a spec, or a part of one, may decide what is built; what it may not say is a mistake of the file."""
    said = public(spec, 120)
    count = len(file.problems)
    machine, compilers = _MACHINE.search(spec), {each[1] for each in _COMPILER.finditer(spec)}
    if secret := secret_in(spec):
        file.wrong(f"a spec contains {secret}, which would be in the image", at, remedy=LEAVE_OUT)
    elif not _SPEC.fullmatch(spec) or "://" in spec or (named and not re.match(rf"\s*({_NAME}\.)?{_NAME}", spec)):
        expected = "a package, with version, variants and dependencies: hdf5@1.14+mpi ^zlib-ng"
        file.wrong(f"{said!r} is not a spec of Spack", at, expected)
    elif machine is not None:
        remedy = f"remove {machine[1]}=: packages are built for the base and for the CPU of the partition"
        file.wrong(f"{said!r} says what it is built for or from", at, remedy=remedy)
    elif re.search(r"(^|\s|\^)/[a-z0-9]+", spec):
        file.wrong(f"{said!r} names an installation by its hash", at, remedy="name the package and its version")
    elif other := sorted(compilers - {"gcc"}):
        remedy = f"remove %{other[0]}: packages are compiled by the distribution's GCC"
        file.wrong(f"{said!r} names the compiler {other[0]}", at, "%gcc, or no compiler", remedy)
    return len(file.problems) == count


def _packages(file: YamlFile, said: Any, notes: list[FileNote]) -> tuple[dict[str, SpackSettings], list[SpackSpec]]:
    """What the file says of packages by their names, and each of these texts where it stands."""
    if not isinstance(said, dict | None):
        file.wrong("`packages` is no table", ["spack", "packages"], "packages by their names")
        return {}, []
    found: dict[str, SpackSettings] = {}
    words: list[SpackSpec] = []
    for name, settings in (said or {}).items():
        at: list[str | int] = ["spack", "packages", name]
        if not re.fullmatch(_NAME, str(name)) or not isinstance(settings, dict):
            file.wrong(f"{public(str(name), 60)!r} is no package with settings", at, "a package's name and a table")
            continue
        kept: dict[str, list[str]] = {}
        for key, value in settings.items():
            if key in _NOT_OF_PACKAGES:
                text = f"`{key}` of {name} is left out: {_NOT_OF_PACKAGES[key]}"
                notes.append(FileNote(text, file.place(*at, key, key=True)))
            elif key not in _SETTINGS:
                remedy = did_you_mean(str(key), [*_SETTINGS, *_NOT_OF_PACKAGES])
                file.wrong(f"`{public(str(key), 60)}` is not a setting of packages", [*at, key], remedy=remedy)
            else:
                kept[key] = list(_texts(file, value, [*at, key]))
                words += [SpackSpec(f"{name} {each}", file.place(*at, key)) for each in kept[key]]
        if any(kept.values()):
            found[name] = SpackSettings(**kept)
    return found, words


def _texts(file: YamlFile, value: Any, at: list[str | int]) -> Iterable[str]:
    """The texts of a setting, which is a text or a list of texts."""
    for number, each in enumerate(value if isinstance(value, list) else [value]):
        place = [*at, number] if isinstance(value, list) else at
        if not isinstance(each, str | int | float) or isinstance(each, bool):
            remedy = "write it as a spec; of `any_of` and `one_of` the one that holds here"
            file.wrong("this is no part of a spec", place, "a text such as +mpi, or a list of texts", remedy)
        elif _checked(file, str(each), place, named=False):
            yield str(each).strip()


def _unify(file: YamlFile, said: Any, notes: list[FileNote]) -> str:
    """How Spack holds the specs together."""
    if not isinstance(said, dict | None):
        file.wrong("`concretizer` is no table", ["spack", "concretizer"], "a table such as {unify: true}")
        return ""
    for key in said or {}:
        if key == "unify":
            continue
        text = f"`concretizer.{public(str(key), 60)}` is left out: versions are chosen for the image alone"
        notes.append(FileNote(text, file.place("spack", "concretizer", key, key=True)))
    unify = (said or {}).get("unify", True)
    if unify not in (True, False, "when_possible"):
        file.wrong(
            f"unify is {public(str(unify), 60)!r}", ["spack", "concretizer", "unify"], "true, false or when_possible"
        )
    return str(unify).lower()


read_spack = Readers[SpackFile](
    "a Spack environment", "spack.yaml, or another .yaml file", ((r".+\.ya?ml", read_environment),)
).read
