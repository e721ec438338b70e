"""``hpcgen ci reframe``."""

from __future__ import annotations

from pathlib import Path

import click

from hpcgen.cli.common import PATH, TRUST, catalog_of, print_json, say
from hpcgen.cli.engine_choice import EngineChoice
from hpcgen.cli.numbers import COUNT, SECONDS
from hpcgen.cli.words import IMAGE, PARTITION, SITE
from hpcgen.model.fields import EngineName


@click.command("reframe")
@click.argument("image", type=IMAGE)
@click.option("--site", type=SITE, help="Another site than the image's, or your own profile of it.")
@TRUST
@click.option("--partition", type=PARTITION, help="Kind of node.")
@click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one.")
@click.option(
    "--nodes", type=COUNT, default=1, help="Nodes of the ranks; with several, the blocks' tests for them too."
)
@click.option(
    "--ranks-per-node", type=COUNT, help="MPI ranks; by default those of the layout, on one node at least two."
)
@click.option("--threads", type=COUNT, help="Threads of each rank.")
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
@click.option(
    "--timeout", type=SECONDS, default=900.0, show_default=True, metavar="SECONDS", help="Limit of each start."
)
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write the checks here instead of to stdout.")
@click.option("--json", "as_json", is_flag=True, help="Print the names of the tests and the file's text as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    image: str,
    site: str | None,
    trust_image: bool,
    partition: str | None,
    engine: EngineName | None,
    nodes: int,
    ranks_per_node: int | None,
    threads: int | None,
    systems: tuple[str, ...],
    environments: tuple[str, ...],
    timeout: float,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the self-tests of IMAGE as checks for ReFrame, one for each test, and those of its ranks.

    The file starts the image by the launch line of the site and needs no hpcgen where ReFrame runs it.
    """
    from hpcgen.errors import InputError
    from hpcgen.images.recorded import recorded_kit
    from hpcgen.images.reference import parse_image
    from hpcgen.model.job import JobRequest
    from hpcgen.support.writing import write_file
    from hpcgen.verify import job_of_tests
    from hpcgen.verify.reframe import Mapping, names_of_tests, reframe_checks, systems_of
    from hpcgen.verify.several import rank_tests_of

    names = Mapping(systems_of(systems), list(environments) or ["*"])
    catalog = catalog_of(ctx)
    reference = parse_image(image, False)
    request = JobRequest(nodes=nodes, ranks_per_node=ranks_per_node, threads_per_rank=threads)
    profile = catalog.site(site) if site is not None else None
    job = job_of_tests(
        reference,
        catalog,
        request,
        trust=trust_image,
        site=profile,
        partition=partition,
        engine=engine,
        elsewhere=True,
    )
    kit = recorded_kit(reference)
    selftest = kit.files.get("selftest.sh")
    if selftest is None:
        raise InputError(f"{image} carries no self-test", remedy="build it again with this hpcgen")
    shown = f"hpcgen ci reframe {image}"
    file = str(output) if output is not None else "checks.py"
    text = reframe_checks(job, selftest.text, rank_tests_of(reference) or [], names, shown, file, timeout)
    for finding in job.plan.findings:
        say(f"{finding.severity}: {finding.message}")
    if as_json:
        print_json({"tests": names_of_tests(selftest.text), "systems": names.systems, "text": text})
    if output is not None:
        write_file(output, text)
        say(f"wrote {output}")
    elif not as_json:
        click.echo(text, nl=False)
