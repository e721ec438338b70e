"""What a stack asks of conda: its options, and files of its project, read once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hpcgen.catalog.project import CONDA, ProjectFiles, files_of
from hpcgen.config.yamlfile import Document
from hpcgen.errors import ConflictError, InputError, Position, Problem, Problems, did_you_mean
from hpcgen.model.conda import INDEPENDENT, SUBDIRS, CondaFile, CondaPackage
from hpcgen.model.plan import PlannedBlock, PlannedConda
from hpcgen.project_files.conda_text import spec_name

USUAL = "conda-forge"
"""The channel where nobody names one."""
_HOST = "https://conda.anaconda.org"
_DEFAULTS = ("https://repo.anaconda.com/pkgs/main", "https://repo.anaconda.com/pkgs/r")
"""What conda's channel ``defaults`` stands for: docs.conda.io, "channels", "default channels"."""
_NO_CHANNEL = "nodefaults"


class _Words(NamedTuple):
    """The options of the block."""

    files: Sequence[str]
    packages: Sequence[str]
    channels: Sequence[str]
    environment: str


def asked_of_conda(
    project: ProjectFiles, block: PlannedBlock, document: Document | None, architecture: str
) -> PlannedConda | None:
    """What a plan's block asks for; None where it asks for nothing.

    Parameters
    ----------
    project: reads the files.
    block: with the options that hold.
    document: the stack's file; of a stack that is in none, paths are from the present folder.

    Raises
    ------
    InputError, ConflictError: all that is wrong with the files, each at its place.
    """
    said = _words(block)
    folder, problems = project.folder(document, CONDA), Problems()
    files = project.conda(document, said.files)
    if not files and not said.packages:
        return None
    locks = [each for each in files if each.locked]
    if locks and (len(files) > 1 or said.packages or said.channels):
        raise InputError(
            f"{locks[0].file} is a lock, and a lock alone decides what is installed",
            _place(document),
            "the lock alone, or files and packages to choose from",
            "lock all of it with the tool that wrote the lock, or name an environment.yml in its place",
        )
    problems += [problem for each in files for problem in _of_index(each, folder)]
    subdir = SUBDIRS[architecture]
    packages: list[CondaPackage] = []
    if locks and not problems:
        packages = _locked(locks[0], said.environment, subdir, folder)
    problems.raise_as(ConflictError)
    needs = [need.spec for each in files for need in each.needs] + list(said.packages)
    named = [channel for each in files for channel in each.channels]
    return PlannedConda(
        files={name: digest for each in files for name, digest in each.read.items()},
        subdir=subdir,
        channels=_addresses(list(said.channels) or named or [USUAL]),
        needs=list(dict.fromkeys(needs)),
        packages=packages,
        variables={name: value for each in files for name, value in each.variables.items()},
    )


def asked_names(planned: PlannedConda) -> list[str]:
    """Names of the packages that are asked for, or locked."""
    names = [each.name for each in planned.packages] or [spec_name(each) for each in planned.needs]
    return [name for name in names if name]


def _words(block: PlannedBlock) -> _Words:
    def texts(name: str) -> list[str]:
        value = block.options.get(name)
        return value if isinstance(value, list) else []

    return _Words(texts("files"), texts("packages"), texts("channels"), str(block.options.get("environment") or ""))


def _place(document: Document | None) -> Position | None:
    return document.position(files_of(CONDA)) if document is not None else None


def _of_index(file: CondaFile, folder: Path) -> list[Problem]:
    """Packages of a Python package index beside conda's, which are not installed."""
    wheels = any(platform.wheels for each in file.environments.values() for platform in each.values())
    if not file.pip and not wheels:
        return []
    where = file.pip_where
    shown = Position(str(folder / where.file), where.line, where.column) if where is not None else None
    return [
        Problem(
            "this asks a Python package index for packages, which hpcgen does not install into a conda environment",
            shown,
            "packages of conda channels alone",
            "name them as conda packages (conda-forge has most); or name all packages for pip in the block "
            "python_packages, and leave conda out",
        )
    ]


def _locked(lock: CondaFile, environment: str, subdir: str, folder: Path) -> list[CondaPackage]:
    """The packages of a lock for one platform."""
    shown = str(folder / lock.file)
    name = environment or next(iter(lock.environments), "")
    if name not in lock.environments:
        raise InputError(
            f"the lock has no environment {name!r}",
            shown,
            f"one of {', '.join(lock.environments) or 'none'}",
            did_you_mean(name, list(lock.environments)),
        )
    platforms = lock.environments[name]
    found = platforms.get(subdir) or (platforms.get(INDEPENDENT) if len(platforms) == 1 else None)
    if found is None or not found.packages:
        has = [each for each in platforms if platforms[each].packages]
        raise ConflictError(
            f"the lock has nothing for {subdir}, which the nodes are",
            shown,
            f"packages for {subdir}, beside {', '.join(has) or 'none'}",
            f"lock it for that platform, too, such as: pixi workspace platform add {subdir}",
        )
    _check(found.packages, subdir, shown)
    return sorted(found.packages, key=lambda each: each.name)


def _check(packages: Sequence[CondaPackage], subdir: str, shown: str) -> None:
    """One package of a name, and none for another platform."""
    problems = Problems()
    names: dict[str, CondaPackage] = {}
    for each in packages:
        if each.subdir not in (subdir, INDEPENDENT):
            problems.add(f"{each.exact} is for {each.subdir}, and the nodes are {subdir}", shown)
        if names.setdefault(each.name, each) is not each:
            problems.add(f"the lock has both {names[each.name].exact} and {each.exact}", shown)
    problems.raise_as(ConflictError)


def _addresses(named: Sequence[str]) -> list[str]:
    """Addresses of channels that are named as conda does."""
    found: list[str] = []
    for each in named:
        if each == _NO_CHANNEL:
            continue
        plain = each.rstrip("/")
        found += _DEFAULTS if plain == "defaults" else [plain if "://" in plain else f"{_HOST}/{plain}"]
    return list(dict.fromkeys(found)) or [f"{_HOST}/{USUAL}"]
