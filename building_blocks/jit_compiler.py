"""A C and C++ compiler in the image itself, for software that compiles while it runs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.gcc_packages import gcc_compilers
from hpcgen.blocks.steps import Packages, Run, Test, command, run


class JitCompiler(Block):
    """The chosen GCC in the final stage too, for programs that compile at run time.  Source: https://gcc.gnu.org

    Otherwise images have no compiler, which saves some 150 MB. ``gcc``, ``g++``, ``cc`` and ``c++`` mean the GCC that
    the image's software was built with; with them come the headers of the C library and of the image's Python.
    """

    name = "jit_compiler"
    needs = (need("gnu"), need("python"))

    def packages(self, ctx: Context) -> Packages:
        """Compilers and headers, in both stages."""
        suffix = str(ctx.use("gnu").release.values["suffix"])
        # A build that brings all that it needs has its headers in the environment.
        python = ctx.use("python").release.values.get("build", [])
        headers = [name for name in python if name.endswith(("-dev", "-devel"))]
        names = {manager: [*compilers, *headers] for manager, compilers in gcc_compilers(suffix).items()}
        return Packages(build=names, run=names)

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """The plain names, where the version is not the distribution's default."""
        suffix = str(ctx.use("gnu").release.values["suffix"])
        if stage == "final" and suffix:
            names = {"gcc": "gcc", "g++": "g++", "cc": "gcc", "c++": "g++"}
            links = [
                command("ln", "-sf", f"/usr/bin/{real}{suffix}", f"/usr/local/bin/{name}")
                for name, real in names.items()
            ]
            yield run("the compiler's plain names", links, joins="next")

    def test(self, ctx: Context) -> list[Test]:
        """A program that was compiled in the image runs."""
        program = "/tmp/hpcgen-jit-compiler"
        source = 'extern "C" int puts(const char*); int main() { puts("compiled here"); }'
        compiled = f"printf '%s' {command(source)} | g++ -x c++ -o {program} - && {program} && rm {program}"
        return [Test("compiles", compiled, expect="compiled here")]
