"""What differs between two plans that were made before, as far as is known of each: of locks, also what they pin."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hpcgen.core.model.plan import Plan
from hpcgen.kit.lockfile.changes import changes, in_order
from hpcgen.kit.lockfile.plan_changes import Change, plan_changes

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.config.yamlfile import Document
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.stack import Stack


def planned_changes(
    old: Plan,
    new: Plan,
    locks: tuple[Lock | None, Lock | None] = (None, None),
    files: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> list[Change]:
    """Every difference, causes before effects.

    ``locks``: what pins each plan, if something does; what is pinned is compared where both are. ``files``: of the kit
    of each, by name; they are named where the plans do not say why they differ.
    """
    one, other = locks
    found = changes(one, other) if one is not None and other is not None else in_order(plan_changes(old, new))
    if not found and all(files):
        why = "no fact of the plan differs: another build of hpcgen or of a block wrote it, or the user edited it"
        moved = sorted(name for name in files[0].keys() & files[1].keys() if files[0][name] != files[1][name])
        found = [Change(what="result", name=name, old="", new="", why=why) for name in moved]
    return found


def replanned(plan: Plan, catalog: Catalog, stack: Stack, document: Document | None = None) -> Plan:
    """What the words of a plan that was made before come to now; errors as :func:`hpcgen.planning.planner.make_plan`.

    ``stack``: what stands for the plan's own now. ``document``: its file.
    """
    from hpcgen.planning.drivers import with_driver
    from hpcgen.planning.planner import make_plan

    site, gpu = catalog.site(plan.site.name), plan.site.partitions[plan.partition].gpu
    here = site.partitions.get(plan.partition)
    if gpu is not None and not gpu.driver_assumed and here is not None and here.gpu is not None:
        # As ``--driver`` said it; what the profile says itself may have changed.
        site = with_driver(site, plan.partition, gpu.driver) if gpu.driver and here.gpu.driver is None else site
    return make_plan(
        catalog,
        site,
        stack,
        partition=plan.partition,
        settings=[f"{name}={value}" for name, value in plan.settings.items()],
        format=plan.format,
        latest_base=plan.latest_base,
        stack_document=document,
        allow_unsupported=True,
    )
