"""NVIDIA's compiler in the image itself, for software that compiles CUDA code while it runs."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.cuda_toolkit import is_of_image, target_of, toolkit_folder
from hpcgen.blocks.steps import Compound, Input, Run, Runtime, Test, command, run
from hpcgen.core.errors import ConflictError

_PARTS = ("bin", "nvvm")


class CudaCompiler(Block):
    """nvcc with its programs and headers in the final stage too.  Source: https://docs.nvidia.com/cuda

    Otherwise images keep the libraries of CUDA, ``ptxas`` and ``libdevice``. Static libraries, the samples and the
    profilers with a window are left behind.
    """

    name = "cuda_compiler"
    gpu_vendor = "nvidia"
    needs = (need("cuda"), need("jit_compiler"))

    def inputs(self, ctx: Context) -> list[Input]:
        """Nothing of its own; ConflictError where CUDA's libraries alone are there."""
        if ctx.use("cuda").options.obtain == "wheels":
            raise ConflictError(
                "nvcc is asked for, and CUDA is there as wheels of its libraries", remedy="--set cuda.obtain=archive"
            )
        return []

    def runtime(self, ctx: Context) -> Runtime:
        """The compiler's programs, and the headers."""
        top = toolkit_folder(ctx.use("cuda"), ctx.base)
        headers = f"{top}/targets/{target_of(ctx)}/include"
        return Runtime(copies=(*(f"{top}/{part}" for part in _PARTS), headers))

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """The toolkit's own name for the headers; in NVIDIA's image for run time, those that linkers look for."""
        if stage != "final":
            return
        cuda, target = ctx.use("cuda"), target_of(ctx)
        top = toolkit_folder(cuda, ctx.base)
        commands = [command("ln", "-sfn", f"targets/{target}/include", f"{top}/include")]
        if is_of_image(cuda, ctx.base):
            files, link = f"{top}/targets/{target}/lib/lib*.so.*", '"${file%%.so.*}.so"'
            made = f'test -e {link} || ln -s "${{file##*/}}" {link} || exit 1'
            commands.append(Compound(f"for file in {files}; do {made}; done"))
        yield run("headers and libraries of cuda", *commands, joins="previous")

    def test(self, ctx: Context) -> list[Test]:
        """A kernel that was compiled in the image becomes an object."""
        cuda = ctx.use("cuda")
        compiled = (
            f"printf '__global__ void nothing() {{}}' | {cuda.prefix}/bin/nvcc -x cu -c -o /dev/null - && echo made"
        )
        return [Test("compiles", compiled, expect="made")]
