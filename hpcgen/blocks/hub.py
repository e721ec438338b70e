"""A framework that comes inside its makers' own image: the image is the base, and what it has is shown in /opt/python.

A release row says which image (``images``), and where it differs from a plain distribution with packages for its own
Python: ``values.hub_packages``, folders with the image's Python packages, and ``values.hub_libraries``, folders for
``LD_LIBRARY_PATH``, whose value in the image the plan's own variables replace.
"""

from __future__ import annotations

from hpcgen.blocks.base import Context, Situation
from hpcgen.blocks.steps import Environment, Image, Part, TextFile, command, image, lines
from hpcgen.core.errors import ConflictError


def from_hub(situation: Situation) -> bool:
    """Whether the block's option ``install`` is ``hub``, as a need's ``when``."""
    return bool(situation.options.install == "hub")


def hub_image(ctx: Context, use: str = "hub") -> Image | None:
    """The image that both stages start from; None where another way of installing was chosen.

    ``use``: the name that the row's ``images`` has it by. ConflictError: the row has no such image.
    """
    if ctx.options.install != "hub":
        return None
    if use not in ctx.release.images:
        raise ConflictError(
            f"{ctx.me.name} {ctx.version} has no image that uses the distribution's Python",
            remedy=f"choose a version with images in {ctx.me.name}.yaml, or {ctx.me.name}.install=pip",
        )
    return image(ctx.release.images[use])


def hub_environment(ctx: Context) -> Environment:
    """Variables that let the image's own software work beside what is laid on top of it."""
    folders = ctx.release.values.get("hub_libraries", [])
    return Environment(
        paths={"LD_LIBRARY_PATH": list(folders)} if folders else {},
        # NVIDIA's images hold pip to the versions that they were made with, by this; here the lists decide.
        build={"PIP_CONSTRAINT": ""} if folders else {},
    )


def system_packages(ctx: Context) -> str:
    """A command that shows the packages of the distribution's Python in /opt/python."""
    # What "venv --system-site-packages" writes.
    switch = "s/^include-system-site-packages.*/include-system-site-packages = true/"
    return command("sed", "-i", switch, f"{ctx.use('python').prefix}/pyvenv.cfg")


def hub_packages(ctx: Context) -> list[Part]:
    """Parts of a step that show the image's Python packages in /opt/python, after those that are installed there."""
    prefix = ctx.use("python").prefix
    folders = ctx.release.values.get("hub_packages", [])
    if not folders:
        return [system_packages(ctx)]
    minor = ".".join(ctx.use("python").version.split(".")[:2])
    listing = f"{prefix}/lib/python{minor}/site-packages/hub.pth"
    # A folder that is not there would be passed over without a word.
    return [
        TextFile("files/settings/hub.pth", listing, lines(*folders)),
        *(command("test", "-d", folder) for folder in folders),
    ]
