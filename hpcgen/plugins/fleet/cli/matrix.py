"""``hpcgen matrix``."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from string import ascii_letters
from typing import TYPE_CHECKING

import click

from hpcgen.cli import INTERNAL_ERROR
from hpcgen.cli.common import PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.tables import table, word
from hpcgen.cli.terminal import columns, echo
from hpcgen.cli.words import COUNT, SITE, STACK

if TYPE_CHECKING:
    from hpcgen.plugins.fleet.matrix import MatrixOutcome

EXAMPLES = {
    "matrix": (
        "hpcgen matrix",
        "hpcgen matrix --stack onnxruntime --only refused",
        "hpcgen matrix --site supermuc --install pip",
    ),
}

WIDTH = 120
"""Of lines that are not written to a terminal."""
MOST_PROCESSES = 8
MOST_TOLD = 12


@click.command("matrix")
@click.option("--site", "sites", multiple=True, type=SITE, help="Only this site; may be given several times.")
@click.option("--stack", "stacks", multiple=True, type=STACK, help="Only this stack; may be given several times.")
@click.option("--install", "way", default="", metavar="WAY", help="Only this way of installing: pip, source, hub …")
@click.option(
    "--only", type=click.Choice(["renders", "cpu", "refused", "bug"]), help="List only those with this result."
)
@click.option("--processes", type=COUNT, help="Number of planning processes; by default one per CPU, at most 8.")
@click.option("--fresh", is_flag=True, help="Plan everything again, without cached results.")
@click.option("--html", metavar="FILE", type=PATH, help="Also write a page: the whole matrix with its reasons.")
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON, with all problems.")
@click.option("--markdown", is_flag=True, help="Print a page in Markdown.")
@click.pass_context
def command(
    ctx: click.Context,
    sites: tuple[str, ...],
    stacks: tuple[str, ...],
    way: str,
    only: str | None,
    processes: int | None,
    fresh: bool,
    html: Path | None,
    as_json: bool,
    markdown: bool,
) -> int:
    """Plan every stack on every partition of every site, in every way that it can be installed.

    The reasons are listed where one site or one stack is named, or with --only. Exit 70 if anything but a plan or a
    refusal comes of one.
    """
    from hpcgen.plugins.fleet.matrix import combinations, counts, remembered
    from hpcgen.plugins.fleet.matrix import markdown as page

    if as_json and markdown:
        raise click.UsageError("--json and --markdown: only one of them")
    catalog = catalog_of(ctx)
    begun = time.monotonic()
    chosen = combinations(catalog, sites, stacks, way)
    number = processes or min(len(os.sched_getaffinity(0)), MOST_PROCESSES)
    with status_line() as show:
        found = list(remembered(catalog, chosen, number, fresh, show))
    seconds = time.monotonic() - begun
    shown = [each for each in found if only in (None, each.result)]
    if html is not None:
        from hpcgen.core.support.writing import write_file
        from hpcgen.plugins.fleet.matrix_page import matrix_page

        write_file(html, matrix_page(shown))
        say(f"wrote {html}")
    if as_json:
        print_json({"stacks": counts(found), "combinations": shown})
    elif markdown:
        click.echo(page(shown), nl=False)
    elif only or len(sites) == 1 or len(stacks) == 1:
        _list(shown)
    else:
        _grid(shown)
    nodes = len({(each.site, each.partition) for each in found})
    say(f"{len(found)} combinations on {nodes} partitions in {seconds:.1f} s")
    bugs = [each for each in found if each.result == "bug"]
    for each in bugs[:MOST_TOLD]:
        say(f"error: {each.stack} for {each.site}, partition {each.partition} {each.way}: {each.why}")
    if len(bugs) > MOST_TOLD:
        say(f"error: and {len(bugs) - MOST_TOLD} more: --only bug lists them")
    return INTERNAL_ERROR if bugs else 0


def _list(found: list[MatrixOutcome]) -> None:
    from hpcgen.plugins.fleet.matrix import node

    rows = [[node(o), o.stack, word(o.way), o.result, word(o.software), word(o.why)] for o in found]
    echo(table(["partition", "stack", "way", "result", "software", "why"], rows, sys.stdout))


def _grid(found: list[MatrixOutcome]) -> None:
    """The whole of it: where the names of the stacks do not fit beside each other, by a letter for each."""
    from hpcgen.plugins.fleet.matrix import (
        COUNTED,
        LEGEND,
        SHORT_LEGEND,
        columns_that_fit,
        count_rows,
        grid,
        short_mark,
    )

    stacks, rows = grid(found)
    width = columns(sys.stdout) or WIDTH
    first = max((len(row[0]) for row in rows), default=0)
    groups, counted = columns_that_fit(stacks, first, width), count_rows(found)
    if len(groups) < 2 or len(stacks) > min(len(ascii_letters), (width - first) // 2):
        for numbers in groups:
            part = [[row[0], *(row[number + 1] for number in numbers)] for row in rows]
            echo(table(["partition", *(stacks[number] for number in numbers)], part, sys.stdout))
            echo()
        echo(table(COUNTED, counted, sys.stdout))
        echo(f"\n{LEGEND}")
        return
    for name, *marks in [["partition", *ascii_letters[: len(stacks)]], *rows]:
        echo(f"{name.ljust(first)} {''.join(short_mark(mark).ljust(2) for mark in marks)}".rstrip())
    keys = dict(zip(stacks, ascii_letters, strict=False))
    echo(f"\n{table(['', *COUNTED], [[keys.get(row[0], ''), *row] for row in counted], sys.stdout)}")
    echo(f"\n{SHORT_LEGEND}")
