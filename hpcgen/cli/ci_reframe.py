"""``hpcgen ci reframe``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, say_findings
from hpcgen.cli.test_options import ImageTestOptions, job_for_tests, test_options
from hpcgen.cli.words import IMAGE


@click.command("reframe")
@click.argument("image", type=IMAGE)
@test_options
@click.option(
    "--system",
    "systems",
    multiple=True,
    metavar="SYSTEM[:PARTITION]",
    help="Where ReFrame runs them, by its own names; by default everywhere.",
)
@click.option(
    "--environ", "environments", multiple=True, metavar="NAME", help="ReFrame's environments; by default all."
)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write the checks here instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print the names of the tests and the file's text as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    image: str,
    systems: tuple[str, ...],
    environments: tuple[str, ...],
    output: Path | None,
    as_json: bool,
    options: ImageTestOptions,
) -> None:
    """Write the self-tests of IMAGE as checks for ReFrame, one for each test, and those of its ranks.

    The file starts the image by the launch line of the site and needs no hpcgen where ReFrame runs it.
    """
    from hpcgen.core.errors import InputError
    from hpcgen.core.support.writing import write_file
    from hpcgen.images.recorded import recorded_kit
    from hpcgen.images.reference import parse_image
    from hpcgen.running.verify.reframe import Mapping, names_of_tests, reframe_checks, systems_of
    from hpcgen.running.verify.several import rank_tests_of

    names = Mapping(systems_of(systems), list(environments) or ["*"])
    reference = parse_image(image, False)
    job = job_for_tests(reference, catalog_of(ctx), options)
    kit = recorded_kit(reference)
    selftest = kit.files.get("selftest.sh")
    if selftest is None:
        raise InputError(f"{image} carries no self-test", remedy="build it again with this hpcgen")
    shown = f"hpcgen ci reframe {image}"
    file = str(output) if output is not None else "checks.py"
    text = reframe_checks(job, selftest.text, rank_tests_of(reference) or [], names, shown, file, options.timeout)
    say_findings(job.plan)
    if as_json:
        print_json({"tests": names_of_tests(selftest.text), "systems": names.systems, "text": text})
    if output is not None:
        write_file(output, text)
        say(f"wrote {output}")
    elif not as_json:
        click.echo(text, nl=False)
