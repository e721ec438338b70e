"""aws-ofi-nccl, by which NCCL and RCCL send over libfabric."""

from __future__ import annotations

from typing import Any, Literal

from hpcgen.backends.hardware.fabrics import NCCL_LIBFABRIC
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import BlockOptions, Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.steps import Environment, Packages, Part, Test, TextFile, command
from hpcgen.core.model.image_paths import SCRATCH

TOOLS = ["autoconf", "automake", "libtool", "make"]

SLINGSHOT = {
    "FI_CXI_DEFAULT_CQ_SIZE": "131072",
    "FI_CXI_DISABLE_HOST_REGISTER": "1",
    "FI_MR_CACHE_MONITOR": "userfaultfd",
    "NCCL_CROSS_NIC": "1",
}
"""What both HPE and CSCS recommend for Slingshot.

The last three are in NERSC's module for podman-hpc too. Where the sources differ (``NCCL_NET_GDR_LEVEL``, the
rendezvous of cxi, ``FI_CXI_DEFAULT_TX_SIZE``), the site's own environment decides. Source:
github.com/HewlettPackard/shs-ccl-docs@438fcce ccl_env.sh, github.com/eth-cscs/cscs-docs@80abed1
docs/software/communication/nccl_env_vars, github.com/NERSC/podman-hpc@01b02d6 etc/modules.d/nccl.yaml.
"""


def _with_cuda(situation: Situation) -> bool:
    return bool(situation.options.accelerator == "cuda")


def _with_rocm(situation: Situation) -> bool:
    return bool(situation.options.accelerator == "rocm")


def _on_efa(situation: Situation) -> bool:
    return situation.facts.gpu_fabric == "efa"


class AwsOfiNccl(AutotoolsBlock):
    """The plugin for NCCL, and for RCCL, over libfabric: Slingshot, EFA.  Source: https://github.com/aws/aws-ofi-nccl

    NCCL opens it as ``libnccl-net.so``, RCCL as ``librccl-net.so``. It is compiled without either of them, and finds
    the GPU's driver at start. It uses the image's libfabric, which the host's must replace for cxi or efa. Jobs of
    several nodes set ``NCCL_NET``, so that NCCL stops where the plugin does not work; on one node that would stop it
    needlessly, so the image does not set it.
    """

    name = "aws_ofi_nccl"
    needs = (
        need("gnu", ">=8", build_only=True),
        need("libfabric"),
        # For what it has of AWS alone.
        need("libfabric", ">=1.22", when=_on_efa),
        need("hwloc"),
        need("cuda", build_only=True, when=_with_cuda),
        need("rocm", when=_with_rocm),
    )

    class Options(BlockOptions, frozen=True):
        """``accelerator``: the vendor of the GPUs, by default the partition's."""

        accelerator: Literal["cuda", "rocm"] = "cuda"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """ROCm on GPUs of AMD."""
        gpu = facts.partition.gpu
        return {"accelerator": "rocm"} if gpu is not None and gpu.vendor == "amd" else {}

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Not those that were made for AWS's instances alone."""
        if facts.gpu_fabric == "efa":
            return []
        reason = "1.10 to 1.13 are for EFA only, by their release notes"
        return [SiteRange("!=1.10.*,!=1.11.*,!=1.12.*,!=1.13.*", "fabric.kind", reason)]

    def packages(self, ctx: Context) -> Packages:
        """The tools that make ``configure``, which the archives of tags are without."""
        return Packages(build={"apt": TOOLS, "dnf": TOOLS, "zypper": TOOLS})

    def prepare_source(self, ctx: Context) -> list[str]:
        """``configure`` is made; from 1.19 on that wants to be told the version where there is no git."""
        return [f"{command('echo', ctx.version)} > .release_version", command("sh", "autogen.sh")]

    def settings(self, ctx: Context) -> list[str]:
        own = "cuda" if ctx.has("cuda") else "rocm"
        aws = "enable" if ctx.facts.gpu_fabric == "efa" else "disable"
        return [
            f"--with-libfabric={ctx.use('libfabric').prefix}",
            f"--with-hwloc={ctx.use('hwloc').prefix}",
            f"--with-{own}={ctx.use(own).prefix}",
            f"--{aws}-platform-aws",
            "--disable-tests",
        ]

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Install it, and compile the program that asks it for its name."""
        program = f"{SCRATCH}/net_plugin.c"
        return [
            command("make", "-C", source, "install"),
            command("mkdir", "-p", f"{ctx.prefix}/bin"),
            TextFile("files/tests/net_plugin.c", program, ctx.text_file("net_plugin.c")),
            f'"$CC" -O1 -o {ctx.prefix}/bin/net_plugin {program} -ldl',
            command("rm", "-rf", source),
        ]

    def environment(self, ctx: Context) -> Environment:
        """The loader finds it; on Slingshot, what libfabric and NCCL are told there."""
        both = dict(SLINGSHOT) if ctx.facts.gpu_fabric == "slingshot" else {}
        if ctx.has("rocm") and ctx.use("rocm").at_least("7.2"):
            # Else it is not found.  Source: github.com/HewlettPackard/shs-ccl-docs issue 6.
            both["NCCL_NET_PLUGIN"] = f"{ctx.prefix}/lib/{_library(ctx)}"
        return Environment(both=both, paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def test(self, ctx: Context) -> list[Test]:
        """It can be loaded with all that it is linked with, and has the name that jobs ask NCCL for."""
        ask = command(f"NCCL_NET={NCCL_LIBFABRIC}", f"{ctx.prefix}/bin/net_plugin", _library(ctx))
        return [Test("plugin", f"env {ask}", expect=f": {NCCL_LIBFABRIC}")]

    def capabilities(self, ctx: Context) -> Capabilities:
        """The network that it gives NCCL."""
        return Capabilities(gpu_networks=(NCCL_LIBFABRIC,))


def _library(ctx: Context) -> str:
    return "libnccl-net.so" if ctx.has("cuda") else "librccl-net.so"
