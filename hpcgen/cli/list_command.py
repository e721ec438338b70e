"""``hpcgen list``."""

from __future__ import annotations

import sys
from datetime import date
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.fact_ages import TODAY
from hpcgen.cli.tables import table, word
from hpcgen.cli.terminal import columns as columns_of
from hpcgen.cli.terminal import echo
from hpcgen.core.errors import HpcgenError
from hpcgen.core.support.units import counted, shortened, some

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog

KINDS = {"sites": "site", "stacks": "stack", "blocks": "block", "engines": "engine"}
OVERVIEW = ("gpus", "engine", "batch", "nodes")
_GPUS = 2
FACTS = ("facts", "verified", "unverified", "without_source", "old")


@click.command("list")
@click.argument("kind", required=False, type=click.Choice(list(KINDS)))
@click.option("--all", "everything", is_flag=True, help="Sites: also those that are archived, and parents of profiles.")
@click.option("--origin", is_flag=True, help="Show the file that each one comes from.")
@click.option(
    "--facts", is_flag=True, help="Sites: how many facts each has, and how many are verified or may be out of date."
)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@TODAY
@click.pass_context
def command(
    ctx: click.Context, kind: str | None, everything: bool, origin: bool, facts: bool, as_json: bool, today: date
) -> None:
    """List sites, stacks, blocks or engines with a line about each; without an argument, what can be listed.

    Of a site it says the GPUs of a node, its engine and batch system, and whether jobs may have several nodes. With
    --json also the host's MPI, whether the GPUs' driver is known, and the newest date of a source.
    """
    if (facts or everything) and kind != "sites":
        raise click.UsageError(f"{'--facts' if facts else '--all'} is only for sites")
    catalog = catalog_of(ctx)
    if kind is None:
        _show_lists(catalog, as_json)
        return
    entries = [_entry(catalog, KINDS[kind], name, today, facts) for name in _names(catalog, kind)]
    shown = [entry for entry in entries if everything or not _left_out(entry)]
    if as_json:
        print_json(shown)
        return
    columns = ["name", *(FACTS if facts else OVERVIEW if kind == "sites" else ()), "title", *(["origin"] * origin)]
    rows = [[_cell(entry, column) for column in columns] for entry in shown]
    if kind == "blocks" and not origin:
        rows = _one_line_each(rows)
    echo(
        table([column.replace("_", " ") for column in columns], rows, sys.stdout, spare=kind == "sites" and not origin)
    )
    if len(shown) < len(entries):
        archived = counted(sum("archived" in entry for entry in entries), "archived site")
        say(f"note: `--all` also lists {archived}, and what other profiles extend")
    if old := [str(entry["name"]) for entry in shown if entry.get("old")]:
        say(f"note: facts may be out of date in the profiles of {some(old)}: `hpcgen list sites --facts`")


def _left_out(entry: dict[str, object]) -> bool:
    return "archived" in entry or entry.get("abstract") is True


def _cell(entry: dict[str, object], column: str) -> str:
    value = entry.get(column, "")
    return word(some(value, _GPUS) if isinstance(value, list) else value)


def _one_line_each(rows: list[list[str]]) -> list[list[str]]:
    """Blocks without their home pages; on a terminal what does not fit into the line is left out, too."""
    width = columns_of(sys.stdout)
    room = None if width is None else width - max(len(name) for name, _ in rows) - 2
    titles = [title.partition("  Source: ")[0] for _, title in rows]
    return [
        [name, title if room is None else shortened(title, room)] for (name, _), title in zip(rows, titles, strict=True)
    ]


def _show_lists(catalog: Catalog, as_json: bool) -> None:
    """What can be listed, how many there are, and the command for each."""
    from hpcgen.builders.records.store import entries

    lists: list[dict[str, object]] = []
    for kind in KINDS:
        command = f"hpcgen list {kind}" + (" --all" if kind == "sites" else "")
        lists.append({"what": kind, "count": len(_names(catalog, kind)), "command": command})
    lists.append({"what": "build records", "count": len(entries()), "command": "hpcgen records"})
    if as_json:
        print_json(lists)
        return
    echo(table(["what", "count", "command"], [[str(each) for each in row.values()] for row in lists], sys.stdout))


def _names(catalog: Catalog, kind: str) -> list[str]:
    if kind == "engines":
        from hpcgen.backends.engines import ENGINES

        return ENGINES.names()
    return catalog.names(KINDS[kind])


def _entry(catalog: Catalog, kind: str, name: str, today: date, facts: bool) -> dict[str, object]:
    """What is said of one of them; ``facts``: and how many facts of a site are known how."""
    from hpcgen.cli.describe import one_line, origin_of

    try:
        title = one_line(catalog, kind, name)
    except HpcgenError as error:
        # One broken file must not hide the others.
        say(f"warning: {error.problems[0]}")
        title = "(cannot be read)"
    entry: dict[str, object] = {"name": name, "title": title, "origin": origin_of(catalog, kind, name)}
    return {**entry, **_site(catalog, name, today, facts)} if kind == "site" else entry


def _site(catalog: Catalog, name: str, today: date, facts: bool) -> dict[str, object]:
    """What is known of a site, and how well; empty for a profile that cannot be read."""
    from hpcgen.cli.site_overview import overview
    from hpcgen.core.config.provenance import counts, sourced_of
    from hpcgen.machine.ages import old_facts

    try:
        document = catalog.site_document(name)
        known = sourced_of(document)
    except HpcgenError:
        return {}
    found: dict[str, object] = {key: document.data[key] for key in ("archived", "abstract") if document.data.get(key)}
    found |= msgspec.to_builtins(overview(known))
    found |= msgspec.to_builtins(counts(known)) if facts else {}
    return {**found, "old": len(old_facts(known, today))}
