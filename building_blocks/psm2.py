"""PSM2, the library that drives Omni-Path."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, Situation, need
from hpcgen.blocks.steps import Environment, Input, Packages, Run, Runtime, Test, command, run
from hpcgen.core.model.image_paths import SCRATCH


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


class Psm2(Block):
    """PSM2 for Omni-Path, x86-64 only.  Source: https://github.com/cornelisnetworks/opa-psm2

    libfabric's provider ``psm2`` needs ``libpsm2.so.2``. Without it Intel MPI and libfabric silently fall back to TCP.
    It is compiled with AVX2.
    """

    name = "psm2"
    provides = ("fabric",)
    needs = (need("gnu", build_only=True, when=_from_source),)

    class Options(BlockOptions, frozen=True):
        """``install``: compiled from the hashed ``source``, or the distribution's ``package``."""

        install: Literal["source", "package"] = "source"

    @classmethod
    def preference(cls, facts: Facts) -> int | None:
        """Only where there is Omni-Path, and only on x86-64."""
        return 0 if facts.fabric.kind == "omni-path" and facts.architecture == "x86_64" else None

    def inputs(self, ctx: Context) -> list[Input]:
        """The source archive, if it is compiled."""
        return [ctx.archive()] if ctx.options.install == "source" else []

    def packages(self, ctx: Context) -> Packages:
        """libnuma, or the finished library."""
        if ctx.options.install == "package":
            return Packages(
                build={
                    "apt": ["libpsm2-2", "libpsm2-dev"],
                    "dnf": ["libpsm2", "libpsm2-devel"],
                    "zypper": ["libpsm2-2", "libpsm2-devel"],
                },
                run={"apt": ["libpsm2-2"], "dnf": ["libpsm2"], "zypper": ["libpsm2-2"]},
            )
        return Packages(
            build={
                "apt": ["libnuma-dev", "make"],
                "dnf": ["make", "numactl-devel"],
                "zypper": ["libnuma-devel", "make"],
            },
            run={"apt": ["libnuma1"], "dnf": ["numactl-libs"], "zypper": ["libnuma1"]},
        )

    def environment(self, ctx: Context) -> Environment:
        """The folder of the library."""
        if ctx.options.install == "package":
            return Environment()
        return Environment(paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Compile, install beside, and keep the library and its headers under the prefix."""
        if ctx.options.install == "package":
            return
        source, beside = f"{SCRATCH}/psm2", f"{SCRATCH}/psm2-installed"
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        # -Werror stops at an array-bounds warning of GCC 12. Headers go to DESTDIR/usr in any case.
        make = command("make", "install", "LIBDIR=/lib", f"DESTDIR={beside}", "WERROR=")
        yield run("compile", command("cd", source), make)
        yield run(
            "install",
            command("mkdir", "-p", f"{ctx.prefix}/lib"),
            f"cp -a {beside}/lib/libpsm2.so* {ctx.prefix}/lib/",
            command("cp", "-a", f"{beside}/usr/include", f"{ctx.prefix}/include"),
            command("rm", "-rf", source, beside),
            joins="previous",
        )

    def runtime(self, ctx: Context) -> Runtime:
        """The prefix, if it was compiled."""
        return Runtime(copies=(ctx.prefix,)) if ctx.options.install == "source" else Runtime()

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        return (ctx.prefix,) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """The library is there and finds libnuma; on a node with Omni-Path, the device is readable."""
        if ctx.options.install == "package":
            return [Test("library", "ldconfig -p", expect="libpsm2.so.2")]
        return [
            Test("library", f"ldd {ctx.prefix}/lib/libpsm2.so.2", expect="libnuma.so.1 => /"),
            Test("device", "test -r /dev/hfi1_0", device="/dev/hfi1_0"),
        ]
