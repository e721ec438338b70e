"""``hpcgen onnx run`` and ``hpcgen onnx serve-kit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import (
    PATH,
    TRUST,
    catalog_of,
    collection_words,
    print_json,
    say,
    say_findings,
    shown_files,
)
from hpcgen.cli.licences import say_licences
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.words import COUNT, FORMAT, IMAGE, PARTITION, QUEUE, SETTING, SITE, EngineChoice
from hpcgen.plugins.onnx.cli.onnx import ProviderChoice, RunningOptions

if TYPE_CHECKING:
    from pathlib import Path

    from hpcgen.catalog.catalog import Catalog
    from hpcgen.plugins.onnx.records import Provider
    from hpcgen.plugins.onnx.run import RunReport, RunRequest
    from hpcgen.plugins.onnx.serve import ServeKit, ServeRequest


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
def run(
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
        raise click.UsageError("--here uses no image: leave out --on and --engine")
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
        from hpcgen.images.unpacked import startable
        from hpcgen.running.image_job import plan_for_image

        assert running.image is not None
        image, place = startable(parse_image(running.image), say), running.place(catalog)
        job = plan_for_image(image, catalog, foreign=lambda: catalog.site("workstation"), **place)
        return run_in_image(request, job, catalog, line, running.threads)


def _raise(request: RunRequest, report: RunReport) -> None:
    """All files without a result, each with its reason."""
    from hpcgen.core.errors import JobFailedError, Problem

    problems = [Problem(each.why, remedy="") for each in report.failed]
    text = f"{len(problems)} of {len(problems) + report.computed + report.there} data files have no result"
    raise JobFailedError([Problem(text, request.model, remedy="mend them and run it again"), *problems])


# kits


class ServeKitOptions(Options, frozen=True, kw_only=True):
    """Which models run where, over what and as which job; ``output``: the kit's folder."""

    folder: Path
    site: str
    partition: str | None = None
    provider: Provider | None = None
    output: Path
    models: tuple[str, ...] = ()
    variant: str = ""
    batch: int | None = None
    data: str = "data"
    results: str = "results"
    array: str | None = None
    settings: tuple[str, ...] = ()
    format: str | None = None
    threads: int | None = None
    time: str | None = None
    queue: str | None = None
    account: str | None = None
    notes: bool = False


@click.command("serve-kit")
@click.argument("folder", type=PATH, metavar="DIR")
@click.option("--site", required=True, type=SITE, help="Where the models run.")
@click.option("--partition", type=PARTITION, help="Kind of node; by default the profile's.")
@click.option("--provider", type=ProviderChoice(), help="By default the provider for the partition's GPU or CPU.")
@click.option("-o", "--output", required=True, metavar="KIT", type=PATH, help="Write the kit to this folder.")
@click.option("--model", "models", multiple=True, metavar="NAME", help="By default all of DIR. Repeatable.")
@click.option("--variant", default="", metavar="NAME", help="A variant of the models, such as ort-all.")
@click.option("--batch", type=COUNT, metavar="N", help="Rows that are computed at a time; by default 64.")
@click.option("--data", default="data", show_default=True, metavar="DIR", help="Data files, seen from the job.")
@click.option("--results", default="results", show_default=True, metavar="DIR", help="Where the results go.")
@click.option("--array", metavar="N[%M]", help="Share the files among N tasks of an array, of which M run at a time.")
@click.option("--set", "settings", multiple=True, type=SETTING, help="As in render.")
@click.option("--format", type=FORMAT, help="A format other than that of the site's engine.")
@click.option("--threads", type=COUNT, help="Threads of the program.")
@click.option("--time", metavar="TIME", help="Wall time: 36:00:00, 36h or 90m.")
@click.option("--queue", type=QUEUE, help="Scheduler partition or queue.")
@click.option("--account", metavar="NAME", help="Account or project that the job is charged to.")
@click.option(
    "--notes", is_flag=True, help="Show all notes: also facts that are not verified, and checks that lack a fact."
)
@click.option("--json", "as_json", is_flag=True, help="Print the choice and its reasons as JSON.")
@click.pass_context
@in_record(ServeKitOptions)
def serve_kit(ctx: click.Context, as_json: bool, options: ServeKitOptions) -> None:
    """Write a kit that runs the models of DIR over many files on a partition, by what computes there.

    DIR is what `hpcgen onnx convert` wrote. A job that was ended goes on when it is submitted again.
    """
    from hpcgen.kit.kit import store_kit
    from hpcgen.plugins.onnx.serve import serving_kit

    catalog = catalog_of(ctx)
    made = serving_kit(_request(catalog, options), catalog, collection_words(ctx))
    store_kit(options.output, made.kit.all_files)
    if as_json:
        print_json(_data(made, options.output))
    else:
        click.echo(_text(made, options), nl=False)
    say(f"wrote {shown_files(made.kit.all_files)} to {options.output}")
    say_licences(made.plan)
    say_findings(made.plan, made.kit.notices, made.kit.details, notes=options.notes)


def _request(catalog: Catalog, options: ServeKitOptions) -> ServeRequest:
    from hpcgen.cli.job_options import QueueingOptions, queueing_from
    from hpcgen.core.config.user_config import account_for
    from hpcgen.core.model.job import JobRequest
    from hpcgen.plugins.onnx.serve import ServeRequest

    site = catalog.site(options.site)
    account = account_for(site, options.account)
    job = JobRequest(threads_per_rank=options.threads, walltime=options.time, queue=options.queue, account=account)
    return ServeRequest(
        site=site,
        job=job,
        queueing=queueing_from(QueueingOptions(array=options.array)),
        folder=options.folder,
        partition=options.partition,
        provider=options.provider,
        models=options.models,
        variant=options.variant,
        batch=options.batch,
        data=options.data,
        results=options.results,
        settings=options.settings,
        format=options.format,
    )


def _data(made: ServeKit, output: Path) -> dict[str, Any]:
    return {
        "kit": str(output),
        "models": made.models,
        "target": made.target,
        "blocks": {each.name: each.version for each in made.plan.blocks},
        "command": made.plan.job.command,
        "submit": made.submit,
        "reproduce": made.plan.command,
    }


def _text(made: ServeKit, options: ServeKitOptions) -> str:
    """What was chosen and why, and what is done with the kit, in words."""
    target, plan = made.target, made.plan
    below = "".join(f", {name} {version}" for name, version in target.blocks.items())
    lines = [
        f"{', '.join(made.models)} on {target.site}, partition {target.partition}",
        f"  computed by {target.provider}: {target.engine} {target.runtime}{below}",
        *(f"    {reason}" for reason in target.reasons),
        "",
        f"build   bash {options.output}/build.sh",
        f"data    {options.data}/MODEL/*.npz, or {options.data}/*.npz for every model, in the job's folder",
        f"submit  {made.submit}",
        f"results {options.results}/MODEL/*.npz; submitted again, a job computes the missing results",
    ]
    if target.provider in ("cuda", "tensorrt", "migraphx"):
        lines.append("status  76: the GPU does not compute, and the CPU does not take its place unasked")
    if plan.job.walltime_s:
        lines.append(f"time    {plan.job.walltime_s // 3600:02}:{plan.job.walltime_s // 60 % 60:02} for each task")
    return "\n".join(lines) + "\n"
