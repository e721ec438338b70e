"""The study of a search: its trials, in a file that several processes on several machines may share.

Optuna's journal is the storage: lines that are only added, under a lock that is a file of its own, made in one step.
That holds on NFS from version 3 on, where SQLite may not be used. A lock that nobody holds any more is broken after
``journal.GRACE_S``. Source: Optuna's documentation of ``JournalFileBackend`` and ``JournalFileOpenLock``; SQLite's FAQ,
question 5.
Its own heartbeats are for relational databases only; ours are in
:mod:`hpcgen.plugins.tuning.tune.liveness`.
"""

from __future__ import annotations

import random
import statistics
import time
import warnings
import zlib
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.support.extras import extra
from hpcgen.core.support.refusals import unwritable
from hpcgen.plugins.tuning.bench.running import Rate
from hpcgen.plugins.tuning.tune.journal import lock, mend
from hpcgen.plugins.tuning.tune.liveness import Worker, beating, is_alive, this_worker
from hpcgen.plugins.tuning.tune.space import Settings, Space, alone, chosen, effective, idle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import optuna

NAME = "hpcgen tune"
STARTUP = 8
"""Trials that are chosen at random, before the sampler has something to learn from."""

ATTEMPTS = 3
"""How often settings are tried whose process was killed: they may be what kills it."""

_ASKED = 60
_LISTED = 100_000
_REFUSALS = 2

State = Literal["measured", "ended early", "refused", "lost", "running", "waiting"]


class Trial(msgspec.Struct, frozen=True):
    """One trial as it is known.

    ``rates`` of its rounds, and of the ``default`` in the same; ``value``: the median of their quotients, where all
    rounds ran; ``reason``: why they did not; ``where``: the process; ``first_step``: seconds that the first step took
    more, at most, such as for compiling; ``readers``: what reads variables there.
    """

    number: int
    settings: Settings
    state: State
    rates: list[float]
    value: float | None
    reason: str
    where: str
    default: list[float] = []
    first_step: float = 0.0
    readers: list[str] | None = None

    @property
    def ratio(self) -> float:
        """The median of how many times as fast as the default it was; 0 before any pair."""
        return statistics.median([one / other for one, other in zip(self.rates, self.default, strict=False)] or [0.0])


class Lost(Exception):
    """Others took this process for dead, and its trial from it."""


class TuneStudy:
    """A study, as one process sees it.

    seed: with the same seed and the same results, the same settings are chosen.
    before: settings that were faster than the default on machines like this one, the fastest first.
    task: of an array, whose tasks are to choose differently.
    """

    def __init__(
        self, study: optuna.Study, space: Space, seed: int, task: int = 0, before: Sequence[Settings] = ()
    ) -> None:
        import optuna

        self._study, self.before = study, before
        self.space, self.seed, self.task = space, seed, task
        self.worker = this_worker()
        self._distributions: dict[str, Any] = {
            name: optuna.distributions.CategoricalDistribution(values) for name, values in space.axes.items()
        }
        self._states = optuna.trial.TrialState

    def trials(self) -> list[Trial]:
        """All trials, by number."""
        return [trial_of(each) for each in self._study.get_trials(deepcopy=False)]

    def best(self) -> Trial | None:
        """The settings that were the fastest in pairs with the default; None before any were measured.

        Where all ended early it is one of those, so that there is something to be compared with the default.
        """
        return next(iter(self.fastest(1)), None)

    def fastest(self, number: int) -> list[Trial]:
        """The best, with the next ones that were faster than the default, of which there may be fewer."""
        found = [each for each in self.trials() if each.settings and each.state in ("measured", "ended early")]
        found.sort(key=lambda each: (each.state == "measured", each.ratio), reverse=True)
        return [*found[:1], *(each for each in found[1:number] if each.state == "measured" and each.ratio > 1)]

    def running_elsewhere(self) -> list[Trial]:
        """Those that live processes measure; those of dead ones are queued again."""
        self._requeue()
        return [each for each in self.trials() if each.state == "running"]

    def next(self, wanted: int) -> RunningTrial | None:
        """The next trial, which is this process's now; None where there are enough, or no more combinations.

        ``wanted``: trials that are measured in all; those that an image refuses count only where they are very many.
        """
        self._requeue()
        known = self.trials()
        counts = {state: sum(each.state == state for each in known) for state in ("measured", "ended early", "running")}
        if sum(counts.values()) >= wanted or len(known) > 3 * wanted + STARTUP:
            return None
        if not any(each.state == "waiting" for each in known):
            settings = self._first(known) or self._propose(known)
            if settings is None:
                return None
            self._enqueue(settings)
        trial = self._study.ask(self._distributions)
        if trial.user_attrs.get("settings") is None:
            # Another process took what was enqueued here: what was drawn instead is as good.
            trial.set_user_attr("settings", chosen(trial.params))
        trial.set_user_attr("worker", msgspec.to_builtins(self.worker))
        return RunningTrial(trial, self._study)

    def _enqueue(self, settings: Settings) -> None:
        self._study.enqueue_trial(self.space.whole(settings), user_attrs={"settings": settings})

    def begin(self) -> None:
        """Queue the default, the first of all."""
        if not self.trials():
            self._enqueue({})

    def unread(self) -> set[tuple[str, str]]:
        """Names and values that are not tried, as nothing in the image reads them: the default has told what does."""
        return idle(next((each.readers for each in self.trials() if not each.settings and each.rates), None))

    def _first(self, known: list[Trial]) -> Settings | None:
        """What is tried before the sampler chooses; None where all was.

        That is what was faster on machines like this one, then what has the largest effects with nothing else changed,
        then whatever was faster alone, joined.
        """
        wanted = [each for each in (*self.before, *alone(self.space)) if self._is_new(each, known)]
        joined = self._joined(known)
        return next(iter(wanted), joined if self._is_new(joined, known) else None)

    def _is_new(self, settings: Settings, known: list[Trial]) -> bool:
        """Whether settings are untried and change something that can be changed."""
        if not settings or settings in [each.settings for each in known]:
            return False
        never = impossible(known) & set(settings.items())
        return not never and effective(settings, self.unread()) == settings

    def _joined(self, known: list[Trial]) -> Settings:
        """Of every setting the value that was the fastest alone, if it was faster than the default."""
        single = [*alone(self.space), *(each.settings for each in known if len(each.settings) == 1)]
        faster = [each for each in known if each.settings in single and each.value is not None and each.value > 1]
        found: Settings = {}
        for each in sorted(faster, key=lambda trial: -trial.ratio):
            both = {**each.settings, **found}
            if effective(both, set()) == both:
                found = both
        return found

    def _requeue(self) -> None:
        """Queue the settings of processes that are gone; whoever comes first, it is done once at least."""
        now = time.time()
        for running in self._study.get_trials(deepcopy=False, states=(self._states.RUNNING,)):
            if not _lives(running, now):
                with suppress(RuntimeError, ValueError):
                    self._study.tell(running.number, state=self._states.FAIL, skip_if_finished=True)
        trials = self.trials()
        others = [each.settings for each in trials if each.state != "lost"]
        lost = [each for each in trials if each.state == "lost" and each.settings not in others]
        for at, each in enumerate(lost):
            killed = sum(one.settings == each.settings and not one.reason for one in lost)
            if killed < ATTEMPTS and each.settings not in [one.settings for one in lost[:at]]:
                self._enqueue(each.settings)

    def _propose(self, known: list[Trial]) -> Settings | None:
        """Untried settings: by the sampler, else any; None if there are none."""
        import optuna

        counted = [each for each in known if each.state != "lost"]
        unread = self.unread()
        number = zlib.crc32(f"{self.seed} {len(counted)} {self.task}".encode())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=number, n_startup_trials=STARTUP, multivariate=True, constant_liar=True
            )
        shadow = optuna.create_study(direction="maximize", sampler=sampler)
        states = (self._states.COMPLETE, self._states.PRUNED, self._states.RUNNING)
        shadow.add_trials(self._study.get_trials(states=states))
        for _ in range(_ASKED):
            trial = shadow.ask(self._distributions)
            settings = effective(chosen(trial.params), unread)
            if self._is_new(settings, known):
                return settings
            shadow.tell(trial, state=self._states.FAIL)
        left = [each for each in islice(self.space.combinations(), _LISTED) if self._is_new(each, known)]
        return random.Random(number).choice(left) if left else None


class RunningTrial:
    """A trial that this process measures."""

    def __init__(self, trial: optuna.Trial, study: optuna.Study) -> None:
        self._trial, self._study = trial, study
        self.number = trial.number
        self.settings: Settings = dict(trial.user_attrs["settings"])

    def beating(self) -> AbstractContextManager[None]:
        """Signs of life while the block runs."""
        return beating(lambda now: self._trial.set_user_attr("beat", now))

    def report(self, rate: Rate, default: float, round_number: int) -> None:
        """Its rate in a round, and the default's. Lost if the trial is no longer this process's."""
        known = self._trial.user_attrs
        with _unless_lost():
            self._trial.set_user_attr("readers", rate.readers)
            self._trial.set_user_attr("first_step", max(rate.overhead, known.get("first_step", 0.0)))
            self._trial.set_user_attr("default", [*known.get("default", []), default])
            self._trial.report(rate.value, round_number)

    def measured(self, value: float) -> None:
        """All rounds ran; ``value``: how many times as fast as the default."""
        with _unless_lost():
            self._study.tell(self._trial, value, skip_if_finished=True)

    def ended(self, reason: str, *, refused: bool) -> None:
        """It is not measured further."""
        from optuna.trial import TrialState

        with _unless_lost():
            self._trial.set_user_attr("refused" if refused else "early", reason)
            self._study.tell(self._trial, state=TrialState.PRUNED, skip_if_finished=True)

    def give_up(self, reason: str) -> None:
        """It was interrupted; its settings are tried again."""
        from optuna.trial import TrialState

        with suppress(RuntimeError, ValueError):
            self._trial.set_user_attr("given_up", reason)
            self._study.tell(self._trial, state=TrialState.FAIL, skip_if_finished=True)


@contextmanager
def _unless_lost() -> Iterator[None]:
    try:
        yield
    except RuntimeError as failure:
        # Optuna's UpdateFinishedTrialError, which is one of these.
        raise Lost from failure


def impossible(trials: Sequence[Trial]) -> set[tuple[str, str]]:
    """Values that an image refuses: twice the only ones of a refused trial that never ran in another."""
    ran = {pair for each in trials if each.rates for pair in each.settings.items()}
    suspects = [set(each.settings.items()) - ran for each in trials if each.state == "refused"]
    alone = [pair for each in suspects if len(each) == 1 for pair in each]
    return {pair for pair in alone if alone.count(pair) >= _REFUSALS}


def trial_of(trial: optuna.trial.FrozenTrial) -> Trial:
    """What Optuna knows of a trial."""
    known = trial.user_attrs
    states: dict[str, State] = {"COMPLETE": "measured", "FAIL": "lost", "RUNNING": "running", "WAITING": "waiting"}
    state = states.get(trial.state.name) or ("refused" if "refused" in known else "ended early")
    worker = known.get("worker")
    return Trial(
        number=trial.number,
        settings=dict(known.get("settings", {})),
        state=state,
        rates=[trial.intermediate_values[step] for step in sorted(trial.intermediate_values)],
        value=trial.value if trial.state.name == "COMPLETE" else None,
        reason=known.get("refused") or known.get("early") or known.get("given_up") or "",
        where=msgspec.convert(worker, Worker).text if worker is not None else "",
        default=list(known.get("default", [])),
        first_step=known.get("first_step", 0.0),
        readers=known.get("readers"),
    )


def _lives(trial: optuna.trial.FrozenTrial, now: float) -> bool:
    began = trial.datetime_start.timestamp() if trial.datetime_start is not None else 0.0
    seen = max(trial.user_attrs.get("beat", 0.0), began)
    worker = trial.user_attrs.get("worker")
    if worker is None:
        # It was killed between two lines, or is about to write the second.
        return is_alive(Worker("", "", 0, ""), seen, now)
    return is_alive(msgspec.convert(worker, Worker), seen, now)


def open_study(
    path: Path, about: dict[str, str], space: Space, seed: int, task: int = 0, before: Sequence[Settings] = ()
) -> TuneStudy:
    """The study of a file, which is made where it is not there.

    about: what is tuned: image, workload and the like, by words for people.
    seed, task, before: as for :class:`TuneStudy`.
    InputError: it is a study of something else, or no study.
    OutputError: it cannot be written. MissingToolError: Optuna is not installed.
    """
    with extra("model", "search over settings"):
        import optuna
        from optuna.storages.journal import JournalFileBackend
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        mend(path)
        place = str(path.absolute())
        storage = optuna.storages.JournalStorage(JournalFileBackend(place, lock(place)))
        study = optuna.create_study(storage=storage, study_name=NAME, direction="maximize", load_if_exists=True)
        said = study.user_attrs.get("about")
    except OSError as failure:
        raise unwritable(path, failure) from failure
    except Exception as failure:
        message = f"{path} is not a study of hpcgen tune: {failure}"
        raise InputError(message, "--study", remedy="name another file, or remove this one") from failure
    mine = {**about, "values": "ratios to the default", "settings": msgspec.json.encode(space.axes).decode()}
    if said is None:
        study.set_user_attr("about", mine)
    elif said != mine:
        _refuse(path, said, mine)
    found = TuneStudy(study, space, seed, task, before)
    found.begin()
    return found


def _refuse(path: Path, said: Any, mine: dict[str, str]) -> None:
    said = said if isinstance(said, dict) else {}
    parts = [f"{name} {said.get(name, 'nothing')} there, {value} here" for name, value in mine.items()]
    other = [part for part, (name, value) in zip(parts, mine.items(), strict=True) if said.get(name) != value]
    raise InputError(
        f"{path} is the study of another search: {'; '.join(other)}",
        "--study",
        remedy="ask for the same as then, name another file, or remove this one",
    )
