"""The tables that benchmarks print → numbers that can be compared. The one place where these are read.

OSU: ``# Size  Latency (us)``, ``Avg Latency(us)`` or ``Bandwidth (MB/s)``, then a line for each size (print_header of
its util/osu_util.c, 5.9 to 7.5). nccl-tests: size, count, type, operation and root, then time, bandwidth of the
algorithm and of the bus, out of place; ``# Avg bus bandwidth`` at the end (as in reports of 2.13 and later). HPL:
``T/V N NB P Q Time Gflops``, of which T/V begins with W (its HPL_pdtest.c; seen with 2.3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from hpcgen.core.model.recipe_facts import FigureTable
from hpcgen.core.model.record import Figure

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_OSU_HEAD = re.compile(r"# Size\s+(?:Avg )?(Latency|Bandwidth) ?\(([^)\s]+)\)")
_OSU_ROW = re.compile(rf"(\d+)\s+({_NUMBER})(?:\s|$)")
_NCCL_ROW = re.compile(rf"\s*(\d+)\s+\d+\s+[a-z]\w*\s+\w+\s+-?\d+\s+{_NUMBER}\s+{_NUMBER}\s+({_NUMBER})\s")
_NCCL_AVERAGE = re.compile(rf"# Avg bus bandwidth\s*:\s*({_NUMBER})")
_HPL_ROW = re.compile(rf"W\w+\s+(\d+)\s+\d+\s+\d+\s+\d+\s+{_NUMBER}\s+({_NUMBER})\s*")


def read_figures(table: FigureTable, lines: Iterable[str]) -> list[Figure]:
    """All numbers of a table, in their order; none where the output has no such table."""
    return _READERS[table](lines) if table else []


def summary(figures: list[Figure]) -> str:
    """What people look for: the latency of the smallest message, or the last number; "" without any."""
    if not figures:
        return ""
    best = figures[0] if figures[0].name == "latency" else figures[-1]
    at = f" at {best.at} {best.at_unit}" if best.at is not None else ""
    return f"{best.name} {best.value:g} {best.unit}{at}"


def _osu(lines: Iterable[str]) -> list[Figure]:
    found: list[Figure] = []
    name = unit = ""
    for line in lines:
        if head := _OSU_HEAD.match(line):
            name, unit = head[1].lower(), head[2]
        elif name and (row := _OSU_ROW.match(line)):
            found.append(Figure(name=name, value=float(row[2]), unit=unit, at=int(row[1]), at_unit="bytes"))
    return found


def _nccl_tests(lines: Iterable[str]) -> list[Figure]:
    found: list[Figure] = []
    for line in lines:
        if row := _NCCL_ROW.match(line):
            value = float(row[2])
            found.append(Figure(name="bus bandwidth", value=value, unit="GB/s", at=int(row[1]), at_unit="bytes"))
        elif average := _NCCL_AVERAGE.match(line):
            found.append(Figure(name="average bus bandwidth", value=float(average[1]), unit="GB/s"))
    return found


def _hpl(lines: Iterable[str]) -> list[Figure]:
    rows = (row for line in lines if (row := _HPL_ROW.fullmatch(line)))
    return [
        Figure(name="performance", value=float(row[2]), unit="GFLOPS", at=int(row[1]), at_unit="equations")
        for row in rows
    ]


_READERS: dict[str, Callable[[Iterable[str]], list[Figure]]] = {"osu": _osu, "nccl_tests": _nccl_tests, "hpl": _hpl}
