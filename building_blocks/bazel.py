"""Bazel for the builder."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Block, Context
from hpcgen.blocks.steps import Archive, Environment, Input, Run, command, run
from hpcgen.core.errors import ConflictError


class Bazel(Block):
    """Bazel, a single binary with its own Java, in the builder only.  Source: https://bazel.build"""

    name = "bazel"
    build_only = True

    def inputs(self, ctx: Context) -> list[Input]:
        """The binary for the site's architecture."""
        return [_binary(ctx)]

    def environment(self, ctx: Context) -> Environment:
        """``bazel`` is found by name."""
        return Environment(build_paths={"PATH": [f"{ctx.prefix}/bin"]})

    def build(self, ctx: Context) -> Iterable[Run]:
        """Fetch it and put it in place."""
        binary = _binary(ctx)
        target = f"{ctx.prefix}/bin/bazel"
        yield run("Bazel", ctx.fetch(binary), command("install", "-D", "-m", "755", ctx.local(binary), target))


def _binary(ctx: Context) -> Archive:
    if ctx.facts.architecture not in ctx.release.archives:
        raise ConflictError(
            f"no checked binary of Bazel {ctx.version} for {ctx.facts.architecture} is known",
            expected=f"one of {', '.join(sorted(ctx.release.archives))}",
            remedy="add its address and sha256 to a bazel.yaml in a collection, or set tensorflow.install=pip",
        )
    return ctx.archive(ctx.facts.architecture)
