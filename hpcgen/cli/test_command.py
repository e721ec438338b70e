"""``hpcgen test``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.own_job_options import SubmissionOptions, submit_own_call, submitted_options
from hpcgen.cli.project_stack import wanted_here
from hpcgen.cli.test_options import ImageTestOptions, job_for_tests, test_options
from hpcgen.cli.words import IMAGE

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.record import TestRun
    from hpcgen.images.reference import ImageReference


@click.command("test")
@click.argument("image", type=IMAGE, required=False)
@test_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as JSON.")
@click.option("--junit", metavar="FILE", type=PATH, help="Also write the results as JUnit XML.")
@submitted_options
def command(
    ctx: click.Context,
    image: str | None,
    as_json: bool,
    junit: Path | None,
    options: ImageTestOptions,
    submission: SubmissionOptions,
) -> None:
    """Run the self-tests of every block in IMAGE right here, and check the image against this machine.

    Exit code 9 if a test failed.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.images.reference import parse_image
    from hpcgen.running.verify import failure, verify_image

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
    if (error := failure(run)) is not None:
        raise error


def _submit(image: ImageReference, catalog: Catalog, options: ImageTestOptions, submission: SubmissionOptions) -> None:
    """The same command as a job, whose output has the results."""
    job = job_for_tests(image, catalog, options, submission)
    submit_own_call(job, f"Tests of {job.plan.stack.name} on {job.plan.site.name} by hpcgen.", submission)


def _write(run: TestRun, image: ImageReference, as_json: bool, junit: Path | None) -> None:
    if as_json:
        print_json(run)
    else:
        from hpcgen.cli.test_report import report

        click.echo(report(run, sys.stdout))
    if junit is not None:
        from hpcgen.core.support.writing import write_file
        from hpcgen.running.verify.junit import junit_xml

        write_file(junit, junit_xml(run, image.name))
    from hpcgen.builders.records.store import add_to_record_of

    add_to_record_of(image, run, say)
