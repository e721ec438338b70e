"""Files of conda packages: environment.yml, explicit lists, and which file is of which kind."""

from __future__ import annotations

import re

import msgspec

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.conda import INDEPENDENT, CondaFile, CondaNeed, CondaPackage, CondaPlatform
from hpcgen.core.model.project import FileNote, PackageFile, PackageRequirement
from hpcgen.core.secret_rules import LEAVE_OUT, public, secret_in, secret_name
from hpcgen.core.support.quoting import ENV_NAME_PATTERN
from hpcgen.readers.conda_lock import read_conda_lock
from hpcgen.readers.conda_text import EXPECTED, Locked, conda_package, spec_name
from hpcgen.readers.data_files import YamlFile
from hpcgen.readers.folder import WRITTEN_BYTES, PartlyReadError, ProjectFolder, Readers
from hpcgen.readers.pixi_lock import read_pixi_lock
from hpcgen.readers.requirements_txt import read_listed

# environment.yml: https://docs.conda.io/projects/conda/en/stable/user-guide/tasks/manage-environments.html.

_CHANNEL = re.compile(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._+-]+)*/?|[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


class _Environment(msgspec.Struct):
    """Of what conda knows, what is used here."""

    name: str | None = None
    channels: list[str] | None = None
    dependencies: list[str | dict[str, list[str]]] | None = None
    variables: dict[str, str] | None = None


def read_environment(folder: ProjectFolder, path: str) -> CondaFile:
    """What an environment.yml asks for; InputError with all that is wrong with it."""
    file = YamlFile(folder, path, WRITTEN_BYTES)
    said = file.record(_Environment)
    channels = _channels(file, said.channels or [])
    needs: list[CondaNeed] = []
    pip: list[PackageRequirement] = []
    notes: list[FileNote] = []
    refused: list[FileNote] = []
    for number, each in enumerate(said.dependencies or []):
        at: list[str | int] = ["dependencies", number]
        if isinstance(each, dict):
            for key, listed in each.items():
                if key == "pip":
                    asked = _of_pip(file, listed, at)
                    pip += asked.requirements
                    notes += asked.notes
                    refused += asked.refused
                else:
                    file.wrong(f"{key!r} is not a list that conda knows", at, "`pip:` and a list, or a package")
        elif not (name := spec_name(each)):
            remedy = "name the package and, where it is not in the file's channels, CHANNEL::NAME"
            file.wrong(f"{public(each, 120)!r} names no package of conda", at, EXPECTED, remedy if "/" in each else "")
        else:
            needs.append(CondaNeed(spec=each.strip(), name=name, where=file.place(*at)))
    variables = said.variables or {}
    for key in [key for key in variables if not re.search(ENV_NAME_PATTERN, key) or not variables[key].isprintable()]:
        file.wrong(f"the variable {key[:60]!r} has a name or a value that cannot be set", ["variables", key])
    for key in [key for key, value in variables.items() if secret_name(key, value) or secret_in(value)]:
        message = f"the variable {key[:60]!r} may be a secret, which would be in the plan and the image"
        file.wrong(message, ["variables", key], remedy=LEAVE_OUT)
    found = CondaFile(
        file=path,
        kind="environment",
        name=said.name or "",
        channels=channels,
        needs=needs,
        pip=pip,
        variables=variables,
        notes=notes,
        refused=refused,
        read=dict(folder.read),
    )
    if file.problems:
        raise PartlyReadError(file.problems, found)
    return found


def _channels(file: YamlFile, named: list[str]) -> list[str]:
    for number, each in enumerate(named):
        at: list[str | int] = ["channels", number]
        if secret := secret_in(each):
            file.wrong(
                f"the address of a channel contains {secret}, which would be in the image",
                at,
                "a channel that everybody may read",
                "remove it, and have a mirror that asks for none",
            )
        elif not _CHANNEL.fullmatch(each) or len(each) > 300:
            file.wrong(
                f"{public(each, 120)!r} is not a channel", at, "a name such as conda-forge, or https://HOST/PATH"
            )
    return [each.rstrip("/") for each in named]


def _of_pip(file: YamlFile, listed: list[str], at: list[str | int]) -> PackageFile:
    """What is asked of a Python package index, with the files that are named for it (``-r``); mistakes are kept."""
    places = [(file.place(*at, "pip", number), text) for number, text in enumerate(listed)]
    try:
        found = read_listed(file.folder, file.path, places)
    except PartlyReadError as error:
        file.problems += error.problems
        found = error.file
    for each in found.constraints:
        message = f"{each.asked} is a constraint, which a conda file does not take"
        file.problems.add(message, file.folder.at(each.where), remedy="write the range behind the package itself")
    return found


# Explicit lists of packages, as ``conda list --explicit --sha256`` and conda-lock write them.
MARK = "@EXPLICIT"
_HASH = re.compile(r"(sha256:)?([0-9a-f]{64})")
_AGAIN = "regenerate it: conda list --explicit --sha256"


def read_explicit(folder: ProjectFolder, path: str) -> CondaFile:
    """What such a list has, for the one platform that it is for; InputError with all that is wrong with it."""
    problems = Problems()
    packages: list[CondaPackage] = []
    marked = False
    for number, line in enumerate(folder.text(path).splitlines(), 1):
        text = line.strip()
        if text == MARK:
            marked = True
        if not text or text.startswith("#") or text == MARK:
            continue
        where = folder.at(Position(path, number, len(line) - len(line.lstrip()) + 1))

        def wrong(message: str, expected: str = "", remedy: str = "", where: Position = where) -> None:
            problems.add(message, where, expected, remedy)

        url, _, said = text.partition("#")
        match = _HASH.fullmatch(said)
        package = conda_package(wrong, Locked(url, match[2] if match else None), _AGAIN)
        packages += [package] if package is not None else []
    if not marked:
        problems.add("this is not an explicit list of conda packages", folder.shown(path), f"a line {MARK}", _AGAIN)
    platforms = sorted({each.subdir for each in packages} - {INDEPENDENT})
    if len(platforms) > 1:
        problems.add(f"the list has packages for {' and '.join(platforms)}", folder.shown(path), "one platform", _AGAIN)
    problems.raise_as(InputError)
    found = CondaPlatform(packages=packages)
    return CondaFile(
        file=path,
        kind="explicit",
        channels=list(dict.fromkeys(each.channel for each in packages)),
        environments={"default": dict.fromkeys(platforms or [INDEPENDENT], found)},
        read=dict(folder.read),
    )


_EXPECTED = "environment.yml, pixi.lock, conda-lock.yml, or an explicit list such as conda-linux-64.lock"
_CONDA: Readers[CondaFile] = Readers(
    "conda packages",
    _EXPECTED,
    (
        (r"pixi\.lock", read_pixi_lock),
        (r"(.+[.-])?conda-lock\.ya?ml", read_conda_lock),
        (r".+\.ya?ml", read_environment),
        (r".+\.(lock|txt)", read_explicit),
    ),
)
read_conda = _CONDA.read
