"""Which engine builds a kit, or adds to a finished image, and how its recipe calls that."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines import Engine, builder_for, builder_of, builders
from hpcgen.core.errors import InputError, MissingToolError, Problem
from hpcgen.core.model.fields import FileName, FormatName
from hpcgen.core.model.plan import ExtendedImage, Plan
from hpcgen.images.recorded import RecordedKit
from hpcgen.images.reference import ImageReference
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


ADDED = "-extended"
"""What the name of a new image has more, where nobody names it."""


def adding_engine(image: ImageReference, plan: Plan, asked: str | None = None) -> Engine:
    """The engine whose builds start from an image of this kind: the one asked for, that of the plan, or the first here.

    Raises
    ------
    InputError: the one that was asked for cannot start from it, or no engine can.
    MissingToolError: none that can is installed.
    """
    form = image.image_kind.start_form(image.name)
    able = {name: found for name, found in builders().items() if form in found.adds_to}
    if asked is not None:
        engine = builder_for(asked)
        if form not in engine.adds_to:
            can = " or ".join(engine.adds_to) or "none"
            others = " or ".join(found.name for found in able.values())
            remedy = f"convert it first (hpcgen convert), or use --engine {others}" if able else ""
            raise InputError(
                f"{engine.name} cannot add to {image}, which is a {form} image",
                "--engine",
                expected=f"an image of the kind {can}",
                remedy=remedy,
            )
        able = {engine.builder_name(): type(engine)}
    if not able:
        raise InputError(
            f"no engine adds to a {form} image",
            expected=" or ".join(sorted({kind for found in builders().values() for kind in found.adds_to})),
            remedy="convert it first: hpcgen convert",
        )
    own = builder_of(plan.engine)
    here = [found for name, found in able.items() if shutil.which(name) is not None]
    here.sort(key=lambda found: found is not own)
    problems = []
    for found in here:
        engine = found()
        if (problem := engine.problem()) is None:
            return engine
        problems.append(problem)
    if problems:
        raise MissingToolError(problems)
    names = " or ".join(able)
    raise MissingToolError(f"{names} is needed to add to {image}, and is not on PATH", remedy="load its module")


def extended_image(image: ImageReference, kit: RecordedKit, engine: Engine) -> ExtendedImage:
    """What a plan says of the image that it extends; InputError where a recipe cannot name it."""
    stored = image.image_kind.stored
    file = "" if stored else Path(image.name).name
    try:
        msgspec.convert(file or "x", FileName)
    except msgspec.ValidationError as failure:
        raise InputError(
            f"a recipe cannot name {file!r}: {failure}", remedy="rename the image, or link to it"
        ) from None
    return ExtendedImage(
        image=image.name if stored else engine.extended_name(kit.content, file),
        file=file,
        content=kit.content,
        digest=image.image_kind.digest(image.name) or None,
        blocks=kit.plan.blocks,
        copied=kit.plan.copied,
    )


def put_beside(image: ImageReference, extended: ExtendedImage, kit: Path) -> None:
    """Link the image into the folder of the kit that starts from it, where it is a file or folder."""
    if not extended.file:
        return
    link = kit / extended.file
    link.unlink(missing_ok=True)
    link.symlink_to(image.name)


def new_name(image: ImageReference) -> str:
    """What the new image is called where nobody says: beside the old one, or in the same store."""
    kind = image.image_kind
    if kind.stored:
        return f"{image.kind}:{image.name}{ADDED}"
    path = Path(image.name)
    ending = next((each for each in kind.endings if path.name.endswith(each)), "")
    return str(path.with_name(f"{path.name.removesuffix(ending)}{ADDED}{ending}"))
