"""libfabric, the layer between MPI and the network."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.backends.hardware.fabrics import libfabric_range, libfabric_symbols
from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, Facts, SiteRange, Situation, need
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.rdma_packages import RDMA_HEADERS, RDMA_LIBRARIES
from hpcgen.blocks.steps import Packages, Run, Test, TextFile, lines, run

ALWAYS = ("rxm", "shm", "sockets", "tcp", "udp")
"""Providers that need no hardware and no library of their own."""


def _on_omni_path(situation: Situation) -> bool:
    return situation.facts.fabric.kind == "omni-path"


class Libfabric(AutotoolsBlock):
    """libfabric (OFI) with the provider for the site's fabric.  Source: https://github.com/ofiwg/libfabric

    Always shared memory and TCP; ``psm2`` on Omni-Path, ``verbs`` on InfiniBand. Nothing else is compiled in, so
    ``fi_info -l`` shows what the image supports. For Slingshot and EFA the host provides libfabric.
    """

    name = "libfabric"
    needs = (need("gnu", build_only=True), need("fabric", when=_on_omni_path))

    @classmethod
    def site_ranges(cls, facts: Facts) -> list[SiteRange]:
        """Nothing that asks for symbols which the host's libfabric has not, where that takes the image's place."""
        here = facts.fabric.libfabric
        versions = libfabric_range(libfabric_symbols(here)) if here is not None else ""
        if here is None or not versions:
            return []
        newest = f"FABRIC_1.{libfabric_symbols(here)}"
        reason = f"the host's libfabric {here}, which replaces the image's and ends with {newest}"
        return [SiteRange(versions, "fabric.libfabric", reason)]

    def packages(self, ctx: Context) -> Packages:
        """libibverbs and librdmacm for InfiniBand."""
        if not _verbs(ctx):
            return Packages()
        return Packages(build=RDMA_HEADERS, run=RDMA_LIBRARIES)

    def settings(self, ctx: Context) -> list[str]:
        providers = [f"--enable-{name}=yes" for name in ALWAYS]
        if ctx.has("psm2"):
            # The distribution's package is found without a path.
            compiled = ctx.use("psm2").options.install == "source"
            providers.append(f"--enable-psm2={ctx.use('psm2').prefix if compiled else 'yes'}")
        if _verbs(ctx):
            providers.append("--enable-verbs=yes")
        return ["--disable-static", "--enable-only", *providers]

    def finish(self, ctx: Context, stage: str) -> Iterable[Run]:
        """On Slingshot the loader's cache knows it, for there a site puts its own libfabric in its place.

        Hooks of engines (CSCS's for cxi) look for it with ldconfig; else they bring the host's to another folder, and
        LD_LIBRARY_PATH goes on to lead to the image's, which knows TCP alone.
        """
        if stage == "final" and ctx.facts.fabric.kind == "slingshot":
            place = "/etc/ld.so.conf.d/hpcgen-libfabric.conf"
            known = TextFile("files/settings/libfabric.conf", place, lines(f"{ctx.prefix}/lib"))
            yield run("tell the loader of libfabric", known, "ldconfig")

    def test(self, ctx: Context) -> list[Test]:
        """It is this version and has the site's provider."""
        release = ".".join(ctx.version.split(".")[:3])
        tests = [Test("version", "fi_info --version", expect=f"libfabric: {release}")]
        wanted = "psm2" if ctx.has("psm2") else "verbs" if _verbs(ctx) else "tcp"
        tests.append(Test("provider", "fi_info -l", expect=f"{wanted}:"))
        if ctx.has("psm2"):
            tests.append(Test("psm2 on the device", "fi_info -p psm2", device="fabric", expect="provider: psm2"))
        return tests

    def capabilities(self, ctx: Context) -> Capabilities:
        """The providers that are compiled in, and whose libraries are in the image."""
        fast = [name for name, there in (("psm2", ctx.has("psm2")), ("verbs", _verbs(ctx))) if there]
        return Capabilities(providers=(*fast, *ALWAYS))


def _verbs(ctx: Context) -> bool:
    return ctx.facts.fabric.kind == "infiniband"
