"""Options of ``hpcgen bench`` and ``hpcgen tune``: what is measured where, and what becomes of the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, TRUST, option_group
from hpcgen.cli.options import DATA, ImageOptions
from hpcgen.cli.words import PARTITION, SITE, EngineChoice

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.bench import BenchWorkload


class MeasuringOptions(ImageOptions, frozen=True, kw_only=True):
    """Where an image is measured, in ranks over how many nodes, and what becomes of the numbers."""

    nodes: int = 1
    program: str = ""
    figure: str = ""
    lower: bool = False
    to: Path | None = None
    html: Path | None = None
    as_json: bool = False

    def workload(self) -> BenchWorkload | None:
        """The user's own program, if there is one; UsageError for what says more of none."""
        from hpcgen.plugins.tuning.bench.own_program import own_workload
        from hpcgen.plugins.tuning.cli.bench_cases import split_words

        if self.program:
            return own_workload(split_words(self.program, "--command"), self.figure, self.lower)
        if self.figure or self.lower:
            raise click.UsageError("--figure and --lower require --command")
        return None


measuring_options = option_group(
    click.option(
        "--command", "program", metavar="COMMAND", default="", help="Your own program, in place of a workload."
    ),
    click.option(
        "--figure",
        metavar="REGEX|json:KEY",
        default="",
        help="Where it prints how fast it was: the first group of the last match; by default its time counts.",
    ),
    click.option("--lower", is_flag=True, help="Of the figure less is better, such as of seconds."),
    click.option("--to", metavar="FILE", type=PATH, help="Add the measurements to this file of JSON lines."),
    click.option("--html", metavar="FILE", type=PATH, help="Also write a page with a plot: intervals and pairs."),
    click.option("--site", type=SITE, help="Another site than the image's, or your own profile of it."),
    TRUST,
    click.option("--partition", type=PARTITION, help="Kind of node."),
    click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one."),
    DATA,
    click.option("--json", "as_json", is_flag=True, help="Print the results as JSON."),
)
"""Where an image is measured, and what becomes of the numbers: also of `hpcgen tune`."""
