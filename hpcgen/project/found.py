"""What there is in a project's folder, read once."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from msgspec.structs import replace

from hpcgen.core.errors import HpcgenError, InputError, Position, Problem, Problems
from hpcgen.core.model.own_project import BuildBackend, BuildFile, FileWord, JobFile, ProjectTable, PythonSource, Readme
from hpcgen.project.mentions import most_mentioned
from hpcgen.readers.folder import PartlyReadError, ProjectFolder, ProjectTree, project_tree

if TYPE_CHECKING:
    from hpcgen.core.model.conda import CondaFile
    from hpcgen.core.model.project import PackageFile

T = TypeVar("T")
_JOB = re.compile(
    r"(?:[^/]+/){0,4}[^/]+\.(sh|bash|slurm|sbatch|job|pbs|sge|qsub|sub|cmd|lsf|bsub)|(?:[^/]+/)?(job|submit|run)[^/.]*"
)
OF_PROJECT = ("pyproject.toml", "setup.cfg", "setup.py")
"""What a project as a package asks for; where there is a list as well, that has it too."""
_README = re.compile(r"(docs/)?readme(\.md|\.markdown|\.rst|\.txt)?", re.I)
_PAGE = re.compile(r"(docs?|documentation)/[^/]+\.(md|rst)", re.I)
_RECIPES = re.compile(r"(GNU)?[Mm]akefile|\.?[Jj]ustfile")
_SOURCE = re.compile(r"(?:[^/]+/){0,6}[^/]+\.py")
_MOST_JOBS, _MOST_PAGES, _MOST_SOURCES, _LARGEST = 120, 20, 400, 512 * 1024


class Found(NamedTuple):
    """What was read of a project beside its packages.

    ``top``: the folder. ``jobs``: job scripts, ``scripts``: others that start something, ``readmes``, ``recipes``:
    README files with the pages that they lead to, Makefiles and justfiles with command lines, ``secret_scripts``:
    scripts that may hold secrets, ``sources``: Python files, ``build``: how it is compiled, ``table``: what
    pyproject.toml, setup.cfg or setup.py says of the project itself, ``readme``: what its README shows, ``backend``:
    what compiles modules of the Python project when it is installed. ``problems``: what is wrong with its files.
    """

    top: Path
    tree: ProjectTree
    jobs: list[JobFile]
    scripts: list[JobFile]
    readmes: list[JobFile]
    recipes: list[JobFile]
    secret_scripts: list[str]
    sources: list[PythonSource]
    build: BuildFile | None
    table: ProjectTable
    readme: Readme
    backend: BuildBackend | None
    problems: Problems

    def read(self, reader: Callable[[ProjectFolder, str], T], path: str) -> T | None:
        """What a reader says of a file; None where nothing of it can be read. Its mistakes are kept."""
        return _read(self.top, self.problems, reader, path)

    def packages(self, path: str, without: Collection[str] = ()) -> PackageFile | None:
        """A file of Python packages, in the same way; ``without``: those that are not wanted."""
        from hpcgen.readers.python_files import read_packages

        return _kept(self.problems, partial(read_packages, self.top, path, without))

    def conda(self, path: str) -> CondaFile | None:
        """A file of conda packages, in the same way."""
        from hpcgen.readers.conda_files import read_conda

        return _kept(self.problems, partial(read_conda, self.top, path))


def look_at(top: Path) -> Found:
    """Look at a folder and read what says how its programs are made and started.

    InputError: the folder cannot be read.
    """
    from hpcgen.readers.job_script import has_secrets, read_script
    from hpcgen.readers.python_source import read_python
    from hpcgen.readers.shown_commands import NAMES, read_readme, read_recipes, read_shown

    try:
        tree = project_tree(top)
    except OSError as failure:
        raise InputError(
            f"the folder cannot be read: {failure.strerror}",
            str(top),
            remedy="check its path, and that you may read it",
        ) from None
    problems = Problems()
    tree = _with_placed(top, tree)
    small = [each.path for each in tree.files if each.size <= _LARGEST]
    jobs = sorted((path for path in small if _JOB.fullmatch(path)), key=lambda path: path.count("/"))
    sources = sorted((path for path in small if _SOURCE.fullmatch(path)), key=lambda path: path.count("/"))
    # A script or a source that is no text is no mistake of the project's: nothing names it.
    quiet = Problems()
    table = project_table(top, {name: name for name in tree.named(*OF_PROJECT)}, problems)
    own = frozenset(table.scripts)
    build = _build(top, tree, problems)
    below = f"{build.folder}/" if build is not None and build.folder else ""
    first = [
        path for path in small if _README.fullmatch(path) or (below and _README.fullmatch(path.removeprefix(below)))
    ]
    pages = _pages(top, first, small)
    readmes = _all(top, quiet, partial(read_shown, own=own), [*dict.fromkeys([*first, *pages])])
    named = scripts_of_readmes(readmes, tree)
    read = _all(top, quiet, partial(read_script, own=own), list(dict.fromkeys([*named, *jobs]))[:_MOST_JOBS])
    return Found(
        top,
        tree,
        [each for each in read if each.batch],
        [each for each in read if not each.batch],
        readmes,
        _all(top, quiet, partial(read_recipes, own=own), [path for path in small if _RECIPES.fullmatch(path)]),
        [path for path in jobs[:_MOST_JOBS] if _read(top, quiet, has_secrets, path)],
        [source for path in sources[:_MOST_SOURCES] if (source := _read(top, quiet, read_python, path)) is not None],
        build,
        table,
        next((_read(top, quiet, read_readme, name) for name in tree.named(*NAMES)), None) or Readme(),
        _backend(top, tree),
        problems,
    )


def _with_placed(top: Path, tree: ProjectTree) -> ProjectTree:
    """The tree with the packages that setup.py alone places in other folders as links to these."""
    from hpcgen.readers.setup_py import placed_packages

    placed = (_read(top, Problems(), placed_packages, "setup.py") or []) if tree.has("setup.py") else []
    folders = {each.path.rpartition("/")[0] for each in tree.files}
    return tree._replace(linked=(*tree.linked, *((name, place) for name, place in placed if place in folders)))


def _pages(top: Path, readmes: list[str], small: list[str]) -> list[str]:
    """The pages that README files lead to, then those in the folder for them."""
    from hpcgen.readers.shown_commands import linked_pages

    linked = [page for path in readmes for page in _read(top, Problems(), linked_pages, path) or [] if page in small]
    return [*linked, *(path for path in small if _PAGE.fullmatch(path))][:_MOST_PAGES]


def is_readme(path: str) -> bool:
    """Whether a file is a README by its name, not a page that one leads to."""
    return _README.fullmatch(path.rpartition("/")[2]) is not None


def scripts_of_readmes(readmes: list[JobFile], tree: ProjectTree) -> list[str]:
    """Scripts of the project that its README files start, in their order."""
    return [path for each in readmes if is_readme(each.file) for path in _named_scripts(each, tree)]


def _named_scripts(readme: JobFile, tree: ProjectTree) -> list[str]:
    own = readme.file.rpartition("/")[0]
    ways = [(each.text, f"{own}/{each.text}", each.text.partition("/")[2]) for each in readme.scripts]
    return [path for each in ways for path in [next(filter(tree.has, filter(None, each)), "")] if path]


def _all(
    top: Path, problems: Problems, reader: Callable[[ProjectFolder, str], JobFile | None], paths: list[str]
) -> list[JobFile]:
    return [found for path in paths if (found := _read(top, problems, reader, path)) is not None]


def _build(top: Path, tree: ProjectTree, problems: Problems) -> BuildFile | None:
    from hpcgen.readers.build_files import read_build
    from hpcgen.readers.built_programs import set_aside
    from hpcgen.readers.makefile import read_makefile
    from hpcgen.readers.sources import (
        C_SOURCE,
        FORTRAN,
        SOURCE,
        asks_for_fortran_mpi,
        asks_for_mpi,
        removed_header,
        with_needed_flags,
    )

    build = read_build(tree, lambda reader, path: _read(top, problems, reader, path))
    if build is None:
        return None
    build = most_mentioned(build, tree, lambda reader, path: _read(top, Problems(), reader, path))
    small = [each.path for each in tree.files if each.size <= _LARGEST and each.path.startswith(build.folder)]
    sources = [path for path in small if not set_aside(path)]

    def first(pattern: re.Pattern[str], reader: Callable[[ProjectFolder, str], FileWord | None]) -> FileWord | None:
        paths = sorted(
            (path for path in sources if pattern.fullmatch(path)), key=lambda path: "mpi" not in path.lower()
        )
        paths = paths[:_MOST_SOURCES]
        return next((found for path in paths if (found := _read(top, Problems(), reader, path)) is not None), None)

    by_sources = None
    if build.mpi is None and build.programs and (mpi := first(SOURCE, asks_for_mpi)) is not None:
        build, by_sources = replace(build, mpi=mpi), mpi
        if build.kind == "make":
            weak = _read(top, Problems(), partial(read_makefile, by_sources=mpi), build.file)
            build = replace(build, weak=weak.weak if weak is not None else {})
    removed: dict[str, FileWord] = {}
    for path in [path for path in sources if C_SOURCE.fullmatch(path)][:_MOST_SOURCES]:
        if (one := _read(top, Problems(), removed_header, path)) is not None:
            removed.setdefault(one.text, one)
    build = replace(build, stops=[*build.stops, *removed.values()])
    if build.mpi is not None and build.fortran is not None:
        build = replace(build, fortran_mpi=first(FORTRAN, asks_for_fortran_mpi))
    return with_needed_flags(
        build, tree, sources[:_MOST_SOURCES], lambda reader, path: _read(top, Problems(), reader, path), by_sources
    )


_COMPILING = ("scikit_build_core.build", "mesonpy")
"""Backends that compile by CMake and by Meson, which the base has or an index brings."""


def _backend(top: Path, tree: ProjectTree) -> BuildBackend | None:
    from hpcgen.readers.pyproject import read_backend

    found = _read(top, Problems(), read_backend, "pyproject.toml") if tree.has("pyproject.toml") else None
    return found if found is not None and found.module.text in _COMPILING else None


def project_table(top: Path, paths: Mapping[str, str], problems: Problems) -> ProjectTable:
    """Of the files that may say it, each value from the first that does; ``paths``: of these by their names."""
    from hpcgen.readers.pyproject import read_project_table
    from hpcgen.readers.setup_cfg import read_setup_cfg_table
    from hpcgen.readers.setup_py import read_setup_table

    readers = {
        "pyproject.toml": (read_project_table, problems),
        "setup.cfg": (read_setup_cfg_table, Problems()),
        "setup.py": (read_setup_table, Problems()),
    }
    said = [_read(top, kept, read, paths[name]) for name, (read, kept) in readers.items() if name in paths]
    tables = [each for each in said if each is not None]
    return ProjectTable(
        next((each.name for each in tables if each.name), None),
        next((each.description for each in tables if each.description), None),
        next((each.scripts for each in tables if each.scripts), {}),
    )


def _read(top: Path, problems: Problems, reader: Callable[[ProjectFolder, str], T], path: str) -> T | None:
    return _kept(problems, lambda: reader(ProjectFolder(top), path))


def _kept(problems: Problems, read: Callable[[], T]) -> T | None:
    """What is read, of a file with mistakes the rest; each mistake is kept once, as several readers may see it."""
    try:
        return read()
    except HpcgenError as error:
        problems += [each for each in error.problems if not _known(each, problems)]
        return error.file if isinstance(error, PartlyReadError) else None


def _known(problem: Problem, problems: Problems) -> bool:
    return any(_key(each) == _key(problem) for each in problems)


def _key(problem: Problem) -> tuple[object, ...]:
    where = problem.where
    return (where.file, where.line, problem.message) if isinstance(where, Position) else (where, problem.message)
