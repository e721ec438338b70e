"""What the linear model of all measurements says of a candidate for which there is no row."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.core.model.plan import Plan
from hpcgen.plugins.tuning.bench.rows import hardware_of
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Hardware, Software, Workload
from hpcgen.plugins.tuning.optimise.evidence import kind_of, on_gpus, rows_of_workload, workload_name
from hpcgen.plugins.tuning.optimise.records import Estimate
from hpcgen.plugins.tuning.requests.records import OptimiseRequest

if TYPE_CHECKING:
    from hpcgen.plugins.tuning.predict.linear import LinearModel
    from hpcgen.plugins.tuning.predict.prediction import MeasureNext, Prediction, PredictionRefusal

UNNAMED = "unnamed"


class Modelled:
    """The model of all rows, fitted when it is first asked; ``why`` there is none."""

    def __init__(self, known: Measurements, request: OptimiseRequest) -> None:
        self._known = known
        self._request = request
        self.why = ""
        self.measure: list[MeasureNext] = []

    @cached_property
    def _model(self) -> LinearModel | None:
        from hpcgen.plugins.tuning.predict.fitting import fit

        try:
            return fit(self._known.rows)
        except (InputError, MissingToolError) as error:
            self.why = error.problems[0].on_one_line
            return None

    def estimate(self, software: Software, plan: Plan) -> Estimate:
        """The speed, or the time, of one candidate in the layout of its plan."""
        if self._model is None:
            return Estimate(basis="none", why=self.why)
        job = plan.job
        layout = (job.nodes, job.ranks_per_node, job.threads_per_rank)
        return self._told(self._model.predict(self.workload, software, self.hardware(plan), *layout))

    def compared(self, software: Software, plan: Plan, base: Software, default: Plan | None) -> Estimate:
        """How many times as fast as the default one candidate is; of candidates on the same kind of node alone."""
        if self._model is None or default is None:
            return Estimate(basis="none", why=self.why)
        if self.hardware(plan) != self.hardware(default):
            return Estimate(basis="none", why="it runs on other nodes than the default")
        job = plan.job
        layout = (job.nodes, job.ranks_per_node, job.threads_per_rank)
        return self._told(self._model.compare(self.workload, software, base, self.hardware(plan), *layout))

    def _told(self, answer: Prediction | PredictionRefusal) -> Estimate:
        from hpcgen.plugins.tuning.predict.prediction import Prediction

        if not isinstance(answer, Prediction):
            if answer.measure_next is not None and answer.measure_next not in self.measure:
                self.measure.append(answer.measure_next)
            return Estimate(basis="none", why=answer.reason)
        return Estimate(
            basis="predicted",
            metric=answer.metric,
            value=answer.value,
            low=answer.low,
            high=answer.high,
            rows=[f"{row.label}: {row.value:.4g} ({row.source or 'no source'})" for row in answer.rows_used],
            why=f"the linear model, for a {answer.situation} case",
        )

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
