"""Files of Python packages."""

from hpcgen.model.requirement import PackageFile
from hpcgen.project_files.poetry_lock import read_poetry_lock
from hpcgen.project_files.pylock import read_pylock
from hpcgen.project_files.pyproject import read_pyproject
from hpcgen.project_files.readers import Readers
from hpcgen.project_files.requirements_txt import read_requirements
from hpcgen.project_files.uv_lock import read_uv_lock

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
read_packages = _PYTHON.read
