"""A decision for people: what was chosen, why, what else there was, what nobody knows."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from hpcgen.plugins.tuning.measurements.cited import RowUsed
from hpcgen.plugins.tuning.measurements.records import UNITS
from hpcgen.plugins.tuning.optimise.records import Alternative, Decision, Estimate, LayoutOption


def report(decision: Decision, top: int | None = None) -> str:
    """The decision as Markdown. ``top``: how many of the alternatives are shown, all if None."""
    return "\n".join(_lines(decision, top)) + "\n"


def _lines(decision: Decision, top: int | None) -> Iterator[str]:
    chosen = next(each for each in decision.alternatives if each.result == "chosen")
    yield f"# {decision.request}: {decision.stack} on {decision.site}, partition {decision.partition}"
    yield ""
    yield f"Goal: {decision.goal}. Workload: {decision.workload or 'not named'}."
    yield ""
    yield f"**Taken:** {_what(chosen)}; {chosen.why}. Estimate: {_with_reason(chosen.estimate)}."
    yield from _rows(chosen.estimate.rows)
    yield ""
    yield "Versions: " + ", ".join(f"{name} {version}" for name, version in decision.versions.items()) + "."
    if decision.environment:
        yield ""
        yield "Environment: " + ", ".join(f"`{name}={value}`" for name, value in decision.environment.items()) + "."
    shown = decision.alternatives[:top]
    yield ""
    yield "## Alternatives"
    yield ""
    yield "| stack | software | settings | partition | estimate | time against the chosen | why |"
    yield "|---|---|---|---|---|---|---|"
    for each in shown:
        guess = ", predicted" if each.estimate.basis == "predicted" else ""
        slower = f"x {each.slowdown:.3g}{guess}" if each.slowdown is not None else ""
        cells = [
            f"**{each.stack}**" if each is chosen else each.stack,
            _what(each),
            " ".join(each.settings),
            each.partition,
            _estimate_words(each.estimate) if each.result != "refused" else "refused",
            slower,
            each.why,
        ]
        yield "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
    for each in shown:
        if each is not chosen and each.estimate.rows:
            yield ""
            yield f"{_what(each)} ({each.stack}):"
            yield from _rows(each.estimate.rows)
    yield from _layouts(decision.layouts)
    if decision.findings:
        yield ""
        yield "## To know"
        yield ""
        for finding in decision.findings:
            remedy = f" ({finding.remedy})" if finding.remedy else ""
            yield f"- {finding.severity}: {finding.message}{remedy}"
    if decision.measure:
        yield ""
        yield "## Measurements that would help"
        yield ""
        yield from (f"    {line}" for line in decision.measure)
    if decision.command:
        yield ""
        yield "The same plan without the request:"
        yield ""
        yield f"    {decision.command}"


def _layouts(layouts: list[LayoutOption]) -> Iterator[str]:
    if not layouts:
        return
    yield ""
    yield "## Layout"
    yield ""
    yield "| nodes x ranks x threads | estimate | efficiency | why |"
    yield "|---|---|---|---|"
    for each in layouts:
        name = f"{each.nodes} x {each.ranks_per_node} x {each.threads_per_rank}"
        share = f"{each.efficiency:.1%}" if each.efficiency is not None else ""
        why = "; ".join(filter(None, [each.why, each.estimate.why]))
        yield f"| {f'**{name}**' if each.chosen else name} | {_number(each.estimate)} | {share} | {why} |"
    # Those of the layout that is taken are above.
    for each in (each for each in layouts if not each.chosen):
        yield ""
        yield f"Rows of {each.ranks_per_node} x {each.threads_per_rank}:"
        yield from _rows(each.estimate.rows)


def _rows(rows: list[RowUsed]) -> Iterator[str]:
    """The rows with what each says of itself; what several in turn have in common is said once."""
    if rows:
        yield ""
    for about, same in groupby(rows, lambda row: row.about):
        of_it = list(same)
        if len(of_it) == 1:
            yield f"- {of_it[0]}"
            continue
        yield f"- {about}:"
        yield from (f"  - {row.number}: {row.label}" for row in of_it)


def _what(each: Alternative) -> str:
    install = f" ({each.install})" if each.install else ""
    compiler = f" + {each.compiler}" if each.compiler else ""
    return each.software + install + compiler


def _with_reason(estimate: Estimate) -> str:
    """The number, and where it is not what was measured, the reason."""
    return f"{_estimate_words(estimate)}; {estimate.why}" if estimate.why else _estimate_words(estimate)


def _estimate_words(estimate: Estimate) -> str:
    """``predicted 31.22 s per epoch in 128 x 4 x 12``; ``unknown`` without a value."""
    layout = f" in {estimate.layout}" if estimate.layout and estimate.metric != "speedup" else ""
    return _number(estimate) + layout


def _number(estimate: Estimate) -> str:
    if estimate.value is None or estimate.metric is None:
        return "unknown"
    interval = ""
    if estimate.low is not None and estimate.high is not None:
        interval = f" ({estimate.low:.4g} to {estimate.high:.4g})"
    return f"{estimate.basis} {estimate.value:.4g} {UNITS[estimate.metric]}{interval}"
