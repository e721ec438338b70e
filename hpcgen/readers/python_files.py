"""Files of Python packages."""

from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path, PurePosixPath

from msgspec.structs import replace
from packaging.specifiers import SpecifierSet

from hpcgen.core.errors import InputError
from hpcgen.core.model.project import PackageFile
from hpcgen.core.support.package_names import normal_name
from hpcgen.readers.folder import PartlyReadError, ProjectFolder, Readers
from hpcgen.readers.pdm_lock import read_pdm_lock
from hpcgen.readers.poetry_lock import read_poetry_lock
from hpcgen.readers.pylock import read_pylock
from hpcgen.readers.pyproject import read_pyproject
from hpcgen.readers.requirements_txt import read_requirements
from hpcgen.readers.setup_cfg import read_setup_cfg
from hpcgen.readers.setup_py import read_setup_py
from hpcgen.readers.uv_lock import read_uv_lock

_EXPECTED = (
    "requirements.txt (or another .txt or .in), pylock.toml, uv.lock, poetry.lock, pdm.lock, pyproject.toml, setup.py "
    "or setup.cfg"
)
_PYTHON: Readers[PackageFile] = Readers(
    "Python packages",
    _EXPECTED,
    (
        (r"pylock\.([^.]+\.)?toml", read_pylock),
        (r"uv\.lock", read_uv_lock),
        (r"poetry\.lock", read_poetry_lock),
        (r"pdm\.lock", read_pdm_lock),
        (r"pyproject\.toml", read_pyproject),
        (r"setup\.py", read_setup_py),
        (r"setup\.cfg", read_setup_cfg),
        (r".+\.(txt|in)", read_requirements),
    ),
)


def read_packages(top: Path, path: str, without: Collection[str] = ()) -> PackageFile:
    """What a file asks for, and of a lock what the project itself does, where a file beside it says that.

    top: the folder of the project.
    path: of the file, from there.
    without: packages that are not wanted, of a list without hashes; what is wrong with their lines does no harm.
    InputError: the file cannot be read, has mistakes, each with its place, or is of no known kind.
    """
    try:
        return _without(with_project_ranges(top, _PYTHON.read(top, path)), without)
    except PartlyReadError as error:
        left = {*map(normal_name, without)}
        harmless = {ProjectFolder(top).at(each.where) for each in error.file.refused if each.text in left}
        problems = [each for each in error.problems if each.where not in harmless]
        if problems:
            raise PartlyReadError(problems, error.file) from None
        return _without(error.file, without)


def _without(file: PackageFile, names: Collection[str]) -> PackageFile:
    left = {*map(normal_name, names)}
    if file.locked or not left:
        return file
    wanted = [each for each in file.requirements if each.name not in left]
    groups = {name: [each for each in group if each.name not in left] for name, group in file.groups.items()}
    return replace(file, requirements=wanted, groups=groups)


# What the project itself asks for, of a lock that does not say it: in the file that the lock was made from.

_Read = Callable[[ProjectFolder, str], PackageFile]


def with_project_ranges(top: Path, lock: PackageFile) -> PackageFile:
    """A lock with the ranges of pyproject.toml beside it, or of the ``.in`` that hashed requirements were made from.

    A range that the locked version is outside of is left out: the lock was not made from that. So is all of a file with
    mistakes, which nobody has named.

    ``top``: the folder that the lock's path is from.
    """
    if not lock.locked or lock.ranges or lock.kind not in ("pdm", "poetry", "pylock", "requirements"):
        return lock
    versions = {each.name: each.version for named in (lock.requirements, *lock.groups.values()) for each in named}
    sources: list[tuple[str, _Read]] = [("pyproject.toml", read_pyproject)]
    if lock.kind == "requirements":
        sources.insert(0, (PurePosixPath(lock.file).with_suffix(".in").name, read_requirements))
    for name, read in sources:
        folder = ProjectFolder(top)
        path = folder.beside(lock.file, name)
        if path == lock.file or not folder.holds(path):
            continue
        try:
            ranges = _ranges(read(folder, path), versions)
        except InputError:
            continue
        if ranges:
            return replace(lock, ranges=ranges, read={**lock.read, **folder.read})
    return lock


def _ranges(project: PackageFile, versions: dict[str, str]) -> dict[str, str]:
    """Of what is asked for once, and not only in some environments."""
    times = Counter(each.name for each in project.requirements)
    return {
        each.name: each.specifier
        for each in project.requirements
        if times[each.name] == 1
        and not each.marker
        and each.name in versions
        and SpecifierSet(each.specifier).contains(versions[each.name].partition("+")[0], prereleases=True)
    }
