"""Software whose project also ships it as a wheel: the files of one under a block's prefix, without Python."""

from __future__ import annotations

from collections.abc import Iterable

from hpcgen.blocks.base import Context, Situation
from hpcgen.blocks.steps import Packages, Part, Run, Wheels, command, run
from hpcgen.core.model.image_paths import SCRATCH


def from_wheels(situation: Situation) -> bool:
    """Of a block with the option ``obtain``: whether it is installed from wheels."""
    return bool(situation.options.obtain == "wheels")


def from_source(situation: Situation) -> bool:
    """Of a block with the option ``obtain``: whether it is compiled."""
    return not from_wheels(situation)


def prefix_wheel(ctx: Context) -> Wheels:
    """The wheel of a block, which is called as the block is."""
    return ctx.wheels(ctx.facts.listed(f"{ctx.me.name}-{ctx.version}"), [f"{ctx.me.name}=={ctx.version}"])


def install_prefix_wheel(ctx: Context) -> Iterable[Run]:
    """The step that puts its programs, headers and libraries under the prefix; needs ``python`` in the builder."""
    install = ctx.pip(prefix_wheel(ctx), prefix=ctx.prefix, extra=["--no-deps"])
    # What is left in there says that it was installed, to a Python that the image may not have.
    yield run("install", install, f"rm -rf {ctx.prefix}/lib/python3*", caches=("pip",))


def python_to_unpack() -> Packages:
    """The distribution's own Python, for :func:`unpack_wheels`."""
    plain = ["python3", "python3-pip"]
    return Packages(build={"apt": ["python3", "python3-venv"], "dnf": plain, "zypper": plain})


def unpack_wheels(ctx: Context, wheels: Wheels, name: str, *then: Part | Iterable[Part]) -> Run:
    """The step that puts the files of wheels under the prefix by an environment that is made and removed for it.

    ``name``: what the environment is called after. ``then``: parts of the step that follow.
    """
    environment = f"{SCRATCH}/{name}-venv"
    return run(
        "install",
        command("python3", "-m", "venv", environment),
        # A venv's pip puts bin, include and lib straight under the prefix; Debian's own adds "local".
        ctx.pip(wheels, into=environment, prefix=ctx.prefix, extra=["--no-deps"]),
        *then,
        command("rm", "-rf", environment),
        caches=("pip",),
    )
