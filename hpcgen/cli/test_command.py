"""``hpcgen test``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import NEW_FILE, PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.new_files import check_absent, check_name, write_new
from hpcgen.cli.own_job_options import SubmissionOptions, submit_own_call, submitted_options
from hpcgen.cli.project_stack import wanted_here
from hpcgen.cli.terminal import echo
from hpcgen.cli.test_options import ImageTestOptions, job_for_tests, test_options
from hpcgen.cli.words import IMAGE
from hpcgen.core.errors import OutputError

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.record import TestRun
    from hpcgen.images.reference import ImageReference


@click.command("test")
@click.argument("image", type=IMAGE, required=False)
@test_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--junit", metavar="FILE", type=PATH, help="Also write the results as JUnit XML.")
@click.option(
    "--record",
    metavar="FILE",
    type=NEW_FILE,
    help="Write the figures measured over several nodes here, as a site profile that extends the present one.",
)
@submitted_options
def command(
    ctx: click.Context,
    image: str | None,
    as_json: bool,
    junit: Path | None,
    record: Path | None,
    options: ImageTestOptions,
    submission: SubmissionOptions,
) -> None:
    """Run the self-tests of every block in IMAGE right here, and check the image against this machine.

    Over several nodes, figures are held against those of the profile (partitions.NAME.performance).

    Exit code 9 if a test failed.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.images.reference import parse_image
    from hpcgen.running.verify import failure, verify_image

    if record is not None:
        _check_record(record, options)
    catalog = catalog_of(ctx)
    start = not submission.submit
    reference = (
        parse_image(image, start)
        if image is not None
        else replace(wanted_here(catalog, options.site, say), start=start)
    )
    if submission.submit:
        _submit(reference, catalog, options, submission)
        return
    submission.check()
    with interruptible(), status_line() as show:
        run = verify_image(
            reference,
            catalog,
            nodes=options.nodes,
            ranks_per_node=options.ranks_per_node,
            threads=options.threads,
            timeout_s=options.timeout,
            data=options.data(),
            on_begin=lambda group, name: show(f"{group}: {name}") if show else None,
            **options.place(catalog),
        )
    _write(run, reference, as_json, junit)
    if record is not None:
        _record(run, reference, record, options.site)
    if (error := failure(run)) is not None:
        raise error


def _submit(image: ImageReference, catalog: Catalog, options: ImageTestOptions, submission: SubmissionOptions) -> None:
    """The same command as a job, whose output has the results."""
    job = job_for_tests(image, catalog, options, submission)
    submit_own_call(job, f"Tests of {job.plan.stack.name} on {job.plan.site.name} by hpcgen.", submission)


def _check_record(file: Path, options: ImageTestOptions) -> None:
    """Before the tests, which take a while: there is something to record, and a place for it."""
    if options.nodes == 1:
        raise click.UsageError("--record requires --nodes 2 or more: figures are measured over several nodes")
    check_name(file.stem, "profile")
    check_absent(file)


def _record(run: TestRun, image: ImageReference, file: Path, site: str | None) -> None:
    """Write what was measured as a profile, which extends the one that the tests used."""
    from hpcgen.running.verify.measured_facts import measured_facts, measured_profile

    if not measured_facts(run):
        say(f"note: nothing was recorded in {file}: no measuring test passed")
        return
    # A profile in a file is found from the new one's folder.
    parent = os.path.relpath(site, file.parent) if site is not None and site.endswith(".yaml") else run.site
    if parent in (file.name, file.stem):
        raise OutputError(f"a profile cannot extend itself: {file}", remedy="give the file another name")
    write_new({file: measured_profile(run, file.stem, parent, image.name)})


def _write(run: TestRun, image: ImageReference, as_json: bool, junit: Path | None) -> None:
    if as_json:
        print_json(run)
    else:
        from hpcgen.cli.test_report import report

        echo(report(run, sys.stdout))
    if junit is not None:
        from hpcgen.core.support.writing import write_file
        from hpcgen.running.verify.junit import junit_xml

        write_file(junit, junit_xml(run, image.name))
    from hpcgen.builders.records.store import add_to_record_of

    add_to_record_of(image, run, say)
