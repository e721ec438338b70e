"""Results of ``hpcgen test`` as a table, and what is to be read of those that failed."""

from __future__ import annotations

from typing import TextIO

from hpcgen.cli.tables import table
from hpcgen.core.model.record import TestRun
from hpcgen.core.support.processes import printable as printable

LAST_LINES = 12


def report(run: TestRun, out: TextIO) -> str:
    """The table, the last lines of each failure, and one line that sums up."""
    head = ("group", "test", "result", "seconds", "why")
    rows = []
    for each in run.results:
        seconds = f"{each.seconds:.1f}" if each.result != "skipped" else ""
        rows.append((each.group, each.name, each.result, seconds, printable(each.reason)))
    parts = [table(head, rows, out), *_failures(run), summary(run)]
    return "\n\n".join(parts)


def _failures(run: TestRun) -> list[str]:
    """The end of what the failed tests printed; once for those that come from one start."""
    outputs: dict[str, list[str]] = {}
    for each in run.results:
        if each.result == "failed" and each.output.strip():
            outputs.setdefault(each.output.rstrip(), []).append(f"{each.group}: {each.name}")
    parts = []
    for output, names in outputs.items():
        lines = [f"  | {printable(line).expandtabs(4)}" for line in output.split("\n")]
        more = f" (the last {LAST_LINES} of {len(lines)} lines)" if len(lines) > LAST_LINES else ""
        parts.append("\n".join([f"{', '.join(names)}{more}", *lines[-LAST_LINES:]]))
    return parts


def summary(run: TestRun) -> str:
    """How many tests ended how, where and by what."""
    where = f"{run.nodes} nodes of {run.site}" if run.nodes > 1 else run.site
    return f"{run.counts} on {where} by {run.engine} in {run.seconds:.1f} s"
