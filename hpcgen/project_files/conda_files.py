"""Which reader a file of conda packages has, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hpcgen.errors import InputError
from hpcgen.model.conda import CondaFile
from hpcgen.project_files.conda_explicit import read_explicit
from hpcgen.project_files.conda_lock import read_conda_lock
from hpcgen.project_files.environment_yml import read_environment
from hpcgen.project_files.folder import ProjectFolder
from hpcgen.project_files.pixi_lock import read_pixi_lock

_READERS: tuple[tuple[str, Callable[[ProjectFolder, str], CondaFile]], ...] = (
    (r"pixi\.lock", read_pixi_lock),
    (r"(.+[.-])?conda-lock\.ya?ml", read_conda_lock),
    (r".+\.ya?ml", read_environment),
    (r".+\.(lock|txt)", read_explicit),
)
_USUAL = (
    r"pixi\.lock|(.+[.-])?conda-lock\.ya?ml|environment([._-].+)?\.ya?ml|(.+[._-])?environment\.ya?ml|conda-.+\.lock"
)
EXPECTED = "environment.yml, pixi.lock, conda-lock.yml, or an explicit list such as conda-linux-64.lock"


def knows(name: str) -> bool:
    """Whether a file has a name that files of conda packages have."""
    return re.fullmatch(_USUAL, name) is not None


def read_conda(top: Path, path: str) -> CondaFile:
    """What a file of a project says of conda packages.

    Parameters
    ----------
    top: the project's folder.
    path: of the file, from the folder.

    Raises
    ------
    InputError: a file of another kind, and all that is wrong in this one, each at its place.
    """
    name = path.rpartition("/")[2]
    for pattern, reader in _READERS:
        if re.fullmatch(pattern, name):
            return reader(ProjectFolder(top), path)
    raise InputError(f"{path!r} is no file of conda packages that hpcgen reads", expected=EXPECTED)
