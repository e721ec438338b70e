"""What models of all measurements say of a candidate: pairs of rows, and the linear model where it may choose."""

from __future__ import annotations

from functools import cached_property
from math import exp
from typing import TYPE_CHECKING

import msgspec

from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.units import counted
from hpcgen.plugins.tuning.bench.rows import hardware_of
from hpcgen.plugins.tuning.measurements.cited import cited
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Hardware, Workload
from hpcgen.plugins.tuning.optimise.evidence import kind_of, on_gpus, rows_of_workload, workload_name
from hpcgen.plugins.tuning.optimise.records import Estimate
from hpcgen.plugins.tuning.predict.left_out import FEWEST_FOLDS
from hpcgen.plugins.tuning.predict.pairs import NEAR, PairCase, RatioPair, ShrunkRatio, change_of, pairs, shrunk_ratio
from hpcgen.plugins.tuning.predict.prediction import HeldOutTest, LeftOut, ModelName, Prediction, PredictionRefusal
from hpcgen.plugins.tuning.predict.terms import identity
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.predict.linear import LinearModel

UNNAMED = "unnamed"
SHOWN = 5
"""How many rows an estimate names."""


class Modelled:
    """The models of all rows, fitted when they are first asked; ``why`` they could not be tested."""

    def __init__(self, known: Measurements, request: OptimiseRequest) -> None:
        self._known = known
        self._request = request
        self.why = ""

    @cached_property
    def pairs(self) -> list[RatioPair]:
        """Every ratio of two choices that rows tell."""
        return pairs(row for row in self._known if not row.doubtful)

    @cached_property
    def _model(self) -> LinearModel | None:
        from hpcgen.plugins.tuning.predict.fitting import fit

        try:
            return fit(self._known.rows)
        except (InputError, MissingToolError) as error:
            self.why = error.problems[0].on_one_line
            return None

    def compared(self, case: PairCase, plan: Plan) -> tuple[Estimate, bool]:
        """How many times as fast as the default one candidate is, and whether that may decide.

        Pairs of rows decide where choosing by them is shown to pay, or where by their errors on what was left out it is
        faster for sure. The linear model is asked only where its test shows that it chooses better than any default.
        """
        change = change_of(case.software, case.baseline)
        if change is None:
            return Estimate(basis="none", why="it differs from the default in more than one choice"), False
        said = shrunk_ratio(self.pairs, case)
        if said is None:
            return Estimate(basis="none", why=f"no rows of such a release compare {change.name}"), False
        left_out = self._left_out(change.name, case)
        test = self._test(change.name, left_out, "pairs")
        if said.near and test is not None and (test.better or _faster(said, test)):
            why = "all of its interval is on the faster side" if _faster(said, test) else str(test)
            return _by_pairs(said, case, test, f"which decides: {why}"), True
        linear = self._test(change.name, left_out, "linear")
        if said.near and linear is not None and linear.better:
            answer = self._by_linear(case, plan)
            if isinstance(answer, Prediction):
                return _estimate(answer, f"by the linear model, which decides: {linear}"), True
        why = self._no_vote(said, left_out, test)
        return _by_pairs(said, case, test, f"which decides nothing: {why}"), False

    def _by_linear(self, case: PairCase, plan: Plan) -> Prediction | PredictionRefusal:
        assert self._model is not None
        layout = (plan.job.nodes, plan.job.ranks_per_node, plan.job.threads_per_rank)
        return self._model.compare(case.workload, case.software, case.baseline, case.hardware, *layout)

    def _left_out(self, change: str, case: PairCase) -> LeftOut:
        """What a test has to leave out to be like the case: rows of the network may be known."""
        of_change = (pair.row.workload for pair in self.pairs if pair.change == change)
        return "machine" if identity(case.workload) in map(identity, of_change) else "workload"

    def _groups(self, change: str, left_out: LeftOut) -> int:
        rows = [pair.row for pair in self.pairs if pair.change == change]
        return len({row.hardware.name if left_out == "machine" else row.workload.name for row in rows})

    def _test(self, change: str, left_out: LeftOut, by: ModelName) -> HeldOutTest | None:
        """The test of a model for such choices; None where there are too few rows for one."""
        if self._groups(change, left_out) < FEWEST_FOLDS or self._model is None:
            return None
        asked = (change, left_out, by)
        return next((each for each in self._model.tests if (each.change, each.left_out, each.by) == asked), None)

    def _no_vote(self, said: ShrunkRatio, left_out: LeftOut, test: HeldOutTest | None) -> str:
        """Why a prediction by pairs does not decide."""
        groups = self._groups(said.change, left_out)
        if groups < FEWEST_FOLDS:
            return f"rows of {counted(groups, left_out)} are too few to test it"
        if test is None:
            return self.why
        return str(test) if not test.better else f"no row is of a release within {NEAR} minor ones of this one"

    @cached_property
    def workload(self) -> Workload:
        """The request's workload as rows have it; what the request does not say is taken from rows of that name."""
        wanted = self._request.workload
        rows = rows_of_workload(self._known, self._request)
        known = rows[0].workload if rows else Workload(name=UNNAMED, kind="hpc")
        said = {
            "name": workload_name(self._request) or UNNAMED,
            "kind": kind_of(self._request),
            "parameters": wanted.parameters or known.parameters,
            "layers": wanted.layers or known.layers,
            "batch": wanted.batch or known.batch,
            "shape": wanted.shape or known.shape,
            "precision": wanted.precision or known.precision,
            "samples": wanted.data.samples or known.samples,
            "gflop_per_sample": known.gflop_per_sample,
        }
        return msgspec.convert(said, Workload)

    def hardware(self, plan: Plan) -> Hardware:
        """The nodes of a plan as rows have them, where some are of these nodes."""
        gpus = on_gpus(plan)
        for row in self._known.rows:
            here = row.hardware
            if (here.site, here.partition, bool(here.gpu)) == (plan.site.name, plan.partition, gpus):
                return here
        return hardware_of(plan)


def _apart(said: ShrunkRatio, case: PairCase) -> str:
    """How far the rows are from what is asked."""
    apart = "of unknown releases"
    if said.releases is not None:
        apart = f"the nearest {counted(said.releases, 'release')} away" if said.releases else "of this release"
    gpus = bool(case.hardware.gpu)
    alike = any(bool(pair.row.hardware.gpu) == gpus for pair in said.used)
    return apart if alike else f"{apart}, none on {'GPUs' if gpus else 'CPUs'}"


def _faster(said: ShrunkRatio, test: HeldOutTest) -> bool:
    return test.half is not None and said.ratio > test.half


def _by_pairs(said: ShrunkRatio, case: PairCase, test: HeldOutTest | None, vote: str) -> Estimate:
    half = test.half if test is not None else None
    return Estimate(
        basis="predicted",
        metric="speedup",
        value=exp(said.ratio),
        low=None if half is None else exp(said.ratio - half),
        high=None if half is None else exp(said.ratio + half),
        rows=[cited(pair.row) for pair in said.used[:SHOWN]],
        why=f"by {counted(len(said.used), 'pair')} of rows, {_apart(said, case)}, {vote}",
    )


def _estimate(answer: Prediction, why: str) -> Estimate:
    return Estimate(
        basis="predicted",
        metric=answer.metric,
        value=answer.value,
        low=answer.low,
        high=answer.high,
        rows=answer.rows_used,
        why=why,
    )
