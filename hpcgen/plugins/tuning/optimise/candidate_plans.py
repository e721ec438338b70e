"""Candidates planned: what the request asks of the job, and the command that makes the plan again."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from hpcgen.blocks.rank_test import RANK_TEST
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError
from hpcgen.core.model.fields import FormatName, RankGpus
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan, PlannedBlock
from hpcgen.core.model.site import Site
from hpcgen.kit.kit import STACK
from hpcgen.planning.planner import make_plan
from hpcgen.planning.reproduce import reproduce
from hpcgen.plugins.tuning.optimise.application import BLOCK
from hpcgen.plugins.tuning.optimise.candidates import RunCandidate
from hpcgen.plugins.tuning.optimise.records import LayoutOption
from hpcgen.plugins.tuning.requests.records import OptimiseRequest


class PlanTerms(msgspec.Struct, frozen=True):
    """What every candidate is planned with, in the words of the command line: ``--set``, ``--add`` and the like."""

    settings: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    format: FormatName | None = None
    allow_unsupported: bool = False
    rank_gpus: RankGpus | None = None


class Planner(msgspec.Struct, frozen=True):
    """Plans the candidates of one request for one site."""

    catalog: Catalog
    site: Site
    request: OptimiseRequest
    again: str = ""
    terms: PlanTerms = PlanTerms()

    def settled(self, candidate: RunCandidate) -> tuple[RunCandidate, Plan]:
        """A candidate with what was open in it, and its plan.

        HpcgenError: it cannot be planned, or not without compiling where the request allows that not.
        """
        settled, plan = self._with_mpi(candidate)
        if self.request.compile or not (found := compiled(plan)):
            return settled, plan
        ready = [f"{each.name}.obtain=wheels" for each in found if "obtain" in each.options]
        if ready:
            settled = msgspec.structs.replace(settled, settings=(*settled.settings, *ready))
            plan = self.plan(settled)
            found = compiled(plan)
        if found:
            remedy = "`compile: true`, or in a request of MODAK's `enable_opt_build: true`"
            raise ConflictError(
                f"{', '.join(each.name for each in found)} would be compiled, which the request rules out",
                remedy=remedy,
            )
        return settled, plan

    def _with_mpi(self, candidate: RunCandidate) -> tuple[RunCandidate, Plan]:
        """A candidate with the MPI nearest to the one that is wished for, and its plan; raises as :meth:`plan`."""
        wishes = [*candidate.mpi] or [()]
        tries = [msgspec.structs.replace(candidate, settings=(*candidate.settings, *each)) for each in wishes]
        first: HpcgenError | None = None
        # With any MPI: where that cannot be planned either, the wish is not what is in the way.
        last: tuple[RunCandidate, Plan] | None = None
        for each in tries[:-1]:
            try:
                return each, self.plan(each)
            except HpcgenError as error:
                if first is None:
                    first, last = error, self._any_mpi(tries[-1], error)
        return last or (tries[-1], self.plan(tries[-1]))

    def _any_mpi(self, candidate: RunCandidate, wished: HpcgenError) -> tuple[RunCandidate, Plan]:
        try:
            return candidate, self.plan(candidate)
        except HpcgenError:
            raise wished from None

    def plan(self, candidate: RunCandidate, layout: LayoutOption | None = None) -> Plan:
        """The plan of a candidate, in a layout that was chosen or in the site's own.

        HpcgenError: it cannot be planned.
        """
        job = job_request(self.request, candidate.stack.run.mpi, layout)
        job = msgspec.structs.replace(job, rank_gpus=self.terms.rank_gpus)
        return make_plan(
            self.catalog,
            self.site,
            candidate.stack,
            partition=candidate.partition,
            settings=(*candidate.settings, *self.terms.settings),
            added=(*candidate.added, *self.terms.added),
            format=self.terms.format,
            allow_unsupported=self.terms.allow_unsupported,
            job=job,
            command=self._command(candidate, job),
            site_document=self.catalog.document_of(self.site),
            stack_document=self.catalog.document_of(candidate.stack),
        )

    def _command(self, candidate: RunCandidate, job: JobRequest) -> Callable[[], str] | None:
        """What says the command that makes the plan again, where it is not that of the stack for the profile."""
        if self.catalog.document_of(self.site) is None and self.again:
            return lambda: self.again
        return None if self.request.build is None else lambda: self._again(candidate, job)

    def _again(self, candidate: RunCandidate, job: JobRequest) -> str:
        """The command that makes the plan again, in the folder of the kit, which has the stack."""
        terms, partition = self.terms, candidate.partition
        settings, added = (*candidate.settings, *terms.settings), (*candidate.added, *terms.added)
        how = (terms.format, terms.allow_unsupported)
        return reproduce(self.site.name, STACK, partition, settings, *how, job, added=added)


def compiled(plan: Plan) -> list[PlannedBlock]:
    """The blocks of a plan that need a compiler, the request's program and the small test of the ranks left out."""
    return [each for each in plan.blocks if {"gnu", "llvm"} & each.needs.keys() and each.name not in (BLOCK, RANK_TEST)]


def job_request(request: OptimiseRequest, ranks: bool, layout: LayoutOption | None = None) -> JobRequest:
    """What a request asks of the job, in a layout that was chosen or in the site's own.

    ``ranks``: the program runs as several, which may be as many as the limits allow; one process is one whatever they
    say.
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
        before=wishes.before,
        afterwards=wishes.afterwards,
    )
