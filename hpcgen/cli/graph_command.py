"""``hpcgen graph``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import NEW_FILE, catalog_of, plan_from, print_json, say
from hpcgen.cli.options import PlanOptions, optional_plan_options
from hpcgen.core.errors import InputError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Plan
    from hpcgen.planning.explain.graph import PlanGraph

FORMS = {"tree": ".txt", "svg": ".svg", "dot": ".dot", "mermaid": ".mmd"}
"""What a graph can be written as, and how the name of such a file ends."""


@click.command("graph")
@optional_plan_options
@click.option("--from", "origin", metavar="KIT|LOCK|IMAGE", help="Draw an existing kit, lock or image.")
@click.option("--as", "form", type=click.Choice(list(FORMS)), help="By default a tree, or by the ending of FILE.")
@click.option("-o", "--output", metavar="FILE", type=NEW_FILE, help="Write it to FILE (.svg, .dot, .mmd, .txt).")
@click.option("--inputs", is_flag=True, help="With the downloads of each block.")
@click.option("--json", "as_json", is_flag=True, help="Print the nodes and edges as JSON.")
def command(
    ctx: click.Context,
    origin: str | None,
    form: str | None,
    output: Path | None,
    inputs: bool,
    as_json: bool,
    options: PlanOptions,
) -> None:
    """Draw the blocks of a plan and what they need: as a tree, a picture (SVG), for Graphviz or for Mermaid."""
    from hpcgen.planning.explain.graph import graph_of

    form = form or _form_of(output)
    catalog = catalog_of(ctx)
    plan = _plan(ctx, catalog, origin, options)
    graph = graph_of(plan, _inputs(plan, catalog) if inputs else None)
    if as_json:
        print_json(graph)
        return
    text = _drawn(form)(graph)
    if output is None:
        click.echo(text)
        return
    from hpcgen.core.support.writing import write_file

    write_file(output, f"{text}\n")
    say(f"wrote {output}")


def _drawn(form: str) -> Callable[[PlanGraph], str]:
    if form == "svg":
        from hpcgen.planning.explain.graph_svg import svg

        return svg
    from hpcgen.planning.explain import graph as graph_text

    return {"tree": graph_text.tree, "dot": graph_text.dot, "mermaid": graph_text.mermaid}[form]


def _form_of(output: Path | None) -> str:
    if output is None:
        return "tree"
    found = [form for form, ending in FORMS.items() if ending == output.suffix]
    if not found:
        endings = ", ".join(FORMS.values())
        raise InputError(f"{output} has no known extension", expected=f"a name ending in one of {endings}, or --as")
    return found[0]


def _plan(ctx: click.Context, catalog: Catalog, origin: str | None, options: PlanOptions) -> Plan:
    if origin is None:
        return plan_from(ctx, catalog, replace(options, command=()))
    from hpcgen.cli.recorded_plan import named_plan

    return named_plan(origin, options).plan


def _inputs(plan: Plan, catalog: Catalog) -> dict[str, list[tuple[str, str]]]:
    """Kind and name of what each block's build fetches; of the packages of a list their number."""
    from hpcgen.recipe.assemble import assemble

    found: dict[str, list[tuple[str, str]]] = {}
    for block, item in assemble(plan, catalog).inputs:
        pinned = list(item.pinned())
        names = [each.name.rpartition("/")[2] or each.name for each in pinned]
        if pinned:
            said = names[0] if len(names) == 1 else f"{len(names)} of {pinned[0].kind}: {names[0]} …"
            found.setdefault(block.name, []).append((pinned[0].kind, said))
    return found
