"""A program of the user's in the place of a standard workload: how it is started, and where it says how fast it was."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import LEARNT, BenchWorkload, OwnProgram
from hpcgen.plugins.tuning.measurements.records import Workload

JSON = "json:"
"""What a figure begins with that is in a line of JSON."""

_LONGEST = 10_000
"""Characters of a line that is searched."""
_ONLY_OURS = ("interop", "framework", "compiler", "allocator", "batch", "precision")
"""What only the programs of the standard workloads are told."""


def own_workload(words: Sequence[str], figure: str = "", lower: bool = False) -> BenchWorkload:
    """The workload of a command.

    Parameters
    ----------
    figure: a regular expression, whose first group (else all of it) is the number, or ``json:KEY.KEY`` for a line that
        is a JSON object; the last that fits counts. Without one the time of the whole start counts.
    lower: whether less of the figure is better, as of seconds.

    Raises
    ------
    InputError: the figure is no regular expression.
    """
    if not figure.startswith(JSON):
        try:
            re.compile(figure)
        except re.error as failure:
            raise InputError(
                f"{figure!r} is no regular expression: {failure}",
                "--figure",
                r"such as 'loss after .* ([0-9.]+) s', or json:KEY",
            ) from failure
    program = OwnProgram(tuple(words), figure, lower or not figure)
    scripts = [each for each in words if each.endswith((".py", ".sh"))]
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", PurePosixPath((scripts or words)[0]).name).strip(".-") or "program"
    mark = sha256(msgspec.json.encode(program)).hexdigest()[:6]
    name = f"{plain[:40]}-{mark}"
    return BenchWorkload(name, Workload(name=name, kind="hpc"), LEARNT, "a program of yours", own=program)


def figure_in(program: OwnProgram, lines: Sequence[str]) -> float | str:
    """The last number in what a program printed, or why there is none."""
    for line in reversed(lines):
        if len(line) <= _LONGEST and (found := _in_line(program.figure, line)) is not None:
            if math.isfinite(found) and found > 0:
                return found
            return f"its figure is {found:g}, and has to be above 0"
    return f"nothing that it printed has the figure {program.figure}"


def _in_line(figure: str, line: str) -> float | None:
    if figure.startswith(JSON):
        return _in_json(figure.removeprefix(JSON).split("."), line)
    found = re.search(figure, line)
    if found is None:
        return None
    return _number(found[1] if found.re.groups else found[0])


def _in_json(keys: Sequence[str], line: str) -> float | None:
    try:
        value: Any = msgspec.json.decode(line.strip())
    except (msgspec.DecodeError, RecursionError):
        return None
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return None if isinstance(value, bool) else _number(value)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def untold(variant: Variant) -> str:
    """Why a variant is none for a program of the user's; empty if it is one."""
    asked = [name for name in _ONLY_OURS if getattr(variant, name)]
    if not asked:
        return ""
    return f"a program of yours is not told of {', '.join(asked)}: vary layout, threads, memory or env.NAME"
