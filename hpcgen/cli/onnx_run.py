"""``hpcgen onnx run``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, TRUST, catalog_of, print_json, say
from hpcgen.cli.engine_choice import EngineChoice
from hpcgen.cli.onnx_options import RunningOptions
from hpcgen.cli.onnx_providers import ProviderChoice
from hpcgen.cli.options import in_record
from hpcgen.cli.words import COUNT, IMAGE, SITE

if TYPE_CHECKING:
    from pathlib import Path

    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.ensemble import Provider
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
@click.option("--shard", default="", metavar="N/COUNT", help="Only this share of the files, such as 2/8.")
@click.option("--threads", type=COUNT, help="By default all of the job or of this machine.")
@click.option("--on", "host", type=SITE, help="Profile of this machine; by default the image's.")
@click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one.")
@TRUST
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON; the program's output goes to stderr.")
@click.pass_context
@in_record(RunningOptions, "running")
def command(
    ctx: click.Context,
    folder: Path,
    model: str,
    data: tuple[Path, ...],
    output: Path,
    variant: str,
    provider: Provider | None,
    batch: int | None,
    shard: str,
    as_json: bool,
    running: RunningOptions,
) -> None:
    """Run a converted MODEL of DIR over data files: .npz with an array for each input, .npy, or folders of such.

    A result that is there, of the same model and data, is not computed again.
    """
    from hpcgen.plugins.onnx.run import RunRequest

    if running.here == bool(running.image):
        raise click.UsageError("say either --image IMAGE or --here")
    if running.here and (running.host or running.engine):
        raise click.UsageError("--here runs in no image: leave out --on and --engine")
    request = RunRequest(
        models=folder,
        model=model,
        data=data,
        output=output,
        variant=variant,
        provider=provider,
        batch=batch,
        shard=shard,
    )
    report = _run(catalog_of(ctx), request, running, as_json)
    if as_json:
        print_json(report)
    if report.failed:
        _raise(request, report)
    say(f"{report.computed} computed, {report.there} were there: {output / model}")


def _run(catalog: Catalog, request: RunRequest, running: RunningOptions, as_json: bool) -> RunReport:
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.onnx.run import run_here, run_in_image

    def line(text: str) -> None:
        click.echo(text, err=as_json)

    with interruptible():
        if running.here:
            return run_here(request, catalog, line, running.threads)
        from hpcgen.images.reference import parse_image
        from hpcgen.running.image_job import plan_for_image

        assert running.image is not None
        job = plan_for_image(parse_image(running.image), catalog, **running.place(catalog))
        return run_in_image(request, job, catalog, line, running.threads)


def _raise(request: RunRequest, report: RunReport) -> None:
    """All files without a result, each with its reason."""
    from hpcgen.core.errors import JobFailedError, Problem

    problems = [Problem(each.why, remedy="") for each in report.failed]
    text = f"{len(problems)} of {len(problems) + report.computed + report.there} data files have no result"
    raise JobFailedError([Problem(text, request.model, remedy="mend them and run it again"), *problems])
