"""``hpcgen tables``: for those who maintain release tables."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path
from typing import get_args

import click

from hpcgen.cli import LazyCommands
from hpcgen.cli.common import PATH, catalog_of, print_json, say
from hpcgen.cli.tables import table, word
from hpcgen.cli.words import BLOCK, COUNT

EXAMPLES = {
    "tables": ("hpcgen tables refresh --block hwloc",),
    "tables refresh": (
        "hpcgen tables refresh --block hwloc",
        "hpcgen tables refresh --spack ../spack-packages --easybuild ../easybuild-easyconfigs --json",
        "hpcgen tables refresh --spack ../spack-packages --easybuild ../easybuild-easyconfigs --no-index --write",
    ),
}


class _TablesCommands(LazyCommands):
    rows = {"refresh": (f"{__name__}:refresh", "Compare release tables with the index, Spack and EasyBuild.")}


@click.group("tables", cls=_TablesCommands)
def command() -> None:
    """Keep the release tables of building blocks true."""


@click.command("refresh")
@click.option("--block", "blocks", multiple=True, type=BLOCK, help="Only this block's table; may be repeated.")
@click.option("--spack", type=PATH, metavar="DIR", help="A clone of github.com/spack/spack-packages.")
@click.option("--easybuild", type=PATH, metavar="DIR", help="A clone of github.com/easybuilders/easybuild-easyconfigs.")
@click.option("--no-index", is_flag=True, help="Leave the package index out: use no network.")
@click.option(
    "--months", type=COUNT, default=12, help="Report rows that were last checked more than this long ago (12)."
)
@click.option("--write", is_flag=True, help="Add rows for newer releases if two sources agree on the hash.")
@click.option(
    "--download", is_flag=True, help="With --write: fetch and hash releases with a hash from only one source."
)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@click.pass_context
def refresh(
    ctx: click.Context,
    blocks: tuple[str, ...],
    spack: Path | None,
    easybuild: Path | None,
    no_index: bool,
    months: int,
    write: bool,
    download: bool,
    as_json: bool,
) -> None:
    """Compare release tables and wheel lists with the package index, and with clones of Spack and EasyBuild.

    Tells newer releases, hashes that differ, files that are gone or withdrawn, and rows that have aged. A table is
    compared by the names in its field `upstream`.
    """
    from hpcgen.plugins.tables.refresh import Kind, RefreshRequest, compared, wheel_findings
    from hpcgen.plugins.tables.rows import Addition, add_rows, months_before
    from hpcgen.supply.net.package_index import PackageIndex

    if download and not write:
        raise click.UsageError("--download is only for --write")
    catalog = catalog_of(ctx)
    today = datetime.date.today()
    index = None if no_index else PackageIndex()
    tables = compared(catalog, RefreshRequest(blocks, spack, easybuild, index, months_before(today, months)))
    found = [finding for each in tables for finding in each.findings]
    if index is not None and not blocks:
        found += wheel_findings(catalog, index)
    added: list[Addition] = []
    if write:
        added = add_rows(catalog, tables, {"Spack": spack, "EasyBuild": easybuild}, today.isoformat(), download)
    if as_json:
        print_json({"findings": found, "added": added})
    elif found:
        rows = [[each.table, each.kind, word(each.version), each.message] for each in found]
        click.echo(table(["table", "what", "version", "why"], rows, sys.stdout))
    for each in added:
        say(f"added {each.block} {each.version} to {each.file}" if each.file else f"{each.block}: {each.why}")
    counts = ", ".join(f"{sum(each.kind == kind for each in found)} {kind}" for kind in get_args(Kind))
    say(f"{len(tables)} {'table' if len(tables) == 1 else 'tables'} compared: {counts}")
