"""``hpcgen extend`` of an image that hpcgen did not build: a stack of what is added, which starts from it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import catalog_of, say, say_findings
from hpcgen.cli.licences import with_licences
from hpcgen.cli.project_stack import site_missing, usual_site

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.extend_command import ExtendOptions
    from hpcgen.core.model.plan import Plan
    from hpcgen.images.reference import ImageReference


def extend_foreign(
    ctx: click.Context, image: ImageReference, keep: Path | None, dry_run: bool, as_json: bool, options: ExtendOptions
) -> None:
    """Build the new image, or print how; UsageError without a site, and for a lock, which a stack can have."""
    from hpcgen.builders.choosing import put_base_beside
    from hpcgen.cli.build_command import build_and_tell, dry_run_of, say_result
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit, store_kit

    if options.lock is not None or options.sbom is not None:
        raise click.UsageError(
            f"--lock, --sbom: {image} has no kit from hpcgen; a stack with `from` and hpcgen lock pin what is added"
        )
    catalog = catalog_of(ctx)
    plan = _plan(ctx, catalog, image, options)
    if not dry_run:
        plan = with_licences(plan, options.accept)
    how = options.how(options.engine, image)
    with scratch_folder("hpcgen-kit-") as folder:
        made = make_kit(plan, catalog)
        place = keep or folder / "kit"
        store_kit(place, made.all_files)
        put_base_beside(plan, place, catalog.bases)
        say_findings(plan, made.notices)
        if dry_run:
            dry_run_of(read_kit(place), how)
            return
        record = build_and_tell(read_kit(place), how)
    say_result(record, as_json)


def _plan(ctx: click.Context, catalog: Catalog, image: ImageReference, options: ExtendOptions) -> Plan:
    """The plan of a stack of nothing but the image and what is added."""
    from hpcgen.builders.choosing import adding_format
    from hpcgen.builders.own_recipe import own_name
    from hpcgen.cli.extend_command import again
    from hpcgen.core.model.stack import RunSpec, Stack
    from hpcgen.images.observed import observed_image
    from hpcgen.planning.extending import copied_of
    from hpcgen.planning.planner import make_plan
    from hpcgen.planning.question import added_words

    name = options.site or usual_site(catalog, None, say)
    if name is None:
        raise site_missing(catalog, str(image))
    site = catalog.site(name)
    added = added_words(options.added)
    base = observed_image(image, catalog, site.system.architecture)
    if base.file:
        catalog.bases[base.file] = Path(image.name)
    called = own_name(image.name)
    stack = Stack(name=called, title=f"additions to {called}", blocks={}, run=RunSpec(mpi=False))
    stack = replace(stack, from_=base.file or f"{image.kind}:{image.name}")
    say(f"{image}: {base.os_id} {base.os_version}" + (f", Python {base.python.version}" if base.python else ""))
    plan = make_plan(
        catalog,
        site,
        stack,
        settings=options.settings,
        added=added.others,
        format=adding_format(base, site.containers.preferred, options.engine),
        allow_unsupported=options.allow_unsupported,
        command=lambda: again(ctx, image, options),
        unchecked=("network",),
        base=base,
    )
    entries = [each.entry for each in added.copies]
    return replace(plan, copied=copied_of(site, added, catalog), stack=replace(plan.stack, copy=entries))
