"""Measurements of other tools: tables of MODAK, and performance logs of ReFrame."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.errors import InputError, Position, Problems
from hpcgen.core.support.hashing import read_plain
from hpcgen.plugins.tuning.measurements.records import Measurement, Metric

MAX_BYTES = 64 * 1024 * 1024
T = TypeVar("T", bound=msgspec.Struct)


class TableLine(dict[str, str]):
    """The cells of one line by the names of their columns; ``where`` it is."""

    def __init__(self, cells: dict[str, str], where: Position) -> None:
        super().__init__(cells)
        self.where = where


def read_text(path: Path) -> list[str]:
    """The lines of a table that another tool wrote. InputError: it cannot be read, is too large or no text."""
    try:
        data = read_plain(path, MAX_BYTES)
    except OSError as failure:
        raise InputError(f"this file cannot be read: {failure.strerror}", str(path)) from failure
    if len(data) > MAX_BYTES:
        raise InputError(f"this file is larger than {MAX_BYTES // 2**20} MiB", str(path), remedy="split it")
    try:
        return data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as failure:
        raise InputError("not valid UTF-8", str(path)) from failure


def lines_of(path: Path, required: set[str], what: str, separator: str) -> Iterator[TableLine]:
    """Each line below the one with the names of the columns.

    InputError: a column is missing, or a line has another number of cells.
    """
    # Cells of tables separated by commas may be quoted, those of others have quotes of their own.
    lines = read_text(path)
    read = csv.reader(lines) if separator == "," else csv.reader(lines, delimiter=separator, quoting=csv.QUOTE_NONE)
    columns = [each.strip() for each in next(read, [])]
    if missing := sorted(required - set(columns)):
        raise InputError(
            f"{what} has the columns {', '.join(missing)}; which this file lacks",
            Position(str(path), 1, 1),
            f"{separator.join(sorted(required))} in the first line",
        )
    for cells in read:
        if not cells:
            continue
        where = Position(str(path), read.line_num, 1)
        if len(cells) != len(columns):
            raise InputError(
                f"{len(cells)} cells on this line, and {len(columns)} columns above",
                where,
                remedy="quote cells that have a comma in them",
            )
        yield TableLine(dict(zip(columns, map(str.strip, cells), strict=True)), where)


def name_from(text: str) -> str:
    """A name of hpcgen's made of another tool's: lower case, other characters as ``-``, at most 64 of them."""
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")[:64].rstrip("-._") or "unnamed"


def checked_row(data: dict[str, object], type_: type[T], where: Position) -> T:
    """A row made of cells; what is wrong is told with its line. InputError: a cell is not what its field takes."""
    return convert(InMemory(data, f"{where.file}:{where.line}"), type_)


# MODAK: ``Performance-Model/results`` of SODALITE-EU/application-optimisation

COLUMNS = (
    "testtype",
    "testalgo",
    "mpidist",
    "cluster",
    "queue",
    "timestamp",
    "nnodes",
    "ppn",
    "nranks",
    "nthreads",
    "time",
)


def read_modak_csv(path: Path, software: str) -> list[Measurement]:
    """Each line as a measurement in seconds: workload by ``testalgo``, machine by ``cluster``.

    ``software``: what computed it, which the table does not say. InputError: with all that is wrong, by line.
    """
    rows = []
    problems = Problems()
    for line in lines_of(path, set(COLUMNS), "a table of MODAK's measurements", ","):
        with problems.caught():
            rows.append(_modak_row(line, software))
    problems.raise_as(InputError)
    return rows


def _modak_row(line: TableLine, software: str) -> Measurement:
    day = line["timestamp"]
    cells: dict[str, object] = {
        "workload": {"name": name_from(line["testalgo"]), "kind": "hpc"},
        "software": {"framework": software, "mpi": line["mpidist"]},
        "hardware": {"name": name_from(line["cluster"])},
        "metric": "seconds",
        "value": line["time"],
        "nodes": line["nnodes"],
        "ranks_per_node": line["ppn"],
        "threads_per_rank": line["nthreads"],
        # Minutes in some rows, seconds in others; the day comes first in both.
        "measured": f"{day[:4]}-{day[4:6]}-{day[6:8]}",
        "command": f"{line['testtype']}, queue {line['queue']}",
    }
    row = checked_row(cells, Measurement, line.where)
    if line["nranks"] != str(row.ranks):
        raise InputError(
            f"nranks is {line['nranks']}, and nnodes x ppn is {row.ranks}", line.where, "the same number in both"
        )
    return row


# ReFrame 4: ``perflogs/SYSTEM/PARTITION/TEST.log``, one line a run, one value a variable

_REQUIRED = {"result", "name", "system", "partition", "environ", "num_tasks", "job_completion_time"}
_METRICS: dict[str, tuple[Metric, float]] = {
    "s": ("seconds", 1.0),
    "seconds": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
    "us": ("seconds", 1e-6),
    "gb/s": ("gigabytes_per_second", 1.0),
    "gib/s": ("gigabytes_per_second", 2**30 / 1e9),
    "mb/s": ("gigabytes_per_second", 1e-3),
    "mib/s": ("gigabytes_per_second", 2**20 / 1e9),
    "gflops": ("gflops", 1.0),
    "gflop/s": ("gflops", 1.0),
    "tflops": ("gflops", 1e3),
    "tflop/s": ("gflops", 1e3),
    "images/s": ("samples_per_second", 1.0),
    "samples/s": ("samples_per_second", 1.0),
}
"""Units of performance variables, in lower case → what is measured, and how many of its units one is."""


def read_reframe_log(path: Path, software: str | None) -> tuple[list[Measurement], list[str]]:
    """Each value of each run that passed, and what could not be taken, with the reason.

    ``software``: what computed it; the programming environment of ReFrame by default. InputError: this is no such log,
    or with all that is wrong in it, by line.
    """
    rows: list[Measurement] = []
    left: dict[str, None] = {}
    problems = Problems()
    for line in lines_of(path, _REQUIRED, "a performance log of ReFrame 4", "|"):
        if line["result"] != "pass":
            left[f"line {line.where.line}: the run did not pass ({line['result']})"] = None
            continue
        for variable in _variables(line):
            unit = line[f"{variable}_unit"]
            if unit.lower() not in _METRICS:
                left[f"{variable}: no measurement is in {unit or 'no unit'}"] = None
                continue
            with problems.caught():
                rows.append(_reframe_row(line, variable, software))
    problems.raise_as(InputError)
    return rows, list(left)


def _variables(line: TableLine) -> Iterator[str]:
    for column in line:
        name = column.removesuffix("_value")
        if name != column and f"{name}_unit" in line:
            yield name


def _reframe_row(line: TableLine, variable: str, software: str | None) -> Measurement:
    metric, factor = _METRICS[line[f"{variable}_unit"].lower()]
    value = line[f"{variable}_value"]
    try:
        number = float(value) * factor
    except ValueError:
        raise InputError(f"{variable}_value is {value!r}", line.where, "a number") from None
    tasks, per_node = line["num_tasks"], line.get("num_tasks_per_node", "null")
    nodes = int(tasks) // int(per_node) if per_node.isdigit() and int(per_node) and tasks.isdigit() else 1
    threads = line.get("num_cpus_per_task", "null")
    cells: dict[str, object] = {
        "workload": {"name": name_from(f"{line['name']}.{variable}"), "kind": "hpc"},
        "software": {"framework": software or name_from(line["environ"])},
        "hardware": {
            "name": name_from(f"{line['system']}-{line['partition']}"),
            "site": name_from(line["system"]),
            "partition": name_from(line["partition"]),
        },
        "metric": metric,
        "value": number,
        "nodes": nodes,
        "ranks_per_node": per_node if per_node.isdigit() else tasks,
        "measured": line["job_completion_time"][:10],
        "command": f"ReFrame: {line['name']}",
    }
    if threads.isdigit():
        cells["threads_per_rank"] = threads
    return checked_row(cells, Measurement, line.where)
