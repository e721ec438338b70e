"""``hpcgen onnx run``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import PATH, TRUST, catalog_of, print_json, say
from hpcgen.cli.engine_choice import EngineChoice
from hpcgen.cli.onnx_providers import ProviderChoice
from hpcgen.cli.words import COUNT, IMAGE, SITE

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.plugins.onnx.run import RunReport, RunRequest


@click.command("run")
@click.argument("folder", type=PATH, metavar="DIR")
@click.argument("model", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, type=PATH, metavar="DATA...")
@click.option("-o", "--output", required=True, type=PATH, metavar="OUT", help="Results go to OUT/MODEL/FILE.npz.")
@click.option("--image", type=IMAGE, help="The image that it runs in.")
@click.option("--here", is_flag=True, help="Run with hpcgen's own Python and its ONNX Runtime or OpenVINO.")
@click.option("--variant", default="", metavar="NAME", help="A variant of the model, such as ort-all.")
@click.option("--provider", type=ProviderChoice(), help="By default the image's.")
@click.option("--batch", type=COUNT, metavar="N", help="Rows that are computed at a time; by default 64.")
@click.option("--shard", default="", metavar="N/COUNT", help="This share of the files alone, such as 2/8.")
@click.option("--threads", type=COUNT, help="By default all that the job or this machine has.")
@click.option("--on", "host", type=SITE, help="Profile of this machine; by default the image's.")
@click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one.")
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON; the program's lines go to stderr.")
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, **asked: Any) -> None:
    """Run a converted MODEL of DIR over data files: .npz with an array for each input, .npy, or folders of such.

    A result that is there, of the same model and data, is not computed again.
    """
    from hpcgen.plugins.onnx.run import RunRequest

    if asked["here"] == bool(asked["image"]):
        raise click.UsageError("say either --image IMAGE or --here")
    if asked["here"] and (asked["host"] or asked["engine"]):
        raise click.UsageError("--here runs in no image: leave out --on and --engine")
    request = RunRequest(
        models=asked["folder"],
        model=asked["model"],
        data=asked["data"],
        output=asked["output"],
        variant=asked["variant"],
        provider=asked["provider"],
        batch=asked["batch"],
        shard=asked["shard"],
    )
    report = _run(catalog_of(ctx), request, asked, as_json)
    if as_json:
        print_json(report)
    if report.failed:
        _raise(request, report)
    say(f"{report.computed} computed, {report.there} were there: {asked['output'] / asked['model']}")


def _run(catalog: Catalog, request: RunRequest, asked: dict[str, Any], as_json: bool) -> RunReport:
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.onnx.run import run_here, run_in_image

    def line(text: str) -> None:
        click.echo(text, err=as_json)

    with interruptible():
        if asked["here"]:
            return run_here(request, catalog, line, asked["threads"])
        from hpcgen.images.reference import parse_image
        from hpcgen.run.image_job import plan_for_image

        site = catalog.site(asked["host"]) if asked["host"] is not None else None
        how = {"trust": asked["trust_image"], "site": site, "engine": asked["engine"]}
        job = plan_for_image(parse_image(asked["image"]), catalog, **how)
        return run_in_image(request, job, catalog, line, asked["threads"])


def _raise(request: RunRequest, report: RunReport) -> None:
    """All files without a result, each with its reason."""
    from hpcgen.core.errors import JobFailedError, Problem

    problems = [Problem(each.why, remedy="") for each in report.failed]
    text = f"{len(problems)} of {len(problems) + report.computed + report.there} data files have no result"
    raise JobFailedError([Problem(text, request.model, remedy="mend them and run it again"), *problems])
