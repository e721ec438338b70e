"""Results of ``hpcgen test`` as a table, and what is to be read of those that failed."""

from __future__ import annotations

import re
from typing import TextIO

from hpcgen.cli.tables import table
from hpcgen.model.record import TestRun

LAST_LINES = 12
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def report(run: TestRun, out: TextIO) -> str:
    """The table, the last lines of each failure, and one line that sums up."""
    head = ("group", "test", "result", "seconds", "why")
    rows = []
    for each in run.results:
        seconds = f"{each.seconds:.1f}" if each.result != "left out" else ""
        rows.append((each.group, each.name, each.result, seconds, printable(each.reason)))
    parts = [table(head, rows, out)]
    for each in run.results:
        if each.result == "failed" and each.output.strip():
            lines = [printable(line) for line in each.output.rstrip().split("\n")]
            shown = [f"  | {line}" for line in lines[-LAST_LINES:]]
            more = f" (the last {LAST_LINES} of {len(lines)} lines)" if len(lines) > LAST_LINES else ""
            parts.append("\n".join([f"{each.group}: {each.name}{more}", *shown]))
    return "\n\n".join([*parts, summary(run)])


def summary(run: TestRun) -> str:
    """How many tests ended how, where and by what."""
    counts = ", ".join(f"{run.count(kind)} {kind}" for kind in ("passed", "failed", "left out"))
    return f"{counts} on {run.site} by {run.engine} in {run.seconds:.1f} s"


def printable(text: str) -> str:
    """A program's line without what would steer a terminal."""
    return _CONTROL.sub("", text.replace("\t", "    "))
