"""``hpcgen job``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from hpcgen.cli.common import say
from hpcgen.cli.job_options import JobCommand, job_from, job_options


@click.command("job", cls=JobCommand)
@job_options
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write it into this file.")
def command(ctx: click.Context, output: Path | None, **asked: Any) -> None:
    """Print the job script that starts IMAGE, or the image of a stack, on a site."""
    from hpcgen.run.image_job import batch_script

    _, text = batch_script(job_from(ctx, **asked))
    if output is None:
        click.echo(text, nl=False)
        return
    from hpcgen.support.writing import write_file

    write_file(output, text, executable=True)
    say(f"wrote {output}")
