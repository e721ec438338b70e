"""``hpcgen show``; with ``--origin``, where each fact of a profile is from."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from hpcgen.cli.common import catalog_of, print_json, say
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import NAMED
from hpcgen.core.support.units import shortened

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.config.provenance import Fact

_WIDE = 58
_MOST = 10
_WIDE_RELEASE, _MOST_RELEASES = 66, 24
_MARKS = {"verified": "yes", "unverified": "no", "no source": "-"}


@click.command("show")
@click.argument("kind", type=click.Choice(["site", "stack", "block"]))
@click.argument("name", type=NAMED)
@click.option(
    "--origin", is_flag=True, help="Show the file that it comes from; for a site, file, line and source of each fact."
)
@click.option("--unverified", is_flag=True, help="For a site, with --origin: only facts that are not verified.")
@click.option("--all", "everything", is_flag=True, help="For a site or a block: all of it, not a summary.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
@click.pass_context
def command(
    ctx: click.Context, kind: str, name: str, origin: bool, unverified: bool, everything: bool, as_json: bool
) -> None:
    """Show one site (parents merged in), stack, or block with its options and releases; a summary without --all."""
    if unverified and (kind != "site" or not origin):
        raise click.UsageError("--unverified requires --origin, and is only for sites")
    if everything and (kind == "stack" or origin):
        raise click.UsageError("--all is only for sites and blocks, and without --origin, which shows everything")
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
    if kind != "stack" and not everything and not origin:
        echo("\n".join(_summary(data) if kind == "site" else _block_summary(data)))
        what = "the whole profile" if kind == "site" else "archives, hashes and sources, too"
        say(f"note: {what}: `hpcgen show {kind} {name} --all`")
        return
    from hpcgen.core.support.writing import yaml_text

    if origin:
        echo(f"# {path}")
    echo(yaml_text(data, blocks=True), nl=False)


def _summary(data: Mapping[str, object]) -> list[str]:
    """At most about 60 lines: what is deeper than two levels is shortened, and of sources only their number is told."""
    lines = []
    for key, value in data.items():
        if key == "sources" and isinstance(value, dict):
            checked = sum(isinstance(each, dict) and each.get("verified") == "yes" for each in value.values())
            lines.append(f"sources: {len(value)}, {checked} of them verified")
        elif isinstance(value, dict) and value:
            lines.append(f"{key}:")
            shown = list(value.items())[:_MOST]
            lines += [f"  {name}: {_short(each)}" for name, each in shown]
            lines += [f"  … {len(value) - _MOST} more"] if len(value) > _MOST else []
        else:
            lines.append(f"{key}: {_short(value)}")
    return lines


def _block_summary(data: Mapping[str, object]) -> list[str]:
    """A line for each option and release."""
    # The class's own lines are as wide as its file, not as the terminal.
    description = re.sub(r"(?<!\n)\n(?!\n)", " ", str(data["description"]))
    lines = [f"name: {data['name']}", f"description: {description}"]
    for key in ("provides", "needs", "distributions"):
        if isinstance(names := data.get(key), list) and names:
            lines.append(f"{key}: {', '.join(map(str, names))}")
    for key, told in (("options", str), ("releases", _release)):
        if isinstance(entries := data[key], dict) and entries:
            lines.append(f"{key}:")
            lines += [f"  {name}: {told(each)}" for name, each in list(entries.items())[:_MOST_RELEASES]]
            more = len(entries) - _MOST_RELEASES
            lines += [f"  … {more} more"] if more > 0 else []
    return lines


def _release(row: Mapping[str, Mapping[str, object]]) -> str:
    """What a release accepts and where it can be had, on one line."""
    parts = [", ".join(f"{block} {versions}" for block, versions in row.get("accepts", {}).items())]
    for key in ("on", "host", "only"):
        told = ", ".join(
            f"{name} {'/'.join(each) if isinstance(each, list) else each}" for name, each in row.get(key, {}).items()
        )
        parts.append(f"{key} {told}" if told else "")
    parts.append("not by default" if row.get("not_default") else "")
    parts.append("not verified" if row.get("source", {}).get("verified") != "yes" else "")
    return shortened("; ".join(filter(None, parts)) or "-", _WIDE_RELEASE)


def _short(value: object) -> str:
    from hpcgen.core.config.provenance import shown_value

    return shortened(shown_value(value), _WIDE)


def _show_facts(catalog: Catalog, name: str, unverified: bool, as_json: bool) -> None:
    """Print each fact of a profile with its file and line, source, date, and whether it is verified.

    ``unverified``: only facts that nobody has verified.
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
    where = f"{fact.where.file}:{fact.where.line}"
    source = fact.source
    told = [source.as_of or "-", source.checked, source.words or "-"] if source is not None else ["-"] * 3
    return [fact.path, _short(fact.value), where, _MARKS[fact.mark], *told]
