"""UCX, the layer between MPI and InfiniBand."""

from __future__ import annotations

from typing import Any

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.capabilities import COPY_DEVICES, Capabilities
from hpcgen.blocks.gpu_memory import gpu_memory
from hpcgen.blocks.rdma_packages import RDMA_HEADERS, RDMA_LIBRARIES
from hpcgen.blocks.steps import Packages, Test, complete


def _with_cuda(situation: Situation) -> bool:
    return bool(situation.options.cuda)


def _with_rocm(situation: Situation) -> bool:
    return bool(situation.options.rocm)


def _with_gdrcopy(situation: Situation) -> bool:
    return bool(situation.options.cuda and situation.options.gdrcopy)


def _with_xpmem(situation: Situation) -> bool:
    return bool(situation.options.xpmem)


class Ucx(AutotoolsBlock):
    """UCX, from source: shared memory and TCP everywhere, RDMA where there is InfiniBand.  Source: https://openucx.org

    Every feature is set explicitly, so that the result does not depend on what the builder happens to have. The card
    drivers (libmlx5 and similar) come from the distribution's rdma-core.
    """

    name = "ucx"
    needs = (
        need("gnu", build_only=True),
        need("cuda", when=_with_cuda),
        need("rocm", when=_with_rocm),
        need("gdrcopy", when=_with_gdrcopy),
        need("xpmem", when=_with_xpmem),
    )
    # Releases before do not know ROCm 6. Source: github.com/spack/spack-packages@1e8cf059: ucx/package.py
    gpu_memory = {"cuda": ("cuda", "0"), "rocm": ("rocm", "1.16")}

    class Options(BlockOptions, frozen=True):
        """``cuda``, ``rocm``: also transfers from and to the memory of NVIDIA's or AMD's GPUs.

        Where the image has CUDA or ROCm, that is the default, as in ``openmpi``. ``rocm`` was not compiled by hpcgen.
        ``gdrcopy``: with ``cuda``, small messages from and to the GPUs' memory are copied by the host's module gdrdrv.
        ``xpmem``: ranks of a node map each other's memory by the module XPMEM. Both are the default where the profile
        says that the nodes have the module (``copy_devices``).
        """

        cuda: bool = False
        rocm: bool = False
        gdrcopy: bool = False
        xpmem: bool = False

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """What the nodes have a module for, unless the host's MPI takes the place of the one that would use it."""
        if facts.mpi is not None and facts.mpi.shown_inside:
            return {}
        return {option: True for option, device in COPY_DEVICES.items() if device in facts.partition.copy_devices}

    def packages(self, ctx: Context) -> Packages:
        """rdma-core for InfiniBand."""
        if not _rdma(ctx):
            return Packages()
        return Packages(build=RDMA_HEADERS, run=RDMA_LIBRARIES)

    def settings(self, ctx: Context) -> list[str]:
        """As its own configure-release has them, with threads."""
        own = _copying(ctx)
        return [
            "--disable-logging",
            "--disable-debug",
            "--disable-assertions",
            "--disable-params-check",
            "--enable-mt",
            *[f"--{'with' if _rdma(ctx) else 'without'}-{name}" for name in ("verbs", "rdmacm")],
            f"--with-cuda={ctx.use('cuda').prefix}" if ctx.options.cuda else "--without-cuda",
            f"--with-rocm={ctx.use('rocm').prefix}" if ctx.options.rocm else "--without-rocm",
            *[f"--with-{name}={ctx.use(name).prefix}" for name in own],
            *[f"--without-{name}" for name in ("gdrcopy", "knem", "xpmem", "java", "go") if name not in own],
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def test(self, ctx: Context) -> list[Test]:
        """It is this version and has TCP; on InfiniBand its libraries are found, and the card answers."""
        tests = [
            Test("version", "ucx_info -v", expect=ctx.version),
            Test("transport", "ucx_info -d", expect="Transport: tcp"),
        ]
        # Its configure only warns where it does not find ROCm.
        plugins = [name for name in ("cuda", "rocm") if getattr(ctx.options, name)]
        # Of libraries that it does not find, it says so and goes on.
        plugins += [{"gdrcopy": "cuda_gdrcopy"}.get(name, name) for name in _copying(ctx)]
        tests += [Test(name, f"test -e {ctx.prefix}/lib/ucx/libuct_{name}.so.0") for name in plugins]
        if _rdma(ctx):
            library = f"{ctx.prefix}/lib/ucx/libuct_ib.so.0"
            missing = complete(library)
            tests.append(Test("InfiniBand", missing))
            tests.append(Test("InfiniBand on the device", "ucx_info -d", device="fabric", expect="Transport: rc"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """UCX as a provider, where it drives the site's fabric."""
        return Capabilities(providers=("ucx",), gpu_memory=gpu_memory(ctx))


def _copying(ctx: Context) -> list[str]:
    """The libraries beside it by which it copies."""
    return [name for name in COPY_DEVICES if ctx.has(name)]


def _rdma(ctx: Context) -> bool:
    return ctx.facts.fabric.kind == "infiniband"
