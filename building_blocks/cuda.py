"""The CUDA toolkit, from NVIDIA's installer or as NVIDIA's image, or its libraries alone as NVIDIA's wheels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.blocks.base import Block, BlockOptions, Context, Situation, need
from hpcgen.blocks.caches import of_gpus
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.cuda_toolkit import image_key, is_of_image, minor, target_of, toolkit_folder
from hpcgen.blocks.declared import Facts, SiteRange
from hpcgen.blocks.nvidia import CUDA
from hpcgen.blocks.steps import (
    Archive,
    Environment,
    Image,
    Input,
    Packages,
    Run,
    Runtime,
    Test,
    Wheels,
    command,
    image,
    run,
)
from hpcgen.core.model.image_paths import SCRATCH

FOLDERS = "/opt/python/lib/python3*/site-packages/nvidia"
"""Where NVIDIA's wheels put their libraries, in folders of their own; the shell finds Python's version."""


def _wants_wheels(situation: Situation) -> bool:
    return bool(situation.options.obtain == "wheels")


def _wants_toolkit(situation: Situation) -> bool:
    return not _wants_wheels(situation)


class Cuda(Block):
    """NVIDIA CUDA toolkit.  Source: https://developer.nvidia.com/cuda-toolkit

    The prefix is always ``/opt/cuda``: NVIDIA's installer fills it, and in NVIDIA's images it is a link to
    ``/usr/local/cuda``. The final stage keeps the shared libraries, and ``ptxas`` and ``libdevice``, which XLA needs to
    compile at run time. The driver's ``libcuda.so`` is the host's; neither a stub nor a compatibility copy of it is
    left in the image. Wheels provide only the libraries (cuBLAS, cuFFT, cuRAND, NVRTC and the run time), in the Python
    environment, with links in ``/opt/cuda/lib64``.
    """

    name = "cuda"
    gpu_vendor = "nvidia"
    needs = (need("gnu", build_only=True, when=_wants_toolkit), need("python", when=_wants_wheels))

    class Options(BlockOptions, frozen=True):
        """``obtain``: start from NVIDIA's ``image``, install the ``archive``, or only the libraries as ``wheels``.

        ``auto`` is the image if the release has one for the chosen base, and the archive otherwise. If everything that
        needs CUDA only needs the libraries (as other projects' wheels do), ``wheels`` is the default.
        """

        obtain: Literal["auto", "image", "archive", "wheels"] = "auto"

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """What the host's MPI for GPUs is linked with."""
        return facts.runtime_ranges("nvidia")

    def inputs(self, ctx: Context) -> list[Input]:
        """The installer; an image is not counted here, the stages name theirs."""
        if _by_wheels(ctx):
            return [_wheels(ctx)]
        return [] if _by_image(ctx) else [_installer(ctx)]

    def base_image(self, ctx: Context, stage: str) -> Image | None:
        """NVIDIA's ``devel`` image for the builder and its ``runtime`` image for the final stage."""
        return image(ctx.release.images[image_key(ctx.base, stage)]) if _by_image(ctx) else None

    def prepare(self, ctx: Context, stage: str) -> Iterable[Run]:
        """In NVIDIA's images, make the prefix that other blocks use."""
        if _by_image(ctx):
            yield run("/opt/cuda", "mkdir -p /opt", command("ln", "-s", "/usr/local/cuda", ctx.prefix), joins="next")

    def packages(self, ctx: Context) -> Packages:
        """What NVIDIA's installer is linked with; the old one is written in Perl."""
        if _by_image(ctx) or _by_wheels(ctx):
            return Packages()
        names = ["libxml2"] if ctx.me.at_least("10.1") else ["perl"]
        return Packages(
            build={"apt": names, "dnf": names, "zypper": [name.replace("libxml2", "libxml2-2") for name in names]}
        )

    def environment(self, ctx: Context) -> Environment:
        """Where CUDA is, for build scripts and for XLA."""
        home = ctx.prefix
        if _by_wheels(ctx):
            return Environment(paths={"LD_LIBRARY_PATH": [f"{home}/lib64"]})
        return Environment(
            both={"CUDA_HOME": home, "XLA_FLAGS": f"--xla_gpu_cuda_data_dir={home}"},
            paths={"PATH": [f"{home}/bin"], "LD_LIBRARY_PATH": [f"{home}/lib64"]},
        )

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install the toolkit alone, without driver and samples."""
        if _by_wheels(ctx):
            yield run("CUDA libraries", ctx.pip(_wheels(ctx)), caches=("pip",))
            yield run(
                "lib64 of cuda",
                command("mkdir", "-p", f"{ctx.prefix}/lib64"),
                f"ln -s {FOLDERS}/*/lib/lib*.so.* {ctx.prefix}/lib64/",
                joins="previous",
            )
        if _by_image(ctx) or _by_wheels(ctx):
            return
        installer = _installer(ctx)
        scratch = f"{SCRATCH}/cuda"
        where = "--installpath" if ctx.me.at_least("10.1") else "--toolkitpath"
        # It does not care that the compiler is not the one it expects: "accepts" has seen to that.
        words = ["sh", ctx.local(installer), "--silent", "--override", "--toolkit", f"--tmpdir={scratch}"]
        yield run("fetch", ctx.fetch(installer))
        yield run(
            "install",
            command("mkdir", "-p", scratch),
            # In another language the installer of 10.1 crashes, and so it does over an old log.
            "rm -f /tmp/cuda-installer.log",
            "LANG=C " + command(*words, f"{where}={ctx.prefix}"),
            command("rm", "-rf", scratch, ctx.local(installer), "/tmp/cuda-installer.log"),
        )

    def runtime(self, ctx: Context) -> Runtime:
        """Shared libraries (unless the image has them), libdevice and ptxas."""
        if _by_wheels(ctx):
            return Runtime(copies=(f"{ctx.prefix}/lib64",))
        top = toolkit_folder(ctx.me, ctx.base)
        compiler = (f"{top}/bin/ptxas", f"{top}/nvvm/libdevice")
        return Runtime(copies=compiler if _by_image(ctx) else (*compiler, _libraries(ctx)))

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """Leave static libraries behind, and every stand-in for the driver's libcuda."""
        if stage == "final" and ctx.facts.fabric.kind == "slingshot" and (_by_image(ctx) or _by_wheels(ctx)):
            # Plugins for NCCL that the site puts into the container look for it by this name; see its known issues.
            yield run(
                "libcudart.so",
                command("ln", "-sf", _runtime_library(ctx), f"{ctx.prefix}/lib64/libcudart.so"),
                joins="previous",
            )
        if _by_wheels(ctx):
            return
        if _by_image(ctx):
            if stage == "final":
                yield run(
                    "no libcuda", command("rm", "-rf", f"{toolkit_folder(ctx.me, ctx.base)}/compat"), joins="previous"
                )
        elif stage == "builder":
            libraries = _libraries(ctx)
            yield run("slim cuda", f"rm -rf {libraries}/*.a {libraries}/stubs", joins="previous")
        else:
            yield run(
                "lib64 of cuda",
                command("ln", "-s", f"targets/{target_of(ctx)}/lib", f"{ctx.prefix}/lib64"),
                joins="previous",
            )

    def test(self, ctx: Context) -> list[Test]:
        """The run-time library and ptxas are there; on a node with a GPU, the driver answers."""
        tests = [
            Test("libcudart", f"ls -L {ctx.prefix}/lib64/", expect="libcudart.so"),
            Test("ptxas", f"{ctx.prefix}/bin/ptxas --version", expect=f"release {minor(ctx.me)}"),
            Test("driver", "nvidia-smi -L", device="gpu", expect="GPU 0"),
        ]
        return [test for test in tests if test.name != "ptxas" or not _by_wheels(ctx)]

    def capabilities(self, ctx: Context) -> Capabilities:
        """NVIDIA's licence, which installing it accepts; the run-time library is on the loader's path."""
        return Capabilities(licences=(CUDA,), gpu_runtime="nvidia", caches=of_gpus(["nvidia"]))

    def details(self, ctx: Context) -> list[str]:
        """That the build accepts NVIDIA's licence."""
        return [f"The build accepts the NVIDIA Software License Agreement (CUDA EULA) for CUDA {ctx.version}."]


def _by_image(ctx: Context) -> bool:
    return is_of_image(ctx.me, ctx.base)


def _by_wheels(ctx: Context) -> bool:
    return bool(ctx.options.obtain == "wheels")


def _wheels(ctx: Context) -> Wheels:
    return ctx.wheels(ctx.facts.listed(f"cuda-{ctx.version}"), ctx.release.values["wheels"])


def _installer(ctx: Context) -> Archive:
    return ctx.archive(ctx.facts.architecture)


def _runtime_library(ctx: Context) -> str:
    """The SONAME of the run time: of the minor version up to 10, 11.0 for all of 11, then of the major version."""
    if ctx.me.at_least("12"):
        return f"libcudart.so.{ctx.version.split('.')[0]}"
    return f"libcudart.so.{'11.0' if ctx.me.at_least('11') else minor(ctx.me)}"


def _libraries(ctx: Context) -> str:
    return f"{ctx.prefix}/targets/{target_of(ctx)}/lib"
