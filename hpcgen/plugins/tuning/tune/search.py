"""Trial after trial: settings are chosen, measured in short rounds, and ended early where they are clearly slow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

import msgspec

from hpcgen.core.errors import JobFailedError
from hpcgen.plugins.tuning.bench.running import BenchCase, BenchOutcome, Rate, Starter, measure
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload
from hpcgen.plugins.tuning.tune.space import cell_of
from hpcgen.plugins.tuning.tune.study import Lost, RunningTrial, Trial, TuneStudy
from hpcgen.running.verify.starts import start_job

MARGIN = 0.9
"""A trial is clearly below the median of the others if its best round so far is below this part of it."""

LEAST = 4
"""Trials that a median is taken of."""

LOOK_S = 5.0


class Search(msgspec.Struct, frozen=True):
    """What is searched, and for how long.

    Parameters
    ----------
    trials: how many there are to be in all.
    rounds: starts of each trial.
    seconds, timeout_s: of each start, as for :func:`hpcgen.plugins.tuning.bench.run_rounds`.
    until: by ``time.monotonic()``, when no further trial is begun.
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

    def run(self, study: TuneStudy, wait: bool = True) -> None:
        """Search until there are enough trials, the time is up, or nothing is left to be tried.

        Parameters
        ----------
        wait: for the trials of other processes too; those of processes that are gone are tried again here.

        Raises
        ------
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
            self._measure(study, trial)

    def _measure(self, study: TuneStudy, trial: RunningTrial) -> None:
        try:
            with trial.beating():
                self._rounds(study, trial, cell_of(self.case, self.workload, trial.settings))
        except Lost:
            return
        except BaseException as failure:
            trial.give_up("interrupted" if isinstance(failure, KeyboardInterrupt) else str(failure))
            raise

    def _rounds(self, study: TuneStudy, trial: RunningTrial, cell: BenchOutcome) -> None:
        for number in range(self.rounds):
            self.on_begin(trial, number)
            rate = measure(cell, self.seconds, self.timeout_s, self.starter)
            if not isinstance(rate, Rate):
                if not trial.settings:
                    raise JobFailedError(
                        f"the default cannot be measured: {rate}",
                        self.workload.name,
                        remedy="hpcgen test IMAGE looks at the image itself",
                    )
                trial.ended(rate, refused=True)
                return
            cell.rates[number] = rate
            trial.report(rate.value, number)
            if trial.settings and number + 1 < self.rounds and (why := hopeless(study.trials(), cell.values)):
                trial.ended(why, refused=False)
                return
        trial.measured(statistics.median(cell.values))


def hopeless(trials: Sequence[Trial], rates: Sequence[float]) -> str:
    """Why a trial with these rates so far need not go on; "" if it may be good.

    Optuna's median rule with a margin: of settings that make no difference, noise puts half below the median.
    """
    others = [max(each.rates[: len(rates)]) for each in trials if each.value is not None]
    if len(others) < LEAST:
        return ""
    median = statistics.median(others)
    if max(rates) >= MARGIN * median:
        return ""
    return f"{max(rates) / median:.2f} times the median of {len(others)} trials"
