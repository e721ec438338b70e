"""Programs that build images, one small class each, and which of them is taken.

The order in which they are tried, of those that read the kit's format: the one that the plan runs images with, then
for Dockerfiles podman, buildah, docker; for definition files apptainer, singularity.
"""

from __future__ import annotations

import shutil
from typing import get_args

from hpcgen.builders.engines.base import Builder
from hpcgen.errors import InputError, MissingToolError, Problem
from hpcgen.model.fields import FormatName
from hpcgen.model.plan import Plan
from hpcgen.model.record import BuilderName

BUILDERS: tuple[BuilderName, ...] = get_args(BuilderName)
FORMAT_BUILDERS: dict[FormatName, tuple[BuilderName, ...]] = {
    "docker": ("podman", "buildah", "docker"),
    "singularity": ("apptainer", "singularity"),
    "charliecloud": ("ch-image",),
}
_FROM = {
    "docker": "podman and buildah come with most distributions",
    "singularity": "Apptainer comes with most distributions, or see https://apptainer.org",
    "charliecloud": "Charliecloud 0.31 or later has it",
}


def builder_for(name: BuilderName) -> Builder:
    """The builder of a name."""
    if name == "ch-image":
        from hpcgen.builders.engines.charliecloud import Charliecloud

        return Charliecloud(name)
    if name in ("apptainer", "singularity"):
        from hpcgen.builders.engines.apptainer import Apptainer

        return Apptainer(name)
    if name == "docker":
        from hpcgen.builders.engines.docker import Docker

        return Docker(name)
    from hpcgen.builders.engines.buildah import Buildah

    return Buildah(name)


def format_of(name: BuilderName) -> FormatName:
    """The format that a builder reads."""
    return next(format for format, names in FORMAT_BUILDERS.items() if name in names)


def choose_builder(plan: Plan, asked: BuilderName | None = None) -> Builder:
    """The builder for a plan's recipe: the one that was asked for, or the first that is installed and can build.

    Raises
    ------
    InputError: the one that was asked for reads another format.
    MissingToolError: it, or every possible one, is not installed or cannot build here.
    """
    if asked is not None:
        if format_of(asked) != plan.format:
            raise _other_format(plan, asked)
        candidates: list[BuilderName] = [asked]
    else:
        names = FORMAT_BUILDERS[plan.format]
        candidates = sorted(names, key=lambda name: name != plan.engine)
    problems = []
    for name in candidates:
        builder = builder_for(name)
        if shutil.which(builder.program) is None:
            continue
        problem = builder.problem()
        if problem is None:
            return builder
        problems.append(problem)
    raise MissingToolError(problems or _none_installed(plan, candidates))


def _none_installed(plan: Plan, candidates: list[BuilderName]) -> Problem:
    others = [name for name in BUILDERS if name not in candidates and shutil.which(name) is not None]
    other = f"; or build with --engine {' or '.join(others)}, which is installed" if others else ""
    return Problem(
        f"{' or '.join(candidates)} is needed to build this {plan.format} recipe, and is not on PATH",
        remedy=f"install it or load its module: {_FROM[plan.format]}{other}",
    )


def _other_format(plan: Plan, asked: BuilderName) -> InputError:
    format = format_of(asked)
    site, stack = plan.site.name, plan.stack.name
    return InputError(
        Problem(
            f"{asked} does not build this kit, whose recipe is in the format {plan.format}",
            "--engine",
            expected=" or ".join(FORMAT_BUILDERS[plan.format]),
            remedy=f"render another kit: hpcgen render --site {site} --stack {stack} --format {format} -o DIR"
            f" (with the options of: {plan.command})",
        )
    )
