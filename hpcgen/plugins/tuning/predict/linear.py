"""The linear model: log speed as a sum of terms, and what may be asked of it.

It is plain data, so that a fitted model is shown and asked without the libraries that fit one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from math import exp
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError
from hpcgen.core.model.fields import Record
from hpcgen.core.support.file_formats import MODEL
from hpcgen.core.support.hashing import read_plain
from hpcgen.plugins.tuning.measurements.cited import RowUsed
from hpcgen.plugins.tuning.measurements.records import Hardware, Software, Workload
from hpcgen.plugins.tuning.predict.columns import TermColumn, TermRange
from hpcgen.plugins.tuning.predict.observations import SAMPLES, metric_of, own_level, value_of
from hpcgen.plugins.tuning.predict.prediction import (
    REACH,
    HeldOutTest,
    MeasureNext,
    Prediction,
    PredictionRefusal,
    Situation,
)
from hpcgen.plugins.tuning.predict.terms import BY_NAME, Described, RunConditions, Term, described, identity

NEAREST = 5
"""How many rows an answer names."""


class Column(Record, frozen=True):
    """A coefficient with its 95 % interval: of a logarithm, or of one category; ``typical`` as for a term."""

    term: str
    coefficient: float
    low: float
    high: float
    category: str = ""
    typical: float = 0.0


class Level(Record, frozen=True):
    """Rows in one unit: their intercept, and which workloads they are of."""

    name: str
    intercept: float
    workloads: list[str]


class Spread(Record, frozen=True):
    """How far off the model is for rows that it was not fitted to.

    ``of``: numbers, or ratios of two numbers of one workload on one machine. ``folds``: how often rows were left out;
    ``predicted`` of them could be, ``refused`` not. ``error``: root mean square of the differences of logarithms, each
    fold with the same weight; ``half``: half of the 95 % interval in logarithms, None with fewer than three folds.
    """

    situation: Situation
    of: Literal["value", "ratio"]
    folds: int
    predicted: int
    refused: int
    error: float
    half: float | None


class ModelRow(Record, frozen=True):
    """A row, and where it lies: what each column contributes to it."""

    row: RowUsed
    level: str
    position: list[float]


class Coefficients(Record, frozen=True, dict=True):
    """What a fit gives, without what is known of its errors."""

    columns: list[Column]
    seen: list[TermRange]
    levels: list[Level]

    @cached_property
    def places(self) -> list[TermColumn]:
        """Where the columns are read from."""
        return [TermColumn(each.term, each.category, each.typical) for each in self.columns]

    def parts(self, case: Described) -> list[float]:
        """What each column contributes to the logarithm of a case's speed."""
        return [column.coefficient * place.value(case) for column, place in zip(self.columns, self.places, strict=True)]

    def level_of(self, workload: Workload) -> Level | None:
        """In which unit a workload's speed is told: samples per second where these are known of it."""
        of_it = {level.name: level for level in self.levels if identity(workload) in level.workloads}
        if SAMPLES in of_it or not of_it:
            return next((level for level in self.levels if level.name == SAMPLES), None)
        order = [own_level(workload, metric) for metric in ("seconds_per_epoch", "seconds_per_batch", "seconds")]
        return next((of_it[name] for name in order if name in of_it), next(iter(of_it.values())))

    def outside(self, case: Described) -> str:
        """Why a case lies outside of what the rows cover; empty where it does not."""
        for seen in self.seen:
            term = BY_NAME[seen.term]
            value = case.get(term.name)
            if isinstance(value, str):
                if not term.new and value not in seen.categories:
                    return f"no row has {term.name} {value}; there is {', '.join(seen.categories)}"
            elif value is not None and seen.low is not None and seen.high is not None:
                if not seen.low / REACH <= value <= seen.high * REACH:
                    span = f"{seen.low:.4g} to {seen.high:.4g}" if seen.low < seen.high else f"{seen.low:.4g} only"
                    return f"{term.name} is {value:.4g} ({term.meaning}), and the rows have {span}"
            elif value is None and self._matters(term) and not self._known(term, case):
                whose = case["workload" if term.of == "workload" else "machine"]
                return f"{term.name} of {whose} is not known ({term.meaning}), and no row has it"
        # A category of a term that no row states at all, such as a compiler where none was used.
        stated = {seen.term for seen in self.seen}
        new = (term for term in BY_NAME.values() if term.name not in stated and term.kind == "category")
        return next((f"no row has a {term.name}" for term in new if not term.new and term.name in case), "")

    def _matters(self, term: Term) -> bool:
        return term.kind == "number" and any(each.term == term.name for each in self.columns)

    def _known(self, term: Term, case: Described) -> bool:
        """Whether rows are of the same workload or machine, so that their missing number counts alike."""
        if term.of not in ("workload", "hardware"):
            return True
        name = "workload" if term.of == "workload" else "machine"
        return any(each.term == name and case[name] in each.categories for each in self.seen)


class LinearModel(Coefficients, frozen=True, kw_only=True):
    """A fitted model. ``model``: the number of its format; ``hpcgen``: what fitted it.

    ``workloads`` (by name and kind) and ``machines`` of the rows, so that a question may name them; ``left_out``: how
    many rows were left out because they are doubtful or no speed. ``tests``: whether choosing by this model, or by
    pairs of the rows, costs less than the best fixed choice; ``hpcgen optimise`` chooses only by what passed one.
    """

    spreads: list[Spread]
    rows: list[ModelRow]
    workloads: dict[str, Workload]
    machines: dict[str, Hardware]
    model: int
    hpcgen: str
    left_out: int = 0
    tests: list[HeldOutTest] = []

    def predict(
        self,
        workload: Workload,
        software: Software,
        hardware: Hardware,
        nodes: int = 1,
        ranks_per_node: int = 1,
        threads_per_rank: int | None = None,
    ) -> Prediction | PredictionRefusal:
        """The speed, or the time, with its interval; a refusal outside of what the rows cover."""
        case = RunConditions(workload, software, hardware, nodes, ranks_per_node, threads_per_rank)
        level = self.level_of(workload)
        if level is None:
            return self._refused(
                f"no row says how many samples per second anything makes, nor any of {workload.name}", case
            )
        terms = described(case)
        if why := self.outside(terms):
            return self._refused(why, case)
        spread = self.spread(case, "value")
        if spread is None or spread.half is None:
            return self._refused(self._too_few(case), case)
        speed = level.intercept + sum(self.parts(terms))
        ends = sorted(value_of(level.name, speed + side * spread.half) for side in (-1, 1))
        return Prediction(
            value=value_of(level.name, speed),
            low=ends[0],
            high=ends[1],
            metric=metric_of(level.name),
            rows_used=self.nearest(terms, level.name),
            by="linear",
            situation=spread.situation,
        )

    def compare(
        self, workload: Workload, software: Software, baseline: Software, hardware: Hardware, *layout: int | None
    ) -> Prediction | PredictionRefusal:
        """The speed in relation to the same with ``baseline``; ``layout`` as in :meth:`predict`."""
        case = RunConditions(workload, software, hardware, *layout)  # type: ignore[arg-type]
        other = case._replace(software=baseline)
        terms, against = described(case), described(other)
        if why := self.outside(terms) or self.outside(against):
            return self._refused(why, case)
        spread = self.spread(case, "ratio")
        if spread is None or spread.half is None:
            return self._refused(self._too_few(case), case)
        ratio = sum(self.parts(terms)) - sum(self.parts(against))
        low, value, high = (exp(ratio + side * spread.half) for side in (-1, 0, 1))
        level = self.level_of(workload)
        rows = self.nearest(terms, level.name if level is not None else "")
        return Prediction(
            value=value, low=low, high=high, metric="speedup", rows_used=rows, by="linear", situation=spread.situation
        )

    def situation(self, case: RunConditions) -> Situation:
        """What of a case no row has."""
        machine, workload = case.hardware.name in self.machines, identity(case.workload) in self.workloads
        known: Mapping[tuple[bool, bool], Situation] = {
            (True, True): "known",
            (False, True): "new machine",
            (True, False): "new workload",
            (False, False): "new machine and workload",
        }
        return known[machine, workload]

    def spread(self, case: RunConditions, of: Literal["value", "ratio"]) -> Spread | None:
        """How far off the model is for cases such as this one."""
        situation = self.situation(case)
        return next((each for each in self.spreads if (each.situation, each.of) == (situation, of)), None)

    def nearest(self, case: Described, level: str) -> list[RowUsed]:
        """The rows that differ least from a case, by what the model says that a difference does."""
        at = self.parts(case)
        compared = [row for row in self.rows if row.level in (level, "")]

        def distance(row: ModelRow) -> float:
            # Ratios tell less of a number than a number of the same unit does.
            return sum(abs(a - b) for a, b in zip(at, row.position, strict=True)) + (row.level != level)

        return [each.row for each in sorted(compared, key=distance)[:NEAREST]]

    def _too_few(self, case: RunConditions) -> str:
        what = {"known": "configurations", "new machine": "machines", "new workload": "workloads"}
        few = what.get(self.situation(case), "machines and workloads")
        return f"the rows are of too few {few} to say how far off the model is for {self.situation(case)} ones"

    def _refused(self, why: str, case: RunConditions) -> PredictionRefusal:
        most = max((seen.high or 1 for seen in self.seen if seen.term == "ranks"), default=1) * REACH
        return PredictionRefusal(
            reason=why,
            measure_next=MeasureNext(
                workload=case.workload.name,
                framework=case.software.framework,
                machine=case.hardware.name,
                compiler=case.software.compiler,
                nodes=max(1, min(case.nodes, int(most) // case.ranks_per_node)),
                ranks_per_node=case.ranks_per_node,
                threads_per_rank=case.threads_per_rank,
            ),
        )


# as a file: the same rows give the same bytes

MAX_BYTES = 64 * 1024 * 1024


def model_text(model: LinearModel) -> str:
    """A model as JSON, one value on a line, so that two can be compared."""
    return msgspec.json.format(msgspec.json.encode(model), indent=1).decode() + "\n"


def read_model(path: Path) -> LinearModel:
    """A model that ``hpcgen model fit -o`` wrote.

    InputError: it cannot be read, is no model, or a newer hpcgen wrote it.
    """
    remedy = f"write one with: {MODEL.command}"
    try:
        data = read_plain(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path} is larger than any model", remedy=remedy)
        plain = msgspec.json.decode(data)
    except OSError as failure:
        raise InputError(f"the model {path} cannot be read: {failure.strerror}", remedy=remedy) from failure
    except (msgspec.DecodeError, RecursionError) as failure:
        raise InputError(f"{path} is not a model: {failure}", remedy=remedy) from failure
    MODEL.check(plain, str(path))
    try:
        found = record_from(plain, LinearModel)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise MODEL.not_understood(plain, str(path), failure) from failure
    terms = {column.term for column in found.columns} | {seen.term for seen in found.seen}
    if unknown := sorted(terms - BY_NAME.keys()):
        raise MODEL.not_understood(plain, str(path), f"no term is called {ascii(unknown[0])[:40]}")
    if any(len(row.position) != len(found.columns) for row in found.rows):
        raise MODEL.not_understood(plain, str(path), "a row has not one position for each column")
    return found
