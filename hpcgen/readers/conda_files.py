"""Files of conda packages."""

import re

from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.model.conda import INDEPENDENT, CondaFile, CondaPackage, CondaPlatform
from hpcgen.readers.conda_lock import read_conda_lock
from hpcgen.readers.conda_locked import Locked, conda_package
from hpcgen.readers.environment_yml import read_environment
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.pixi_lock import read_pixi_lock
from hpcgen.readers.readers import Readers

# Explicit lists of packages, as ``conda list --explicit --sha256`` and conda-lock write them.
MARK = "@EXPLICIT"
_HASH = re.compile(r"(sha256:)?([0-9a-f]{64})")
_AGAIN = "write it anew: conda list --explicit --sha256"


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
        problems.add("this is no explicit list of conda packages", folder.shown(path), f"a line {MARK}", _AGAIN)
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
