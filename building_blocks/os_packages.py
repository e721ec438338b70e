"""Packages of the distribution that a stack names."""

from __future__ import annotations

from typing import Annotated

import msgspec

from hpcgen.blocks.base import Block, BlockOptions, Context
from hpcgen.blocks.steps import Packages

# Debian's and RPM's rules together; a leading letter or digit keeps a name from being read as an option.
PackageName = Annotated[
    str,
    msgspec.Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9.+_:-]{0,127}\Z",
        description="the name of a distribution package",
        examples=["libnuma-dev"],
    ),
]


class OsPackages(Block):
    """Packages of the distribution, installed in both stages or only for the build."""

    name = "os_packages"
    of_project = True

    class Options(BlockOptions, frozen=True):
        """``packages``: names as the base's package manager knows them.

        ``dnf``, ``zypper``: names used instead on a base with that package manager, if they differ. ``build_only``:
        those that the image does not keep, such as a compiler for the stack's ``build``.
        """

        packages: list[PackageName] = []
        dnf: list[PackageName] = []
        zypper: list[PackageName] = []
        build_only: list[PackageName] = []

    def packages(self, ctx: Context) -> Packages:
        manager = ctx.base.release.values["package_manager"]
        instead = {"dnf": ctx.options.dnf, "zypper": ctx.options.zypper}.get(str(manager), [])
        names = sorted(set(instead or ctx.options.packages))
        kept = [name for name in names if name not in ctx.options.build_only]
        return Packages(build={str(manager): names}, run={str(manager): kept})
