"""Candidates planned: what the request asks of the job, and the command that makes the plan again."""

from __future__ import annotations

import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.decision import LayoutOption
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.request import OptimiseRequest
from hpcgen.core.model.site import Site
from hpcgen.kit.kit import STACK
from hpcgen.planning.planner import make_plan
from hpcgen.planning.reproduce import reproduce
from hpcgen.plugins.tuning.optimise.candidates import Candidate


class Planner(msgspec.Struct, frozen=True):
    """Plans the candidates of one request for one site."""

    catalog: Catalog
    site: Site
    request: OptimiseRequest

    def plan(self, candidate: Candidate, layout: LayoutOption | None = None) -> Plan:
        """The plan of a candidate, in a layout that was chosen or in the site's own.

        Raises
        ------
        HpcgenError: it cannot be planned.
        """
        job = job_request(self.request, candidate.stack.run.mpi, layout)
        return make_plan(
            self.catalog,
            self.site,
            candidate.stack,
            partition=candidate.partition,
            settings=candidate.settings,
            added=candidate.added,
            job=job,
            command=None if self.request.build is None else lambda: self._again(candidate, job),
            site_document=self.catalog.document_of(self.site),
            stack_document=self.catalog.document_of(candidate.stack),
        )

    def _again(self, candidate: Candidate, job: JobRequest) -> str:
        """The command that makes the plan again, in the folder of the kit, which has the stack."""
        settings, partition = candidate.settings, candidate.partition
        return reproduce(self.site.name, STACK, partition, settings, None, False, job, added=candidate.added)


def job_request(request: OptimiseRequest, ranks: bool, layout: LayoutOption | None = None) -> JobRequest:
    """What a request asks of the job, in a layout that was chosen or in the site's own.

    Parameters
    ----------
    ranks: the program runs as several, which may be as many as the limits allow; one process is one whatever they say.
    """
    limits, wishes = request.limits, request.job
    per_node = limits.ranks_per_node
    if limits.ranks is not None:
        spread = max(1, limits.ranks // (limits.nodes or 1))
        per_node = min(per_node or spread, spread)
    command = [*request.run.command, *request.run.arguments]
    gpus = 0 if request.hardware.accelerator == "none" else limits.gpus_per_node
    return JobRequest(
        nodes=layout.nodes if layout is not None else limits.nodes if ranks else None,
        ranks_per_node=layout.ranks_per_node if layout is not None else per_node if ranks else None,
        threads_per_rank=layout.threads_per_rank if layout is not None else limits.threads,
        walltime=limits.walltime,
        queue=wishes.queue or None,
        account=wishes.account or None,
        memory_per_rank_gb=limits.memory_per_rank_gb,
        gpus_per_node=gpus,
        command=command or None,
        name=wishes.name,
    )
