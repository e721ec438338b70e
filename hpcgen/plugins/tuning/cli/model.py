"""``hpcgen model``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from msgspec.structs import replace

from hpcgen.cli.common import PATH, option_group, print_json, say
from hpcgen.cli.options import Options, in_record
from hpcgen.cli.terminal import echo
from hpcgen.cli.words import COUNT, SHARE, EngineChoice
from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.plugins.tuning.cli.measurements import known_measurements

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.measurements.records import Measurement, Workload
    from hpcgen.plugins.tuning.predict.asked import RowQuery
    from hpcgen.plugins.tuning.predict.linear import LinearModel
    from hpcgen.plugins.tuning.predict.prediction import Prediction, PredictionRefusal

EXAMPLES = {
    "model": (
        "hpcgen model fit",
        "hpcgen model predict --workload 3dgan --machine supermuc-thin --mpi host --nodes 700",
    ),
    "model fit": ("hpcgen model fit -o model.json", "hpcgen model fit --rows ours.jsonl"),
    "model show": ("hpcgen model show model.json",),
    "model predict": (
        "hpcgen model predict --workload 3dgan --machine supermuc-thin --mpi host --nodes 700",
        "hpcgen model predict --workload bert-base --machine crpl-cpu --framework onnxruntime --json",
    ),
    "model efficiency": ("hpcgen model efficiency --workload 3dgan --machine supermuc-thin --mpi host --at-least 0.9",),
    "model plot": (
        "hpcgen model plot scaling --workload 3dgan --machine supermuc-thin -o scaling.svg",
        "hpcgen model plot predicted --workload 3dgan -o predicted.png",
        "hpcgen model plot variants --workload mnist-cnn --machine hlrs-modak-cpu -o variants.png",
    ),
}

T = TypeVar("T")
KINDS = ("training", "inference", "hpc", "network")
_SOFTWARE = ("framework", "version", "install", "compiler", "engine", "mpi")


class RowOptions(Options, frozen=True, kw_only=True):
    """Of which rows a model is made, and what is asked of it; ``files``: more rows."""

    workload: str
    machine: str | None = None
    kind: str | None = None
    framework: str | None = None
    version: str | None = None
    install: str | None = None
    compiler: str | None = None
    engine: str | None = None
    mpi: str | None = None
    nodes: int = 1
    ranks_per_node: int | None = None
    threads: int | None = None
    files: tuple[Path, ...] = ()
    doubtful: bool = False


class PredictOptions(RowOptions, frozen=True, kw_only=True):
    """``file``: a model that is asked instead of one of all rows; ``by``: which kind of model."""

    file: Path | None = None
    by: Literal["scaling", "linear"] | None = None


_rows_options = option_group(
    click.option("--rows", "files", multiple=True, type=PATH, help="Take the rows of this file, too. Repeatable."),
    click.option("--doubtful", is_flag=True, help="Take rows, too, that are marked as doubtful."),
)
_software_options = option_group(
    click.option("--kind", type=click.Choice(KINDS), help="Of the workload, where rows have it in several."),
    click.option("--framework", metavar="NAME", help="The framework's block."),
    click.option("--version", metavar="VERSION", help="Its version."),
    click.option("--install", metavar="WAY", help="Where it is from: hub, pip, source or package."),
    click.option("--compiler", metavar="NAME", help="A graph compiler or engine, such as xla; '' for none."),
    click.option("--engine", type=EngineChoice("measured"), metavar="NAME", help="The container engine, or none."),
    click.option("--mpi", metavar="WHOSE", help="Whose MPI the ranks use: host or image."),
)
_layout_options = option_group(
    click.option("--ranks-per-node", type=COUNT, help="Ranks on each node."),
    click.option("--threads", type=COUNT, help="Threads of each rank."),
)


@click.group("model")
def command() -> None:
    """Fit models to measurements; predict with intervals, or hear what to measure first."""


@command.command("fit")
@_rows_options
@click.option("-o", "--output", type=PATH, metavar="FILE", help="Write the model to this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the model with its tests and the laws of scaling as JSON.")
@click.pass_context
def fit_command(
    ctx: click.Context, files: tuple[Path, ...], doubtful: bool, output: Path | None, as_json: bool
) -> None:
    """Fit the linear model and the laws of scaling; say how far off they are, and whether a model may choose."""
    from hpcgen.core.support.writing import check_folder_of, write_file
    from hpcgen.plugins.tuning.predict.fitting import fit
    from hpcgen.plugins.tuning.predict.linear import model_text

    if output is not None:
        check_folder_of(output)
    rows = _rows(ctx, files)
    say(f"fitting {len(rows)} rows, each machine and each workload left out in turn")
    model = fit(rows, doubtful=doubtful)
    laws = _laws(rows)
    if output is not None:
        write_file(output, model_text(model))
        say(f"wrote {output}")
    if as_json:
        scaled = [{"series": name, "law": law, "misfits": [each._asdict() for each in odd]} for name, law, odd in laws]
        print_json({"model": model, "scaling": scaled})
        return
    from hpcgen.plugins.tuning.cli import model_output

    text = [model_output.model_text(model, sys.stdout)]
    if laws:
        text.append(model_output.scaling_text(laws, sys.stdout))
    echo("\n\n".join(text))


@command.command("show")
@click.argument("file", metavar="MODEL", type=PATH)
@click.option("--json", "as_json", is_flag=True, help="Print the model as JSON.")
def show(file: Path, as_json: bool) -> None:
    """Show the terms, the errors and the tests of a model that fit -o wrote."""
    from hpcgen.plugins.tuning.predict.linear import read_model

    model = read_model(file)
    if as_json:
        print_json(model)
        return
    from hpcgen.plugins.tuning.cli.model_output import model_text

    echo(model_text(model, sys.stdout))


@command.command("predict")
@click.option("--workload", required=True, metavar="NAME|FILE", help="One of the rows, or a YAML file of one.")
@click.option("--machine", required=True, metavar="NAME|FILE", help="Hardware of the rows, or a YAML file of some.")
@_software_options
@click.option("--nodes", type=COUNT, default=1, help="Nodes; 1 by default.")
@_layout_options
@click.option("--model", "file", type=PATH, metavar="FILE", help="Ask this model, not one of all rows.")
@click.option("--by", type=click.Choice(["scaling", "linear"]), help="Which model; scaling where rows are of a series.")
@_rows_options
@click.option("--json", "as_json", is_flag=True, help="Print the prediction, or the refusal, as JSON.")
@click.pass_context
@in_record(PredictOptions)
def predict(ctx: click.Context, as_json: bool, options: PredictOptions) -> None:
    """Predict a speed or a time; outside of what rows cover, say what to measure next."""
    found = _prediction(ctx, options)
    if as_json:
        from hpcgen.plugins.tuning.predict.prediction import Prediction

        print_json({"prediction" if isinstance(found, Prediction) else "refusal": found})
        return
    from hpcgen.plugins.tuning.cli.model_output import prediction_text

    echo(prediction_text(found))


@command.command("efficiency")
@click.option("--workload", required=True, metavar="NAME", help="Of this workload.")
@click.option("--machine", metavar="NAME", help="On this hardware.")
@_software_options
@_layout_options
@click.option("--at-least", "wanted", type=SHARE, metavar="SHARE", help="Say the most nodes and ranks with it: 0.9.")
@click.option("--limit", type=COUNT, metavar="N", help="Nodes that there are at most.")
@_rows_options
@click.option("--json", "as_json", is_flag=True, help="Print the tables as JSON.")
@click.pass_context
@in_record(RowOptions)
def efficiency(ctx: click.Context, wanted: float | None, limit: int | None, as_json: bool, options: RowOptions) -> None:
    """Show the share of linear scaling by nodes, as measured and by its law."""
    from hpcgen.plugins.tuning.predict.asked import series_for
    from hpcgen.plugins.tuning.predict.efficiency import efficiency_table

    rows = _rows(ctx, options.files)
    _known(options.workload, sorted({row.workload.name for row in rows}), "workload")
    series = series_for(rows, wanted_from(options))
    if not series:
        raise InputError(
            f"no series of {options.workload} over three or more numbers of nodes matches the options",
            remedy=f"hpcgen measurements --workload {options.workload} shows the rows",
        )
    tables = [efficiency_table(name, members, wanted, limit) for name, members in series.items()]
    if as_json:
        print_json(tables)
        return
    from hpcgen.plugins.tuning.cli.model_output import efficiency_text

    echo("\n\n".join(efficiency_text(each, sys.stdout) for each in tables))


@command.command("plot")
@click.argument("what", type=click.Choice(["scaling", "predicted", "variants"]))
@click.option("-o", "--output", type=PATH, required=True, metavar="FILE", help="Write this file: .png or .svg.")
@click.option("--workload", required=True, metavar="NAME", help="Of this workload.")
@click.option("--machine", metavar="NAME", help="On this hardware; variants need it.")
@_software_options
@click.option("--nodes", type=COUNT, default=1, help="Compare variants on so many nodes; 1 by default.")
@_layout_options
@_rows_options
@click.pass_context
@in_record(RowOptions)
def plot(ctx: click.Context, what: str, output: Path, options: RowOptions) -> None:
    """Draw times by nodes with the laws that fit, predictions against measurements, or variants side by side."""
    from hpcgen.core.support.writing import check_folder_of, write_file
    from hpcgen.plugins.tuning.cli import model_output
    from hpcgen.plugins.tuning.predict.terms import identity

    kind = output.suffix.removeprefix(".")
    if kind not in ("png", "svg"):
        raise click.UsageError(f"-o {output}: the name ends in .png or .svg")
    check_folder_of(output)
    rows = _rows(ctx, options.files)
    wanted = wanted_from(options)
    found = one_kind({identity(row.workload): row.workload for row in reversed(rows)}, options)
    _known(wanted.workload, sorted(found), "workload")
    wanted = wanted._replace(kind=found[str(wanted.workload)].kind)
    if wanted.machine is not None:
        _known(wanted.machine, sorted({row.hardware.name for row in rows}), "machine")
    drawn = getattr(model_output, what)(rows, wanted, options.nodes, options.doubtful, kind)
    write_file(output, drawn)
    say(f"wrote {output}")


def wanted_from(options: RowOptions) -> RowQuery:
    """What options say of rows."""
    from hpcgen.plugins.tuning.predict.asked import RowQuery

    software = {
        field: value for field, value in options.values().items() if field in _SOFTWARE and isinstance(value, str)
    }
    return RowQuery(options.workload, options.kind, options.machine, software, options.ranks_per_node, options.threads)


def _rows(ctx: click.Context, files: Sequence[Path]) -> list[Measurement]:
    from hpcgen.plugins.tuning.measurements.collection import read_file

    rows = list(known_measurements(ctx))
    for file in files:
        if file.suffix not in (".yaml", ".jsonl"):
            raise click.UsageError(f"--rows {file}: the name of a file of measurements ends in .yaml or .jsonl")
        rows += read_file(file, str(file))
    return rows


def _laws(rows: Sequence[Measurement]) -> list[tuple[str, Any, Any]]:
    """The law of every series, without the rows that do not fit, and these."""
    from hpcgen.plugins.tuning.predict.asked import RowQuery, series_for
    from hpcgen.plugins.tuning.predict.scaling import law_and_misfits

    found = []
    for workload in sorted({row.workload.name for row in rows}):
        for name, series in series_for(rows, RowQuery(workload)).items():
            found.append((f"{workload}: {name}", *law_and_misfits(series)))
    return found


def _prediction(ctx: click.Context, options: PredictOptions) -> Prediction | PredictionRefusal:
    from hpcgen.plugins.tuning.measurements.records import Hardware, Workload
    from hpcgen.plugins.tuning.predict.asked import series_for, software_of
    from hpcgen.plugins.tuning.predict.fitting import fit
    from hpcgen.plugins.tuning.predict.linear import read_model
    from hpcgen.plugins.tuning.predict.scaling import law_and_misfits
    from hpcgen.plugins.tuning.predict.terms import identity

    rows = [row for row in _rows(ctx, options.files) if options.doubtful or not row.doubtful]
    model: LinearModel | None = read_model(options.file) if options.file else None
    workloads = model.workloads if model else {identity(row.workload): row.workload for row in reversed(rows)}
    machines = model.machines if model else {row.hardware.name: row.hardware for row in reversed(rows)}
    workload = _named(options.workload, one_kind(workloads, options), Workload, "workload")
    assert options.machine is not None
    hardware = _named(options.machine, machines, Hardware, "machine")
    wanted = wanted_from(replace(options, workload=workload.name, kind=workload.kind, machine=hardware.name))
    series = series_for(rows, wanted) if options.by != "linear" and model is None else {}
    if len(series) == 1:
        return law_and_misfits(next(iter(series.values())))[0].predict(options.nodes)
    if options.by == "scaling":
        raise InputError(
            f"{len(series)} series of rows by nodes match the options",
            expected="one series, of three or more numbers of nodes",
            remedy=f"say which, by --framework, --mpi, --ranks-per-node, --threads, …: {'; '.join(series) or 'none'}",
        )
    software = software_of(rows, wanted)
    layout = (options.nodes, options.ranks_per_node or 1, options.threads)
    return (model or fit(rows, doubtful=options.doubtful)).predict(workload, software, hardware, *layout)


def one_kind(workloads: Mapping[str, Workload], options: RowOptions) -> dict[str, Workload]:
    """Workloads by name; UsageError where the one that is asked for is of several kinds."""
    found = {each.name: each for each in workloads.values() if options.kind in (None, each.kind)}
    kinds = sorted(each.kind for each in workloads.values() if each.name == options.workload)
    if len(kinds) > 1 and options.kind is None:
        raise click.UsageError(f"rows have {options.workload} as {' and '.join(kinds)}: say --kind")
    return found


def _named(said: str, known: dict[str, T], type_: type[T], what: str) -> T:
    """What a name stands for, or a YAML file."""
    if said.endswith(".yaml"):
        from hpcgen.core.config.decoding import convert
        from hpcgen.core.config.yamlfile import load

        return convert(load(Path(said)), type_)
    _known(said, sorted(known), what)
    return known[said]


def _known(said: str | None, known: Sequence[str], what: str) -> None:
    if said not in known:
        raise UnknownNameError(f"no row is of a {what} {said!r}", f"--{what}", remedy=did_you_mean(said or "", known))
