"""What the user names → cases: software of the rows by what is said of it, series of rows, variants to compare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload, software_words
from hpcgen.plugins.tuning.predict.linear import LinearModel
from hpcgen.plugins.tuning.predict.observations import Observation, metric_of, observations, value_of
from hpcgen.plugins.tuning.predict.plots import ComparisonBar
from hpcgen.plugins.tuning.predict.prediction import Prediction
from hpcgen.plugins.tuning.predict.scaling import series_of
from hpcgen.plugins.tuning.predict.terms import RunConditions, identity


class RowQuery(NamedTuple):
    """What is asked of rows: names, and the options on software, the layout and the number of nodes."""

    workload: str | None = None
    kind: str | None = None
    machine: str | None = None
    software: Mapping[str, str] = {}
    ranks_per_node: int | None = None
    threads_per_rank: int | None = None

    def has(self, row: Measurement) -> bool:
        """Whether a row agrees with all that is said."""
        software = all(getattr(row.software, field) == value for field, value in self.software.items())
        return (
            software
            and self.workload in (None, row.workload.name)
            and self.kind in (None, row.workload.kind)
            and self.machine in (None, row.hardware.name)
            and self.ranks_per_node in (None, row.ranks_per_node)
            and self.threads_per_rank in (None, row.threads_per_rank)
        )


def software_of(rows: Iterable[Measurement], wanted: RowQuery) -> Software:
    """The one software of the rows that agrees; what is said of it alone, where that is none or several.

    InputError: no framework is said then, or something that is not what a field takes.
    """
    found = {repr(row.software): row.software for row in rows if wanted.has(row)}
    if len(found) == 1:
        return next(iter(found.values()))
    if "framework" not in wanted.software:
        several = "; ".join(sorted({software_words(each) for each in found.values()}))
        raise InputError(
            f"{len(found)} kinds of software in the rows match the options",
            expected="one, or a framework and its other known properties",
            remedy=f"say more, such as --framework or --mpi{f': {several}' if several else ''}",
        )
    return convert(InMemory(dict(wanted.software), "the options on software"), Software)


def series_for(rows: Iterable[Measurement], wanted: RowQuery) -> dict[str, list[Measurement]]:
    """The series of rows by nodes that agree, by what tells them apart."""
    found = series_of(row for row in rows if wanted.has(row))
    parts = [[key[index] for key in found] for index in range(5)]
    telling = [index for index, names in enumerate(parts[:4]) if len(set(names)) > 1] or [2, 3]
    return {", ".join(key[index] for index in telling): rows for key, rows in found.items()}


def variants_of(
    model: LinearModel, rows: Sequence[Measurement], workload: Workload, hardware: Hardware, nodes: int
) -> tuple[list[ComparisonBar], str]:
    """Every configuration of the rows of a workload on a machine, best prediction first; and the metric's name.

    Speeds or times where rows have them on so many nodes, else how much faster each is than what it was compared with.
    """
    here = [
        each
        for each in observations(rows)
        if identity(each.case.workload) == identity(workload)
        and each.case.hardware.name == hardware.name
        and each.case.nodes == nodes
    ]
    values = [each for each in here if each.baseline is None]
    if values:
        level = model.level_of(workload)
        found = [_variant(model, each) for each in values if level is not None and each.level == level.name]
        metric = values[0].row.metric if level is None else metric_of(level.name)
        best = metric in ("samples_per_second", "gflops", "gigabytes_per_second")
    else:
        found, metric, best = [_ratio(model, each) for each in here], "speedup", True
    found.sort(key=lambda each: (each.prediction is None, _rank(each, best), each.name))
    return _told_apart(found), metric


def _told_apart(found: list[ComparisonBar]) -> list[ComparisonBar]:
    """The same without the words that all names have."""
    parts = [[line.split(", ") for line in each.name.split("\n")] for each in found]
    common = set.intersection(*({*line} for lines in parts for line in lines)) if len(found) > 1 else set()
    names = ["\n".join(", ".join(word for word in line if word not in common) for line in lines) for lines in parts]
    return [each._replace(name=name) for each, name in zip(found, names, strict=True)]


def _rank(variant: ComparisonBar, best: bool) -> float:
    if variant.prediction is None:
        return 0.0
    return -variant.prediction.value if best else variant.prediction.value


def _variant(model: LinearModel, row: Observation) -> ComparisonBar:
    said = model.predict(*row.case)
    name = ", ".join(row.case.settings)
    return ComparisonBar(name, said if isinstance(said, Prediction) else None, value_of(row.level, row.speed))


def _ratio(model: LinearModel, row: Observation) -> ComparisonBar:
    case: RunConditions = row.case
    baseline = row.baseline.software if row.baseline is not None else case.software
    said = model.compare(case.workload, case.software, baseline, case.hardware, *case[3:])
    name = f"{case.settings[0]}\nagainst {software_words(baseline)}"
    return ComparisonBar(name, said if isinstance(said, Prediction) else None, row.row.value)
