"""Which engine builds a kit: of those that read its format, the one that runs the image, then the others in order."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from hpcgen.backends.engines import Engine, builder_for, builder_of, builders
from hpcgen.core.errors import InputError, MissingToolError, Problem
from hpcgen.core.model.fields import FormatName
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.formats import format_for


def builders_reading(format: FormatName) -> dict[str, type[Engine]]:
    """The engines that build recipes of a format, by the name of their builder, the first tried first."""
    also = format_for(format).read_by
    return {name: each for name, each in builders().items() if each.format == format or each.name in also}


def choose_builder(plan: Plan, asked: str | None = None) -> Engine:
    """The builder for a plan's recipe: the one that was asked for, or the first that is installed and can build.

    Raises
    ------
    InputError: the one that was asked for builds nothing, or reads another format.
    MissingToolError: it, or every possible one, is not installed or cannot build here.
    """
    if asked is not None:
        candidates = [builder_for(asked)]
        if candidates[0].builder_name() not in builders_reading(plan.format):
            raise _other_format(plan, candidates[0])
    else:
        own = builder_of(plan.engine)
        candidates = [found() for found in builders_reading(plan.format).values()]
        candidates.sort(key=lambda each: type(each) is not own)
    problems = []
    for builder in candidates:
        if shutil.which(builder.builder_name()) is None:
            continue
        problem = builder.problem()
        if problem is None:
            return builder
        problems.append(problem)
    raise MissingToolError(problems or _none_installed(plan, candidates))


def _none_installed(plan: Plan, candidates: Sequence[Engine]) -> Problem:
    names = [each.builder_name() for each in candidates]
    others = [found.name for name, found in builders().items() if name not in names and shutil.which(name) is not None]
    other = f"; or build with --engine {' or '.join(others)}, which is installed" if others else ""
    where = "; ".join(dict.fromkeys(each.comes_from for each in candidates if each.comes_from))
    return Problem(
        f"{' or '.join(names)} is needed to build this {plan.format} recipe, and is not on PATH",
        remedy=f"install it or load its module: {where}{other}",
    )


def _other_format(plan: Plan, asked: Engine) -> InputError:
    site, stack = plan.site.name, plan.stack.name
    return InputError(
        f"{asked.name} does not build this kit: its recipe has the format {plan.format}",
        "--engine",
        expected=" or ".join(each.name for each in builders_reading(plan.format).values()),
        remedy=f"render another kit: hpcgen render --site {site} --stack {stack} --format {asked.format} -o DIR"
        f" (with the options of: {plan.command})",
    )
