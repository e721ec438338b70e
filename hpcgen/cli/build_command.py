"""``hpcgen build``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.build_options import NOT_IN_JOB, BuildCommandOptions, hand_over, job_of_build
from hpcgen.cli.common import (
    EMULATION,
    PATH,
    SIGNER,
    TRUST,
    WHEEL_FOLDERS,
    catalog_of,
    named_kit,
    plan_from,
    print_json,
    required_signers,
    say,
    say_findings,
    shows_progress,
    with_site,
    with_usual_place,
)
from hpcgen.cli.licences import check_before_asking, licence_option, require_licences, with_licences
from hpcgen.cli.options import PlanOptions, in_record, kit_or_plan_options
from hpcgen.cli.plugged import ExtensibleCommand
from hpcgen.cli.project_stack import stack_here
from hpcgen.cli.provenance import check_statement, write_provenance
from hpcgen.cli.recorded_plan import plan_of_lock
from hpcgen.cli.terminal import echo_commands
from hpcgen.cli.words import EngineChoice
from hpcgen.core.model.image_paths import NOTEST

if TYPE_CHECKING:
    from hpcgen.builders import BuildOptions
    from hpcgen.builders.display import Watcher
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.errors import TestFailedError
    from hpcgen.core.model.lock import Lock
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import BuildRecord
    from hpcgen.kit.folder import KitFolder


@click.command("build", cls=ExtensibleCommand)
@kit_or_plan_options
@click.option("--engine", type=EngineChoice("builders"), help="The program that builds; by default the site's choice.")
@click.option("-o", "--output", metavar="IMAGE", help="The image; by default where the job looks for it.")
@click.option("--kit", "keep", metavar="DIR", type=PATH, help="Keep the kit in this folder.")
@click.option("--locked", metavar="FILE", type=PATH, help="Build this lock.")
@click.option(
    "--bundle",
    metavar="DIR",
    type=PATH,
    help="Build without a network from this bundle: a KIT that was rendered for it, or its lock.",
)
@click.option(
    "--dockerfile",
    metavar="FILE",
    type=PATH,
    help="Build your own Dockerfile or definition file for --site, unchanged.",
)
@click.option("--context", metavar="DIR", type=PATH, help="What --dockerfile copies from; by default its own folder.")
@SIGNER
@click.option(
    "--cache",
    "store",
    metavar="DIR",
    type=PATH,
    help="Keep what blocks compile in this folder, and take from it what is there.",
)
@WHEEL_FOLDERS
@click.option("--no-cache", is_flag=True, help="Run every step again, and take nothing that was compiled before.")
@click.option(
    "--notest", is_flag=True, envvar=NOTEST, help="Leave out the self-test that ends a build: for another CPU, say."
)
@EMULATION
@click.option("--engine-option", multiple=True, metavar="WORD", help="An extra word for the engine's build command.")
@click.option("--dry-run", is_flag=True, help="Print the engine's commands, build nothing.")
@click.option("--test", "prove", is_flag=True, help="Test the image afterwards, as hpcgen test does.")
@TRUST
@click.option("--record/--no-record", default=True, help="Keep a record of the build (hpcgen records).")
@click.option("--log", metavar="FILE", type=PATH, help="Write the engine's whole output here.")
@click.option(
    "--provenance", metavar="FILE", type=PATH, help="Write where the image comes from, as a statement (in-toto, SLSA)."
)
@click.option(
    "--sign",
    metavar="KEY",
    type=PATH,
    multiple=True,
    help="Sign it with this SSH key, as FILE.sig; by default beside the image. With pgp:FINGERPRINT, a key in "
    "Apptainer's keyring, sign the SIF file itself. May be repeated.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the record as JSON.")
@licence_option
@click.option("--submit", is_flag=True, help="Build as a job of the site's batch system, and follow it.")
@click.option("--no-follow", is_flag=True, help="With --submit: print the job's id and do not wait for it.")
@in_record(BuildCommandOptions, "build")
def command(ctx: click.Context, options: PlanOptions, build: BuildCommandOptions) -> None:
    """Build the image of a KIT that render -o wrote, or of --site and --stack, or many with --all.

    With --dockerfile, build your own file, and store the image as the site's engine starts it.
    """
    from hpcgen.core.support.leftovers import scratch_folder

    required_signers(ctx)
    check_statement(build.provenance, build.keys.ssh)
    if build.dockerfile is not None or build.context is not None:
        from hpcgen.cli.build_dockerfile import build_dockerfile

        build_dockerfile(ctx, options, build)
        return
    if build.wheel_folders:
        _look_in_folders(options, build)
    planned = options.stack is not None or (not options.words and stack_here() is not None)
    if planned and build.locked is None and build.bundle is None:
        options = with_site(catalog_of(ctx), options)
    if build.no_follow and not build.submit:
        raise click.UsageError("--no-follow requires --submit")
    if build.submit:
        _submit(ctx, options, build)
        return
    with scratch_folder("hpcgen-kit-") as folder:
        kit, catalog, lock = _kit_to_build(ctx, build.keep or folder / "kit", options, build)
        if build.approve is not None:
            build.approve(kit, None)
        how = build.how if catalog is None else _with_artifacts(kit, catalog, lock, build)
        if build.dry_run:
            dry_run_of(kit, how)
            return
        check_before_asking(kit.plan, build.accept, how.engine)
        require_licences(kit.plan.licences, build.accept)
        # A kit, a lock or a bundle may be a stranger's; what was planned here is for a profile of the user's.
        trust = build.trust_image or options.site is not None
        if build.prove:
            _check_testable(ctx, kit, trust)
        result = build_and_tell(kit, how)
        if build.approve is not None:
            build.approve(kit, result)
    write_provenance(result, build.provenance, build.keys.ssh)
    failed = None
    if build.prove:
        result, failed = _prove(ctx, result, build.record, trust)
    say_result(result, build.as_json)
    if failed is not None:
        raise failed


def _look_in_folders(options: PlanOptions, build: BuildCommandOptions) -> None:
    """Have --wheel-dir looked at; UsageError where the recipe is already written for other sources."""
    from hpcgen.supply.net.pip_settings import look_in

    if build.bundle is not None:
        raise click.UsageError(
            "--wheel-dir: a bundle has all packages: hpcgen bundle create --wheel-dir takes them along"
        )
    if options.words and options.site is None and build.locked is None:
        raise click.UsageError(
            "--wheel-dir does not apply to a KIT: give --locked KIT/hpcgen.lock, or --site and --stack"
        )
    look_in(build.wheel_folders)


def _submit(ctx: click.Context, options: PlanOptions, build: BuildCommandOptions) -> None:
    """The same command as a job: what cannot be planned is not worth a place in the queue."""
    from hpcgen.running.build_job import check_site

    plan = _plan_to_submit(ctx, replace(options, time=None, queue=None, account=None), build)
    check_site(plan.site)
    if not build.dry_run:
        require_licences(plan.licences, build.accept)
    job = job_of_build(plan.site, plan.partition, f"build-{plan.stack.name}", NOT_IN_JOB, options)
    hand_over(job, plan, build.dry_run, follow=not build.no_follow)


def _plan_to_submit(ctx: click.Context, options: PlanOptions, build: BuildCommandOptions) -> Plan:
    if build.has_lock(options):
        return plan_of_lock(ctx, build.locked, build.bundle, options, build.engine)[1]
    if (kit := named_kit(options)) is not None:
        return kit.plan
    return plan_from(ctx, catalog_of(ctx), replace(options, command=options.words))


def say_result(record: BuildRecord, as_json: bool) -> None:
    """The record, or the image's name."""
    if as_json:
        print_json(record)
    elif record.image is not None:
        click.echo(record.image.name)


def _kit_to_build(
    ctx: click.Context, folder: Path, options: PlanOptions, build: BuildCommandOptions
) -> tuple[KitFolder, Catalog | None, Lock | None]:
    """The kit of the lock, the bundle or the plan that is asked for, its catalog and lock; or the one that was named.

    Where something is built, the licences of a plan must be accepted.
    """
    from hpcgen.builders.choosing import put_base_beside
    from hpcgen.kit.folder import read_kit
    from hpcgen.kit.kit import make_kit, store_kit

    if build.has_lock(options):
        catalog, plan, lock = plan_of_lock(ctx, build.locked, build.bundle, options, build.engine)
        store_kit(folder, make_kit(plan, catalog, lock).all_files)
        put_base_beside(plan, folder, catalog.bases)
        return read_kit(folder), catalog, lock
    if (named := named_kit(options)) is not None:
        put_base_beside(named.plan, named.folder, {})
        return named, None, None
    catalog = catalog_of(ctx)
    options = with_usual_place(catalog, options)
    if options.format is None:
        from hpcgen.backends.engines import format_to_build

        assert options.site is not None
        format = format_to_build(options.runner or catalog.site(options.site).containers.preferred, build.engine)
        options = replace(options, format=format)
    plan = plan_from(ctx, catalog, replace(options, command=options.words), usual=False)
    if not build.dry_run:
        check_before_asking(plan, build.accept, build.engine)
        plan = with_licences(plan, build.accept)
    kit = make_kit(plan, catalog)
    store_kit(folder, kit.all_files)
    put_base_beside(plan, folder, catalog.bases)
    say_findings(plan, kit.notices, kit.details, notes=options.notes)
    return read_kit(folder), catalog, None


def _with_artifacts(kit: KitFolder, catalog: Catalog, lock: Lock | None, build: BuildCommandOptions) -> BuildOptions:
    """How it is built: what is kept is unpacked, and what is missing of it is compiled now."""
    how = build.how
    if how.artifacts is None and how.bundle is None and not how.local_wheels:
        return how
    from hpcgen.builders.artifacts.making import with_artifacts
    from hpcgen.builders.display import display

    if not build.dry_run:
        require_licences(kit.plan.licences, build.accept)
    watcher, compiles = display(say, shows_progress()), not build.dry_run
    return with_artifacts(kit.plan, catalog, lock, kit.content, how, watcher, compiles)


def dry_run_of(kit: KitFolder, options: BuildOptions) -> None:
    from hpcgen.builders.preparing import commands, prepare

    prepared = prepare(kit, options, "0", Path("BUILD"))
    click.echo("# BUILD is a temporary folder with the files that the recipe copies.")
    for line in commands(prepared):
        echo_commands(line)


def build_and_tell(kit: KitFolder, options: BuildOptions) -> BuildRecord:
    from hpcgen.builders.running import build_kit

    return built_and_told(partial(build_kit, kit, options))


def built_and_told(build: Callable[[Watcher], BuildRecord]) -> BuildRecord:
    """The record of a build, which is shown while it goes on."""
    from hpcgen.builders.display import display

    try:
        record = build(display(say, shows_progress()))
    except KeyboardInterrupt:
        say("stopped: no image was made, the previous image of that name is unchanged")
        say("the same command continues after the last finished step, which the engine keeps until `hpcgen clean`")
        raise
    image = record.image
    assert image is not None
    size = f"{image.bytes / 1e6:.0f} MB" if image.bytes is not None else "size unknown"
    cached = sum(step.result == "cached" for step in record.steps)
    digest = f", {image.digest}" if image.digest else ""
    say(f"built {image.name} ({image.kind}) in {record.seconds:.0f} s: {size}{digest}")
    log = f"; log {record.log}" if record.log else ""
    say(f"{cached} of {len(record.steps)} steps came from the cache{log}")
    return record


def _check_testable(ctx: click.Context, kit: KitFolder, trust: bool) -> None:
    """Before hours of building: whether the image may be started here for its tests; else the error says why not."""
    from hpcgen.running.host_side import host_side

    host_side(kit.plan, None, catalog_of(ctx), trust=trust)


def _prove(
    ctx: click.Context, record: BuildRecord, keep: bool, trust: bool
) -> tuple[BuildRecord, TestFailedError | None]:
    """Test what was built, as ``hpcgen test`` does: the record with the results, and the error if some failed."""
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.verify import failure, verify_image

    image = record.image
    assert image is not None
    run = verify_image(ImageReference(image.kind, image.name, start=True), catalog_of(ctx), trust=trust)
    tested = None
    if keep:
        from hpcgen.builders.records.store import tried_test_run

        tested = tried_test_run(record, run, say)
    record = tested or replace(record, tests=[*record.tests, run])
    say(f"tests: {run.counts}")
    return record, failure(run, f"hpcgen test {image.name} shows their output")
