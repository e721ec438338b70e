"""Request → decision and plan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from packaging.specifiers import SpecifierSet

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, InputError, Problem, did_you_mean
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.optimise.application import Where, checked_build, with_application
from hpcgen.plugins.tuning.optimise.candidate_plans import Planner, PlanTerms, job_request
from hpcgen.plugins.tuning.optimise.candidates import (
    RunCandidate,
    candidates,
    compiler_environment,
    fitting_partitions,
    wants_ranks,
)
from hpcgen.plugins.tuning.optimise.evidence import kind_of, rows_of_workload, software_of
from hpcgen.plugins.tuning.optimise.judge import Judged, best_of, judged, planned
from hpcgen.plugins.tuning.optimise.layouts import layouts
from hpcgen.plugins.tuning.optimise.modelled import Modelled
from hpcgen.plugins.tuning.optimise.records import Alternative, Decision, Estimate, LayoutOption
from hpcgen.plugins.tuning.optimise.runtimes import runtime_notes
from hpcgen.plugins.tuning.requests.records import OptimiseRequest


class Optimised(msgspec.Struct, frozen=True):
    """What was decided, and its plan.

    ``stack``: where no collection has it, since the request brings its own program. ``image``: the request that names
    an image, of which no recipe is made.
    """

    decision: Decision
    plan: Plan
    stack: Stack | None = None
    image: OptimiseRequest | None = None


_OPEN = "leave the clashing choice open in the request"


def optimise(
    catalog: Catalog,
    request: OptimiseRequest,
    site: Site,
    known: Measurements,
    findings: Sequence[Finding] = (),
    name: str = "request",
    where: Where | None = None,
    again: str = "",
    terms: PlanTerms | None = None,
) -> Optimised:
    """Choose stack, versions, way of installing, graph compiler, partition and layout.

    site: the target: the profile that the request names, or one made of its infrastructure.
    known: what the choice rests on.
    findings: what reading the request had to say.
    name: of the request, for the report.
    where: the place of its fields, for messages.
    again: the command that decides the same again.
    terms: what every candidate is planned with.
    ConflictError: no candidate can be planned; every candidate's reason.
    InputError: the request fits nothing that is known, or nothing pins the program that it brings.
    """
    request, own = checked_build(request, where, again)
    if request.partition is not None and request.partition not in site.partitions:
        raise InputError(
            f"{site.name} has no partition {request.partition!r}",
            remedy=did_you_mean(request.partition, list(site.partitions)),
        )
    modelled, rows = Modelled(known, request), rows_of_workload(known, request)
    planner = Planner(catalog, site, request, again, terms or PlanTerms())
    partitions, notes = _partitions(request, site, rows)
    if request.container is not None:
        return _as_named(planner, partitions[0], name, [*findings, *own, *notes])
    every = (_with_application(each, request) for each in candidates(catalog, request, site, partitions))
    found = judged(planned(every, planner.settled), rows, modelled)
    best = best_of(found)
    if best is None or best.plan is None:
        alone = _in_one_process(request, found)
        if alone is not None:
            return optimise(catalog, alone[0], site, known, [*findings, alone[1]], name, where, again, terms)
        raise _refusal(found)
    options = layouts(rows, software_of(best.candidate, best.plan), best.plan, request)
    plan, options, misfits = _laid_out(best, options, planner)
    notes += [*misfits, *_mpi_notes(request, plan)]
    notes += _evidence_notes(found, best, request, known, rows) + unused(request, options)
    if request.kind == "ai_inference":
        runtimes = [each.candidate.framework for each in found if each.plan is not None]
        notes += runtime_notes(best.candidate.framework, runtimes, plan, known)
    decision = Decision(
        request=name,
        goal=request.goal,
        workload=request.workload.name,
        site=site.name,
        partition=plan.partition,
        stack=best.candidate.stack.name,
        alternatives=[_alternative(each, best, options) for each in found],
        versions={block.name: block.version for block in plan.blocks if not block.build_only},
        environment=dict(plan.stack.run.environment),
        layouts=options,
        findings=[*findings, *own, *notes, *plan.findings],
        measure=_measure(modelled, found),
        command=plan.command if again or catalog.document_of(site) is not None else "",
    )
    return Optimised(decision, plan, None if request.build is None else best.candidate.stack)


def _in_one_process(request: OptimiseRequest, found: Sequence[Judged]) -> tuple[OptimiseRequest, Finding] | None:
    """The request for a program of one process, where nothing else asks for several than that it is distributed."""
    alone = msgspec.structs.replace(request, workload=msgspec.structs.replace(request.workload, distributed=False))
    if not request.workload.distributed or wants_ranks(alone):
        return None
    message = f"no stack with several ranks can be planned, so this one runs a single process: {found[0].refused}"
    return alone, Finding(name="distributed", severity="warning", message=message, remedy=_OPEN)


def _refusal(found: Sequence[Judged]) -> ConflictError:
    """Every candidate's reason, each once."""
    told: dict[str, str] = {}
    for each in found:
        told.setdefault(each.refused, _label(each.candidate))
    problems = [Problem(f"{label}: {why}", remedy=_OPEN) for why, label in told.items()]
    return ConflictError([Problem("no candidate for the request can be planned", remedy=_OPEN), *problems])


def _as_named(planner: Planner, partition: str, name: str, findings: list[Finding]) -> Optimised:
    """The decision that the request has made: the image that it names."""
    from hpcgen.plugins.tuning.optimise.named_image import image_plan

    request, site = planner.request, planner.site
    ranks = wants_ranks(request)
    job = job_request(request, ranks)
    environment = compiler_environment(planner.catalog, request)
    plan = image_plan(site, partition, request, job, ranks, environment, planner.again)
    image = Alternative(
        stack=plan.stack.name,
        partition=partition,
        result="chosen",
        software=str(request.container),
        estimate=Estimate(basis="none"),
        why="the request names it",
    )
    decision = Decision(
        request=name,
        goal=request.goal,
        workload=request.workload.name,
        site=site.name,
        partition=partition,
        stack=plan.stack.name,
        alternatives=[image],
        environment=environment,
        findings=[*findings, *plan.findings, *unused(request, [])],
        command=planner.again,
    )
    return Optimised(decision, plan, image=request)


def _mpi_notes(request: OptimiseRequest, plan: Plan) -> list[Finding]:
    """That another MPI, or another release of it, was taken than the request wishes for."""
    wish, block = request.mpi, plan.block("mpi")
    if wish.library is None or block is None:
        return []
    if block.name == wish.library and (not wish.version or SpecifierSet(wish.version).contains(block.version)):
        return []
    why = "the nearest that can be built here and works with the host"
    message = (
        f"the request wishes for {wish.library} {wish.version}".rstrip() + f", and the image has {block.label}: {why}"
    )
    return [
        Finding(name="mpi", severity="warning", message=message, remedy="name an image that has it: `container: …`")
    ]


def _with_application(candidate: RunCandidate, request: OptimiseRequest) -> RunCandidate:
    stack = with_application(candidate.stack, request, wants_ranks(request))
    return msgspec.structs.replace(candidate, stack=stack)


def _partitions(request: OptimiseRequest, site: Site, rows: Sequence[Measurement]) -> tuple[list[str], list[Finding]]:
    """The partitions to choose from: the first that fits, and others of which something is measured."""
    fitting = fitting_partitions(request, site)
    measured = {row.hardware.partition for row in rows if row.hardware.site == site.name}
    taken = [name for index, name in enumerate(fitting) if not index or name in measured]
    left = [name for name in fitting if name not in taken]
    if not left:
        return taken, []
    message = f"not considered, for lack of measurements: partitions {', '.join(left)}"
    return taken, [Finding(name="partition", severity="note", message=message, remedy="name one: `partition: …`")]


def _laid_out(
    best: Judged, options: list[LayoutOption], planner: Planner
) -> tuple[Plan, list[LayoutOption], list[Finding]]:
    """The plan in the chosen layout; in the site's own one where the chosen does not fit, with the reason."""
    assert best.plan is not None
    chosen = next((each for each in options if each.chosen), None)
    if chosen is None:
        return best.plan, options, []
    try:
        return planner.plan(best.candidate, chosen), options, []
    except HpcgenError as error:
        why = error.problems[0].message
        options = [msgspec.structs.replace(each, chosen=False) if each is chosen else each for each in options]
        said = f"the fastest layout that was measured does not fit: {why}"
        return best.plan, options, [Finding(name="layout", severity="warning", message=said)]


def _evidence_notes(
    found: Sequence[Judged],
    best: Judged,
    request: OptimiseRequest,
    known: Measurements,
    rows: Sequence[Measurement],
) -> list[Finding]:
    """What the user should know of the evidence: that there is none, or that it tells nothing apart."""
    if not request.workload.name:
        message = f"no `workload` is named, so nothing measured counts; there are rows of {', '.join(known.workloads)}"
        remedy = "name the one that is most like yours"
        return [Finding(name="evidence", severity="note", message=message, remedy=remedy)]
    if not rows:
        near = ", ".join(known.workloads)
        kind = kind_of(request)
        message = f"no row is of the workload {request.workload.name!r}, {kind}; there are rows of {near}"
        return [Finding(name="evidence", severity="note", message=message)]
    others = [each for each in found if each.plan is not None and each is not best]
    if others and not any(each.decides for each in others):
        message = "no measurement distinguishes the alternatives: this is the stack's documented default"
        return [Finding(name="evidence", severity="note", message=message)]
    return []


def _alternative(each: Judged, best: Judged, options: Sequence[LayoutOption]) -> Alternative:
    candidate, plan = each.candidate, each.plan
    block = plan.block(candidate.framework) if plan is not None else None
    both = each.ratio is not None and best.ratio is not None and each is not best
    return Alternative(
        stack=candidate.stack.name,
        partition=candidate.partition,
        result="chosen" if each is best else "refused" if plan is None else "planned",
        software=block.label if block is not None else candidate.framework,
        compiler=candidate.suited.compiler,
        install=software_of(candidate, plan).install if plan is not None else candidate.install,
        settings=list(candidate.settings),
        # The figure of what is taken is that of the layout that is taken.
        estimate=next((option.estimate for option in options if option.chosen and each is best), each.estimate),
        slowdown=round(best.ratio / each.ratio, 4) if both and each.ratio and best.ratio else None,
        why=each.refused or _basis_words(each, best),
    )


def _label(candidate: RunCandidate) -> str:
    compiler = f" with {candidate.suited.compiler}" if candidate.suited.compiler else ""
    return f"{candidate.stack.name}{compiler} on {candidate.partition}"


def _measure(modelled: Modelled, found: Sequence[Judged]) -> list[str]:
    """What to measure so that the choice rests on more: the candidates of which nothing is known."""
    from hpcgen.plugins.tuning.bench.workloads import workloads

    kind = "-inference" if modelled.workload.kind == "inference" else ""
    workload = modelled.workload.name + kind
    if workload not in workloads():
        return []
    unknown = [each for each in found if each.plan is not None and each.estimate.basis != "measured"]
    lines = []
    for each in unknown:
        compiler = f" --vary compiler={each.candidate.suited.compiler}" if each.candidate.suited.compiler else ""
        lines.append(f"hpcgen bench IMAGE-OF-{each.candidate.stack.name} --workload {workload}{compiler}")
    return list(dict.fromkeys(lines))


# What a request says and nothing was decided by: never passed over in silence.

_DATA = ("location", "format", "size_gb", "prefetch", "cache")
"""Of the data, what the program itself has to be told."""


def unused(request: OptimiseRequest, layouts: list[LayoutOption]) -> list[Finding]:
    """A finding for each of them. ``layouts``: those that were measured."""
    return [Finding(name="request", severity="note", message=text) for text in _unused(request, layouts)]


def _unused(request: OptimiseRequest, layouts: list[LayoutOption]) -> Iterator[str]:
    if request.tune:
        yield "tune: settings are tried out with the built image, by `hpcgen tune IMAGE --workload NAME`"
    efficiency = request.limits.efficiency
    if efficiency is not None and not any(each.estimate.value is not None for each in layouts):
        yield f"limits.efficiency {efficiency:g} bounds nothing: no rows over several nodes are of this workload here"
    data = request.workload.data
    said = [f"workload.data.{name}" for name in _DATA if getattr(data, name) not in (None, "")]
    said += ["workload.epochs"] if request.workload.epochs is not None else []
    if said:
        yield f"{', '.join(said)}: pass these to the program itself, in `run.arguments`"


def _basis_words(each: Judged, best: Judged) -> str:
    """Why a candidate that could be planned is taken, or not."""
    if each is best:
        if each.ratio is None or each.ratio == 1.0:
            return "the default; no faster choice is known"
        return f"{each.ratio:.3g} times as fast as the default"
    if each.ratio is None:
        known = each.estimate.value is not None
        return each.estimate.why or ("no row of the default is like its own" if known else "it has no measurements")
    if not each.decides:
        return f"perhaps {'faster' if each.ratio > 1 else 'slower'}: {each.estimate.why}"
    return "slower" if best.ratio is not None and each.ratio < best.ratio else "no faster"
