"""Glow, a compiler for neural networks."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH

SOURCE, BUILT = f"{SCRATCH}/glow", f"{SCRATCH}/glow-build"
FMT = f"{SCRATCH}/glow-fmt"
TOOLS = ("image-classifier", "model-compiler", "model-runner")
BOOST = ("chrono", "context", "date-time", "filesystem", "program-options", "regex", "system", "thread")
FOLDERS = {
    "folly": "thirdparty/folly",
    "foxi": "thirdparty/foxi",
    "fp16": "thirdparty/fp16",
    "googlebenchmark": "tests/googlebenchmark",
    "googletest": "tests/googletest",
    "onnx": "thirdparty/onnx",
    "outputcheck": "tests/OutputCheck",
    "pybind11": "thirdparty/pybind11",
}
"""Where the submodules are, as Glow's .gitmodules has it; CMake asks for all of them."""

MODEL = "tests/models/onnxModels/simpleConv.onnxtxt"


class Glow(Block):
    """Glow, which compiles neural networks for CPUs with LLVM, from source.  Source: https://github.com/pytorch/glow

    Its tools read ONNX models: ``model-compiler`` turns one into machine code for the partition's CPU. Glow never had a
    release, so each row is a date: the last commit before it, with its submodules.
    """

    name = "glow"
    needs = (
        need("gnu"),
        need("cmake", ">=3.13,<4", build_only=True),
        need("llvm", ">=8,<9", build_only=True),
    )

    def packages(self, ctx: Context) -> Packages:
        """What its README asks for on Ubuntu, of Boost what folly links; and of these the libraries."""
        build = [f"libboost-{name}-dev" for name in BOOST] + ["git", "protobuf-compiler", "python3", "unzip"]
        for name in ("double-conversion", "event", "gflags", "google-glog", "jemalloc", "png", "protobuf", "ssl"):
            build.append(f"lib{name}-dev")
        return Packages(build={"apt": build}, run={"apt": list(ctx.release.values["libraries"])})

    def environment(self, ctx: Context) -> Environment:
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        yield run("Glow source", ctx.tree(ctx.git_tree("source"), SOURCE))
        for name, folder in FOLDERS.items():
            # An empty folder is in the place of each submodule.
            whole = f"{SOURCE}/{folder}"
            yield run(f"{name} for Glow", command("rm", "-rf", whole), ctx.tree(ctx.git_tree(name), whole))
        yield run("fmt for Glow", _fmt(ctx))
        words = [f"-D{name}={value}" for name, value in _settings(ctx).items()]
        yield run(
            "configure and compile",
            command("cmake", "-S", SOURCE, "-B", BUILT, *words),
            command("cmake", "--build", BUILT, "--target", *TOOLS) + ' -- -j "$(nproc)"',
        )
        yield run(
            "install",
            command("mkdir", "-p", f"{ctx.prefix}/bin", f"{ctx.prefix}/share"),
            command("cp", *(f"{BUILT}/bin/{tool}" for tool in TOOLS), f"{ctx.prefix}/bin/"),
            command("cp", f"{SOURCE}/{MODEL}", f"{ctx.prefix}/share/"),
            command("rm", "-rf", SOURCE, BUILT, FMT),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It makes machine code of a convolution."""
        model, out = f"{ctx.prefix}/share/simpleConv.onnxtxt", "/tmp/hpcgen-glow"
        words = ["model-compiler", f"-model={model}", f"-emit-bundle={out}", "-backend=CPU", "-network-name=conv"]
        made = f"rm -rf {out} && mkdir {out} && {command(*words, '-model-input=data,float,[1,1,3,3]')} && ls {out}"
        return [Test("compiles a convolution", f"{made}; status=$?; rm -rf {out}; exit $status", expect="conv.o")]

    def notices(self, ctx: Context) -> list[str]:
        return [
            f"glow {ctx.version} was never built here: its steps follow the project's README and CMake files",
            "Glow's networks compute on the CPU",
        ]

    def long_build(self, ctx: Context) -> str:
        return "about an hour on 2 CPUs"


def _fmt(ctx: Context) -> list[str]:
    """A static library, which Glow's tools take in."""
    archive = ctx.archive("fmt")
    source, built = f"{SCRATCH}/{archive.name.removesuffix('.zip')}", f"{FMT}-build"
    words = [f"-DCMAKE_INSTALL_PREFIX={FMT}", "-DFMT_TEST=OFF", "-DFMT_DOC=OFF", "-DCMAKE_POSITION_INDEPENDENT_CODE=ON"]
    return [
        *ctx.fetch(archive),
        command("unzip", "-q", ctx.local(archive), "-d", SCRATCH),
        command("cmake", "-S", source, "-B", built, "-DCMAKE_BUILD_TYPE=Release", *words),
        command("cmake", "--build", built, "--target", "install"),
        command("rm", "-rf", source, built),
    ]


def _settings(ctx: Context) -> dict[str, str]:
    """What CMake is told.

    Without flags for the partition's CPU: the build runs generators that it compiles (InstrGen, NodeGen), and networks
    are compiled later, for the CPU on which the compiler then runs.
    """
    llvm = f"/usr/lib/llvm-{ctx.use('llvm').version.split('.')[0]}"
    return {
        "CMAKE_BUILD_TYPE": "Release",
        "CMAKE_C_COMPILER": f"{llvm}/bin/clang",
        "CMAKE_CXX_COMPILER": f"{llvm}/bin/clang++",
        "CMAKE_PREFIX_PATH": FMT,
        "LLVM_DIR": f"{llvm}/lib/cmake/llvm",
        "GLOW_WITH_CPU": "ON",
        "GLOW_BUILD_EXAMPLES": "OFF",
        "GLOW_BUILD_TESTS": "OFF",
    }
