"""Which of the programs that a build makes is most likely the project's: by its name, its folder, what it links."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from hpcgen.core.errors import Position

_OTHERS = re.compile(
    r"(^|/)(unit[-_]?tests?|tests?|testing|test_?suite|gtest|docs?|vendors?|vendored|third[-_]?party|3rd_?party|ext|"
    r"externals?|extern|deps|dependencies|subprojects|submodules|contrib|python|maintainer)(/|$)",
    re.I,
)
_LESSER = re.compile(
    r"(^|/)(examples?|samples?|tutorials?|demos?|benchmarks?|bench|tools?|utils?|utilities)(/|$)", re.I
)
_TEST = re.compile(r"(^|[-_.])(unit)?tests?([-_.]|$)|(^|[-_])(bench(mark)?|example)s?([-_]|$)", re.I)
_PLAIN = re.compile(r"(?!/)(?!.*\.\.)(\$PREFIX/)?[\w.+/-]+")
_NO_PROGRAM = re.compile(r".+\.(md|rst|html?|pdf|txt|tex|svg|png|json|ya?ml|csv|ipynb|py|whl|xml|zip|t?gz)")
"""Documents and packages, which commands write by ``-o`` as well."""


class Built(NamedTuple):
    """A program: its path, the folder of what describes it, and what speaks for it.

    ``mpi``: it is linked with MPI itself. ``sure``: no condition that is not known stands before it.
    """

    path: str
    where: Position
    folder: str = ""
    mpi: bool = False
    installed: bool = False
    sure: bool = True


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
    own = re.sub(r"\W|_", "", project.lower())

    def rank(each: Built) -> tuple[bool, ...]:
        name = re.sub(r"\W|_", "", each.path.rpartition("/")[2].lower())
        named = name == own or (bool(own) and name.removesuffix("mpi") == own)
        lesser = bool(_LESSER.search(each.folder))
        test = bool(_TEST.search(each.path.rpartition("/")[2])) and not named
        return (lesser, test, not each.sure, not (each.mpi or name.endswith("mpi")), not named, not each.installed)

    kept = [each for each in programs if not set_aside(each.folder) and is_program(each.path)]
    return sorted(kept, key=rank)
