"""GROMACS: molecular dynamics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.backends.hardware.microarchitecture import nearest
from hpcgen.blocks.base import BlockOptions, Context, Situation, need
from hpcgen.blocks.molecular_dynamics import MolecularDynamicsBlock, with_mkl
from hpcgen.blocks.steps import Environment, Run, Test, TextFile, command, lines, run
from hpcgen.core.model.image_paths import SCRATCH

SIMD = {
    "skylake_avx512": "AVX_512",
    "x86_64_v4": "AVX_512",
    "zen4": "AVX_512",
    "mic_knl": "AVX_512_KNL",
    "zen2": "AVX2_256",
    "zen": "AVX2_128",
    "haswell": "AVX2_256",
    "x86_64_v3": "AVX2_256",
    "bulldozer": "AVX_128_FMA",
    "sandybridge": "AVX_256",
    "x86_64_v2": "SSE4.1",
    "x86_64": "SSE2",
    "a64fx": "ARM_SVE",
    "neoverse_v1": "ARM_SVE",
    "neoverse_v2": "ARM_SVE",
    "aarch64": "ARM_NEON_ASIMD",
    "power8le": "IBM_VSX",
}
"""GROMACS' kernels for a CPU by archspec's name; a CPU that is not here has those of its nearest ancestor.

Source: "SIMD support" of GROMACS' installation guide (manual.gromacs.org/2025-current/install-guide).
"""

SVE_BITS = {"a64fx": "512", "neoverse_v1": "256", "neoverse_v2": "128"}
"""The width of SVE's registers, which GROMACS is compiled for."""


def _on_gpu(at: Situation | Context) -> bool:
    """On GPUs GROMACS computes in mixed precision alone."""
    return bool(at.options.gpu == "cuda") and not at.options.double


class Gromacs(MolecularDynamicsBlock):
    """GROMACS, molecular dynamics of biomolecules, from source.  Source: https://www.gromacs.org

    Compiled for the SIMD instructions of the partition's CPU with MPI and OpenMP, and on NVIDIA's GPUs with CUDA. The
    program is ``gmx_mpi``. The input that stacks run as a test, /opt/gromacs/share/water.tpr, is a box of water made
    during the build with GROMACS' own tools, so the building machine's CPU needs the same instructions. BLAS and
    LAPACK, which only few analyses use, are GROMACS' own.
    """

    name = "gromacs"
    needs = (
        need("gnu"),
        need("cmake", ">=3.28,<4", build_only=True),
        need("mpi"),
        need("cuda", when=_on_gpu),
        need("mkl", when=with_mkl),
    )

    class Options(BlockOptions, frozen=True):
        """How GROMACS is compiled.

        ``fft``: the library for Fourier transforms on the CPU: the distribution's ``fftw3``, ``mkl``, or its own
        ``fftpack``, which is slow. ``gpu``: by default ``cuda`` on NVIDIA's GPUs of known compute capability, ``none``
        elsewhere. ``double``: in double precision, for analysis, on the CPU only.
        """

        fft: Literal["fftw3", "mkl", "fftpack"] = "fftw3"
        gpu: Literal["cuda", "none"] = "none"
        double: bool = False

    def precision(self, ctx: Context) -> str:
        return "double" if ctx.options.double else "single"

    def on_gpu(self, ctx: Context) -> bool:
        return _on_gpu(ctx)

    def asked_for_cpu(self, ctx: Context) -> str:
        return "gromacs.double=true" if ctx.options.double else "gromacs.gpu=none"

    def environment(self, ctx: Context) -> Environment:
        """The program and its library."""
        return Environment(
            paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]},
            both={"GMXDATA": f"{ctx.prefix}/share/gromacs"},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        source, folder = f"{SCRATCH}/gromacs", f"{SCRATCH}/gromacs-build"
        words = [f"-D{name}={value}" for name, value in settings(ctx).items()]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cmake", "-S", source, "-B", folder, *words),
            f'cmake --build {folder} --parallel "$(nproc)"',
        )
        yield run(
            "install",
            command("cmake", "--build", folder, "--target", "install"),
            command("rm", "-rf", source, folder),
            joins="previous",
        )
        yield self._water(ctx)

    def _water(self, ctx: Context) -> Run:
        """A box of water, and how it moves for 20 ps."""
        scratch, program = f"{SCRATCH}/water", _program(ctx)
        topology = ['#include "oplsaa.ff/forcefield.itp"', '#include "oplsaa.ff/spce.itp"']
        topology += ["[ system ]", "water", "[ molecules ]"]
        return run(
            "box of water",
            TextFile("files/tests/water.mdp", f"{scratch}/water.mdp", ctx.text_file("gromacs_water.mdp")),
            TextFile("files/tests/water.top", f"{scratch}/water.top", lines(*topology)),
            command("cd", scratch),
            command(
                program, "solvate", "-cs", "spc216.gro", "-box", "5", "5", "5", "-p", "water.top", "-o", "water.gro"
            ),
            command(program, "grompp", "-f", "water.mdp", "-c", "water.gro", "-p", "water.top", "-o", "water.tpr"),
            command("cp", "water.tpr", f"{ctx.prefix}/share/water.tpr"),
            "cd /",
            command("rm", "-rf", scratch),
        )

    def test(self, ctx: Context) -> list[Test]:
        """It is this version with these instructions, and moves water for some steps, on the GPU where there is one."""
        program = _program(ctx)
        # Its files would be written where it is started.
        words = ["env", "OMP_NUM_THREADS=1", program, "mdrun", "-s", f"{ctx.prefix}/share/water.tpr", "-nsteps", "50"]
        outputs = " ".join(f"-{name} /tmp/hpcgen-water.{name}" for name in ("e", "o", "cpo", "g"))
        move = f"cd /tmp && {command(*words)} {outputs} -c /tmp/hpcgen-water.gro && cat /tmp/hpcgen-water.g*"
        clean = "rm -f /tmp/hpcgen-water.*"
        device = "gpu" if _on_gpu(ctx) else ""
        expected = "on GPU 0" if device else "Finished mdrun"
        return [
            Test("version", f"{program} --version | grep 'GROMACS version:'", expect=f" {ctx.version}"),
            Test("instructions", f"{program} --version | grep 'SIMD instructions:'", expect=f" {simd(ctx)}"),
            Test("water", f"{move}; status=$?; {clean}; exit $status", expect=expected, device=device),
        ]

    def long_build(self, ctx: Context) -> str:
        return "about an hour on 2 CPUs" if _on_gpu(ctx) else "about half an hour on 2 CPUs"


def _program(ctx: Context) -> str:
    return "gmx_mpi_d" if ctx.options.double else "gmx_mpi"


def simd(ctx: Context) -> str:
    """GROMACS' name of the instructions for the partition's CPU."""
    return nearest(ctx.facts.partition.cpu.target, SIMD) or "None"


def settings(ctx: Context) -> dict[str, str]:
    """What CMake is told.  Source: GROMACS' installation guide."""
    flags = " ".join(ctx.flags)
    values = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_INSTALL_PREFIX": ctx.prefix,
        "CMAKE_INSTALL_LIBDIR": "lib",
        "CMAKE_C_FLAGS": flags,
        "CMAKE_CXX_FLAGS": flags,
        "BUILD_TESTING": "OFF",
        # A shell's completions, for which the building machine's CPU would have to run what was compiled.
        "GMX_BUILD_HELP": "OFF",
        "GMX_MPI": "ON",
        "GMX_OPENMP": "ON",
        "GMX_DOUBLE": "ON" if ctx.options.double else "OFF",
        "GMX_SIMD": simd(ctx),
        # Otherwise the building machine's CPU is asked for it.
        "GMX_USE_RDTSCP": "ON" if ctx.facts.architecture == "x86_64" else "OFF",
        "GMX_FFT_LIBRARY": ctx.options.fft,
        "GMX_BUILD_OWN_FFTW": "OFF",
        "GMX_EXTERNAL_BLAS": "OFF",
        "GMX_EXTERNAL_LAPACK": "OFF",
        "GMX_HWLOC": "OFF",
        "GMXAPI": "OFF",
        "GMX_INSTALL_NBLIB_API": "OFF",
        "GMX_GPU": "CUDA" if _on_gpu(ctx) else "OFF",
    }
    bits = nearest(ctx.facts.partition.cpu.target, SVE_BITS)
    if simd(ctx) == "ARM_SVE":
        values["GMX_SIMD_ARM_SVE_LENGTH"] = bits
    if _on_gpu(ctx):
        values["CUDAToolkit_ROOT"] = ctx.use("cuda").prefix
        values["GMX_CUDA_TARGET_SM"] = ctx.capability("GROMACS").replace(".", "")
    return values
