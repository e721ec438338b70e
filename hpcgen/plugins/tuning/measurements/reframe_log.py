"""Performance logs of ReFrame 4 (``perflogs/SYSTEM/PARTITION/TEST.log``): one line a run, one value a variable."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpcgen.core.errors import InputError, Problems
from hpcgen.plugins.tuning.measurements.imported import TableLine, checked_row, lines_of, name_from
from hpcgen.plugins.tuning.measurements.records import Measurement, Metric

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

    Parameters
    ----------
    software: what computed it; the programming environment of ReFrame by default.

    Raises
    ------
    InputError: this is no such log, or with all that is wrong in it, by line.
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
                rows.append(_row(line, variable, software))
    problems.raise_as(InputError)
    return rows, list(left)


def _variables(line: TableLine) -> Iterator[str]:
    for column in line:
        name = column.removesuffix("_value")
        if name != column and f"{name}_unit" in line:
            yield name


def _row(line: TableLine, variable: str, software: str | None) -> Measurement:
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
