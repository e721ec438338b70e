"""Trial after trial: settings are chosen, measured in pairs with the default, and ended early where clearly slow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import msgspec

from hpcgen.core.errors import JobFailedError
from hpcgen.plugins.tuning.bench.comparison import compare
from hpcgen.plugins.tuning.bench.running import BenchCase, BenchOutcome, Starter, run_rounds
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload
from hpcgen.plugins.tuning.tune.space import FIRST, Settings, cell_of
from hpcgen.plugins.tuning.tune.study import Lost, RunningTrial, Trial, TuneStudy
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.starts import StartResult, start_job

MARGIN = 0.9
"""A trial is clearly below the best if each of its pairs so far is below this part of the best's ratio."""

LEAST = 2
"""Pairs before a trial may end early: one can be disturbed."""

FINALISTS = 3
"""Of a search, measured anew side by side: the first of many owes its place to chance, too."""

ALIKE = 0.97
"""Of finalists at least this part as fast as the fastest the one with the fewest settings is taken."""

LOOK_S = 5.0


class _TimeUp(Exception):
    """The search's time ended within a start."""


class Search(msgspec.Struct, frozen=True):
    """What is searched, and for how long.

    others: images that may be started in its place.
    trials: how many there are to be in all.
    rounds: pairs of each trial: a start of the default and one of the settings, in turns.
    seconds, timeout_s: of each start, as for :func:`hpcgen.plugins.tuning.bench.run_rounds`.
    until: by ``time.monotonic()``, when the search ends, also within a start; that trial is left to a later search.
    on_begin: called with the trial and its round, from 0.
    on_wait: called with the trials of other processes that are waited for.
    starter: starts a job here and gives what it printed.
    """

    case: BenchCase
    workload: BenchWorkload
    trials: int
    rounds: int
    seconds: float
    timeout_s: float
    until: float | None = None
    on_begin: Callable[[RunningTrial, int], None] = lambda trial, number: None
    on_wait: Callable[[Sequence[Trial]], None] = lambda trials: None
    starter: Starter = start_job
    others: Sequence[BenchCase] = ()

    def run(self, study: TuneStudy, wait: bool = True) -> None:
        """Search until there are enough trials, the time is up, or nothing is left to be tried.

        wait: for the trials of other processes too; those of processes that are gone are tried again here.
        JobFailedError: the default cannot be measured.
        KeyboardInterrupt: partial results are in the study.
        """
        while self.until is None or time.monotonic() < self.until:
            trial = study.next(self.trials)
            if trial is None and wait and (others := study.running_elsewhere()):
                self.on_wait(others)
                time.sleep(LOOK_S)
                continue
            # A process that was seen to be gone just now has left something to be done.
            trial = trial or study.next(self.trials)
            if trial is None:
                return
            try:
                self._measure(study, trial)
            except _TimeUp:
                return

    def _measure(self, study: TuneStudy, trial: RunningTrial) -> None:
        try:
            with trial.beating():
                self._rounds(study, trial)
        except Lost:
            return
        except BaseException as failure:
            trial.give_up("interrupted" if isinstance(failure, KeyboardInterrupt) else str(failure))
            raise

    def _rounds(self, study: TuneStudy, trial: RunningTrial) -> None:
        default = cell_of(self.case, self.workload, {})
        cell = cell_of(self.case, self.workload, trial.settings, self.others) if trial.settings else default
        best = study.best()
        bar = MARGIN * max(1.0, best.ratio if best is not None else 0.0)

        def pairs() -> list[float]:
            return [rate.value / default.rates[number].value for number, rate in cell.rates.items()]

        def is_wanted(workload: BenchWorkload, number: int) -> bool:
            if cell.reason or hopeless(pairs(), bar):
                return False
            self.on_begin(trial, number)
            return True

        def on_round(workload: BenchWorkload, number: int) -> None:
            if default.reason:
                raise JobFailedError(
                    f"the default cannot be measured: {default.reason}",
                    self.workload.name,
                    remedy="hpcgen test IMAGE looks at the image itself",
                )
            if number in cell.rates:
                trial.report(cell.rates[number], default.rates[number].value, number)

        run_rounds(
            [default, cell] if trial.settings else [default],
            rounds=self.rounds if trial.settings else 1,
            seconds=self.seconds,
            timeout_s=self.timeout_s,
            is_wanted=is_wanted,
            on_round=on_round,
            starter=self._start,
        )
        if cell.reason:
            trial.ended(cell.reason, refused=True)
        elif len(cell.rates) < self.rounds and (why := hopeless(pairs(), bar)):
            trial.ended(why, refused=False)
        else:
            trial.measured(statistics.median(pairs()))

    def _start(self, job: ImageJob, timeout_s: float) -> StartResult:
        """A start that ends with the search's time."""
        if self.until is None:
            return self.starter(job, timeout_s)
        left = self.until - time.monotonic()
        ended = self.starter(job, max(0.0, min(left, timeout_s)))
        if ended.status is None and left < timeout_s:
            raise _TimeUp("the time was up")
        return ended


def hopeless(pairs: Sequence[float], bar: float) -> str:
    """Why a trial need not go on whose pairs gave these ratios to the default; "" if it may be good.

    ``bar``: a ratio that one of them should reach.
    """
    if len(pairs) < LEAST or max(pairs) >= bar:
        return ""
    return f"at most {max(pairs):.2f} times the default in {len(pairs)} pairs"


def finalists(study: TuneStudy) -> list[Settings]:
    """What is measured anew: the fastest of a search, and of the first what usually has an effect, alone."""
    best = study.fastest(FINALISTS)
    found = [each.settings for each in best]
    if best and best[0].ratio > 1:
        alone = {name: value for name, value in found[0].items() if name in (*FIRST, "layout")}
        found += [alone] if alone and alone not in found else []
    return found


def finalist(
    case: BenchCase,
    workload: BenchWorkload,
    found: Sequence[Settings],
    others: Sequence[BenchCase],
    rounds: int,
    seconds: float,
    timeout_s: float,
    starter: Starter = start_job,
) -> Settings:
    """Measure the default and the finalists in fresh pairs; the one that is to be compared with it.

    ``found``: one or more, as by :func:`finalists`; one alone is not measured. ``seconds``, ``timeout_s``,
    ``starter``: as for :func:`hpcgen.plugins.tuning.bench.run_rounds`.
    """
    if len(found) == 1:
        return found[0]
    cells = [cell_of(case, workload, each, others) for each in ({}, *found)]
    run_rounds(cells, rounds=rounds, seconds=seconds, timeout_s=timeout_s, starter=starter)
    ratios = [statistics.median(each.pairs) if each.pairs else 0.0 for each in compare(cells)[1:]]
    alike = [place for place, ratio in enumerate(ratios) if ratio >= ALIKE * max(ratios)]
    return found[min(alike, key=lambda place: (len(found[place]), -ratios[place]))]


def confirm(
    outcomes: Sequence[BenchOutcome], rounds: int, seconds: float, timeout_s: float, starter: Starter = start_job
) -> None:
    """Measure the default and the best in so many fresh pairs, and in as many more while the best seems to be faster.

    ``outcomes``: the default, and the best if there is one. ``seconds``, ``timeout_s``, ``starter``: as for
    :func:`hpcgen.plugins.tuning.bench.run_rounds`.
    """

    def is_wanted(workload: BenchWorkload, number: int) -> bool:
        return number < rounds or compare(outcomes)[-1].verdict == "faster"

    run_rounds(outcomes, rounds=2 * rounds, seconds=seconds, timeout_s=timeout_s, is_wanted=is_wanted, starter=starter)
