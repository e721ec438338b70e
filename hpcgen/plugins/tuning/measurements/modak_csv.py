"""Tables of MODAK's measurements (``Performance-Model/results`` of SODALITE-EU/application-optimisation)."""

from __future__ import annotations

from pathlib import Path

from hpcgen.core.errors import InputError, Problems
from hpcgen.plugins.tuning.measurements.imported import TableLine, checked_row, lines_of, name_from
from hpcgen.plugins.tuning.measurements.records import Measurement

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

    Parameters
    ----------
    software: what computed it, which the table does not say.

    Raises
    ------
    InputError: with all that is wrong, by line.
    """
    rows = []
    problems = Problems()
    for line in lines_of(path, set(COLUMNS), "a table of MODAK's measurements", ","):
        with problems.caught():
            rows.append(_row(line, software))
    problems.raise_as(InputError)
    return rows


def _row(line: TableLine, software: str) -> Measurement:
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
