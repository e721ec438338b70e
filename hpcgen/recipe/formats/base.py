"""The base class of formats: how a recipe begins and is written, and the contents of kit and build context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.image_paths import NOTEST
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import plain
from hpcgen.recipe.formats.hpccm_session import Written
from hpcgen.recipe.stages import Assembly

# The header of every file.


def header(plan: Plan, what: str = "") -> list[str]:
    """Three lines without comment marks: what it makes of which versions, how it was made, where the reasons are.

    Named are the blocks that the stack asks for, with the MPI, and the base.

    Parameters
    ----------
    what: the kind of file, such as ``build script of ``; "" for the recipe itself.
    """
    asked = [block for name in (*plan.stack.blocks, "mpi") if (block := plan.block(name)) is not None]
    named = {block.name: f"{block.name} {block.version}" for block in asked if not block.build_only}
    # Of an image that hpcgen did not build no block is known.
    base = plan.blocks[0] if plan.blocks else None
    if base is not None:
        named.pop(base.name, None)
    made = f": {plan.command}" if plan.command else " from Python"
    return [
        f"{what}{plan.stack.name} for {plan.site.name}, partition {plan.partition}"
        + (f": {', '.join(named.values())} on {base.name} {base.version}" if base is not None else ""),
        f"made by hpcgen {plan.hpcgen}{made}",
        "why these versions: plan.json next to this file, or the same command with plan in place of render",
    ]


def commented(lines: list[str]) -> str:
    """The lines as a comment of shells, Dockerfiles and definition files; InputError if one would not stay one."""
    return "\n".join(f"# {plain(line, 'a comment')}".rstrip() for line in lines)


DAWN = 946684800
"""The first second of 2000. A file in a build context has this time and some more, made from its content."""


class Format:
    """Base of the formats: a writer, which knows no block and no site by name.

    Attributes
    ----------
    name: as ``--format`` names it.
    recipe_file: the file of a kit that holds the recipe.
    engine_file: the file that engines read; where it is not ``recipe_file``, it is what that has in a here-document.
    certificate_folder: folder of the build context with the site's certificates; "" where it names them by their paths.
    notest: words of an engine's build command that leave the self-test out.
    first_kit_folder: where in the build context recipes of hpcgen 0.1.0 look for the kit's files.
    bundle_link: what a bundle is called in the build context; "" where the engine is told where it lies.
    packages: OS packages that a build of this format installs beside those of the blocks.
    base_from_tar: engines import the base images of a bundle from tar files of their whole content.
    read_by: engines that read it beside those whose own format it is.
    setup: command lines that make machines of CI services ready to build, by what these call them.
    unprivileged: variables with which its builders work in a container without rights of its own.
    """

    name: ClassVar[str]
    recipe_file: ClassVar[str]
    engine_file: ClassVar[str]
    certificate_folder: ClassVar[str] = "certificates"
    notest: ClassVar[tuple[str, ...]] = ("--build-arg", f"{NOTEST}=1")
    first_kit_folder: ClassVar[str] = ""
    bundle_link: ClassVar[str] = ""
    packages: ClassVar[tuple[str, ...]] = ()
    base_from_tar: ClassVar[bool] = False
    read_by: ClassVar[tuple[EngineName, ...]] = ()
    setup: ClassVar[Mapping[str, str]] = {}
    unprivileged: ClassVar[Mapping[str, str]] = {}

    def recipe(self, plan: Plan, assembly: Assembly) -> Written:
        """The text of :attr:`recipe_file`, and what its steps are for.

        Raises
        ------
        InputError, PolicyError: something in the stages cannot be written in this format.
        """
        raise NotImplementedError

    def build_script(self, plan: Plan, assembly: Assembly) -> str:
        """The text of ``build.sh``; not asked for where that is the recipe."""
        raise NotImplementedError
