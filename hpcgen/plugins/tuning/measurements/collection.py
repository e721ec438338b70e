"""The measurements of collections: ``measurements/*.yaml`` by people, and ``*.jsonl``, to which programs add."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, Document, load
from hpcgen.core.errors import InputError, Problems, did_you_mean
from hpcgen.core.model.fields import Source
from hpcgen.plugins.tuning.measurements.lines import read_lines
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Measurement, MeasurementSeries, MeasurementTable

FOLDER = "measurements"


def load_measurements(collections: Sequence[Path], shown: Callable[[Path], str] = str) -> Measurements:
    """Every row of every collection; they add up, those of earlier collections first.

    collections: their folders, as in ``Catalog.folders``.
    shown: how messages name a file.
    InputError: with all that is wrong in all files.
    """
    rows: list[Measurement] = []
    problems = Problems()
    for collection in collections:
        for path in sorted((collection / FOLDER).glob("*")):
            with problems.caught():
                rows += read_file(path, shown(path))
    problems.raise_as(InputError)
    return Measurements(rows)


def read_file(path: Path, name: str) -> list[Measurement]:
    """The rows of one file; none of a file that is neither kind. InputError: with all that is wrong in it."""
    if path.suffix == ".yaml":
        return rows_of(load(path, name, LONG_LIST))
    return read_lines(path, name) if path.suffix == ".jsonl" else []


def check_measurements(document: Document | None, path: Path, *_: object) -> None:
    """What ``hpcgen check`` asks of a table, or of a file of lines, which is no document."""
    if document is None:
        read_lines(path, str(path))
    else:
        rows_of(document)


# tables, which people write: their rows share what is said once


def rows_of(document: Document) -> list[Measurement]:
    """Every row of a table, in its order.

    InputError: with all that is wrong: fields, names that the file does not explain, doubts about rows it lacks.
    """
    table = convert(document, MeasurementTable)
    problems = Problems()
    for index, series in enumerate(table.series):
        _check(table, series, index, document, problems)
    problems.raise_as(InputError)
    return [row for series in table.series for row in _rows(table, series)]


def _rows(table: MeasurementTable, series: MeasurementSeries) -> list[Measurement]:
    return [
        Measurement(
            workload=table.workloads[series.workload],
            software=table.software[series.software],
            hardware=table.hardware[series.hardware],
            metric=series.metric,
            value=value,
            nodes=nodes,
            ranks_per_node=series.ranks_per_node,
            threads_per_rank=series.threads_per_rank,
            baseline=table.software[series.baseline] if series.baseline else None,
            measured=series.measured,
            source=_source(table, series),
            doubtful=series.doubtful.get(nodes, ""),
        )
        for nodes, value in sorted(series.by_nodes.items())
    ]


def _source(table: MeasurementTable, series: MeasurementSeries) -> Source:
    source = table.sources[series.source]
    notes = "; ".join(filter(None, [source.note, series.note]))
    return msgspec.structs.replace(source, note=notes)


def _check(
    table: MeasurementTable, series: MeasurementSeries, index: int, document: Document, problems: Problems
) -> None:
    named: list[tuple[str, str | None, Mapping[str, object]]] = [
        ("workload", series.workload, table.workloads),
        ("software", series.software, table.software),
        ("hardware", series.hardware, table.hardware),
        ("baseline", series.baseline, table.software),
        ("source", series.source, table.sources),
    ]
    for field, name, known in named:
        if name is not None and name not in known:
            where = document.position(("series", index, field))
            part = "software" if field == "baseline" else field if field.endswith("ware") else f"{field}s"
            problems.add(f"`{part}` of this file has no {name!r}", where, remedy=did_you_mean(name, list(known)))
    if (series.metric == "speedup") != (series.baseline is not None):
        said = "a speedup is in relation to something" if series.baseline is None else "only a speedup has a baseline"
        problems.add(said, document.position(("series", index)), "`baseline` only with `metric: speedup`")
    for nodes in series.doubtful:
        if nodes not in series.by_nodes:
            where = document.position(("series", index, "doubtful", str(nodes)), key=True)
            problems.add(
                f"there is no row for {nodes} nodes to be in doubt about", where, remedy="take it out, or add the row"
            )
