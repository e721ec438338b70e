"""PMIx, through which ranks find each other."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Packages, Part, Test, command


class Pmix(AutotoolsBlock):
    """OpenPMIx, for an Open MPI that should not use its bundled copy.  Source: https://openpmix.org

    Versions from 2.1.1 on work together as client and server, so it need not be the host's version.
    """

    name = "pmix"
    needs = (need("gnu", build_only=True), need("libevent"), need("hwloc"))

    def packages(self, ctx: Context) -> Packages:
        """zlib, without which PMIx complains about large messages, and Python where its configure insists on one.

        Before 5.0.4 that looks for a file of its archive under an old name, and stops where it could not make it anew.
        Source: https://github.com/openpmix/openpmix/commit/7d56ff98b
        """
        build = {"apt": ["zlib1g-dev"], "dnf": ["zlib-devel"], "zypper": ["zlib-devel"]}
        if not ctx.me.at_least("5.0.4"):
            python = {"apt": "python3-minimal", "dnf": "python3", "zypper": "python3"}
            build = {manager: [*names, python[manager]] for manager, names in build.items()}
        return Packages(build=build, run={"apt": ["zlib1g"], "dnf": ["zlib"], "zypper": ["libz1"]})

    def settings(self, ctx: Context) -> list[str]:
        return [
            f"--with-libevent={ctx.use('libevent').prefix}",
            f"--with-hwloc={ctx.use('hwloc').prefix}",
            "--without-munge",
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def install(self, ctx: Context, source: str) -> list[Part]:
        """Without its documentation."""
        unwanted = [f"{ctx.prefix}/share/{folder}" for folder in ("doc", "man")]
        return [command("make", "-C", source, "install"), command("rm", "-rf", source, *unwanted)]

    def test(self, ctx: Context) -> list[Test]:
        """It is this version; its ``pmix_info --version`` prints nothing."""
        return [Test("version", "pmix_info", expect=f"PMIX: {ctx.version}")]
