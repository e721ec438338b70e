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
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import BLOCK, CLONE, COUNT, clone_folders
from hpcgen.core.support.units import months_before

UNKNOWN, FOUND = 13, 14
"""The exit codes where nothing was found as far as is known, and where something was."""

EXAMPLES = {
    "tables": ("hpcgen tables refresh --block hwloc",),
    "tables refresh": (
        "hpcgen tables refresh --block hwloc",
        "hpcgen tables refresh --spack ../spack-packages --easybuild ../easybuild-easyconfigs --json",
        "hpcgen tables refresh --block aws_ofi_nccl --no-index --clone aws/aws-ofi-nccl=../aws-ofi-nccl --write",
        "hpcgen tables refresh --spack ../spack-packages --easybuild ../easybuild-easyconfigs --no-index --write",
    ),
}


class _TablesCommands(LazyCommands):
    rows = {"refresh": (f"{__name__}:refresh", "Look where releases appear for what is newer than the tables.")}


@click.group("tables", cls=_TablesCommands)
def command() -> None:
    """Keep the release tables of building blocks true."""


@click.command("refresh")
@click.option("--block", "blocks", multiple=True, type=BLOCK, help="Only this block's table; may be repeated.")
@click.option("--spack", type=PATH, metavar="DIR", help="A clone of github.com/spack/spack-packages.")
@click.option("--easybuild", type=PATH, metavar="DIR", help="A clone of github.com/easybuilders/easybuild-easyconfigs.")
@click.option(
    "--clone",
    "clones",
    type=CLONE,
    multiple=True,
    metavar=CLONE.form,
    help="A clone to read instead of that repository; may be repeated.",
)
@click.option("--no-index", is_flag=True, help="Read clones alone: ask no package index, and use no network.")
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
    clones: tuple[tuple[str, Path], ...],
    no_index: bool,
    months: int,
    write: bool,
    download: bool,
    as_json: bool,
) -> int:
    """Look for what is newer than release tables and wheel lists, or differs from them.

    Looks in the package index, in clones of Spack and EasyBuild, at the tags of repositories and at the lists of
    releases that a table names in its field `upstream`. Tells newer releases, hashes that differ, reasons to leave a
    release out that no longer hold, files that are gone or withdrawn, and rows that have aged. Exit code 14 where there
    is any, 13 where there is none, but a source did not answer.
    """
    from hpcgen.plugins.tables.findings import NOTHING_FOUND, Kind
    from hpcgen.plugins.tables.refresh import RefreshRequest, compared, wheel_findings
    from hpcgen.plugins.tables.rows import Addition, add_rows
    from hpcgen.supply.net.package_index import PackageIndex
    from hpcgen.supply.net.web import Web

    if download and not write:
        raise click.UsageError("--download is only for --write")
    folders = clone_folders(clones)
    catalog = catalog_of(ctx)
    today = datetime.date.today()
    index, web = (None, None) if no_index else (PackageIndex(), Web())
    limit = months_before(today, months)
    tables = compared(catalog, RefreshRequest(blocks, spack, easybuild, index, limit, folders, web))
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
        echo(table(["table", "what", "version", "why"], rows, sys.stdout))
    for each in added:
        say(f"added {each.block} {each.version} to {each.file}" if each.file else f"{each.block}: {each.why}")
    counts = ", ".join(f"{sum(each.kind == kind for each in found)} {kind}" for kind in get_args(Kind))
    say(f"{len(tables)} {'table' if len(tables) == 1 else 'tables'} compared: {counts}")
    if any(each.kind not in NOTHING_FOUND for each in found):
        return FOUND
    return UNKNOWN if any(each.kind == "unread" for each in found) else 0
