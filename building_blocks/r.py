"""R with packages of CRAN and Bioconductor, from the distribution."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context
from hpcgen.blocks.steps import Packages, Test, command
from hpcgen.core.errors import ConflictError, did_you_mean

PackageOfR = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z][A-Za-z0-9.]{0,60}\Z",
        description="a package of CRAN or Bioconductor, as library() names it",
        examples=["data.table"],
    ),
]
_LOADED = 'for (each in commandArgs(TRUE)) library(each, character.only = TRUE); cat("all loaded\\n")'
_SOLVED = "cat(solve(matrix(c(2, 1, 1, 3), 2), c(3, 5)))"


class RLanguage(Block):
    """The distribution's R, with OpenBLAS and the distribution's compiled packages.  Source: https://www.r-project.org

    Nobody publishes sha256 hashes of CRAN's own archives, so packages that Debian lacks are refused; ``conda_packages``
    has most of them (``r-NAME``), with hashes from ``hpcgen lock``.
    """

    name = "r"

    class Options(BlockOptions, frozen=True):
        """``packages``: of CRAN or Bioconductor, in the version that the distribution has."""

        packages: list[PackageOfR] = []

    def packages(self, ctx: Context) -> Packages:
        """R and its packages; ``hpcgen lock`` pins them as it does others of the distribution."""
        names = ["r-base-core", "libopenblas0-pthread", *_of_distribution(ctx)]
        return Packages(build={"apt": names}, run={"apt": names})

    def test(self, ctx: Context) -> list[Test]:
        """R starts, solves a system of equations, and loads each package."""
        tests = [
            Test("version", command("R", "--version"), expect=f"R version {ctx.version}"),
            Test("linear algebra", command("Rscript", "-e", _SOLVED), expect="0.8 1.4"),
        ]
        if ctx.options.packages:
            names = sorted(set(ctx.options.packages))
            tests.append(Test("packages", command("Rscript", "-e", _LOADED, *names), expect="all loaded"))
        return tests


def _of_distribution(ctx: Context) -> list[str]:
    """What the distribution calls the packages.

    Raises
    ------
    ConflictError: it does not have one of them.
    """
    there = {str(each): f"r-{kind}-{each}" for kind in ("bioc", "cran") for each in ctx.release.values[kind]}
    missing = [each for each in ctx.options.packages if each.lower() not in there]
    if missing:
        raise ConflictError(
            f"the distribution with R {ctx.version} has no package {', '.join(missing)}",
            "r.packages",
            "packages that Debian has compiled",
            did_you_mean(missing[0].lower(), list(there)) or "leave it out, or take it from conda_packages as r-NAME",
        )
    return sorted({there[each.lower()] for each in ctx.options.packages})
