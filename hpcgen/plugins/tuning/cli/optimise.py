"""``hpcgen optimise``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
import msgspec
from msgspec.structs import replace

from hpcgen.cli.common import PATH, catalog_of, print_json, say, shown_files
from hpcgen.cli.licences import say_licences
from hpcgen.cli.words import COUNT, SITE
from hpcgen.plugins.tuning.requests.records import GraphCompiler

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Finding
    from hpcgen.core.model.site import Site
    from hpcgen.core.support.writing import CopiedFile, KitFile
    from hpcgen.plugins.tuning.optimise.decide import Optimised
    from hpcgen.plugins.tuning.requests.records import OptimiseRequest

EXAMPLES = {
    "optimise": (
        "hpcgen optimise request.yaml",
        "hpcgen optimise request.yaml -o kit --without xla",
    ),
}


@click.command("optimise")
@click.argument("request", metavar="REQUEST", type=PATH)
@click.option("--site", type=SITE, help="Site profile that replaces the one in the request.")
@click.option(
    "--without",
    multiple=True,
    type=click.Choice(get_args(GraphCompiler)),
    help="Do not choose this graph compiler; once for each.",
)
@click.option("--top", type=COUNT, metavar="N", help="Show only the first N alternatives.")
@click.option("-o", "--output", metavar="DIR", type=PATH, help="Write the kit with decision.json and decision.md.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    request: Path,
    site: str | None,
    without: tuple[str, ...],
    top: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Choose framework build, graph compiler, partition and layout for REQUEST by what is measured, and say why.

    REQUEST is a file of hpcgen's own (YAML), or of MODAK's (JSON). Without evidence the stack's default is taken.
    """
    from hpcgen.plugins.tuning.cli.measurements import known_measurements
    from hpcgen.plugins.tuning.optimise.decide import optimise
    from hpcgen.plugins.tuning.optimise.report import report
    from hpcgen.plugins.tuning.requests.reading import read_request

    catalog = catalog_of(ctx)
    read = read_request(request)
    wanted = _narrowed(_located(read.request, request.parent), without)
    target, said = _target(catalog, wanted, site)
    findings = [*read.findings, *said]
    result = optimise(catalog, wanted, target, known_measurements(ctx), findings, request.name, read.where)
    text = report(result.decision, top)
    if output is not None:
        from hpcgen.kit.kit import store_kit

        files = kit_files(result, catalog, text)
        store_kit(output, files)
        say(f"wrote {shown_files(files)} to {output}")
    if as_json:
        print_json(result.decision)
    else:
        # With a kit the report is a file of it.
        click.echo(text if output is None else text.partition("\n## ")[0], nl=False)
    say_licences(result.plan)


def _located(request: OptimiseRequest, folder: Path) -> OptimiseRequest:
    """The request whose site and stack, where they are files, are found from its own folder."""
    from hpcgen.catalog.catalog import reference_from

    site, stack = (each and reference_from(folder, each) for each in (request.site, request.stack))
    return replace(request, site=site, stack=stack)


def _narrowed(request: OptimiseRequest, without: tuple[str, ...]) -> OptimiseRequest:
    """The request without some graph compilers."""
    if not without:
        return request
    rules = request.compilers
    if rules.use in without:
        raise click.UsageError(f"--without {rules.use}: the request says to use it")
    return replace(request, compilers=replace(rules, without=[*rules.without, *without]))


def _target(catalog: Catalog, request: OptimiseRequest, named: str | None) -> tuple[Site, list[Finding]]:
    """The profile that is meant, with the request's wishes for its jobs, and what there is to know of it."""
    from datetime import date

    from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes

    if named is not None:
        if request.site not in (None, named):
            say(f"note: for {named}, where the request names {request.site}")
        request = replace(request, site=named)
    site, said = target_of(request, catalog, date.today().isoformat())
    site, more = with_wishes(site, request)
    return site, [*said, *more]


def kit_files(result: Optimised, catalog: Catalog, text: str) -> dict[str, KitFile | CopiedFile]:
    """The kit of a decision's plan, with the decision."""
    from hpcgen.core.support.writing import KitFile
    from hpcgen.kit.kit import DECISION, REPORT, STACK, make_kit
    from hpcgen.plugins.tuning.optimise.application import stack_text

    decision = msgspec.json.format(msgspec.json.encode(result.decision), indent=1).decode() + "\n"
    files = make_kit(result.plan, catalog).all_files
    own = {} if result.stack is None else {STACK: KitFile(stack_text(result.stack))}
    return {**files, **own, DECISION: KitFile(decision), REPORT: KitFile(text)}
