"""Julia, set up so that its programs find packages and the image's MPI."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.steps import Archive, Environment, Input, Run, Runtime, Test, TextFile, command, lines, run
from hpcgen.core.errors import ConflictError

DEPOT = "/opt/julia/depot"
"""Where a stack's ``build`` installs packages; the image keeps it."""
_SHARED = "/opt/julia/environment"
_LLVM = "15.0"
"""The LLVM of Julia 1.10, whose names of CPUs are taken; later releases know them too."""
_MULTIPLIED = "println([2 1; 1 3] * [3, 5])"


def _with_mpi(situation: Situation) -> bool:
    return bool(situation.options.mpi)


class Julia(Block):
    """Julia's own binaries.  Source: https://julialang.org

    Packages come by Pkg, in the ``build`` of a stack: ``JULIA_DEPOT_PATH=/opt/julia/depot: julia --project=/app -e
    'using Pkg; Pkg.instantiate()'``. A Manifest.toml has a content hash for each, which Pkg checks; ``hpcgen lock`` and
    bundles do not include them, so this step needs a network. Programs search that depot after the user's own,
    ``~/.julia``, which stays writable. Code is compiled for the partition's CPUs; on ARM, for all CPUs.
    """

    name = "julia"
    needs = (need("mpi", when=_with_mpi),)

    class Options(BlockOptions, frozen=True):
        """``mpi``: MPI.jl loads the image's MPI, or the host's that replaces it, instead of its own."""

        mpi: bool = False

    def inputs(self, ctx: Context) -> list[Input]:
        """The binaries for the site's architecture."""
        return [_binaries(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """Where packages are, and for which CPUs they are compiled, here and later."""
        both = {"JULIA_DEPOT_PATH": f"~/.julia:{DEPOT}:", "JULIA_CPU_TARGET": _cpu(ctx)}
        if ctx.options.mpi:
            both["JULIA_LOAD_PATH"] = f":{_SHARED}"
        return Environment(both=both, paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        yield run("Julia", ctx.unpack(_binaries(ctx), ctx.prefix), command("mkdir", "-p", DEPOT))
        if ctx.options.mpi:
            text = _preferences("OpenMPI" if ctx.use("mpi").name == "openmpi" else "MPICH")
            yield run("preferences of MPI.jl", TextFile("files/julia/Project.toml", f"{_SHARED}/Project.toml", text))

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It starts, computes, and has the depot of the image."""
        return [
            Test("version", command("julia", "--version"), expect=f"julia version {ctx.version}"),
            Test("linear algebra", command("julia", "-e", _MULTIPLIED), expect="[11, 18]"),
            Test("depot", command("julia", "-e", "println(DEPOT_PATH)"), expect=DEPOT),
        ]


def _binaries(ctx: Context) -> Archive:
    if ctx.facts.architecture not in ctx.release.archives:
        raise ConflictError(
            f"no checked binaries of Julia {ctx.version} for {ctx.facts.architecture} are known",
            expected=f"one of {', '.join(sorted(ctx.release.archives))}",
            remedy="add their address and sha256 to a julia.yaml in a collection",
        )
    return ctx.archive(ctx.facts.architecture)


def _cpu(ctx: Context) -> str:
    """LLVM's name of the partition's CPUs, which is that of clang's -march; on ARM, where that is none, any CPU."""
    flags = compiler_flags(ctx.facts.partition.cpu.target, "clang", _LLVM)
    named = (each.partition("=")[2] for each in flags if each.startswith("-march="))
    return next((each for each in named if not each.startswith("arm")), "generic")


def _preferences(abi: str) -> str:
    """Preferences that any environment of Julia finds by its load path, as MPIPreferences.jl writes them.

    Source: https://juliaparallel.org/MPI.jl/stable/configuration/
    """
    return lines(
        "[extras]",
        'MPIPreferences = "3da0fdf6-3ccc-4f1b-acd9-58baa6c99267"',
        "",
        "[preferences.MPIPreferences]",
        '_format = "1.0"',
        f'abi = "{abi}"',
        'binary = "system"',
        "cclibs = []",
        'libmpi = "libmpi"',
        'mpiexec = "mpiexec"',
        "preloads = []",
    )
