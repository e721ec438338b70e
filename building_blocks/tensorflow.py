"""TensorFlow: built for the partition's CPU, from wheels, or from the project's own image."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.caches import KERAS, of_gpus
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.compiler_word import CompilerWord
from hpcgen.blocks.gcc_packages import gcc_libraries
from hpcgen.blocks.hub import from_hub, hub_image, hub_packages
from hpcgen.blocks.nvidia import COMPANIONS
from hpcgen.blocks.steps import BazelFiles, Environment, Image, Input, Packages, Run, Test, Wheels, command, run
from hpcgen.blocks.tensorflow_source import (
    bazel_program,
    build_words,
    configuration,
    gpu_unused,
    has_openmp,
    on_gpu,
    why_no_cuda,
)
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH

SOURCE = f"{SCRATCH}/tensorflow"
BAZEL_ROOT = f"{SCRATCH}/bazel"
PACKAGED = ("pip", "intel")
OF_SOURCE = ("mkl", "xla", "copt", "jobs", "memory_mb", "compiler")
OLD_TOOL = "tensorflow/tools/pip_package/build_pip_package"

Natural = Annotated[int, msgspec.Meta(ge=0, description="a whole number, 0 for no limit")]


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


def _links_cuda(situation: Situation) -> bool:
    return on_gpu(situation) and not from_hub(situation)


def _builds_cuda(situation: Situation) -> bool:
    return on_gpu(situation) and _from_source(situation)


def _by_clang(situation: Situation) -> bool:
    return _from_source(situation) and not on_gpu(situation) and bool(situation.options.compiler == "clang")


class Tensorflow(Block):
    """TensorFlow.  Source: https://github.com/tensorflow/tensorflow

    oneDNN (MKL-DNN) is inside TensorFlow, built from its own copy. From 2.4 on, plain builds for x86_64 have it with
    TensorFlow's own threads: switched on by ``TF_ENABLE_ONEDNN_OPTS=1`` in 2.5 to 2.8, which this block sets, and by
    default from 2.9. ``mkl`` builds it with OpenMP threads instead; if several ranks share a node, these add up to more
    threads than cores, so it is off by default from 2.4 on. Before 2.4 it is the only way to get oneDNN, and on by
    default (x86_64, ``install=source``).
    """

    name = "tensorflow"
    distributions = ("tensorflow", "tensorflow-cpu", "tensorflow-gpu", "tensorflow-rocm", "intel-tensorflow")
    companions = COMPANIONS
    needs = (
        need("python"),
        need("gnu", build_only=True, when=_from_source),
        need("bazel", build_only=True, when=_from_source),
        need("llvm", ">=16,<19", build_only=True, when=_by_clang),
        need("ubuntu", when=from_hub),
        need("cuda", when=_links_cuda),
        need("cudnn", when=_links_cuda),
        need("nccl", when=_builds_cuda),
    )

    class Options(BlockOptions, frozen=True):
        """How TensorFlow gets into the image.

        ``install``: ``pip`` takes the project's wheel, in which oneDNN chooses CPU instructions at run time; ``source``
        compiles it for the partition's CPU (hours), ``intel`` takes Intel's wheel, for CPUs of x86-64 with oneDNN over
        OpenMP, ``hub`` starts from the image tensorflow/tensorflow. ``gpu``: for NVIDIA's GPUs, with CUDA, by default
        where the partition has one. The others are for ``source`` alone. ``mkl``: oneDNN with OpenMP, decided by the
        version unless given. ``xla``: the XLA compiler. ``copt``: compiler flags beside those for the CPU. ``jobs``:
        compile steps at a time, Bazel decides if 0. ``memory_mb``: memory in MB that Bazel may plan with, all that it
        finds if 0. ``compiler``: ``clang`` is what the project's own wheels are made with from 2.13 on.
        """

        install: Literal["source", "pip", "intel", "hub"] = "pip"
        gpu: bool | None = None
        mkl: bool | None = None
        xla: bool = True
        copt: list[CompilerWord] = []
        jobs: Natural = 0
        memory_mb: Natural = 0
        compiler: Literal["gcc", "clang"] = "gcc"

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """What can only be had as a package begins there with those for ARM."""
        if facts.architecture == "x86_64":
            return []
        words = f"the architecture {facts.architecture}, for which there are no packages of older releases"
        return [SiteRange(">=2.3", "system.architecture", words)]

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheels; for a build from source also the archive and what Bazel and its rules fetch by themselves.

        Raises
        ------
        ConflictError: GPUs are asked for of a package that has no code for them.
        """
        install = ctx.options.install
        if ctx.options.gpu and (why := why_no_cuda(ctx)):
            raise ConflictError(why, "tensorflow.gpu", remedy="--set tensorflow.install=source, or omit the option")
        if install == "hub":
            return []
        if install in PACKAGED:
            return [_wheels(ctx)]
        return [ctx.archive(), _wheels(ctx), _bazel_files(ctx), *_bazel_wheels(ctx)]

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """The project's own image, if that is asked for."""
        return hub_image(ctx, "hub-gpu" if on_gpu(ctx) else "hub")

    def packages(self, ctx: Context) -> Packages:
        """Tools that the build calls, and the C++ library that the result is linked with."""
        if ctx.options.install != "source":
            return Packages()
        tools = ["file", "git", "patch", "rsync", "unzip", "zip"]
        if ctx.me.at_least("2.13"):
            # build_pip_package calls it from then on (tensorflow issue 68247).
            tools.append("patchelf")
        java = ["ca-certificates-java"] if ctx.facts.network.ca_certificates else []
        return Packages(
            build={"apt": [*tools, *java], "dnf": [*tools, "which"], "zypper": [*tools, "which"]},
            run=gcc_libraries("libgomp", "libstdc++"),
        )

    def environment(self, ctx: Context) -> Environment:
        """oneDNN on, in the releases that have it but leave it off."""
        opt_in = ctx.facts.architecture == "x86_64" and ctx.me.at_least("2.5") and not ctx.me.at_least("2.9")
        return Environment(both={"TF_ENABLE_ONEDNN_OPTS": "1"} if opt_in else {})

    def suits_pip(self, ctx: Context) -> bool:
        """Not beside the packages of the project's own image."""
        return bool(ctx.options.install != "hub")

    def capabilities(self, ctx: Context) -> Capabilities:
        """Whose GPUs it computes on (the project's own images bring CUDA with them), and whose threads it has.

        Its pools have as many threads as there are CPUs; only a build with OpenMP, which has LLVM's, reads
        OMP_NUM_THREADS. Source: tensorflow/core/common_runtime/process_util.cc.
        """
        openmp = has_openmp(ctx)
        vendors = ("nvidia",) if on_gpu(ctx) else ()
        return Capabilities(
            gpu_vendors=vendors,
            caches=(*KERAS, *of_gpus(vendors)),
            gpu_unused=gpu_unused(ctx),
            thread_variables=() if openmp else ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"),
            kmp=openmp,
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """The steps for the chosen way of installing."""
        if ctx.options.install == "hub":
            yield run("use the image's TensorFlow", hub_packages(ctx))
        elif ctx.options.install in PACKAGED:
            yield run("install", ctx.pip(_wheels(ctx)), caches=("pip",))
        else:
            yield from self._compile(ctx)

    def _compile(self, ctx: Context) -> Iterable[Run]:
        yield run("what TensorFlow needs", ctx.pip(_wheels(ctx)), caches=("pip",))
        yield run("TensorFlow source", ctx.unpack(ctx.archive(), SOURCE))
        yield run("what Bazel would fetch", ctx.bazel_setup(_bazel_files(ctx)))
        variables = [f"{name}={value}" for name, value in sorted(configuration(ctx).items())]
        yield run(
            "configure TensorFlow",
            command("cd", SOURCE),
            command("env", *variables, "./configure") + " < /dev/null",
            # Up to 2.3 configure adds the building machine's own CPU for host tools, whatever it was told.
            command("sed", "-i", "/march=native/d", ".tf_configure.bazelrc"),
        )
        target = f"//tensorflow/tools/pip_package:{'wheel' if ctx.me.at_least('2.17') else 'build_pip_package'}"
        call = {
            "program": bazel_program(ctx, BAZEL_ROOT, ctx.options.memory_mb),
            "options": build_words(ctx),
            "targets": [target],
        }
        yield run("compile TensorFlow", ctx.bazel_build(_bazel_files(ctx), SOURCE, **call))
        yield run(
            "make TensorFlow's wheel",
            command("cd", SOURCE),
            command("mkdir", "-p", ctx.wheel_folder),
            _wheel_command(ctx),
            "cd /",
            command("rm", "-rf", SOURCE, BAZEL_ROOT),
        )
        yield run("install TensorFlow", ctx.install_wheel("tensorflow"), joins="previous")

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The wheel that Bazel built."""
        return (ctx.wheel_folder,) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It loads, computes, and is the build that was asked for."""
        python = f"{_python(ctx)}/bin/python"
        version = "import tensorflow; print(tensorflow.__version__)"
        product = "tf.linalg.trace(tf.matmul(tf.eye(64), 2.0 * tf.eye(64)))"
        gpus = "tf.config.list_physical_devices('GPU')"
        if not ctx.me.at_least("2"):
            product = f"tf.Session().run({product.replace('linalg.', '')})"
            gpus = "tf.test.is_gpu_available()"
        product = f"import tensorflow as tf; print(float({product}))"
        gpus = f"import sys, tensorflow as tf; sys.exit(not {gpus})"
        tests = [
            Test("version", command(python, "-c", version), expect=ctx.version),
            Test("matrix product", command(python, "-c", product), expect="128.0"),
        ]
        if ctx.options.install == "source":
            tests += [*_onednn_test(ctx, python), *_avx512_test(ctx, python)]
        elif ctx.options.install == "intel":
            tests += _onednn_test(ctx, python)
        if on_gpu(ctx):
            tests.append(Test("GPU", command(python, "-c", gpus), device="gpu"))
        return tests

    def long_build(self, ctx: Context) -> str:
        """TensorFlow's own compilation; wheels are quick."""
        if ctx.options.install != "source":
            return ""
        return "hours, tens of GB of disk, and about 2 GB of memory for each compile step"

    def notices(self, ctx: Context) -> list[str]:
        """That options of a build from source do nothing."""
        options = ctx.options
        if options.install == "source":
            unused = options.compiler == "clang" and not ctx.has("llvm")
            return ["TensorFlow is compiled with clang only from source and without CUDA"] if unused else []
        plain = self.Options()
        idle = [name for name in OF_SOURCE if getattr(options, name) != getattr(plain, name)]
        return [f"tensorflow.{name} is for tensorflow.install=source alone" for name in idle]

    def details(self, ctx: Context) -> list[str]:
        """Who fetches what, and what nobody has listed."""
        if ctx.options.install != "source":
            return []
        told = ["Bazel itself fetches the files named in TensorFlow's workspace, by sha256"]
        files = _bazel_files(ctx)
        if files.lacking:
            told.append(files.lacking)
        if not files.known:
            told.append(
                "a bundle needs a list of these: hpcgen lock uses what is known, and with --fetch-bazel runs Bazel "
                "to find out (docs/bazel-inputs.md)"
            )
        return told


# what is installed with pip


def _python(ctx: Context) -> str:
    return ctx.use("python").prefix


def _wheels(ctx: Context) -> Wheels:
    """TensorFlow with all it needs; for a build from source, all but TensorFlow itself."""
    source = ctx.options.install == "source"
    package = "tensorflow" if source else _package(ctx)
    name = ctx.facts.listed(f"{package}-{ctx.version}")
    found = ctx.wheels(name, [f"{package}=={ctx.version}", *ctx.release.values.get("pins", [])])
    return found.without(package) if source else found


def _package(ctx: Context) -> str:
    """The package of the index; those without CUDA's parts are less than half the size."""
    if ctx.options.install == "intel":
        return "intel-tensorflow"
    if not ctx.me.at_least("1.15"):
        return "tensorflow-gpu" if on_gpu(ctx) else "tensorflow"
    return "tensorflow-cpu" if _x86(ctx) and ctx.me.at_least("2.1") and not on_gpu(ctx) else "tensorflow"


def _x86(ctx: Context) -> bool:
    return ctx.facts.architecture == "x86_64"


# building from source


def _bazel_files(ctx: Context) -> BazelFiles:
    return ctx.bazel_files(f"tensorflow-{ctx.version}")


def _bazel_wheels(ctx: Context) -> list[Wheels]:
    """Python packages that Bazel's Python rules install with pip while they build; the row says for which Pythons."""
    minor = ".".join(ctx.use("python").version.split(".")[:2])
    if ctx.facts.architecture != "x86_64" or minor not in ctx.release.values.get("bazel_wheels", []):
        return []
    return [ctx.wheels(f"bazel-tensorflow-{ctx.version}", [])]


def _wheel_command(ctx: Context) -> str:
    """Puts the wheel of what Bazel built where it is installed from."""
    if ctx.me.at_least("2.17"):
        return f"cp bazel-bin/tensorflow/tools/pip_package/wheel_house/*.whl {ctx.wheel_folder}"
    return command(f"./bazel-bin/{OLD_TOOL}", ctx.wheel_folder)


def _onednn_test(ctx: Context, python: str) -> list[Test]:
    """That oneDNN is on."""
    if not _x86(ctx) or not (has_openmp(ctx) or ctx.me.at_least("2.5")):
        return []
    onednn = "from tensorflow.python.framework import test_util; print('oneDNN', test_util.IsMklEnabled())"
    return [Test("oneDNN", command(python, "-c", onednn), expect="oneDNN True")]


def _avx512_test(ctx: Context, python: str) -> list[Test]:
    """That TensorFlow does not say that it leaves instructions of the CPU unused."""
    if not any("avx512" in flag for flag in ctx.flags):
        return []
    unused = (
        "import subprocess, sys; "
        "p = subprocess.run([sys.executable, '-c', 'import tensorflow as tf; tf.add(1.0, 1.0)'], "
        "check=True, stderr=subprocess.PIPE); "
        "sys.exit(b'AVX512F' in p.stderr)"
    )
    return [Test("AVX-512", command(python, "-c", unused))]
