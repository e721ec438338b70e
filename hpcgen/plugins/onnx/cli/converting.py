"""``hpcgen onnx convert`` and ``hpcgen onnx bench``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from hpcgen.cli.common import PATH, catalog_of, print_json, say, status_line
from hpcgen.cli.tables import table
from hpcgen.cli.terminal import echo
from hpcgen.cli.test_report import printable
from hpcgen.cli.words import COUNT, PARTITION, SECONDS, SITE
from hpcgen.core.errors import ConversionFailedError, JobFailedError, Problem
from hpcgen.core.support.units import counted
from hpcgen.plugins.onnx.cli.onnx import RUNNING, ProviderChoice, RunningOptions, runner_of
from hpcgen.plugins.tuning.cli.bench_report import bounds, doubt_of

if TYPE_CHECKING:
    from hpcgen.plugins.onnx.records import Provider
    from hpcgen.plugins.onnx.timing import ComparedTiming


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
def convert(
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
    with interruptible(), status_line() as show:
        doing = show or (lambda text: say(f"{text} …"))
        how = How(target, running.timeout, 0 if no_time else rounds, say, doing)
        found = convert_ensemble(loaded, names, output, runner, how, quoted("hpcgen", *sys.argv[1:]))
    if as_json:
        print_json(found.report)
    if found.problems:
        say(f"warning: partial results are kept in {found.folder}")
        raise ConversionFailedError(found.problems)
    say(f"{counted(len(names), 'model')} in {output}")


# measuring


@click.command("bench")
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--only", multiple=True, metavar="MODEL", help="Measure only this model; may be repeated.")
@click.option(
    "--origin",
    metavar="ENSEMBLE.yaml",
    type=PATH,
    help="Also measure the original models, which are next to this file.",
)
@click.option("--batch", "batches", multiple=True, type=COUNT, metavar="N", help="Samples of a call; once for each.")
@click.option("--provider", type=ProviderChoice(), help="Of ONNX Runtime, instead of the target's.")
@click.option("--rounds", type=COUNT, default=7, show_default=True, metavar="N", help="Each runtime runs in every one.")
@click.option(
    "--seconds", type=SECONDS, default=1.0, show_default=True, metavar="SECONDS", help="Time of the calls of a round."
)
@RUNNING
@click.option("--json", "as_json", is_flag=True, help="Print the figures of all rounds as JSON.")
@click.pass_context
def bench(
    ctx: click.Context,
    folder: Path,
    only: tuple[str, ...],
    origin: Path | None,
    batches: tuple[int, ...],
    provider: Provider | None,
    rounds: int,
    seconds: float,
    as_json: bool,
    running: RunningOptions,
) -> None:
    """Measure the converted models in DIR: latency and throughput of every runtime, variant and batch.

    All runtimes of a model take turns in rounds, each in a process of its own, and are compared with the first, round
    by round: with the framework where --origin says where the original models are, else with ONNX Runtime.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.plugins.onnx.ensemble import read_ensemble
    from hpcgen.plugins.onnx.measuring import Measuring, converted_ensemble, measure_models
    from hpcgen.plugins.onnx.timing import compare_timings

    there, catalog = converted_ensemble(folder), catalog_of(ctx)
    names = there.chosen(only)
    loaded = read_ensemble(origin) if origin is not None else None
    runner = runner_of(catalog, running, loaded, names)
    how = Measuring(
        rounds,
        seconds,
        batches,
        provider,
        running.timeout,
        lambda text: say(f"{text} …"),
    )
    with interruptible():
        timings = measure_models(there, names, runner, how, loaded)
    compared = compare_timings(timings)
    if as_json:
        print_json(
            {
                "ensemble": there.report.ensemble,
                "image": runner.content,
                "foreign": runner.foreign,
                "runtimes": data(compared),
            }
        )
    else:
        echo(report(compared, sys.stdout))
    if not any(each.seconds for each in compared):
        raise JobFailedError([Problem(printable(each.verdict), each.timing.model) for each in compared])


def report(compared: Sequence[ComparedTiming], out: TextIO) -> str:
    """A table of all runtimes, and below it what one has to know to read it."""
    from hpcgen.plugins.onnx.timing import runtime_name

    head = ["model", "batch", "runtime", "provider", "ms/call", "95 %", "samples/s", "ratio", "95 %", "verdict"]
    rows = []
    for each in compared:
        timing, seconds = each.timing, each.seconds
        known = [f"{seconds.value * 1e3:.4g}", bounds(seconds, 1e3), f"{each.per_second:.4g}"] if seconds else [""] * 3
        ratio = [f"{each.ratio.value:.3f}", bounds(each.ratio)] if each.ratio else ["", ""]
        name = [timing.model, str(timing.batch), runtime_name(timing), printable(timing.provider)]
        rows.append([*name, *known, *ratio, printable(each.verdict)])
    return "\n\n".join([table(head, rows, out), *doubt_of(each.ratio for each in compared)])


def data(compared: Sequence[ComparedTiming]) -> list[dict[str, Any]]:
    """The same for programs, with the figure of every round."""
    return [
        {
            "timing": each.timing,
            "seconds": each.seconds,
            "per_second": each.per_second,
            "ratio": each.ratio,
            "first": each.first,
            "verdict": each.verdict,
        }
        for each in compared
    ]
