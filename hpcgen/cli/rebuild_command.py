"""``hpcgen rebuild``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen._version import __version__
from hpcgen.cli.common import PATH, START, catalog_of, print_json, say, shown_files
from hpcgen.cli.words import IMAGE
from hpcgen.core.errors import HpcgenError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.support.writing import CopiedFile, KitFile
    from hpcgen.images.rebuild import Comparison
    from hpcgen.images.recorded import StoredKit


@click.command("rebuild")
@click.argument("image", type=IMAGE)
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DIR",
    type=PATH,
    help="Write the kit to this folder: new, empty, or an older kit.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the written files and the differences as JSON.")
@START
@click.pass_context
def command(ctx: click.Context, image: str, output: Path, as_json: bool, start: bool) -> None:
    """Extract the kit that an image was built from, byte for byte.

    Then say whether this hpcgen, with its collections, would write the same files from the plan. Whether or not it
    would, the kit in the image is what is written.
    """
    from hpcgen.images.rebuild import compare, stack_files, whole_kit
    from hpcgen.images.recorded import stored_kit, with_its_files
    from hpcgen.images.reference import parse_image
    from hpcgen.images.summary import notes
    from hpcgen.kit.kit import store_kit

    found = parse_image(image, start)
    kit = with_its_files(stored_kit(found), found)
    catalog = catalog_of(ctx)
    copied, missing = stack_files(kit, catalog, str(found))
    comparison = compare(kit, catalog, str(found))
    files: dict[str, KitFile | CopiedFile] = {**whole_kit(kit, comparison, str(found)), **copied}
    store_kit(output, files)
    remarks = [*notes(kit), *missing, *_strangers(kit, catalog, str(found)), *_remarks(comparison)]
    say(f"wrote {shown_files(files)} to {output}")
    for remark in remarks:
        say(remark if comparison.same and remark is remarks[-1] else f"note: {remark}")
    if as_json:
        told = {"files": sorted(files), "same": comparison.same, "differ": comparison.differ}
        print_json({**told, "reason": comparison.reason, "notes": remarks})


def _strangers(kit: StoredKit, catalog: Catalog, name: str) -> list[str]:
    """That the job script in a kit is not by a profile of the user's, so that it is read before it is started."""
    from hpcgen.images.recorded import typed_kit
    from hpcgen.running.host_side import asked_of_host, host_side

    try:
        plan = typed_kit(kit, name).plan
    except HpcgenError:
        return []
    try:
        side = host_side(plan, None, catalog, trust=False)
    except HpcgenError:
        side = None
    if side is not None and side.site is None and side.stack_outside:
        return []
    asked = asked_of_host(plan)
    return [f"its job script is from the image's record of {plan.site.name}, not from your profile: {asked}"]


def _remarks(comparison: Comparison) -> list[str]:
    if comparison.same:
        return [f"hpcgen {__version__} would write the same files from the plan"]
    if comparison.reason:
        return [f"whether hpcgen {__version__} would write the same is unknown: {comparison.reason}"]
    return [f"hpcgen {__version__} would write {', '.join(comparison.differ)} differently today"]
