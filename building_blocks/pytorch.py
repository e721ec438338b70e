"""PyTorch: the wheel for the partition's GPU, the project's own for the CPU alone, a package, or from source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from hpcgen.backends.hardware.fabrics import ONECCL
from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.caches import TORCH, TRITON, of_gpus
from hpcgen.blocks.capabilities import INTEL_EULA, INTEL_SIMPLIFIED, Capabilities, GpuUnused, Licence
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.gpu_collectives import gpu_networks, with_verbs
from hpcgen.blocks.host_tools import plain_file, plain_projects
from hpcgen.blocks.hub import from_hub, hub_environment, hub_image, hub_packages, system_packages
from hpcgen.blocks.nvidia import COMPANIONS, LICENCES
from hpcgen.blocks.pytorch_wheels import ACCELERATORS, wheel_accelerator, why_no_wheel
from hpcgen.blocks.steps import (
    Environment,
    Image,
    Input,
    Packages,
    Run,
    Runtime,
    Test,
    TextFile,
    Wheels,
    command,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH

SOURCE = f"{SCRATCH}/pytorch"
INSTALLED = "/opt/python/lib*/python3*/site-packages/torch"
"""Where wheels put it; the shell finds Python's version."""

OF_CUDA = ("torch", "triton", "nvidia-*", "cuda-*")
"""What a wheel without CUDA does not need of the list that has all for the one with CUDA."""

OPENBLAS = {
    "apt": ("libopenblas-dev", "libopenblas0"),
    "dnf": ("openblas-devel", "openblas"),
    "zypper": ("libopenblas_openmp-devel", "libopenblas_openmp0"),
}
"""The distribution's OpenBLAS, to build with and to run with.

Source for zypper: spec files of openSUSE's packages, such as python-faiss, bandicoot and julia.
"""

PROGRAMS = {"check.py": "torch_check.py", "step.py": "torch_step.py", "ranks.py": "torch_ranks.py"}

Natural = Annotated[int, msgspec.Meta(ge=0, description="a whole number, 0 for as many as there are CPUs")]


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


def _builds_cuda(situation: Situation) -> bool:
    return _from_source(situation) and bool(situation.options.accelerator == "cuda")


def _builds_mpi(situation: Situation) -> bool:
    return _from_source(situation) and bool(situation.options.mpi)


def _on_intel_gpus(situation: Situation) -> bool:
    return bool(situation.options.accelerator == "xpu")


def _compiles(situation: Situation) -> bool:
    return bool(situation.options.compile or situation.options.extensions)


def _extends_cuda(situation: Situation) -> bool:
    return bool(situation.options.extensions and situation.options.accelerator == "cuda")


class Pytorch(Block):
    """PyTorch, tensors and neural networks.  Source: https://github.com/pytorch/pytorch

    Wheels of the package index carry NVIDIA's CUDA on x86_64 (several GB), so nodes without such a GPU get the
    project's own CPU wheel, by its address and hash, or the distribution's package. Three programs are in
    /opt/pytorch/share: ``step.py`` trains on one rank or many, ``ranks.py`` starts a program as a rank of a job,
    ``check.py`` is the self-test.
    """

    name = "pytorch"
    distributions = ("torch",)
    companions = ("triton", "pytorch-triton*", *COMPANIONS)
    needs = (
        need("python"),
        need("gnu", build_only=True, when=_from_source),
        need("cmake", build_only=True, when=_from_source),
        need("cuda", when=_builds_cuda),
        need("cudnn", when=_builds_cuda),
        need("nccl", when=_builds_cuda),
        need("mpi", when=_builds_mpi),
        need("intel_gpu", when=_on_intel_gpus),
        need("jit_compiler", when=_compiles),
        need("cuda", when=_extends_cuda),
        need("cuda_compiler", when=_extends_cuda),
        need("ubuntu", when=from_hub),
    )

    class Options(BlockOptions, frozen=True):
        """What computes, and how PyTorch gets into the image.

        ``accelerator``: by default that of the partition's GPU if a wheel has code for it and the driver is new enough,
        and ``cpu`` otherwise. ``install``: ``pip`` takes the index's wheel, ``wheel`` the project's own by its address
        (for the CPU, for ROCm, for Intel's GPUs, and with CUDA 12.6 for older ones of NVIDIA), ``package`` the
        distribution's, ``hub`` starts from NVIDIA's or AMD's image (10 GB and more), ``source`` compiles it for the
        partition's CPU (hours). ``compile``: keep a C++ compiler and headers in the image, which ``torch.compile`` and
        C++ extensions need; 300 MB, so it is off unless a GPU computes. ``extensions``: keep what extensions in CUDA
        need when a program compiles them, too: nvcc of the CUDA that the wheel is for, some GB.

        For ``source`` alone: ``mkldnn`` (oneDNN), ``gloo`` and ``mpi`` are what it is built with, ``blas`` the library
        for linear algebra, ``jobs`` compile steps at a time.
        """

        accelerator: Literal["cpu", "cuda", "rocm", "xpu"] = "cpu"
        install: Literal["pip", "wheel", "package", "hub", "source"] = "pip"
        compile: bool = False
        extensions: bool = False
        mkldnn: bool = True
        gloo: bool = True
        mpi: bool = False
        blas: Literal["openblas", "eigen"] = "openblas"
        jobs: Natural = 0

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """What computes on the partition's GPU, if anything does, and the wheel that has it."""
        accelerator = wheel_accelerator(facts)
        if accelerator != "cpu":
            return {
                "accelerator": accelerator,
                "install": "pip" if accelerator == "cuda" else "wheel",
                "compile": True,
            }
        # The index's wheels for ARM are without CUDA up to 2.10.
        return {"install": "wheel" if facts.architecture == "x86_64" else "pip"}

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """CUDA's wheel on a CPU, which computes there too; CUDA 12.6 for older GPUs; AMD's image of a release."""
        others = {"cpu": ("pip",), "cuda": ("wheel",), "rocm": ("hub",)}.get(wheel_accelerator(facts))
        return {"install": others} if others is not None else {}

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel with what it needs, or the source with what building it needs."""
        install = ctx.options.install
        if install in ("package", "hub"):
            return []
        if install == "source":
            return [ctx.archive(), _needs(ctx), _build_needs(ctx)]
        return [_wheels(ctx)] if install == "pip" else [ctx.wheel_file(), _needs(ctx)]

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """NVIDIA's or AMD's image, if that is asked for."""
        return hub_image(ctx)

    def environment(self, ctx: Context) -> Environment:
        """What keeps such an image's own software working; for oneCCL that ranks say their places by variables.

        Otherwise it would take the variables of an MPI's launcher for those of Intel MPI. Sources: ProcessGroupXCCL.cpp
        of github.com/intel/torch-xpu-ops; public job scripts for Aurora, which set both.
        """
        if ctx.options.accelerator == "xpu":
            return Environment(both={"CCL_ATL_TRANSPORT": "ofi", "CCL_PROCESS_LAUNCHER": "none"})
        gpu = ctx.facts.partition.gpu
        if ctx.has("cuda_compiler") and gpu is not None and gpu.capability:
            # Where images are built there is no GPU that could be asked which code it takes.
            return Environment(build={"TORCH_CUDA_ARCH_LIST": gpu.capability, "FORCE_CUDA": "1"})
        return hub_environment(ctx) if ctx.options.install == "hub" else Environment()

    def packages(self, ctx: Context) -> Packages:
        """Run-time libraries; the distribution's PyTorch, if that is asked for."""
        install = ctx.options.install
        if install == "hub":
            return Packages()
        if install == "package":
            names = {"apt": ["python3-torch"]}
            return Packages(build=names, run=names)
        libraries = gcc_libraries("libgomp", "libstdc++")
        if install != "source":
            packages = Packages(run=libraries)
            return with_verbs(ctx, packages) if _has_nccl(ctx) else packages
        tools = {manager: ["git"] for manager in OPENBLAS}
        if ctx.options.blas == "openblas":
            for manager, (development, library) in OPENBLAS.items():
                tools[manager].append(development)
                libraries[manager].append(library)
        return Packages(build=tools, run=libraries)

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the programs that stacks run."""
        install = ctx.options.install
        if install == "package":
            yield run("use the distribution's PyTorch", system_packages(ctx))
        elif install == "hub":
            yield run("use the image's PyTorch", hub_packages(ctx))
        elif install == "source":
            yield from _compile(ctx)
        elif install == "pip":
            yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        else:
            yield run("what PyTorch needs", ctx.pip(_needs(ctx)), caches=("pip",))
            yield run("install", ctx.pip_file(ctx.wheel_file(), complete=_is_complete(ctx)))
        share = f"{ctx.prefix}/share"
        files = [TextFile(f"files/tests/{v}", f"{share}/{k}", ctx.text_file(v)) for k, v in PROGRAMS.items()]
        yield run("programs", *files)

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Without PyTorch's tests of itself, which are a sixth of a build for the CPU."""
        if stage == "builder" and ctx.options.install not in ("package", "hub"):
            yield run(
                "slim PyTorch",
                f"rm -rf {INSTALLED}/test {INSTALLED}/bin/test_* {INSTALLED}/bin/protoc*",
                joins="previous",
            )

    def runtime(self, ctx: Context) -> Runtime:
        """The programs; PyTorch itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.wheel_folder, ctx.prefix) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It computes, with oneDNN where it has it; two ranks meet; on a GPU it has code for it."""
        python, check = f"{_python(ctx)}/bin/python", f"{ctx.prefix}/share/check.py"
        by_onednn = ctx.facts.architecture == "x86_64" and _has_onednn(ctx)
        # Debian's package says 1.13.0a0 of itself.
        version = ctx.version if ctx.options.install != "package" else ".".join(ctx.version.split(".")[:2])
        tests = [
            Test("version", command(python, "-c", "import torch; print(torch.__version__)"), expect=version),
            Test("convolution", command(python, check, "convolution"), expect="differs by"),
        ]
        if by_onednn:
            words = command(python, check, "convolution", "oneDNN")
            tests.append(Test("convolution by oneDNN", words, expect="of them backward"))
        if ctx.options.gloo or ctx.options.install != "source":
            tests.append(Test("two ranks over Gloo", command(python, check, "ranks"), expect="1 + 2 = 3"))
        if ctx.options.compile and ctx.options.accelerator == "cpu" and ctx.me.at_least("2.1"):
            tests.append(Test("torch.compile", command(python, check, "compile"), expect="differs by"))
        if ctx.options.accelerator != "cpu":
            tests.append(Test("GPU", command(python, check, "gpu", *_gpu_code(ctx)), device="gpu", expect="product on"))
        if ctx.options.gloo or ctx.options.install != "source" or ctx.options.accelerator != "cpu":
            # Over NCCL, RCCL or oneCCL where there are GPUs.
            train = command(python, f"{ctx.prefix}/share/ranks.py", python, f"{ctx.prefix}/share/step.py")
            tests.append(Test("data-parallel training", train, expect="rank 0 size", ranks="all"))
        return tests

    def suits_pip(self, ctx: Context) -> bool:
        """Not beside the packages of an image or a distribution, nor without Triton, as wheels for other GPUs are."""
        return ctx.options.install not in ("hub", "package") and _is_complete(ctx)

    def capabilities(self, ctx: Context) -> Capabilities:
        """Whose GPUs it computes on, the library of collectives and the licences that its wheels carry."""
        vendor = next((name for name, of in ACCELERATORS.items() if of == ctx.options.accelerator), None)
        gloo = "Gloo" if ctx.options.gloo else ""
        if vendor is None:
            unused = why_no_wheel(ctx.facts) or GpuUnused("pytorch.accelerator=cpu was requested")
            on_gpu_node = ctx.facts.partition.gpu is not None
            return Capabilities(cpu_collectives=gloo, gpu_unused=unused if on_gpu_node else None, caches=TORCH)
        return Capabilities(
            gpu_vendors=(vendor,),
            gpu_collectives={"nvidia": "NCCL", "amd": "RCCL", "intel": ONECCL}[vendor],
            gpu_networks=gpu_networks(ctx) if _has_nccl(ctx) else (),
            cpu_collectives=gloo,
            licences=_licences(ctx, vendor),
            caches=(*TORCH, *TRITON, *of_gpus([vendor])),
            kmp=vendor == "intel",
        )

    def notices(self, ctx: Context) -> list[str]:
        """What will not work."""
        notes = []
        with_cuda = ctx.facts.architecture == "x86_64" or ctx.me.at_least("2.11")
        if ctx.options.accelerator == "cpu" and ctx.options.install == "pip" and with_cuda:
            notes.append(
                f"pytorch {ctx.version} is the package index's wheel, which brings CUDA in several GB and computes on "
                "the CPU as well; of the smaller wheels for CPUs alone, of this release or of what goes with it "
                "(torchvision, torchaudio), no public file that is known here says the sha256"
            )
        if not ctx.options.compile and ctx.me.at_least("2"):
            notes.append(
                "torch.compile will fail: the image has no C++ compiler; --set pytorch.compile=true keeps one in it"
            )
        if not _is_complete(ctx):
            whose = "ROCm" if ctx.options.accelerator == "rocm" else "Intel GPUs"
            notes.append(f"without Triton for {whose}, torch.compile works on CPUs only")
        return notes

    def long_build(self, ctx: Context) -> str:
        """Its own compilation; wheels and packages are quick."""
        if ctx.options.install != "source":
            return ""
        return "hours, 20 GB of disk, and about 2 GB of memory for each compile step"


def _has_nccl(ctx: Context) -> bool:
    """Whether wheels bring NCCL or RCCL; a compiled PyTorch has the block's, and of an image's own nothing is known."""
    return ctx.options.accelerator in ("cuda", "rocm") and ctx.options.install in ("pip", "wheel")


def _licences(ctx: Context, vendor: str) -> tuple[Licence, ...]:
    """Of NVIDIA's or Intel's libraries beside a wheel; an image from elsewhere has its own."""
    if ctx.options.install not in ("pip", "wheel"):
        return ()
    return {"nvidia": LICENCES, "intel": (INTEL_EULA, INTEL_SIMPLIFIED)}.get(vendor, ())


def _gpu_code(ctx: Context) -> list[str]:
    """What code for the partition's GPU is called, if the site says which GPU it is."""
    gpu = ctx.facts.partition.gpu
    if gpu is None:
        return []
    if gpu.vendor == "nvidia":
        return [f"sm_{gpu.capability.replace('.', '')}"] if gpu.capability else []
    return [gpu.target] if gpu.target else []


def _has_onednn(ctx: Context) -> bool:
    return bool(ctx.options.mkldnn) or ctx.options.install != "source"


# what is installed with pip


def _is_complete(ctx: Context) -> bool:
    """The package index does not have the Triton of wheels for AMD's and Intel's GPUs; PyTorch loads without it."""
    return not (ctx.options.accelerator in ("rocm", "xpu") and ctx.options.install == "wheel")


def _python(ctx: Context) -> str:
    return ctx.use("python").prefix


def _wheels(ctx: Context) -> Wheels:
    """The index's wheel with all it needs; on x86_64 with CUDA."""
    pins = ["numpy<2" if not ctx.me.at_least("2.3") else "numpy<3", "setuptools<81"]
    return ctx.wheels(ctx.facts.listed(f"torch-{ctx.version}"), [f"torch=={ctx.version}", *pins])


def _needs(ctx: Context) -> Wheels:
    """What it needs beside itself: without CUDA's libraries, or with those of the wheel's own CUDA or of oneAPI."""
    build = {"cuda": "cu126", "xpu": "xpu"}.get(ctx.options.accelerator)
    if build is not None and ctx.options.install == "wheel":
        return ctx.wheels(f"torch-{build}-{ctx.version}", ctx.release.values[build])
    return _wheels(ctx).without(*OF_CUDA)


def _build_needs(ctx: Context) -> Wheels:
    """What its build scripts import beside what PyTorch needs, NumPy among it."""
    return ctx.wheels("torch-build", ["ninja", "pyyaml", "requests", "setuptools<81", "six"])


# building from source


def _compile(ctx: Context) -> Iterable[Run]:
    """The release's own archive, which has all submodules in it."""
    yield run("what PyTorch needs", ctx.pip(_build_needs(ctx)), ctx.pip(_needs(ctx)), caches=("pip",))
    yield run("PyTorch source", ctx.unpack(ctx.archive(), SOURCE))
    yield run("compile PyTorch", plain_file(ctx), ctx.compile_wheel(SOURCE, configuration(ctx)))
    yield run("install PyTorch", ctx.install_wheel("torch"), joins="previous")


def configuration(ctx: Context) -> dict[str, str]:
    """Environment of setup.py.

    Source: setup.py and docs of the release; easybuilders/easybuild-easyblocks pytorch.py.
    """

    def switch(on: bool) -> str:
        return "1" if on else "0"

    cuda = ctx.options.accelerator == "cuda"
    flags = " ".join(ctx.flags)
    values = {
        "PYTORCH_BUILD_VERSION": ctx.version,
        "PYTORCH_BUILD_NUMBER": "1",
        "BUILD_TEST": "0",
        "BLAS": "OpenBLAS" if ctx.options.blas == "openblas" else "Eigen",
        "USE_CUDA": switch(cuda),
        "USE_ROCM": "0",
        "USE_NCCL": switch(cuda),
        "USE_DISTRIBUTED": "1",
        "USE_GLOO": switch(ctx.options.gloo),
        "USE_MPI": switch(ctx.options.mpi),
        "USE_MKLDNN": switch(ctx.options.mkldnn),
        # It would fetch Python packages while it is configured.
        "USE_NNPACK": "0",
        **({"CFLAGS": flags, "CXXFLAGS": flags} if flags else {}),
        # protoc, and the generators of SLEEF, whose kernels have flags of their own; setup.py hands CMAKE_… on.
        **plain_projects(ctx, ["protobuf", "SLEEF"]),
        **({"MAX_JOBS": str(ctx.options.jobs)} if ctx.options.jobs else {}),
    }
    if cuda:
        values |= {
            "CUDA_HOME": ctx.use("cuda").prefix,
            "CUDNN_ROOT": ctx.use("cudnn").prefix,
            "NCCL_ROOT": ctx.use("nccl").prefix,
            "USE_SYSTEM_NCCL": "1",
            "TORCH_CUDA_ARCH_LIST": ctx.capability("PyTorch"),
        }
    return values
