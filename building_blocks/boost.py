"""Boost with Boost.MPI."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, need
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.mpi_library import MpiLibraryBlock
from hpcgen.blocks.standard_mpi import mpicxx
from hpcgen.blocks.steps import Packages, Part, command

_SETTINGS = "hpcgen-config.jam"

BoostLibrary = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[a-z][a-z0-9_]{0,40}$(?!\n)",
        description="a library of Boost that is compiled",
        examples=["filesystem", "program_options"],
    ),
]


class Boost(MpiLibraryBlock, AutotoolsBlock):
    """Boost from source: all headers, Boost.MPI over the image's MPI, and other libraries.  Source: https://www.boost.org

    If you do not need Boost.MPI, the distribution's packages are enough; their Boost.MPI is linked with the
    distribution's own MPI.
    """

    name = "boost"
    needs = (need("gnu"), need("mpi"))
    library = "libboost_mpi.so"
    program = "boost_ranks.cpp"
    known_by = ("BOOST_ROOT",)
    linked_with = ("-lboost_mpi", "-lboost_serialization")

    class Options(BlockOptions, frozen=True):
        """``libraries``: which libraries are compiled besides mpi and serialization, by Boost's names."""

        libraries: list[BoostLibrary] = []

    def packages(self, ctx: Context) -> Packages:
        """zlib, for iostreams."""
        zlib = {"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]}
        libraries = gcc_libraries("libstdc++")
        return Packages(
            build={"apt": ["zlib1g-dev"], "dnf": ["zlib-devel"], "zypper": ["zlib-devel"]},
            run={each: [*names, *zlib[each]] for each, names in libraries.items()},
        )

    def prepare_source(self, ctx: Context) -> list[str]:
        """Which compiler of MPI its own build asks for the libraries."""
        return [f"{command('echo', f'using mpi : {mpicxx(ctx)} ;')} > {_SETTINGS}"]

    def configure(self, ctx: Context) -> str:
        libraries = sorted({"mpi", "serialization", *ctx.options.libraries})
        return command("./bootstrap.sh", f"--with-libraries={','.join(libraries)}", "--without-icu")

    def make(self, ctx: Context, source: str) -> str:
        """Compile and install, as "Getting Started on Unix Variants" and that of Boost.MPI say."""
        words = ["variant=release", "link=shared", "threading=multi", f"cxxflags={' '.join(['-O3', *ctx.flags])}"]
        install = command("./b2", f"--user-config={_SETTINGS}", f"--prefix={ctx.prefix}", *words, "-d1", "install")
        return f'{install} -j "$(nproc)"'

    def install(self, ctx: Context, source: str) -> list[Part]:
        return [command("rm", "-rf", source)]
