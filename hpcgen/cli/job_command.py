"""``hpcgen job``."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from hpcgen.cli.common import NEW_FILE, START, print_json, say
from hpcgen.cli.job_options import (
    JobCommand,
    JobOptions,
    QueueingOptions,
    job_data,
    job_from,
    job_options,
    queueing_from,
    queueing_options,
)
from hpcgen.core.errors import OutputError


@click.command("job", cls=JobCommand)
@job_options
@queueing_options
@START
@click.option(
    "-o", "--output", metavar="FILE", type=NEW_FILE, help="Write it to this file, and its preflight next to it."
)
@click.option("--json", "as_json", is_flag=True, help="Print the job, its script and its preflight as JSON.")
def command(
    ctx: click.Context,
    output: Path | None,
    as_json: bool,
    queued: QueueingOptions,
    start: bool,
    options: JobOptions,
) -> None:
    """Print the job script that starts IMAGE, or the image of a stack, on a site."""
    from hpcgen.launch.preflight import PREFLIGHT
    from hpcgen.running.image_job import batch_script, checks

    if output is not None and output.is_dir():
        raise OutputError(
            f"{output} is a folder", expected="the file of a job script", remedy=f"-o {output / 'job.sh'}"
        )
    queueing = queueing_from(queued)
    job = replace(job_from(ctx, options, start), queueing=queueing)
    preflight = output.with_name(f"{output.stem}.{PREFLIGHT}") if output is not None else Path(PREFLIGHT)
    script = batch_script(job, preflight.name)[1]
    if as_json:
        print_json({**job_data(job), "script": str(script), "preflight": str(checks(job))})
    elif output is None:
        click.echo(script, nl=False)
    if output is None:
        return
    from hpcgen.core.support.writing import write_file

    write_file(preflight, checks(job), executable=True)
    write_file(output, script, executable=True)
    written = [output, preflight]
    if job.facts is not None:
        from hpcgen.running.image_record import write_image_record

        written += [file for file in [write_image_record(job, output.absolute().parent)] if file is not None]
    say(f"wrote {', '.join(map(str, written[:-1]))} and {written[-1]}")
