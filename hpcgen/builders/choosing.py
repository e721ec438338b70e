"""Which engine builds a kit, or adds to a finished image, and how its recipe calls that."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines import Engine, builder_for, builder_of, builders
from hpcgen.core.errors import InputError, MissingToolError, Problem
from hpcgen.core.model.fields import FileName, FormatName
from hpcgen.core.model.plan import BaseImage, ExtendedImage, Plan
from hpcgen.core.support.hashing import file_sha256
from hpcgen.images.recorded import RecordedKit
from hpcgen.images.reference import ImageReference
from hpcgen.planning.from_image import starts_from
from hpcgen.recipe.formats import format_for


def builders_reading(format: FormatName) -> dict[str, type[Engine]]:
    """The engines that build recipes of a format, by the name of their builder, the first tried first."""
    also = format_for(format).read_by
    return {name: each for name, each in builders().items() if each.format == format or each.name in also}


def choose_builder(plan: Plan, asked: str | None = None) -> Engine:
    """The builder for a plan's recipe: the one that was asked for, or the first that is installed and can build.

    InputError: the one that was asked for builds nothing, or reads another format. MissingToolError: it, or every
    possible one, is not installed or cannot build here.
    """
    if asked is not None:
        candidates = [builder_for(asked)]
        if candidates[0].builder_name() not in builders_reading(plan.format):
            raise _other_format(plan, candidates[0])
        if not _starts_from_base(candidates[0], plan):
            raise _cannot_start(plan, candidates[0])
    else:
        own = builder_of(plan.engine)
        candidates = [
            each for found in builders_reading(plan.format).values() if _starts_from_base(each := found(), plan)
        ]
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


def _starts_from_base(engine: Engine, plan: Plan) -> bool:
    """Whether the engine's builds start from the image that the plan does; of a bundle and a registry all do."""
    base = plan.base
    if base is None or not base.kind or plan.supply == "bundle":
        return True
    return starts_from(engine.adds_to, engine.archive_by, base.kind)


def _cannot_start(plan: Plan, asked: Engine) -> InputError:
    assert plan.base is not None
    base = plan.base
    return InputError(
        f"{asked.name} cannot start from {base.file or base.image}, which is a {base.kind} image",
        "--engine",
        expected="an image of the kind " + " or ".join(asked.adds_to),
        remedy="convert it first (hpcgen convert), or leave --engine out",
    )


def adding_format(base: BaseImage, preferred: str, asked: str | None) -> FormatName | None:
    """The format whose recipes start from an image: that of the engine asked for, of the site's, or of the first here.

    None for that of the site.
    """
    if asked is not None:
        return builder_for(asked).format
    own = builder_of(preferred)
    able = [each for each in builders().values() if starts_from(each.adds_to, each.archive_by, base.kind)]
    if own in able or not able:
        return None
    here = [each for each in able if shutil.which(each.builder_name()) is not None]
    return (here or able)[0].format


def put_base_beside(plan: Plan, kit: Path, places: Mapping[str, Path]) -> None:
    """Link the image that a plan starts from into its kit, where it is a file or folder.

    It is taken from where it was planned with, else from the present folder, where it must be the planned one.
    """
    base = plan.base
    if base is None or not base.file or plan.supply == "bundle" or (kit / base.file).exists():
        return
    place = places.get(base.file)
    if place is None:
        place = Path.cwd() / base.file
        there = place.is_file() and f"sha256:{file_sha256(place)}" == base.digest
        if not there and not (place.is_dir() and base.digest is None):
            return
    (kit / base.file).symlink_to(place)


def check_base_beside(plan: Plan, kit: Path) -> None:
    """InputError where a kit starts from a file that is not beside it, or is another one than was planned for."""
    base = plan.base
    if base is None or not base.file or plan.supply == "bundle":
        return
    place = kit / base.file
    known = f", {base.digest}," if base.digest else ""
    if not place.exists():
        raise InputError(
            f"the kit starts from {base.file}{known} which is not beside it",
            remedy=f"put it into {kit}, or build in the folder where it is; a bundle contains it",
        )
    if base.digest and place.is_file() and f"sha256:{file_sha256(place)}" != base.digest:
        raise InputError(
            f"{base.file} is another image than was planned for", expected=base.digest, remedy="plan again"
        )


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

    InputError: the one that was asked for cannot start from it, or no engine can. MissingToolError: none that can is
    installed.
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
