"""LAMMPS: molecular dynamics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from hpcgen.blocks.base import BlockOptions, Context, Situation, need
from hpcgen.blocks.molecular_dynamics import MolecularDynamicsBlock, with_mkl
from hpcgen.blocks.steps import Environment, Run, Test, TextFile, command, complete_but_driver, run
from hpcgen.core.model.image_paths import SCRATCH

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

Package = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Z][A-Z0-9-]{0,40}$(?!\n)", description="a package of LAMMPS", examples=["KSPACE", "ML-SNAP"]
    ),
]


def _on_gpu(situation: Situation) -> bool:
    return bool(situation.options.gpu == "cuda")


class Lammps(MolecularDynamicsBlock):
    """LAMMPS, classical molecular dynamics, from source.  Source: https://www.lammps.org

    Compiled for the partition's CPU with MPI and OpenMP, and on NVIDIA's GPUs with its GPU package in CUDA. The program
    is ``lmp``. The input that stacks run as a test, /opt/lammps/share/melt.lmp, melts a crystal of Lennard-Jones atoms
    and fails unless the total energy is conserved and all ranks belong to one job.
    """

    name = "lammps"
    needs = (
        need("gnu"),
        need("cmake", ">=3.20,<4", build_only=True),
        need("mpi"),
        need("cuda", when=_on_gpu),
        need("mkl", when=with_mkl),
    )

    class Options(BlockOptions, frozen=True):
        """How LAMMPS is compiled.

        ``packages``: its packages, by LAMMPS' names; packages that need other software need a block of your own.
        ``fft``: the library for Fourier transforms: the distribution's ``fftw3``, ``mkl``, or LAMMPS' own ``kiss``.
        ``gpu``: by default ``cuda`` on NVIDIA's GPUs of known compute capability, ``none`` elsewhere.
        """

        packages: list[Package] = msgspec.field(
            default_factory=lambda: ["KSPACE", "MANYBODY", "MOLECULE", "OPENMP", "RIGID"]
        )
        fft: Literal["fftw3", "mkl", "kiss"] = "fftw3"
        gpu: Literal["cuda", "none"] = "none"

    def environment(self, ctx: Context) -> Environment:
        """The program, and the tables of its potentials."""
        return Environment(
            both={"LAMMPS_POTENTIALS": f"{ctx.prefix}/share/lammps/potentials"}, paths={"PATH": [f"{ctx.prefix}/bin"]}
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        source, folder = f"{SCRATCH}/lammps", f"{SCRATCH}/lammps-build"
        words = [f"-D{name}={value}" for name, value in settings(ctx).items()]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cmake", "-S", f"{source}/cmake", "-B", folder, *words),
            f'cmake --build {folder} --parallel "$(nproc)"',
        )
        melt = TextFile("files/tests/melt.lmp", f"{ctx.prefix}/share/melt.lmp", _melt(ctx))
        yield run(
            "install and melting crystal",
            melt,
            command("cmake", "--build", folder, "--target", "install"),
            command("rm", "-rf", source, folder),
        )

    def test(self, ctx: Context) -> list[Test]:
        """It is this release, knows what it was built for, and melts a small crystal on the GPU or with threads."""
        device = "gpu" if ctx.options.gpu == "cuda" else ""
        melt = command("lmp", "-log", "none", "-var", "cells", "8", "-in", f"{ctx.prefix}/share/melt.lmp")
        tests = [
            Test("release", "lmp -h", expect=f"Simulator - {release_date(ctx.version)}", device=device),
            Test("melt", melt, expect="the total energy is conserved", device=device),
        ]
        if ctx.options.gpu == "cuda":
            missing = complete_but_driver(f"{ctx.prefix}/bin/lmp")
            tests.append(Test("libraries", f"test -x {ctx.prefix}/bin/lmp && {missing}"))
            tests.append(Test("on the GPU", melt, expect="GPU Time Info", device=device))
        return tests

    def long_build(self, ctx: Context) -> str:
        return "about half an hour on 2 CPUs" if ctx.options.gpu == "none" else "about an hour on 2 CPUs"


def release_date(version: str) -> str:
    """LAMMPS' own name of a release: ``20250722.6`` is ``22 Jul 2025``."""
    digits = version.split(".")[0]
    return f"{int(digits[6:])} {MONTHS[int(digits[4:6]) - 1]} {digits[:4]}"


def settings(ctx: Context) -> dict[str, str]:
    """What CMake is told.

    Source: Build_basics, Build_settings and Build_extras of docs.lammps.org.
    """
    values = {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_INSTALL_PREFIX": ctx.prefix,
        "CMAKE_TUNE_FLAGS": " ".join(ctx.flags),
        "BUILD_MPI": "yes",
        "BUILD_OMP": "yes",
        "FFT": ctx.options.fft.upper(),
        # What the builder happens to have and the final stage has not is not taken.
        **{f"WITH_{name}": "no" for name in ("CURL", "FFMPEG", "GZIP", "JPEG", "PNG")},
        **{f"PKG_{name}": "yes" for name in sorted(set(ctx.options.packages))},
    }
    if ctx.options.gpu == "cuda":
        digits = ctx.capability("LAMMPS").replace(".", "")
        values |= {
            "PKG_GPU": "yes",
            "GPU_API": "cuda",
            "GPU_ARCH": f"sm_{digits}",
            "CUDA_TOOLKIT_ROOT_DIR": ctx.use("cuda").prefix,
        }
    return values


def _melt(ctx: Context) -> str:
    """The input, with what speeds it up: the GPUs of the node, or OMP_NUM_THREADS threads."""
    if ctx.options.gpu == "cuda":
        faster = "package gpu 0\nsuffix gpu"
    else:
        faster = "package omp 0\nsuffix omp" if "OPENMP" in ctx.options.packages else "suffix off"
    return ctx.text_file("lammps_melt.lmp").replace("@FASTER@", faster)
