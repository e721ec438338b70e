"""Files of Python packages."""

from pathlib import Path

from hpcgen.core.model.requirement import PackageFile
from hpcgen.readers.poetry_lock import read_poetry_lock
from hpcgen.readers.project_ranges import with_project_ranges
from hpcgen.readers.pylock import read_pylock
from hpcgen.readers.pyproject import read_pyproject
from hpcgen.readers.readers import Readers
from hpcgen.readers.requirements_txt import read_requirements
from hpcgen.readers.uv_lock import read_uv_lock

_EXPECTED = "requirements.txt (or another .txt or .in), pylock.toml, uv.lock, poetry.lock or pyproject.toml"
_PYTHON: Readers[PackageFile] = Readers(
    "Python packages",
    _EXPECTED,
    (
        (r"pylock\.([^.]+\.)?toml", read_pylock),
        (r"uv\.lock", read_uv_lock),
        (r"poetry\.lock", read_poetry_lock),
        (r"pyproject\.toml", read_pyproject),
        (r".+\.(txt|in)", read_requirements),
    ),
)


def read_packages(top: Path, path: str) -> PackageFile:
    """What a file asks for, and of a lock what the project itself does, where a file beside it says that.

    Parameters
    ----------
    top: the folder of the project.
    path: of the file, from there.

    Raises
    ------
    InputError: the file cannot be read, has mistakes, each with its place, or is of no known kind.
    """
    return with_project_ranges(top, _PYTHON.read(top, path))
