"""ONNX Runtime: runs trained models that other frameworks export."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities, GpuUnused
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.host_tools import plain_file, plain_projects
from hpcgen.blocks.nvidia import COMPANIONS
from hpcgen.blocks.old_driver import old_driver
from hpcgen.blocks.steps import (
    Input,
    Packages,
    Run,
    Runtime,
    Test,
    TextFile,
    Wheels,
    command,
    complete_but_driver,
    lines,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.release import ReleaseTree

SOURCE = f"{SCRATCH}/onnxruntime"
PARTS = f"{SCRATCH}/onnxruntime-parts"
"""Where the sources lie that ONNX Runtime is built together with, each in a folder of its name."""

PACKAGES = {
    "cpu": "onnxruntime",
    "cuda": "onnxruntime-gpu",
    "tensorrt": "onnxruntime-gpu",
    "migraphx": "onnxruntime-migraphx",
}
"""The package that has each provider."""

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
"""ONNX Runtime's own name of each provider."""

OLDEST_DRIVER = "450.80.02"
"""The first NVIDIA driver that runs a CUDA that one of the packages is linked with: 11.8. A test holds it against
the tables."""

AMD_TARGETS = frozenset({"gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201"})
"""What the ROCm that the packages are linked with has code for. A test holds it against the tables."""


Natural = Annotated[int, msgspec.Meta(ge=0, description="a whole number, 0 for as many as there are CPUs")]


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


def _loads_cuda(situation: Situation) -> bool:
    return situation.options.provider in ("cuda", "tensorrt") and not _from_source(situation)


def _builds_cuda(situation: Situation) -> bool:
    return bool(situation.options.provider == "cuda") and _from_source(situation)


def _by_tensorrt(situation: Situation) -> bool:
    return bool(situation.options.provider == "tensorrt")


def _by_migraphx(situation: Situation) -> bool:
    return bool(situation.options.provider == "migraphx")


def _builds_migraphx(situation: Situation) -> bool:
    return _by_migraphx(situation) and _from_source(situation)


LIBRARIES = {"obtain": "wheels"}


class Onnxruntime(Block):
    """ONNX Runtime, inference on models in the ONNX format.  Source: https://github.com/microsoft/onnxruntime

    Installed from the project's wheel, or AMD's for MIGraphX, or compiled. A program sets the provider and the number
    of threads; the one in /opt/onnxruntime/share, which stacks run as a test, takes the provider of the image and
    OMP_NUM_THREADS.
    """

    name = "onnxruntime"
    distributions = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino", "onnxruntime-rocm")
    companions = COMPANIONS
    needs = (
        need("python"),
        need("gnu", build_only=True, when=_from_source),
        need("cmake", build_only=True, when=_from_source),
        need("cuda", when=_loads_cuda, enough=LIBRARIES),
        need("cudnn", when=_loads_cuda, enough=LIBRARIES),
        need("cuda", when=_builds_cuda),
        need("cudnn", when=_builds_cuda),
        need("tensorrt", when=_by_tensorrt),
        need("migraphx", when=_by_migraphx),
        need("rocm", when=_builds_migraphx),
    )

    class Options(BlockOptions, frozen=True):
        """What computes, and how ONNX Runtime gets into the image.

        ``provider``: by default ``cuda`` on NVIDIA's GPUs and ``migraphx`` on AMD's where a package has code for the
        GPU, and NVIDIA's driver is new enough, and ``cpu`` elsewhere; ``tensorrt`` only if it is asked for.
        ``install``: ``pip`` takes the wheel, ``source`` compiles it for the partition's CPU and GPU (45 minutes on 2
        CPUs, hours with CUDA). ``jobs``: compile steps at a time, for ``source`` alone.
        """

        provider: Literal["cpu", "cuda", "tensorrt", "migraphx"] = "cpu"
        install: Literal["pip", "source"] = "pip"
        jobs: Natural = 0

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """The provider for the partition's GPU."""
        gpu = facts.partition.gpu
        if gpu is None or _why_not(facts):
            return {}
        return {"provider": {"nvidia": "cuda", "amd": "migraphx"}[gpu.vendor]}

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """On ARM, packages with CUDA begin with 1.29."""
        gpu = facts.partition.gpu
        if facts.architecture != "aarch64" or gpu is None or gpu.vendor != "nvidia":
            return []
        return [SiteRange(">=1.29", "system.architecture", "the architecture aarch64, for which there is no older one")]

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel and what it needs; for a build from source that, its sources and those of its parts."""
        trees = super().inputs(ctx) if ctx.options.install == "source" else []
        return [*trees, _wheels(ctx)]

    def packages(self, ctx: Context) -> Packages:
        """The C++ library that it is linked with, and what brings and patches the sources."""
        tools = ["git", "patch"] if ctx.options.install == "source" else []
        return Packages(
            build={"apt": tools, "dnf": tools, "zypper": tools},
            run=gcc_libraries("libstdc++"),
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it, and write the program that stacks run as a test."""
        if ctx.options.install == "source":
            yield from _compile(ctx)
        else:
            yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        share = f"{ctx.prefix}/share"
        yield run(
            "inference step",
            TextFile("files/tests/onnx_model.py", f"{share}/onnx_model.py", ctx.text_file("onnx_model.py")),
            TextFile("files/tests/onnx_step.py", f"{share}/onnx_step.py", ctx.text_file("onnx_step.py")),
            TextFile("files/tests/onnx_provider", f"{share}/provider", lines(PROVIDERS[ctx.options.provider])),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The program; ONNX Runtime itself is in the Python environment."""
        return Runtime(copies=(ctx.prefix,))

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The wheel that its build script makes."""
        return (ctx.wheel_folder, ctx.prefix) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It loads, has the provider, and computes a small model as NumPy does."""
        python = f"{ctx.use('python').prefix}/bin/python"
        provider = PROVIDERS[ctx.options.provider]
        names = "import onnxruntime as o; print(o.__version__)"
        known = "import onnxruntime as o; print(*o.get_available_providers())"
        step = f"{ctx.prefix}/share/onnx_step.py"
        device = "" if ctx.options.provider == "cpu" else "gpu"
        tests = [
            Test("version", command(python, "-c", names), expect=ctx.version),
            Test("provider", command(python, "-c", known), expect=provider),
            Test("model", command(python, step, provider), device=device, expect="inferences per second"),
        ]
        if ctx.options.provider != "cpu":
            tests.insert(2, Test("libraries of the provider", _finds_all(ctx.options.provider)))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """Why a GPU is not used."""
        if ctx.options.provider != "cpu" or ctx.facts.partition.gpu is None:
            return Capabilities()
        return Capabilities(gpu_unused=_why_not(ctx.facts) or GpuUnused("onnxruntime.provider=cpu was requested"))

    def long_build(self, ctx: Context) -> str:
        """Its own compilation; packages are quick."""
        if ctx.options.install != "source":
            return ""
        return "hours, with CUDA" if ctx.options.provider in ("cuda", "tensorrt") else "about 45 minutes on 2 CPUs"


def _why_not(facts: Facts) -> GpuUnused | None:
    """Why no package computes on the partition's GPU; None if one does, or nothing is known against it."""
    gpu = facts.partition.gpu
    if gpu is None or gpu.vendor == "intel":
        return GpuUnused("no package of the project has a provider for it")
    if gpu.vendor == "nvidia":
        return old_driver(gpu, OLDEST_DRIVER, "the packages with CUDA need")
    if gpu.target is not None and gpu.target not in AMD_TARGETS:
        return GpuUnused(f"the ROCm that AMD's packages are linked with has no code for {gpu.target}")
    return None


def _finds_all(provider: str) -> str:
    """A command that fails if a library is missing that the provider is linked with; the driver's is the host's."""
    library = f"/opt/python/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime_providers_{provider}.so"
    return f"ls {library} > /dev/null && {complete_but_driver(library)}"


def _wheels(ctx: Context) -> Wheels:
    """The wheel with all it needs; for a build from source, all but itself."""
    source = ctx.options.install == "source"
    package = PACKAGES["cpu" if source else ctx.options.provider]
    name = ctx.facts.listed(f"{package}-{ctx.version}")
    if not source:
        return ctx.wheels(name, [f"{package}=={ctx.version}", *ctx.release.values.get("pins", [])])
    return ctx.wheels(name, ctx.release.values["needs"]).without(package)


# building from source


def _compile(ctx: Context) -> Iterable[Run]:
    """The project's own build script, with all sources at hand that its CMake files would fetch.

    CMake would fetch archives by SHA-1 while it builds; here it gets the same files as git trees, by their commits,
    and is told to fetch nothing. It applies a patch only to what it fetched itself.
    """
    python = f"{ctx.use('python').prefix}/bin/python"
    yield run("what ONNX Runtime needs", ctx.pip(_wheels(ctx)), caches=("pip",))
    yield run("ONNX Runtime source", ctx.tree(ctx.git_tree("source"), SOURCE))
    for name, row in ctx.trees().items():
        if name != "source":
            yield run(f"{name} for ONNX Runtime", ctx.tree(ctx.git_tree(name), f"{PARTS}/{name}"), _patch(name, row))
    yield run(
        "compile ONNX Runtime",
        plain_file(ctx),
        command("cd", SOURCE),
        command("env", *_flags(ctx), python, "tools/ci_build/build.py", *build_words(ctx)),
    )
    kept = [command("mkdir", "-p", ctx.wheel_folder), f"cp {SOURCE}/build/Release/dist/*.whl {ctx.wheel_folder}"]
    yield run("keep its wheel", kept, command("rm", "-rf", SOURCE, PARTS))
    yield run("install ONNX Runtime", ctx.install_wheel(), joins="previous")


def _patch(name: str, row: ReleaseTree) -> list[str]:
    if not row.patch:
        return []
    return [
        command(
            "patch", "-p1", "--binary", "--ignore-whitespace", "-d", f"{PARTS}/{name}", "-i", f"{SOURCE}/{row.patch}"
        )
    ]


def _flags(ctx: Context) -> list[str]:
    """Variables by which CMake sets its flags.

    Without the linker's, a kernel in assembly makes the library ask for an executable stack, with which glibc 2.41 and
    later does not load it (pull request 25200 of ONNX Runtime, for the releases 1.21 and 1.22).
    """
    flags = " ".join(ctx.flags)
    return [*([f"CFLAGS={flags}", f"CXXFLAGS={flags}"] if flags else []), "LDFLAGS=-Wl,-z,noexecstack"]


def build_words(ctx: Context) -> list[str]:
    """Options of the project's build script.

    Source: tools/ci_build/build.py and cmake/external of the release 1.21.0; CMake's manual of FetchContent.
    """
    names = [name for name in ctx.trees() if name != "source"]
    defines = [f"FETCHCONTENT_SOURCE_DIR_{name.upper()}={PARTS}/{name}" for name in names]
    defines += [
        "FETCHCONTENT_FULLY_DISCONNECTED=ON",
        # What the base happens to have is not taken instead.
        "FETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER",
        "onnxruntime_BUILD_UNIT_TESTS=OFF",
        # Its protoc writes the code that reads models.
        *(f"{name}={path}" for name, path in plain_projects(ctx, ["protobuf"]).items()),
    ]
    words = ["--config=Release", "--build_dir=build", "--update", "--build", "--build_wheel", "--skip_tests"]
    words += ["--skip_submodule_sync", "--allow_running_as_root", "--compile_no_warning_as_error"]
    words.append(f"--parallel={ctx.options.jobs}")
    if ctx.options.provider == "cuda":
        cuda, cudnn = ctx.use("cuda").prefix, ctx.use("cudnn").prefix
        words += ["--use_cuda", f"--cuda_home={cuda}", f"--cudnn_home={cudnn}"]
        defines.append(f"CMAKE_CUDA_ARCHITECTURES={ctx.capability('ONNX Runtime').replace('.', '')}-real")
    elif ctx.options.provider == "migraphx":
        words += ["--use_migraphx", f"--migraphx_home={ctx.use('rocm').prefix}"]
    return [*words, "--cmake_extra_defines", *defines]
