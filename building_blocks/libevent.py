"""libevent, the event loop of PMIx."""

from __future__ import annotations

from hpcgen.blocks.autotools import AutotoolsBlock
from hpcgen.blocks.base import Context, need
from hpcgen.blocks.steps import Environment, Runtime, Test


class Libevent(AutotoolsBlock):
    """libevent without encryption.  Source: https://libevent.org"""

    name = "libevent"
    needs = (need("gnu", build_only=True),)

    def environment(self, ctx: Context) -> Environment:
        return Environment(paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def settings(self, ctx: Context) -> list[str]:
        return [
            "--disable-openssl",
            "--disable-samples",
            "--disable-libevent-regress",
            "--disable-static",
            "--disable-dependency-tracking",
        ]

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        """The parts that PMIx is linked with are there."""
        return [Test("library", f"ls {ctx.prefix}/lib", expect="libevent_pthreads-2.1.so.7")]
