"""``hpcgen onnx convert``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, shows_progress
from hpcgen.cli.onnx_options import RUNNING, RunningOptions, runner_of
from hpcgen.cli.words import COUNT, PARTITION, SITE
from hpcgen.core.errors import ConversionFailedError
from hpcgen.core.support.units import counted


@click.command("convert")
@click.argument("file", metavar="ENSEMBLE.yaml", type=PATH)
@click.option("-o", "--output", metavar="DIR", type=PATH, required=True, help="The folder of the converted ensemble.")
@click.option("--site", type=SITE, help="Where the models are to run, instead of the file's target.")
@click.option("--partition", type=PARTITION, help="Kind of node there.")
@click.option("--only", multiple=True, metavar="MODEL", help="Convert only this model; may be repeated.")
@click.option("--no-time", is_flag=True, help="Do not measure latencies.")
@click.option("--rounds", type=COUNT, default=5, show_default=True, metavar="N", help="Of the latencies.")
@RUNNING
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.pass_context
def command(
    ctx: click.Context,
    file: Path,
    output: Path,
    site: str | None,
    partition: str | None,
    only: tuple[str, ...],
    no_time: bool,
    rounds: int,
    as_json: bool,
    running: RunningOptions,
) -> None:
    """Convert the models of ENSEMBLE.yaml to ONNX, and prove that they compute the same.

    Factories and pickles are programs: they run inside the image alone, without a network and with nothing of this
    machine but copies of the files that ENSEMBLE.yaml names.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.core.support.quoting import command as quoted
    from hpcgen.plugins.onnx.conversion import convert_ensemble
    from hpcgen.plugins.onnx.convert import How
    from hpcgen.plugins.onnx.ensemble import read_ensemble
    from hpcgen.plugins.onnx.results import check_place
    from hpcgen.plugins.onnx.target import target_of

    loaded, catalog = read_ensemble(file), catalog_of(ctx)
    names = loaded.chosen(only)
    # Before an image is built.
    check_place(output)
    target = target_of(loaded.ensemble.target, catalog, site, partition)
    for reason in target.reasons:
        say(f"target: {reason}")
    runner = runner_of(catalog, running, loaded, names)
    with interruptible(), _progress() as doing:
        how = How(target, running.timeout, 0 if no_time else rounds, say, doing)
        found = convert_ensemble(loaded, names, output, runner, how, quoted("hpcgen", *sys.argv[1:]))
    if as_json:
        print_json(found.report)
    if found.problems:
        say(f"warning: partial results are kept in {found.folder}")
        raise ConversionFailedError(found.problems)
    say(f"{counted(len(names), 'model')} in {output}")


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What runs now: on a terminal the last line, in a log a line for each step."""
    if not shows_progress():
        yield lambda text: say(f"{text} …")
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status("starting") as status:
        yield lambda text: status.update(Text(text))
