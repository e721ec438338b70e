"""PMIx, by which ranks learn of each other."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Packages, Run, Runtime, Test, command, run
from hpcgen.model.image_paths import SCRATCH


class Pmix(Block):
    """OpenPMIx, for an Open MPI that is not to use the copy it brings.  Source: https://openpmix.org

    Versions from 2.1.1 on understand each other as client and server, so it need not be the host's version.
    """

    name = "pmix"
    needs = (need("gnu", build_only=True), need("libevent"), need("hwloc"))

    def packages(self, ctx: Context) -> Packages:
        """zlib, without which PMIx complains about large messages, and Python where its configure insists on one.

        Before 5.0.4 that looks for a file of its archive under an old name, and stops where it could not make it anew.
        Source: https://github.com/openpmix/openpmix/commit/7d56ff98b
        """
        build = {"apt": ["zlib1g-dev"], "dnf": ["zlib-devel"]}
        if not ctx.me.at_least("5.0.4"):
            build = {"apt": [*build["apt"], "python3-minimal"], "dnf": [*build["dnf"], "python3"]}
        return Packages(build=build, run={"apt": ["zlib1g"], "dnf": ["zlib"]})

    def environment(self, ctx: Context) -> Environment:
        return Environment(paths={"PATH": [f"{ctx.prefix}/bin"], "LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/pmix"
        settings = [
            f"--prefix={ctx.prefix}",
            f"--with-libevent={ctx.use('libevent').prefix}",
            f"--with-hwloc={ctx.use('hwloc').prefix}",
            "--without-munge",
            "--disable-static",
            "--disable-dependency-tracking",
        ]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cd", source),
            command("./configure", *settings),
            f'make -C {source} -j "$(nproc)"',
        )
        yield run(
            "install",
            command("make", "-C", source, "install"),
            command("rm", "-rf", source, f"{ctx.prefix}/share/doc", f"{ctx.prefix}/share/man"),
        )

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(ctx.prefix,))

    def test(self, ctx: Context) -> list[Test]:
        """It is this version; its ``pmix_info --version`` prints nothing."""
        return [Test("version", "pmix_info", expect=f"PMIX: {ctx.version}")]
