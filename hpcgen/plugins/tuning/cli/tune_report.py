"""Results of ``hpcgen tune`` for people and for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any, TextIO

from hpcgen.cli.tables import table
from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.bench.comparison import DRIFT, drift_of
from hpcgen.plugins.tuning.cli.bench_report import data as bench_data
from hpcgen.plugins.tuning.cli.bench_report import report as bench_report
from hpcgen.plugins.tuning.tune.space import image_words, text_of

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.bench.comparison import Compared
    from hpcgen.plugins.tuning.tune.study import Trial

_SHOWN = 5


def report(trials: Sequence[Trial], compared: Sequence[Compared], out: TextIO) -> str:
    """How many trials there were, the fastest, what was refused, and the comparison with its verdict."""
    unit = compared[0].outcome.workload.unit
    counts = Counter(each.state for each in trials)
    parts = [f"{counted(len(trials), 'trial')}: " + ", ".join(f"{number} {state}" for state, number in counts.items())]
    fastest = sorted((each for each in trials if each.value), key=lambda each: -(each.value or 0))[:_SHOWN]
    rows = [
        [
            str(each.number),
            f"{each.ratio:.3f}",
            f"{median(each.rates):.4g} {unit}",
            f"{median(each.default):.4g} {unit}",
            f"{each.first_step:.1f} s",
            text_of(each.settings),
        ]
        for each in fastest
    ]
    parts.append(table(["trial", "ratio", "median", "default's", "first step", "settings"], rows, out))
    if refused := _refusals(trials):
        parts.append("\n".join(["refused:", *refused]))
    parts += [*_drift(trials, compared, unit), bench_report(compared, out), verdict(compared)]
    return "\n\n".join(parts)


def _drift(trials: Sequence[Trial], compared: Sequence[Compared], unit: str) -> list[str]:
    """How the default's own rates changed, from the first trial to the comparison, where that is much."""
    rates = [rate for each in trials for rate in each.default] + compared[0].outcome.values
    if (drift := max([drift_of(rates), *(each.drift for each in compared)])) <= DRIFT:
        return []
    return [
        f"The machine changed by {drift:.1f} × meanwhile: the default alone had {min(rates):.4g} to {max(rates):.4g} "
        f"{unit}. Compare ratios, which are of pairs, and not medians of different trials."
    ]


def _refusals(trials: Sequence[Trial]) -> list[str]:
    reasons: dict[str, list[Trial]] = {}
    for each in trials:
        if each.state == "refused":
            reasons.setdefault(each.reason, []).append(each)
    return [
        f"  {counted(len(some), 'trial')}, such as {text_of(some[0].settings)}: {why}" for why, some in reasons.items()
    ]


def settings_text(default: Compared, best: Compared) -> str:
    """What the best has that the default has not, for people."""
    variant = best.outcome.variant
    return " ".join([*image_words(default.outcome, best.outcome), *variant.words]) or str(variant)


def verdict(compared: Sequence[Compared]) -> str:
    """The result in a sentence, by the verdict that the table has."""
    if len(compared) < 2:
        return "No other settings could be measured, so nothing is known but the default's speed."
    best = compared[1]
    ratio = best.ratio
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"How much faster the best is than the default is unknown: {best.verdict}."
    text = f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f}) times as fast as the default"
    if not best.is_settled:
        return f"No conclusion: the machine changed by {best.drift:.1f} × during the comparison. Repeat the command."
    if best.is_confirmed:
        return f"{settings_text(compared[0], best)} is {text}, with 95 % confidence."
    if best.verdict == "faster":
        more = "keep the default, or ask for more --compare-rounds"
        return f"The best of the search is {text}, but not in both halves of the rounds: {more}."
    if best.verdict == "slower":
        return f"Keep the default: the best of the search is {text} in fresh pairs."
    return f"The best of the search is {text}: the noise covers the difference, so keep the default."


def data(trials: Sequence[Trial], compared: Sequence[Compared]) -> dict[str, Any]:
    """The same for programs, with every trial."""
    return {"trials": trials, "comparison": bench_data(compared), "verdict": verdict(compared)}


def best_text(best: Trial | None) -> str:
    """``best so far threads=2, 1.213 times the default``; nothing before the first trial has ended."""
    if best is None:
        return ""
    return f"best so far {text_of(best.settings)}, {best.ratio:.3f} times the default"
