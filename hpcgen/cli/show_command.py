"""``hpcgen show``; with ``--origin``, where each fact of a profile is from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import NAMED

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.config.provenance import Fact

_WIDE = 48
_MARKS = {"verified": "yes", "unverified": "no", "no source": "-"}


@click.command("show")
@click.argument("kind", type=click.Choice(["site", "stack", "block"]))
@click.argument("name", type=NAMED)
@click.option(
    "--origin", is_flag=True, help="Show the file that it comes from; for a site, file, line and source of each fact."
)
@click.option("--unverified", is_flag=True, help="For a site, with --origin: only facts that are not verified.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def command(ctx: click.Context, kind: str, name: str, origin: bool, unverified: bool, as_json: bool) -> None:
    """Show one site (parents merged in), stack, or block with its options and releases."""
    if unverified and (kind != "site" or not origin):
        raise click.UsageError("--unverified requires --origin, and is only for sites")
    catalog = catalog_of(ctx)
    if kind == "site" and origin:
        _show_facts(catalog, name, unverified, as_json)
        return
    from hpcgen.cli.describe import described

    path = catalog.find(kind, name)
    data = described(catalog, kind, name)
    if as_json:
        print_json({"origin": str(path), **data} if origin else data)
        return
    from hpcgen.core.support.writing import yaml_text

    if origin:
        echo(f"# {path}")
    echo(yaml_text(data, blocks=True), nl=False)


def _show_facts(catalog: Catalog, name: str, unverified: bool, as_json: bool) -> None:
    """Print each fact of a profile with its file and line, source, date, and whether it is verified.

    Parameters
    ----------
    unverified: only facts that nobody has verified.
    """
    from hpcgen.core.config.provenance import counts, facts_of

    facts = facts_of(catalog.site_document(name))
    shown = [fact for fact in facts if not unverified or fact.mark != "verified"]
    if as_json:
        data = {
            "site": name,
            "counts": msgspec.to_builtins(counts(facts)),
            "facts": [_as_data(fact) for fact in shown],
        }
        print_json(data)
        return
    head = ["fact", "value", "file and line", "verified", "as of", "checked", "source"]
    echo(table(head, [_row(fact) for fact in shown], sys.stdout))
    say(f"{name}: {counts(facts)}")


def _as_data(fact: Fact) -> dict[str, object]:
    source = fact.source
    return {
        "fact": fact.path,
        "value": fact.value,
        "file": fact.where.file,
        "line": fact.where.line,
        "column": fact.where.column,
        "mark": fact.mark,
        "source": source.from_ if source is not None else None,
        "source_of": fact.source_path or None,
        "as_of": source.as_of if source is not None else None,
        "checked": source.checked if source is not None else None,
        "note": source.note if source is not None else "",
    }


def _row(fact: Fact) -> list[str]:
    from hpcgen.core.config.provenance import shown_value

    where = f"{fact.where.file}:{fact.where.line}"
    source = fact.source
    said = "" if source is None else f"{source.from_} ({source.note})" if source.note else source.from_
    value = shown_value(fact.value)
    short = value if len(value) <= _WIDE else f"{value[: _WIDE - 1]}…"
    dates = [source.as_of or "-", source.checked] if source is not None else ["-", "-"]
    return [fact.path, short, where, _MARKS[fact.mark], *dates, said or "-"]
