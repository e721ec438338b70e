"""Additions to a finished image: new and changed blocks, and the reasons why some cannot be added.

All of it is done in one stage that starts from the image, as the image's users would: there are no compilers, and of
the blocks that only build nothing is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hpcgen.blocks.steps import Packages, Run, Wheels, command, run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.image_paths import ADDED, EXTENDED, KIT, SCRATCH
from hpcgen.core.model.plan import ExtendedImage, Plan, PlannedBlock
from hpcgen.core.support.units import some
from hpcgen.recipe.parts import PlannedPart, parts_of

PACKAGES = f"{ADDED}/packages"
"""What apt says of the packages that it brought."""
PYTHON = "/opt/python"
"""The environment that pip installs into."""
WHOLE = "rebuild the image with the added words: hpcgen build --site SITE --stack STACK --add …"


def before(plan: Plan, catalog: Catalog) -> list[PlannedPart]:
    """The parts of the image that a plan extends, as it was planned; none of a plan that extends nothing.

    InputError where the collections here no longer have what that plan names.
    """
    if plan.extends is None:
        return []
    return parts_of(msgspec.structs.replace(plan, blocks=plan.extends.blocks, extends=None), catalog).parts


def added_blocks(plan: Plan) -> list[PlannedBlock]:
    """Blocks that the extended image lacks, or has with other options."""
    return [each for each in plan.blocks if not _has(plan.extends, each)]


def _has(image: ExtendedImage | None, block: PlannedBlock) -> bool:
    there = [each for each in image.blocks if each.name == block.name] if image is not None else []
    return any((each.version, each.options) == (block.version, block.options) for each in there)


def added_parts(plan: Plan, parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """The parts of blocks that are added.

    PolicyError: what a finished image cannot be given without a builder stage, all of it at once, with the reasons.
    """
    names = {each.name for each in added_blocks(plan)}
    added = [part for part in parts if part.planned.name in names]
    build_only = {part.planned.name for part in parts if part.planned.build_only}
    if problems := [problem for part in added for problem in _refused(part, build_only)]:
        raise PolicyError(problems)
    return added


def _refused(part: PlannedPart, build_only: set[str]) -> Iterator[Problem]:
    """The reason why a block needs a builder stage, or none."""
    reasons = []
    if part.planned.build_only:
        reasons.append("it only builds others")
    if tools := sorted(build_only & set(part.planned.needs.values())):
        reasons.append(f"it is built with {some(tools)}, which no image keeps")
    if any(installed.compiled for step in part.block.build(part.ctx) for installed in step.installs):
        reasons.append("pip compiles it from source")
    if others := sorted({each.key for each in part.inputs if not isinstance(each, Wheels)}):
        reasons.append(f"it is made from {some([_KINDS.get(each, each) for each in others])}")
    if part.block.base_image(part.ctx, "final") is not None:
        reasons.append("it comes with its own base image")
    if wanted := build_packages(part):
        reasons.append(f"its build asks for the OS packages {some(wanted)}")
    if reasons:
        message = f"{part.label} cannot be added to a finished image: {'; '.join(reasons)}"
        yield Problem(message, expected="packages, wheels or files", remedy=WHOLE)


_KINDS = {
    "archive": "an archive",
    "tree": "a git repository",
    "bazel": "Bazel's downloads",
    "wheel_file": "a wheel by its address",
}


def build_packages(part: PlannedPart) -> list[str]:
    """OS packages that a block needs only to build."""
    wanted: Packages = part.block.packages(part.ctx)
    manager = str(part.ctx.base.release.values["package_manager"])
    return sorted(set(wanted.build.get(manager, [])) - set(wanted.run.get(manager, [])))


def prepared(parts: Iterable[PlannedPart], added: Sequence[PlannedPart]) -> list[tuple[str, Run]]:
    """First steps of the stage: those of the added blocks, and those that set up the site's network for every build."""
    return _once(
        (part.label, step)
        for part in _preparing(parts, added)
        for stage in ("builder", "final")
        for step in part.block.prepare(part.ctx, stage)
    )


def finished(parts: Iterable[PlannedPart], added: Sequence[PlannedPart]) -> list[tuple[str, Run]]:
    """Last steps of the stage, which undo what :func:`prepared` did and must not stay."""
    return _once(
        (part.label, step)
        for part in _preparing(parts, added)
        for stage in ("final", "builder")
        for step in part.block.finish(part.ctx, stage)
    )


def _preparing(parts: Iterable[PlannedPart], added: Sequence[PlannedPart]) -> list[PlannedPart]:
    return [
        part
        for part in parts
        if part in added or any(list(part.block.prepare(part.ctx, stage)) for stage in ("builder", "final"))
    ]


def _once(steps: Iterable[tuple[str, Run]]) -> list[tuple[str, Run]]:
    found: list[tuple[str, Run]] = []
    for label, step in steps:
        if (step.commands or step.files) and (label, step) not in found:
            found.append((label, step))
    return found


def python_stays(added: Sequence[PlannedPart]) -> tuple[dict[str, str], list[tuple[str, Run]]]:
    """A variable and a step that pin installed packages for pip, which fails and names both versions if they clash."""
    installs = [each for part in added for step in part.block.build(part.ctx) for each in step.installs]
    if all(each.folder != PYTHON for each in installs):
        return {}, []
    listed = f"{SCRATCH}/present.txt"
    freeze = f"{command(f'{PYTHON}/bin/python', '-m', 'pip', 'list', '--format=freeze')} > {listed}"
    step = (
        "hpcgen",
        run("pin installed packages as constraints", command("mkdir", "-p", SCRATCH), freeze, joins="next"),
    )
    return {"PIP_CONSTRAINT": listed, "PIP_REPORT": f"{SCRATCH}/report.json"}, [step]


def built(part: PlannedPart) -> list[tuple[str, Run]]:
    """The steps of an added block, and one that keeps pip's report of the packages that it installed."""
    steps = [(part.label, step) for step in part.block.build(part.ctx) if step.commands or step.files]
    if any(each.folder == PYTHON for _, step in steps for each in step.installs):
        # A pip before 22.2 says nothing.
        words = ["find", SCRATCH, "-name", "report.json", "-exec", "mv", "{}", report_of(part.planned), ";"]
        steps.append(("hpcgen", run("keep the report of pip", command(*words), joins="previous")))
    return steps


def report_of(block: PlannedBlock) -> str:
    """The file of the image with pip's report of the packages that a block installed."""
    return f"{ADDED}/{block.name}.json"


def kit_aside(extended: ExtendedImage) -> list[str]:
    """Commands that keep the kit of the extended image beside the new one, and drop what was said of its packages."""
    return [
        command("rm", "-rf", ADDED),
        command("mkdir", "-p", EXTENDED, ADDED),
        command("mv", KIT, f"{EXTENDED}/{extended.content[:12]}"),
    ]
