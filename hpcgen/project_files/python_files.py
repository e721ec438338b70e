"""Which reader a file of Python packages has, by its name."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from hpcgen.errors import InputError
from hpcgen.model.requirement import PackageFile
from hpcgen.project_files.folder import ProjectFolder
from hpcgen.project_files.poetry_lock import read_poetry_lock
from hpcgen.project_files.pylock import read_pylock
from hpcgen.project_files.pyproject import read_pyproject
from hpcgen.project_files.requirements_txt import read_requirements
from hpcgen.project_files.uv_lock import read_uv_lock

_READERS: tuple[tuple[str, Callable[[ProjectFolder, str], PackageFile]], ...] = (
    (r"pylock\.([^.]+\.)?toml", read_pylock),
    (r"uv\.lock", read_uv_lock),
    (r"poetry\.lock", read_poetry_lock),
    (r"pyproject\.toml", read_pyproject),
    (r".+\.(txt|in)", read_requirements),
)
EXPECTED = "requirements.txt (or another .txt or .in), pylock.toml, uv.lock, poetry.lock or pyproject.toml"


def knows(name: str) -> bool:
    """Whether a file of this name is read."""
    return any(re.fullmatch(pattern, name) for pattern, _ in _READERS)


def read_packages(top: Path, path: str) -> PackageFile:
    """What a file of a project says of Python packages.

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
    raise InputError(f"{path!r} is no file of Python packages that hpcgen reads", expected=EXPECTED)
