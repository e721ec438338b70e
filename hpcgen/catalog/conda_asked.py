"""What a stack asks of conda: its options, and files of its project, read once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hpcgen.backends.hardware.mirrors import channel_addresses, channel_of
from hpcgen.catalog.project import CONDA, ProjectFiles, files_of
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import ConflictError, InputError, Problems, did_you_mean
from hpcgen.core.model.conda import INDEPENDENT, SUBDIRS, CondaFile, CondaPackage, CondaPlatform
from hpcgen.core.model.plan import PlannedBlock, PlannedConda
from hpcgen.core.model.project import GitPackage, GitRequirement
from hpcgen.readers.conda_text import spec_name

USUAL = "conda-forge"
"""The channel where nobody names one."""
_PINNED = r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9A-Za-z.!+]+"


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

    project: reads the files.
    block: with the options that hold.
    document: the stack's file; of a stack that is in none, paths are from the present folder.
    InputError, ConflictError: all that is wrong with the files, each at its place.
    """
    said = _words(block)
    folder = project.folder(document, CONDA)
    files = project.conda(document, said.files)
    if not files and not said.packages:
        return None
    locks = [each for each in files if each.locked]
    if locks and (len(files) > 1 or said.packages or said.channels):
        raise InputError(
            f"{locks[0].file} is a lock, which alone decides what is installed",
            document.position(files_of(CONDA)) if document is not None else None,
            "only the lock, or files and packages to choose from",
            "lock everything with the tool that wrote the lock, or name an environment.yml in its place",
        )
    subdir = SUBDIRS[architecture]
    locked = _locked(locks[0], said.environment, subdir, folder) if locks else CondaPlatform()
    asked = [each for file in files for each in file.pip]
    from_git = [each for each in asked if isinstance(each, GitRequirement)]
    pip = [each.line for each in asked if each not in from_git] or [
        f"{each.name}=={each.version} --hash=sha256:{each.sha256}" for each in locked.wheels
    ]
    needs = [need.spec for each in files for need in each.needs] + list(said.packages)
    if (pip or from_git) and needs and "pip" not in map(spec_name, needs):
        needs.append("pip")
    named = list(said.channels) or [channel for each in files for channel in each.channels] or [USUAL]
    return PlannedConda(
        files={name: digest for each in files for name, digest in each.read.items()},
        subdir=subdir,
        channels=channel_addresses([*named, *filter(None, map(channel_of, needs))]) or channel_addresses([USUAL]),
        needs=list(dict.fromkeys(needs)),
        packages=sorted(locked.packages, key=lambda each: each.name),
        pip=list(dict.fromkeys(pip)),
        from_git=[GitPackage.of(each) for each in from_git],
        notes=[f"{note.where.file}:{note.where.line}: {note.text}" for each in files for note in each.notes],
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


def _locked(lock: CondaFile, environment: str, subdir: str, folder: Path) -> CondaPlatform:
    """What a lock has for one platform."""
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
            f"the lock has nothing for {subdir}, the platform of the nodes",
            shown,
            f"packages for {subdir}, besides {', '.join(has) or 'none'}",
            f"lock it for that platform, too, such as: pixi workspace platform add {subdir}",
        )
    _check(found, subdir, shown)
    return found


def _check(found: CondaPlatform, subdir: str, shown: str) -> None:
    """One package of a name, none for another platform; those of an index have a hash, and pip, which installs them."""
    problems = Problems()
    names: dict[str, CondaPackage] = {}
    for each in found.packages:
        if each.subdir not in (subdir, INDEPENDENT):
            problems.add(
                f"{each.exact} is for {each.subdir}, and the nodes are {subdir}",
                shown,
                remedy="regenerate the lock with the tool that wrote it",
            )
        if names.setdefault(each.name, each) is not each:
            problems.add(
                f"the lock has both {names[each.name].exact} and {each.exact}",
                shown,
                remedy="regenerate the lock with the tool that wrote it",
            )
    for wheel in found.wheels:
        if wheel.sha256 is None or not re.fullmatch(_PINNED, f"{wheel.name}=={wheel.version}"):
            message = f"{wheel.name or wheel.url} of the lock is not a package index release with a sha256"
            remedy = "lock a release; `copy` in the stack brings your own code into the image"
            problems.add(message, shown, remedy=remedy)
    if found.wheels and "pip" not in names:
        problems.add(
            "the lock has packages of a Python package index, but not pip, which installs them",
            shown,
            "pip among the conda packages",
            "add it and update the lock: pixi add pip",
        )
    problems.raise_as(ConflictError)
