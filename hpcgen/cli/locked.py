"""The plan of a lock or a bundle, for the commands that take one in place of ``--site`` and ``--stack``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, collection_words
from hpcgen.cli.trust import allow_of
from hpcgen.core.errors import InputError
from hpcgen.core.support.quoting import sh

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.options import PlanOptions
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan


def plan_of_lock(
    ctx: click.Context,
    locked: Path | None,
    bundle: Path | None,
    options: PlanOptions,
    engine: str | None = None,
) -> tuple[Catalog, Plan, Lock]:
    """The plan in a lock, or in the lock of a bundle, for a build as it is asked for; the catalog, which it fits.

    Parameters
    ----------
    engine: the program that builds, if it is asked for: where no format is, the one that it reads.
    """
    from hpcgen.core.model.bundle_paths import LOCK
    from hpcgen.kit.lockfile.lock import for_build, read_lock
    from hpcgen.planning.contract.chosen import hold_chosen, was_overruled
    from hpcgen.planning.planner import in_format
    from hpcgen.supply.bundle.copied_files import bundled_tree
    from hpcgen.supply.pin.wanted import check_lock

    _check_alone(locked, bundle, options)
    lock = read_lock(locked if locked is not None else bundle / LOCK)  # type: ignore[operator]
    catalog = catalog_of(ctx) if bundle is None else _with_its_collections(ctx, bundle, lock)
    check_lock(lock, catalog)
    if bundle is not None:
        catalog.copied.places.append(partial(bundled_tree, bundle))
    else:
        look_for_copied(catalog, lock, locked)  # type: ignore[arg-type]
    allow = options.allow_unsupported or was_overruled(lock.plan)
    held = hold_chosen(lock.plan, catalog, lock.pins.wheels, allow_unsupported=allow)
    words = [*collection_words(ctx), "render", *(["--locked", LOCK] if bundle is None else ["--bundle", "BUNDLE"])]
    plan = for_build(lock, bundled=bundle is not None)
    format = options.format
    if format is None and engine is not None:
        from hpcgen.backends.engines import builder_for

        format = builder_for(engine).format
    if format not in (None, plan.format):
        if bundle is not None:
            _check_bundled(plan.format, format)
        plan = in_format(plan, format, options.allow_unsupported)
        words += ["--format", format]
        words += ["--allow-unsupported"] if options.allow_unsupported else []
    if options.mirrors:
        from hpcgen.backends.hardware.mirrors import with_mirrors

        plan = msgspec.structs.replace(plan, site=with_mirrors(plan.site, options.mirrors))
        words += [word for mirror in options.mirrors for word in ("--mirror", mirror)]
    command = " ".join(sh(word) for word in ["hpcgen", *words])
    return catalog, msgspec.structs.replace(plan, command=command, findings=[*plan.findings, *held]), lock


def look_for_copied(catalog: Catalog, lock: Lock, file: Path, stack: str | None = None) -> None:
    """Look for what the stack of a lock copies, beside where collections have it.

    Parameters
    ----------
    file: the lock, in whose folder they may lie; or they lie in the present one.
    stack: the file or the name of the stack, beside which they lie.
    """
    if stack is not None:
        catalog.copied.look_beside(stack, lock.plan)
    for folder in dict.fromkeys((file.absolute().parent, Path.cwd())):
        catalog.copied.look_below(folder, lock.plan)


def _with_its_collections(ctx: click.Context, bundle: Path, lock: Lock) -> Catalog:
    """The user's catalog with the collections that a bundle brings, after those of ``--collection``.

    PolicyError where the user does not trust them.
    """
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.catalog.collections import collections_from_environment
    from hpcgen.catalog.trust import content_offered
    from hpcgen.supply.bundle.own_collections import bundled_collections

    folders = bundled_collections(bundle, lock)
    allow_of(ctx)([content_offered(folder, f"the bundle {bundle}") for folder in folders])
    return Catalog([*ctx.obj, *folders, *collections_from_environment()])


def _check_bundled(locked: str, format: str) -> None:
    """InputError where a bundle for one format lacks what a build of another one takes."""
    from hpcgen.recipe.formats import format_for

    held, needed = format_for(locked), format_for(format)
    if set(needed.packages) - set(held.packages) or (needed.base_from_tar and not held.base_from_tar):
        message = f"the bundle of a lock for {locked} lacks files that builds of the format {format} require"
        remedy = f"make the lock with --format {format}: its bundle serves the other formats too"
        raise InputError(message, "--format", remedy=remedy)


def _check_alone(locked: Path | None, bundle: Path | None, options: PlanOptions) -> None:
    """UsageError where something is asked for beside a lock that the lock itself says."""
    more = options.given(free=("format", "allow_unsupported", "mirrors", "notes", "words"))
    more += ["a kit or a command"] if options.words else []
    if more or (locked is not None and bundle is not None):
        named = ", ".join(more) or "--locked and --bundle"
        raise click.UsageError(f"{named}: a lock contains the whole plan; give only the lock or the bundle")
    if bundle is not None and options.mirrors:
        raise click.UsageError("--mirror: a build from a bundle uses no mirror; omit one of the two")
