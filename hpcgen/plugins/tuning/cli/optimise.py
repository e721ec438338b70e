"""``hpcgen optimise``."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec
from msgspec.structs import replace

from hpcgen.cli.common import PATH, catalog_of, print_json, say, shown_files
from hpcgen.cli.licences import say_licences
from hpcgen.cli.options import CHARGE, RUNNER, SHAPE, PlanOptions, in_record, spelt
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import BLOCK, COUNT, FORMAT, PARTITION, QUEUE, SETTING, SITE
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.requests.records import GraphCompiler

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.plan import Finding
    from hpcgen.core.model.site import Site
    from hpcgen.core.support.writing import CopiedFile, KitFile
    from hpcgen.plugins.tuning.optimise.decide import Optimised
    from hpcgen.plugins.tuning.requests.reading import ReadRequest
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
@click.option(
    "--pin", is_flag=True, help="Fetch a source that nothing pins, and write its commit or hash into REQUEST."
)
@click.option("--set", "settings", multiple=True, type=SETTING, help="Set a block's option or version, as in render.")
@click.option("--partition", type=PARTITION, help="Kind of node that replaces the one in the request.")
@RUNNER
@click.option("--nodes", type=COUNT, help="Nodes of the job, in place of the request's.")
@click.option(
    "--add", "added", multiple=True, type=BLOCK, help="Put a block or a package into the image, as in render."
)
@click.option("--format", type=FORMAT, help="A format other than that of the site's engine.")
@click.option("--allow-unsupported", is_flag=True, help="Go on even if the contract with the host is broken.")
@SHAPE
@click.option("--queue", type=QUEUE, help="Scheduler partition or queue, in place of the request's.")
@CHARGE
@click.option("--top", type=COUNT, metavar="N", help="Show only the first N alternatives.")
@click.option("-o", "--output", metavar="DIR", type=PATH, help="Write the kit with decision.json and decision.md.")
@click.option("--json", "as_json", is_flag=True, help="Print the decision as JSON.")
@click.pass_context
@in_record(PlanOptions)
def command(
    ctx: click.Context,
    request: Path,
    options: PlanOptions,
    without: tuple[str, ...],
    pin: bool,
    top: int | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Choose framework build, graph compiler, partition and layout for REQUEST by what is measured, and say why.

    REQUEST is a file of hpcgen's own (YAML), or of MODAK's (JSON). Without evidence the stack's default is taken.
    """
    from hpcgen.plugins.tuning.cli.measurements import known_measurements
    from hpcgen.plugins.tuning.optimise.candidate_plans import PlanTerms
    from hpcgen.plugins.tuning.optimise.decide import optimise
    from hpcgen.plugins.tuning.optimise.report import report
    from hpcgen.plugins.tuning.requests.reading import read_request

    catalog = catalog_of(ctx)
    read = read_request(request)
    if pin:
        read = _pinned(request, read)
    wanted = _asked(_narrowed(_located(read.request, request.parent), without), options)
    target, said = _target(catalog, wanted, options)
    findings = [*read.findings, *said]
    again = _again(request, options, without)
    known = known_measurements(ctx)
    terms = PlanTerms(options.settings, options.added, options.format, options.allow_unsupported, options.rank_gpus)
    result = optimise(catalog, wanted, target, known, findings, request.name, read.where, again, terms)
    text = report(result.decision, top)
    if output is not None:
        files = kit_files(result, catalog, text)
        _store(output, files, named=result.image is not None)
        say(f"wrote {shown_files(files)} to {output}")
    if as_json:
        print_json(result.decision)
    else:
        # With a kit the report is a file of it.
        echo(text if output is None else text.partition("\n## ")[0], nl=False)
    # The report has all of them; a warning is also for whoever does not read that.
    if output is not None or as_json:
        for each in result.decision.findings:
            if each.severity in ("error", "warning"):
                say(f"{each.severity}: {each}")
    say_licences(result.plan)


def _pinned(path: Path, read: ReadRequest) -> ReadRequest:
    """The request as it is read again once its source is pinned."""
    from hpcgen.plugins.tuning.optimise.application import pinned
    from hpcgen.plugins.tuning.optimise.pinning import pinned_address, write_back
    from hpcgen.plugins.tuning.requests.reading import read_request

    build = read.request.build
    if build is None:
        raise click.UsageError("--pin: the request has no `build`, whose source could be pinned")
    with suppress(InputError):
        pinned(build)
        say(f"note: {build.src} is pinned already")
        return read
    address = pinned_address(build)
    write_back(path, read.where(("build", "src")), build.src, address)
    say(f"note: wrote {address} to {path}")
    return read_request(path)


def _again(request: Path, options: PlanOptions, without: tuple[str, ...]) -> str:
    """The command that decides the same again."""
    from hpcgen.core.support.places import recorded
    from hpcgen.core.support.quoting import command

    words = ["hpcgen", "optimise", recorded(str(request))]
    for name, value in options.values().items():
        for each in value if isinstance(value, tuple) else (value,):
            words += [spelt(name)] if each is True else [spelt(name), str(each)]
    for each in without:
        words += ["--without", each]
    return command(*words)


def _asked(request: OptimiseRequest, options: PlanOptions) -> OptimiseRequest:
    """The request with what the command line says in its place."""
    limits = {
        "nodes": options.nodes,
        "ranks_per_node": options.ranks_per_node,
        "threads": options.threads,
        "gpus_per_node": options.gpus,
        "walltime": options.time,
        "memory_per_rank_gb": options.memory_per_rank,
    }
    said: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if {"nodes", "ranks_per_node"} & said.keys():
        said["ranks"] = None
    job = {"name": options.job_name, "queue": options.queue, "account": options.account}
    return replace(
        request,
        partition=options.partition or request.partition,
        limits=replace(request.limits, **said),
        job=replace(request.job, **{name: value for name, value in job.items() if value is not None}),
    )


def _store(folder: Path, files: dict[str, KitFile | CopiedFile], *, named: bool) -> None:
    """Write a kit; for an image that the request names, the files that start it, which are no kit.

    OutputError: the folder is something else.
    """
    if not named:
        from hpcgen.kit.kit import store_kit

        store_kit(folder, files)
        return
    from hpcgen.core.errors import OutputError
    from hpcgen.core.support.writing import KitFile, write_file
    from hpcgen.kit.kit import DECISION

    if (
        folder.is_dir()
        and any(folder.iterdir())
        and ((folder / "hpcgen.lock").exists() or not (folder / DECISION).exists())
    ):
        remedy = "name a new or an empty folder"
        raise OutputError(f"{folder} is not empty, and not of such a request", remedy=remedy)
    for name, file in files.items():
        assert isinstance(file, KitFile)
        write_file(folder / name, file.text, file.executable, folders=True)


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


def _target(catalog: Catalog, request: OptimiseRequest, options: PlanOptions) -> tuple[Site, list[Finding]]:
    """The profile that is meant, with the request's wishes for its jobs, and what there is to know of it."""
    from datetime import date

    from hpcgen.plugins.tuning.optimise.target import target_of, with_wishes

    named = options.site
    if named is not None:
        if request.site not in (None, named):
            say(f"note: for {named}, where the request names {request.site}")
        if (elsewhere := catalog.site(named).scheduler.kind) != request.scheduler is not None:
            say(f"note: for {elsewhere}, where the request names {request.scheduler}")
        request = replace(request, site=named, infrastructure=None, scheduler=None)
    site, said = target_of(request, catalog, date.today().isoformat())
    site, more = with_wishes(site, request)
    if options.runner is not None:
        site = replace(site, containers=replace(site.containers, preferred=options.runner))
    return site, [*said, *more]


def kit_files(result: Optimised, catalog: Catalog, text: str) -> dict[str, KitFile | CopiedFile]:
    """The kit of a decision's plan, with the decision."""
    from hpcgen.core.support.writing import KitFile
    from hpcgen.kit.kit import DECISION, REPORT, STACK, make_kit
    from hpcgen.plugins.tuning.optimise.application import stack_text

    decision = msgspec.json.format(msgspec.json.encode(result.decision), indent=1).decode() + "\n"
    files: dict[str, KitFile | CopiedFile]
    if result.image is not None:
        from hpcgen.plugins.tuning.optimise.named_image import image_files

        files = dict(image_files(result.plan, result.image))
    else:
        files = make_kit(result.plan, catalog).all_files
    own = {} if result.stack is None else {STACK: KitFile(stack_text(result.stack))}
    return {**files, **own, DECISION: KitFile(decision), REPORT: KitFile(text)}
