"""Horovod: data-parallel training over MPI, NCCL or Gloo."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Condition, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Input, Run, Runtime, Test, TextFile, Wheels, command, run
from hpcgen.core.model.image_paths import SCRATCH

SOURCE = f"{SCRATCH}/horovod"


class Framework(NamedTuple):
    """One of the frameworks that Horovod is built for.

    Parameters
    ----------
    block, versions: what it is here.
    switch: its name in the variables of setup.py.
    module: the part of Horovod for it.
    program, step: the training step that stacks run, as a file of the block and in the image.
    """

    block: str
    versions: str
    switch: str
    module: str
    program: str
    step: str


FRAMEWORKS = {
    "tensorflow": Framework(
        "tensorflow", ">=1.15,<2.16", "TENSORFLOW", "horovod.tensorflow", "horovod_step.py", "step.py"
    ),
    "pytorch": Framework("pytorch", ">=1.5", "PYTORCH", "horovod.torch", "horovod_torch_step.py", "step_torch.py"),
    # The releases before 1.8 lack the headers that it is compiled with.
    "mxnet": Framework("mxnet", ">=1.8", "MXNET", "horovod.mxnet", "horovod_mxnet_step.py", "step_mxnet.py"),
}


def _nvidia(facts: Facts) -> bool:
    gpu = facts.partition.gpu
    return gpu is not None and gpu.vendor == "nvidia"


def _uses_mpi(situation: Situation) -> bool:
    options = situation.options
    return options.cpu_operations == "mpi" or (_nvidia(situation.facts) and options.gpu_operations == "mpi")


def _uses_cuda(situation: Situation) -> bool:
    return _nvidia(situation.facts) and situation.options.gpu_operations != "none"


def _uses_nccl(situation: Situation) -> bool:
    return _nvidia(situation.facts) and situation.options.gpu_operations == "nccl"


def _asked_for(framework: str) -> Condition:
    def asked_for(situation: Situation) -> bool:
        return framework in situation.options.frameworks

    return asked_for


class Horovod(Block):
    """Horovod, data-parallel training.  Source: https://github.com/horovod/horovod

    Compiled against the image's frameworks and MPI. Versions known to break it are excluded: GCC 13 and later (missing
    headers), CMake 4 (its bundled Gloo is too old for it), setuptools 81 and later (no pkg_resources), TensorFlow 2.16
    and later (Keras 3). One thing is patched: the C++ standard, if PyTorch's headers need a newer one. ``horovodrun``
    does not start jobs under the launchers of this project's sites: use mpiexec or srun.
    """

    name = "horovod"
    distributions = ("horovod",)
    needs = (
        need("python"),
        # C++20, which the headers of new releases ask for.
        need("gnu", ">=10", when=_asked_for("pytorch")),
        need("gnu", ">=8,<13"),
        need("cmake", ">=3.13,<4", build_only=True),
        need("mpi", when=_uses_mpi),
        *(need(each.block, each.versions, when=_asked_for(name)) for name, each in FRAMEWORKS.items()),
        need("cuda", when=_uses_cuda),
        need("nccl", ">=2.7", when=_uses_nccl),
    )

    class Options(BlockOptions, frozen=True):
        """What Horovod is built for.

        ``frameworks``: those that it is compiled against; the image gets each of them. ``cpu_operations``: what
        transfers tensors in main memory. ``gpu_operations``: what transfers those in GPU memory, if the partition has
        an NVIDIA GPU.
        """

        frameworks: list[Literal["tensorflow", "pytorch", "mxnet"]] = msgspec.field(
            default_factory=lambda: ["tensorflow"]
        )
        cpu_operations: Literal["mpi", "gloo"] = "mpi"
        gpu_operations: Literal["nccl", "mpi", "none"] = "nccl"

    def inputs(self, ctx: Context) -> list[Input]:
        """Horovod's source package, and what it needs to build and run."""
        return [_needs(ctx), _source(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile it in the Python environment, and write the training steps that stacks run as a test."""
        yield run("what it needs", ctx.pip(_needs(ctx)), caches=("pip",))
        newer = _newer_standard(ctx) if "pytorch" in ctx.options.frameworks else []
        yield run("source", ctx.pip_unpack(_source(ctx), SOURCE), newer, caches=("pip",))
        yield run("compile", ctx.compile_wheel(SOURCE, _variables(ctx)), joins="previous")
        yield run("install", ctx.install_wheel("horovod", _source(ctx)), joins="previous")
        for each in _frameworks(ctx):
            target = f"{ctx.prefix}/share/{each.step}"
            yield run("training step", TextFile(f"files/tests/{each.step}", target, ctx.text_file(each.program)))

    def runtime(self, ctx: Context) -> Runtime:
        """The training steps; Horovod itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The wheel, which fits the frameworks, the MPI and the NCCL that it is compiled against."""
        return (ctx.wheel_folder, ctx.prefix)

    def notices(self, ctx: Context) -> list[str]:
        """Where its CMake files cannot load the frameworks that they ask for flags."""
        return ctx.compiled_for_nodes([each.block for each in _frameworks(ctx)])

    def capabilities(self, ctx: Context) -> Capabilities:
        """Gloo, where that and not MPI carries what is in main memory."""
        return Capabilities(cpu_collectives="Gloo" if ctx.options.cpu_operations == "gloo" else "")

    def test(self, ctx: Context) -> list[Test]:
        """It loads with each framework and has what it was built for."""
        python = f"{ctx.use('python').prefix}/bin/python"
        built = f"{ctx.options.cpu_operations}_built"
        names = [built]
        if _nvidia(ctx.facts) and ctx.options.gpu_operations == "nccl":
            names.append("nccl_built")
        wanted = " and ".join(f"hvd.{name}()" for name in names)
        built_for = ", ".join(name.removesuffix("_built") for name in names)
        of = len(ctx.options.frameworks) > 1
        return [
            Test(
                f"built for {built_for}" + (f" with {each.block}" if of else ""),
                command(python, "-c", f"import sys, {each.module} as hvd; sys.exit(not ({wanted}))"),
            )
            for each in _frameworks(ctx)
        ] + [
            Test(
                "training" + (f" with {each.block}" if of else ""),
                command(python, f"{ctx.prefix}/share/{each.step}"),
                expect="rank 0 size",
                ranks="all",
            )
            for each in _frameworks(ctx)
        ]


def _frameworks(ctx: Context) -> list[Framework]:
    """Those that are asked for, in the order of the table."""
    return [each for name, each in FRAMEWORKS.items() if name in ctx.options.frameworks]


def _newer_standard(ctx: Context) -> list[str]:
    """Commands that raise the C++ standard from 14 to what PyTorch's headers need, and fail if it was not 14."""
    torch = ctx.use("pytorch")
    standard = "20" if torch.at_least("2.10") else "17" if torch.at_least("2.1") else ""
    commands = []
    for file in ("CMakeLists.txt", "horovod/torch/CMakeLists.txt") if standard else ():
        path = f"{SOURCE}/{file}"
        commands += [
            command("grep", "-q", "set(CMAKE_CXX_STANDARD 14)", path),
            command("sed", "-i", f"s/set(CMAKE_CXX_STANDARD 14)/set(CMAKE_CXX_STANDARD {standard})/", path),
        ]
    return commands


def _needs(ctx: Context) -> Wheels:
    name = ctx.facts.listed(f"horovod-{ctx.version}")
    fallback = ["cffi", "cloudpickle", "packaging", "psutil", "pyyaml", "setuptools<81", "wheel"]
    if not ctx.use("python").at_least("3.7"):
        fallback.append("dataclasses")
    return ctx.wheels(name, fallback)


def _source(ctx: Context) -> Wheels:
    line = f"horovod=={ctx.version} --hash=sha256:{ctx.release.values['sdist']}"
    return Wheels(f"horovod-{ctx.version}-source", (line,), hashed=True)


def _variables(ctx: Context) -> dict[str, str]:
    """What Horovod's setup.py reads (docs/install.rst of the release)."""
    options, asked = ctx.options, _frameworks(ctx)
    values = {
        **{f"HOROVOD_{'WITH' if each in asked else 'WITHOUT'}_{each.switch}": "1" for each in FRAMEWORKS.values()},
        "HOROVOD_WITH_MPI" if ctx.has("mpi") else "HOROVOD_WITHOUT_MPI": "1",
        "HOROVOD_WITH_GLOO" if options.cpu_operations == "gloo" else "HOROVOD_WITHOUT_GLOO": "1",
        "HOROVOD_CPU_OPERATIONS": options.cpu_operations.upper(),
    }
    if ctx.flags:
        # Its own default is for x86 with AVX.
        values["HOROVOD_BUILD_ARCH_FLAGS"] = " ".join(ctx.flags)
    if ctx.has("cuda"):
        values |= _cuda(ctx)
    return values


def _cuda(ctx: Context) -> dict[str, str]:
    values = {
        "HOROVOD_GPU": "CUDA",
        "HOROVOD_GPU_OPERATIONS": ctx.options.gpu_operations.upper(),
        "HOROVOD_CUDA_HOME": ctx.use("cuda").prefix,
    }
    if ctx.has("nccl"):
        values["HOROVOD_NCCL_HOME"] = ctx.use("nccl").prefix
        values["HOROVOD_NCCL_LINK"] = "SHARED"
    gpu = ctx.facts.partition.gpu
    if gpu is not None and gpu.capability is not None:
        values["HOROVOD_BUILD_CUDA_CC_LIST"] = gpu.capability.replace(".", "")
    return values
