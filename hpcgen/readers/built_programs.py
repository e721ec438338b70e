"""Which of the programs that a build makes is most likely the project's: by its name, its folder, what it links."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import ProgramFile

_OTHERS = re.compile(
    r"(^|/)(unit[-_]?tests?|tests?|testing|test_?suite|gtest|docs?|vendors?|vendored|third[-_]?party|3rd_?party|ext|"
    r"externals?|extern|deps|dependencies|subprojects|submodules|contrib|python|maintainer|bugs?)(/|$)",
    re.I,
)
_LESSER = re.compile(
    r"(^|/)(examples?|samples?|tutorials?|demos?|benchmarks?|bench|tools?|utils?|utilities)(/|$)", re.I
)
_TEST = re.compile(r"(^|[-_.])(unit)?tests?([-_.]|$)|(^|[-_])bench(mark)?s?([-_]|$)", re.I)
_AN_EXAMPLE = re.compile(rf"{_TEST.pattern}|(^|[-_])examples?([-_]|$)", re.I)
"""Where nothing else is made, an example is what people start."""
_PLAIN = re.compile(r"(?!/)(?!.*\.\.)(\$PREFIX/)?[\w.+/-]+")
_NO_PROGRAM = re.compile(
    r".+\.(md|rst|html?|pdf|txt|tex|svg|png|json|ya?ml|csv|ipynb|py|whl|xml|zip|t?gz)|(.+/)?\.[^/]*"
)
"""Documents, packages and hidden files, which commands write by ``-o`` as well, or mere endings of names."""


class Built(NamedTuple):
    """A program: its path, the folder of what describes it, and what speaks for it.

    ``mpi``: it is linked with MPI itself; None where a library of the project may bring it. ``sure``: no condition
    that is not known stands before it. ``likely``: as of a :class:`ProgramFile`.
    """

    path: str
    where: Position
    folder: str = ""
    mpi: bool | None = False
    installed: bool = False
    sure: bool = True
    likely: int = 0


def is_program(path: str) -> bool:
    """Whether what a command writes by ``-o`` may be a program by its name."""
    return bool(_PLAIN.fullmatch(path)) and not _NO_PROGRAM.fullmatch(path)


def set_aside(folder: str) -> bool:
    """Whether a folder holds tests, documents or other people's code by its name."""
    return bool(_OTHERS.search(folder))


def in_order(programs: Iterable[Built], project: str) -> list[Built]:
    """The likeliest first; those of tests and of other people's code left out.

    ``project``: its name, which its main program often has.
    """

    def plain(text: str) -> str:
        return re.sub(r"\W|_", "", text.lower().replace("+", "plus"))

    own = plain(project)

    def rank(each: Built) -> tuple[bool, ...]:
        name = plain(each.path.rpartition("/")[2]).removesuffix("exe")
        named = bool(own) and own in (name, name.removesuffix("mpi"), name.removesuffix("plus"))
        lesser = bool(_LESSER.search(each.folder))
        test = bool((_TEST if lesser else _AN_EXAMPLE).search(each.path.rpartition("/")[2])) and not named
        parallel = (named if each.mpi is None else each.mpi) or name.endswith("mpi")
        return (lesser, test, not each.sure, not parallel, not named)

    kept = [each for each in programs if not set_aside(each.folder) and is_program(each.path)]
    kept.sort(key=lambda each: (rank(each), not each.installed))
    ranks = sorted({rank(each) for each in kept})
    return [each._replace(likely=ranks.index(rank(each))) for each in kept]


def program_files(programs: Iterable[Built]) -> list[ProgramFile]:
    """What a record of the build has of them."""
    return [ProgramFile(each.path, each.where, each.likely) for each in programs]
