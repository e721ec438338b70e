"""Steps that install packages of the distribution: all of a stage at once, those of the project later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpcgen.blocks.steps import Packages, Run, run
from hpcgen.recipe.bases import install, known_manager
from hpcgen.recipe.locked_rpms import install_rpms
from hpcgen.recipe.parts import PlannedPart, in_stage

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins


def project_and_others(parts: list[PlannedPart]) -> tuple[list[PlannedPart], list[PlannedPart]]:
    """What is the project's own, and all else."""
    return [part for part in parts if part.block.of_project], [part for part in parts if not part.block.of_project]


def install_all(stage: str, parts: list[PlannedPart], pins: Pins | None) -> list[tuple[str, Run]]:
    """One step that installs all distribution packages of a stage; with a lock, each in its exact version."""
    return install_step(stage, parts, package_names(stage, parts), pins)


def install_late(parts: list[PlannedPart], others: list[PlannedPart], pins: Pins | None) -> list[tuple[str, Run]]:
    """The project's packages of the distribution, of the builder alone: from there everything is copied at once."""
    names = sorted(set(package_names("builder", parts)) - set(package_names("builder", others)))
    return install_step("builder", parts, names, pins, late=True)


def install_step(
    stage: str, parts: list[PlannedPart], names: list[str], pins: Pins | None, told: str = "", late: bool = False
) -> list[tuple[str, Run]]:
    """The step that installs these names, or of a lock those that are ``late``, or not.

    ``told``: a file for what apt says of them.
    """
    pinned = pins.packages.get(stage) if pins is not None else None  # type: ignore[call-overload]
    what, manager = "the project's packages" if late else "packages", package_manager(parts)
    if pinned is not None and names:
        now = {name: pin for name, pin in sorted(pinned.added.items()) if (name in pinned.late) == late}
        if pins is not None and now and manager != "apt":
            file = f"{stage}-late" if late else stage
            return [("distribution", run(what, install_rpms(manager, now, pins.keys, file, parts[0].ctx.supply)))]
        names = [f"{name}={pin.version}" for name, pin in now.items()]
    if not names:
        return []
    return [("distribution", run(what, install(manager, names, pins is not None, told)))]


def package_manager(parts: list[PlannedPart]) -> str:
    """The one of the base; InputError where hpcgen does not know it."""
    return known_manager(parts[0].ctx.base.release.values)


def package_names(stage: str, parts: list[PlannedPart]) -> list[str]:
    """Packages of the distribution that blocks ask for, for a stage."""
    return sorted({name for names in names_by_block(stage, parts).values() for name in names})


def names_by_block(stage: str, parts: list[PlannedPart]) -> dict[str, set[str]]:
    """The same by the name of the block that asks."""
    manager, found = package_manager(parts), {}
    for part in in_stage(stage, parts):
        wanted: Packages = part.block.packages(part.ctx)
        more = wanted.build.get(manager, []) if stage == "builder" and part.unpacked is None else []
        found[part.planned.name] = {*wanted.run.get(manager, []), *more}
    return found
