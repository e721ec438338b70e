"""Packages of git repositories, which pip builds and installs into a Python environment of the image."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.blocks.context import Context
from hpcgen.blocks.steps import GitTree, Packages, Part, command
from hpcgen.core.model.image_paths import SCRATCH
from hpcgen.core.model.project import GitPackage


def package_tree(package: GitPackage) -> GitTree:
    """The repository at its commit, or at what a branch or tag has on the day of the build."""
    return GitTree(package.url, package.at, moves=package.commit is None)


def fetching(packages: Sequence[GitPackage]) -> Packages:
    """Packages of the distribution that fetch repositories, where there are any."""
    tools = ["git"] if packages else []
    return Packages(build={"apt": tools, "dnf": tools, "zypper": tools})


def built_package(ctx: Context, package: GitPackage, environment: str, complete: bool) -> list[Part]:
    """Parts of a step that builds a package with what is installed, and installs it.

    ``environment``: the folder of the Python environment. An editable package stays there in ``src``, where pip puts
    it. ``complete``: all lists have hashes, so that nothing else comes from an index; the build fails if something is
    missing.
    """
    above = f"{environment}/src" if package.editable else f"{SCRATCH}/git"
    folder = f"{above}/{package.name}"
    # The tree has no history from which setuptools-scm could tell a version.
    version = f"SETUPTOOLS_SCM_PRETEND_VERSION=0+{f'g{package.commit[:12]}' if package.commit else 'unlocked'}"
    words = ["--no-build-isolation", *(["--no-deps"] if complete else ctx.supply.pip_words())]
    source = f"{folder}/{package.folder}" if package.folder else folder
    edited = ["-e"] if package.editable else []
    return [
        command("mkdir", "-p", above),
        *ctx.tree(package_tree(package), folder),
        command("env", version, f"{environment}/bin/python", "-m", "pip", "install", *words, *edited, source),
        *([] if package.editable else [command("rm", "-rf", folder)]),
    ]
