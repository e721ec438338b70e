"""Libraries compiled against one release of PyTorch, for the same GPUs as that: what their blocks have in common."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context, Facts, Need, Situation, need
from hpcgen.blocks.pytorch_wheels import wheel_accelerator
from hpcgen.blocks.steps import Input, Run, Test, Wheels, command, run
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.image_paths import SCRATCH


def _from_source(situation: Situation) -> bool:
    return bool(situation.options.install == "source")


class TorchLibrary(Block):
    """Base of torchvision and torchaudio.

    Their compiled parts are linked with PyTorch's, so a wheel for CUDA does not load beside a PyTorch for CPUs, and
    pip notices nothing of it. Which release belongs to which PyTorch is in ``accepts`` of its row.

    ``needed``: what a library needs beside PyTorch and what that needs; ``proof``: Python that prints a proof of its
    compiled part, and ``proves`` what it prints.
    """

    needs: ClassVar[tuple[Need, ...]] = (
        need("python"),
        need("pytorch"),
        need("gnu", ">=9.4", build_only=True, when=_from_source),
    )
    agrees: ClassVar[Mapping[str, str]] = {"pytorch": "install"}
    needed: ClassVar[tuple[str, ...]] = ()
    proof: ClassVar[str]
    proves: ClassVar[str]

    class Options(BlockOptions, frozen=True):
        """``accelerator``: what PyTorch computes on, which is told there and here alike; by default as PyTorch's.

        ``install``: ``pip`` takes the package index's wheel (with CUDA; for ARM also without), ``wheel`` PyTorch's own
        for CPUs by its address, ``source`` compiles what runs on CPUs.
        """

        accelerator: Literal["cpu", "cuda", "rocm", "xpu"] = "cpu"
        install: Literal["pip", "wheel", "source"] = "wheel"

    @classmethod
    def defaults(cls, facts: Facts) -> dict[str, Any]:
        """What goes with the PyTorch that is taken by default."""
        accelerator = wheel_accelerator(facts)
        on_cpu = "wheel" if facts.architecture == "x86_64" else "pip"
        return {"accelerator": accelerator, "install": {"cuda": "pip", "rocm": "source"}.get(accelerator, on_cpu)}

    @classmethod
    def alternatives(cls, facts: Facts) -> dict[str, tuple[str, ...]]:
        """What goes with the PyTorch that is taken where the default lacks a release."""
        return {"install": ("pip",)} if wheel_accelerator(facts) == "cpu" else {}

    def inputs(self, ctx: Context) -> list[Input]:
        """The wheel, or the source and what building it needs; and what it needs beside PyTorch."""
        _check(ctx)
        install = ctx.options.install
        if install == "pip":
            return [self._list(ctx)]
        files: list[Input] = [ctx.wheel_file()] if install == "wheel" else [ctx.archive(), _tools(ctx)]
        return [*files, *self._needs(ctx)]

    def build(self, ctx: Context) -> Iterable[Run]:
        """Install it beside PyTorch."""
        install = ctx.options.install
        if install == "pip":
            yield run("install", ctx.pip(self._list(ctx)), caches=("pip",))
            return
        for needs in self._needs(ctx):
            yield run("its requirements", ctx.pip(needs), caches=("pip",))
        if install == "wheel":
            yield run("install", ctx.pip_file(ctx.wheel_file()))
            return
        yield from self._compiled(ctx)

    def notices(self, ctx: Context) -> list[str]:
        """Where its setup.py cannot load PyTorch."""
        return ctx.compiled_for_nodes(["pytorch"]) if ctx.options.install == "source" else []

    def variables(self, ctx: Context) -> dict[str, str]:
        """Environment of its setup.py, where it is compiled."""
        return {}

    def artifact(self, ctx: Context) -> tuple[str, ...]:
        """The wheel, compiled against the PyTorch of the image."""
        return (ctx.wheel_folder,) if ctx.options.install == "source" else ()

    def test(self, ctx: Context) -> list[Test]:
        """It is this release, and its compiled part loads beside PyTorch and computes."""
        python = f"{ctx.use('python').prefix}/bin/python"
        version = command(python, "-c", f"import {self.name}; print({self.name}.__version__)")
        return [
            Test("version", version, expect=ctx.version),
            Test("compiled part", command(python, "-c", self.proof), expect=self.proves),
        ]

    def _compiled(self, ctx: Context) -> Iterable[Run]:
        source = f"{SCRATCH}/{self.name}"
        flags = " ".join(ctx.flags)
        variables = {**self.variables(ctx), **({"CFLAGS": flags, "CXXFLAGS": flags} if flags else {})}
        yield run("its build requirements", ctx.pip(_tools(ctx)), caches=("pip",))
        yield run("source", ctx.unpack(ctx.archive(), source))
        yield run("compile", ctx.compile_wheel(source, variables))
        yield run("install", ctx.install_wheel(self.name), joins="previous")

    def _list(self, ctx: Context) -> Wheels:
        """Of its list the wheel, and what it needs beside PyTorch, whose own list has the rest."""
        name = ctx.facts.listed(f"{self.name}-{ctx.version}")
        found = ctx.wheels(name, [f"{self.name}=={ctx.version}", *self.needed])
        mine = (self.name, *self.needed)
        kept = tuple(line for line in found.requirements if re.split(r"[^a-z0-9-]", line)[0] in mine)
        return msgspec.structs.replace(found, requirements=kept)

    def _needs(self, ctx: Context) -> list[Wheels]:
        return [self._list(ctx).without(self.name)] if self.needed else []


def _tools(ctx: Context) -> Wheels:
    """The list with which PyTorch itself is compiled."""
    return ctx.wheels("torch-build", ["ninja", "pyyaml", "requests", "setuptools<81", "six"])


def _check(ctx: Context) -> None:
    """That it is for the PyTorch of the image; ConflictError otherwise."""
    me, torch = ctx.me, ctx.use("pytorch")
    if torch.options.install in ("hub", "package"):
        raise ConflictError(
            f"{me.name} cannot be added to a PyTorch of {torch.name}.install={torch.options.install}: "
            "which build goes with it is not known",
            expected=f"{torch.name}.install of pip, wheel or source",
            remedy="take it out of the stack and its files: images of NVIDIA and AMD have their own"
            if torch.options.install == "hub"
            else f"--set {torch.name}.install=wheel",
        )
    if me.options.accelerator != torch.options.accelerator:
        raise ConflictError(
            f"{me.name} would be for {me.options.accelerator}, and PyTorch computes on {torch.options.accelerator}: "
            "it would not load",
            expected="one accelerator for both",
            remedy=f"--set {me.name}.accelerator={torch.options.accelerator}",
        )
    own_build = torch.options.install == "source" or (
        torch.options.install == "wheel" and torch.options.accelerator == "cuda"
    )
    on_cpu = me.options.accelerator == "cpu" and {me.options.install, torch.options.install} == {"pip", "wheel"}
    if on_cpu or (own_build and me.options.install != "source"):
        raise ConflictError(
            f"{me.name} {me.version} of install={me.options.install} is for PyTorch of the same, and the image's is "
            f"of {torch.name}.install={torch.options.install}: it would not load",
            expected=f"{torch.name}.install={me.options.install}",
            remedy=f"--set {torch.name}.install={me.options.install}",
        )
