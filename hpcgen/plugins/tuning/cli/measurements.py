"""``hpcgen measurements``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import PATH, catalog_of, option_group, print_json, print_json_list, say
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.tables import table, word
from hpcgen.cli.terminal import echo
from hpcgen.core.support.units import counted

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.measurements.lookup import Measurements
    from hpcgen.plugins.tuning.measurements.records import Measurement

EXAMPLES = {
    "measurements": ("hpcgen measurements --workload 3dgan --machine supermuc",),
    "measurements import": (
        "hpcgen measurements import modak results.csv --software code-aster --to ours/measurements/aster.jsonl",
        "hpcgen measurements import reframe perflogs/ours/cpu/stream.log --to ours/measurements/stream.jsonl",
    ),
}


class MeasurementFilters(Options, frozen=True, kw_only=True):
    """Which measurements, as :meth:`hpcgen.plugins.tuning.measurements.lookup.Measurements.find` is asked."""

    workload: str | None = None
    framework: str | None = None
    machine: str | None = None
    metric: str | None = None


_filters = option_group(
    click.option("--workload", metavar="NAME", help="Only of this workload."),
    click.option("--framework", metavar="NAME", help="Only by this framework."),
    click.option("--machine", metavar="NAME", help="Only on this hardware, site, or SITE/PARTITION."),
    click.option("--metric", metavar="NAME", help="Only of this kind, such as samples_per_second."),
    in_record(MeasurementFilters, "filters"),
)


@click.group("measurements", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print a list of objects as JSON.")
@_filters
@click.pass_context
def command(ctx: click.Context, /, as_json: bool, filters: MeasurementFilters) -> None:
    """List what is measured, of all collections; import other tools' tables.

    They are in measurements/ of a collection: tables that people write (YAML), and rows that programs add (JSON lines).
    """
    if ctx.invoked_subcommand is not None:
        return
    known = known_measurements(ctx)
    rows = known.find(filters.workload, filters.framework, filters.machine, filters.metric)
    if as_json:
        print_json_list(rows)
        return
    if not rows:
        say(f"no such measurements; there are {len(known)}, of {', '.join(known.workloads) or 'no workload'}")
        return
    head = ["workload", "software", "machine", "layout", "value", "date", "counts as", "from"]
    sources = list(dict.fromkeys(map(_source, rows)))
    echo(table(head, [[*_cells(row), f"[{sources.index(_source(row)) + 1}]"] for row in rows], sys.stdout))
    echo()
    for number, source in enumerate(sources, 1):
        echo(f"[{number}] {source}")


def _source(row: Measurement) -> str:
    """Where a row is from, and why it is doubtful, if it is."""
    from hpcgen.plugins.tuning.measurements.cited import source_of

    return word((f"DOUBTFUL: {row.doubtful}; " if row.doubtful else "") + source_of(row))


def known_measurements(ctx: click.Context) -> Measurements:
    """The measurements of the collections that the command line, the environment and the config file name."""
    from hpcgen.plugins.tuning.measurements.collection import load_measurements

    catalog = catalog_of(ctx)
    return load_measurements(catalog.folders, catalog.shown)


def _cells(row: Measurement) -> list[str]:
    from hpcgen.plugins.tuning.measurements.cited import date_of, lacks
    from hpcgen.plugins.tuning.measurements.records import layout_words, software_words, value_words

    baseline = f" against {software_words(row.baseline)}" if row.baseline else ""
    software = software_words(row.software) + baseline
    unsaid = ", ".join(f"no {each}" for each in lacks(row))
    counts = f"prediction: {unsaid}" if unsaid else "measured"
    told = [layout_words(row), value_words(row), date_of(row) or "-", counts]
    return [row.workload.name, software, row.hardware.name, *told]


@command.command("import")
@click.argument("kind", type=click.Choice(["modak", "reframe"]))
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=PATH)
@click.option(
    "--software",
    metavar="NAME",
    help="The software that was measured; required for MODAK's tables, which do not name it.",
)
@click.option("--to", "target", type=PATH, help="Add the rows to this file of JSON lines; without it they are printed.")
def import_(kind: str, files: tuple[Path, ...], software: str | None, target: Path | None) -> None:
    """Take the rows of MODAK's CSV tables, or of ReFrame's performance logs."""
    from hpcgen.plugins.tuning.measurements.imported import read_modak_csv, read_reframe_log
    from hpcgen.plugins.tuning.measurements.lines import append

    rows: list[Measurement] = []
    for file in files:
        if kind == "modak":
            if software is None:
                raise click.UsageError("--software is required: MODAK's tables do not name the software")
            rows += read_modak_csv(file, software)
        else:
            found, left = read_reframe_log(file, software)
            rows += found
            for each in left:
                say(f"not taken from {file}: {each}")
    if target is None:
        print_json(rows)
        return
    if target.suffix != ".jsonl":
        raise click.UsageError(f"--to {target}: rows are added to a file with a name ending in .jsonl")
    added = append(target, rows)
    there = f"; already there: {len(rows) - added}" if added < len(rows) else ""
    say(f"added {counted(added, 'row')} to {target}{there}")
