"""libevent, which PMIx waits with."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context, need
from hpcgen.blocks.steps import Environment, Run, Runtime, Test, command, run
from hpcgen.model.image_paths import SCRATCH


class Libevent(Block):
    """libevent without encryption.  Source: https://libevent.org"""

    name = "libevent"
    needs = (need("gnu", build_only=True),)

    def environment(self, ctx: Context) -> Environment:
        return Environment(paths={"LD_LIBRARY_PATH": [f"{ctx.prefix}/lib"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/libevent"
        settings = [
            "--disable-openssl",
            "--disable-samples",
            "--disable-libevent-regress",
            "--disable-static",
            "--disable-dependency-tracking",
        ]
        yield run("fetch", ctx.unpack(ctx.archive(), source))
        yield run(
            "configure and compile",
            command("cd", source),
            command("./configure", f"--prefix={ctx.prefix}", *settings),
            f'make -C {source} -j "$(nproc)"',
        )
        yield run("install", command("make", "-C", source, "install"), command("rm", "-rf", source))

    def runtime(self, ctx: Context) -> Runtime:
        return Runtime(copies=(f"{ctx.prefix}/lib",))

    def test(self, ctx: Context) -> list[Test]:
        """The parts that PMIx is linked with are there."""
        return [Test("library", f"ls {ctx.prefix}/lib", expect="libevent_pthreads-2.1.so.7")]
