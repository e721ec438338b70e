"""The distribution's GNU compilers."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, BlockOptions, Context
from hpcgen.blocks.gcc_packages import gcc_compilers, gcc_libraries
from hpcgen.blocks.steps import Environment, Packages, Run, Test, command, run


class Gnu(Block):
    """GCC from the distribution's packages.  Source: https://gcc.gnu.org

    The compilers stay in the builder; the final stage has their run-time libraries. Where the chosen version
    is not the distribution's default, plain ``gcc`` in the builder means the chosen one, because MPI wrappers
    and build scripts call it by that name.
    """

    name = "gnu"
    of_base = True

    class Options(BlockOptions, frozen=True):
        """``fortran``: also the Fortran compiler and its run-time library."""

        fortran: bool = False

    def packages(self, ctx: Context) -> Packages:
        """Compilers for the builder, libraries for the image."""
        suffix = str(ctx.release.values["suffix"])
        fortran = ctx.options.fortran
        libraries = gcc_libraries("libgomp", "libstdc++")
        libraries["dnf"].append("libgcc")
        if fortran:
            libraries["apt"].append(str(ctx.release.values.get("libgfortran", "libgfortran5")))
            libraries["dnf"].append("libgfortran")
            libraries["zypper"].append("libgfortran5")
        compilers = gcc_compilers(suffix, fortran)
        return Packages(build={manager: [*names, "make"] for manager, names in compilers.items()}, run=libraries)

    def environment(self, ctx: Context) -> Environment:
        """``CC`` and ``CXX`` (``FC`` with Fortran) for the builder."""
        names = self._compilers(ctx)
        variables = {"gcc": "CC", "g++": "CXX", "gfortran": "FC"}
        return Environment(build={variables[plain]: path for plain, path in names.items()})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Make the plain names mean the chosen version."""
        if ctx.release.values["suffix"]:
            # /usr/local/bin comes before /usr/bin and belongs to no package.
            links = [
                command("ln", "-sf", path, f"/usr/local/bin/{name}") for name, path in self._compilers(ctx).items()
            ]
            aliases = [
                command("ln", "-sf", "gcc", "/usr/local/bin/cc"),
                command("ln", "-sf", "g++", "/usr/local/bin/c++"),
            ]
            yield run("choose the compiler", links, aliases, joins="next")

    def test(self, ctx: Context) -> list[Test]:
        """The C++ and OpenMP run-time libraries are in the image."""
        return [
            Test("libstdc++", "ldconfig -p", expect="libstdc++.so.6"),
            Test("libgomp", "ldconfig -p", expect="libgomp.so.1"),
        ]

    def _compilers(self, ctx: Context) -> dict[str, str]:
        suffix = ctx.release.values["suffix"]
        names = ["gcc", "g++", *(["gfortran"] if ctx.options.fortran else [])]
        return {name: f"/usr/bin/{name}{suffix}" for name in names}
