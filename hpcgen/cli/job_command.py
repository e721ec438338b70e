"""``hpcgen job``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpcgen.cli.common import PATH, say
from hpcgen.cli.job_options import JobCommand, job_from, job_options


@click.command("job", cls=JobCommand)
@job_options
@click.option("-o", "--output", metavar="FILE", type=PATH, help="Write it to this file, and its preflight beside it.")
def command(ctx: click.Context, output: Path | None, **asked: Any) -> None:
    """Print the job script that starts IMAGE, or the image of a stack, on a site."""
    from hpcgen.launch.preflight import PREFLIGHT
    from hpcgen.run.image_job import batch_script, checks

    job = job_from(ctx, **asked)
    if output is None:
        click.echo(batch_script(job, PREFLIGHT)[1], nl=False)
        return
    from hpcgen.support.writing import write_file

    preflight = output.with_name(f"{output.stem}.{PREFLIGHT}")
    write_file(preflight, checks(job), executable=True)
    write_file(output, batch_script(job, preflight.name)[1], executable=True)
    say(f"wrote {output} and {preflight}")
