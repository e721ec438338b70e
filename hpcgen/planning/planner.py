"""site × stack → plan: what was asked is gathered, resolved, laid out as a job and looked over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

import msgspec

from hpcgen._version import __version__
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.catalog.catalog import Catalog
from hpcgen.config.in_memory import InMemory
from hpcgen.config.yamlfile import Document
from hpcgen.engines import engine_format
from hpcgen.errors import InputError, PolicyError, Problem, Problems
from hpcgen.job.layout import job_findings, lay_out
from hpcgen.model.fields import EngineName, FormatName
from hpcgen.model.job import JobRequest
from hpcgen.model.plan import Finding, Plan, PlannedBlock, PlannedMpi
from hpcgen.model.site import Site
from hpcgen.model.stack import Stack
from hpcgen.planning.asked import Asked, MisfitError, UnusedSettingError
from hpcgen.planning.findings import release_concerns, site_findings, unverified_releases
from hpcgen.planning.question import place_in, question_of, with_blocks
from hpcgen.planning.reproduce import reproduce
from hpcgen.recipe.formats import engines_reading, format_for
from hpcgen.resolver.resolve import NoPlanError, resolve
from hpcgen.resolver.settings import parse_settings
from hpcgen.support.file_formats import KIT


def make_plan(
    catalog: Catalog,
    site: Site,
    stack: Stack,
    *,
    partition: str | None = None,
    settings: Sequence[str] = (),
    added: Sequence[str] = (),
    format: FormatName | None = None,
    allow_unsupported: bool = False,
    latest_base: bool = False,
    job: JobRequest | None = None,
    site_document: Document | None = None,
    stack_document: Document | None = None,
    command: Callable[[], str] | None = None,
    kept: Mapping[str, str] | None = None,
    unchecked: Collection[str] = (),
) -> Plan:
    """Resolve a stack for a site.

    Parameters
    ----------
    partition: kind of node; the profile's default if None.
    settings: ``BLOCK.OPTION=VALUE`` texts; also ``BLOCK.version=RANGE`` and ``VIRTUAL.provider=BLOCK``.
    added: names of blocks or virtuals that the stack does not have, and the image is to.
    format: another format than that of the site's preferred engine.
    allow_unsupported: what breaks the contract between image and host, the site's policy first, becomes a finding
        instead of an error.
    latest_base: start from what the tags of base images stand for when the image is built, not from dated ones.
    job: what is asked of the job; the site's layouts decide the rest.
    site_document, stack_document: where positions in messages come from.
    command: tells the command line that reproduces the plan; made from the arguments if None.
    kept: versions of blocks that are tried before all others, by the block's name.
    unchecked: parts of the contract that are not asked, such as ``network`` for a lock.

    Raises
    ------
    UnknownNameError, InputError, ConflictError, PolicyError: see hpcgen.errors.
    """

    wanted = job or JobRequest()

    def plan(asked: Asked, request: JobRequest = wanted) -> Plan:
        return _plan(
            catalog,
            site,
            asked,
            format=format,
            allow_unsupported=allow_unsupported,
            latest_base=latest_base,
            request=request,
            site_document=site_document,
            stack_document=stack_document,
            command=command,
            kept=kept or {},
            unchecked=unchecked,
        )

    asked = Asked(stack, partition, tuple(settings), tuple(added))
    try:
        return plan(asked)
    except NoPlanError as error:
        from hpcgen.planning.remedies import explained

        raise explained(error.question, asked, site, plan) from None
    except UnusedSettingError as error:
        from hpcgen.planning.retried import with_added

        raise with_added(error, asked, site, plan) from None
    except MisfitError as error:
        from hpcgen.planning.retried import with_other_job

        raise with_other_job(error, asked, site, wanted, plan) from None


def _plan(
    catalog: Catalog,
    site: Site,
    asked: Asked,
    *,
    format: FormatName | None,
    allow_unsupported: bool,
    latest_base: bool,
    request: JobRequest,
    site_document: Document | None,
    stack_document: Document | None,
    command: Callable[[], str] | None,
    kept: Mapping[str, str],
    unchecked: Collection[str],
) -> Plan:
    """As :func:`make_plan`; NoPlanError, without a word on what clashes, where no plan exists."""
    chosen_partition = _partition(site, asked.partition)
    engine = _engine(site, format)
    said = parse_settings(asked.settings, catalog)
    stack = with_blocks(catalog, asked.stack, asked.added)
    added = stack.blocks.keys() - asked.stack.blocks.keys()
    question = question_of(catalog, site, chosen_partition, stack, said, added, site_document, stack_document, kept)
    blocks = resolve(question)
    _check_settings_used(said, blocks)
    laid_out, misfits = lay_out(site, chosen_partition, stack, request)
    again = partial(
        reproduce,
        site.name,
        stack.name,
        asked.partition,
        asked.settings,
        format,
        allow_unsupported,
        request,
        added=asked.added,
        latest_base=latest_base,
    )
    plan = Plan(
        number=KIT.newest,
        hpcgen=__version__,
        site=site,
        stack=stack,
        partition=chosen_partition,
        format=format or engine_format(engine),
        engine=engine,
        blocks=blocks,
        job=laid_out,
        settings={f"{block}.{option}": value for block, values in said.items() for option, value in values.items()},
        command=(command or again)(),
        latest_base=latest_base,
    )
    broken, promised = _held_to_contract(plan, catalog, unchecked, site_document)
    Problems([*misfits, *([] if allow_unsupported else broken)]).raise_as(MisfitError)
    findings = [*promised.findings, *_findings(plan, catalog, request, site_document)]
    findings.sort(key=lambda finding: finding.severity == "note")
    # By what other names somebody finds the site says nothing of what is built for it.
    return msgspec.structs.replace(promised, findings=findings, site=msgspec.structs.replace(site, aliases=[]))


def _held_to_contract(
    plan: Plan, catalog: Catalog, unchecked: Collection[str], document: Document | None
) -> tuple[list[Problem], Plan]:
    """What breaks the contract between image and host, and the plan with what the contract finds and its blocks say."""
    from hpcgen.contract.verdict import case_of, checks_of, findings_of, planned_licences, problems_of
    from hpcgen.launch.start import host_mpi

    case = case_of(plan, catalog)
    plan = msgspec.structs.replace(
        plan, blocks=[_as_launched(each, case.capabilities[each.name]) for each in plan.blocks]
    )
    case = msgspec.structs.replace(case, plan=plan, host=host_mpi(plan, case.engine))
    checks = checks_of(case, unchecked)
    findings, licences = [*findings_of(checks), *case.doubts], planned_licences(case)
    broken = problems_of(checks, partial(place_in, document))
    return broken, msgspec.structs.replace(plan, findings=findings, licences=licences)


def _as_launched(block: PlannedBlock, capabilities: Capabilities) -> PlannedBlock:
    """A block with what launching asks of it: of an MPI, and of a library of collectives between GPUs."""
    mpi = PlannedMpi(abi=capabilities.mpi_abi, flavour=capabilities.mpi_flavour) if capabilities.mpi_abi else None
    return msgspec.structs.replace(block, mpi=mpi, gpu_collectives=capabilities.gpu_collectives)


def _findings(plan: Plan, catalog: Catalog, request: JobRequest, document: Document | None) -> list[Finding]:
    """What else a person should know: of the job, and of how well what it rests on is known."""
    site = plan.site
    document = document or catalog.document_of(site) or InMemory(site, f"site {site.name}")
    return [
        *job_findings(site, plan.job, request),
        *site_findings(site, plan.partition, document),
        *release_concerns(catalog, plan.blocks),
        *unverified_releases(catalog, plan),
    ]


def in_format(plan: Plan, format: FormatName, allow_unsupported: bool = False) -> Plan:
    """The same plan for another format; PolicyError where the site does not allow any engine that reads it."""
    from hpcgen.contract.site import policy
    from hpcgen.contract.verdict import case_of_plan, findings_of, problems_of

    other = msgspec.structs.replace(plan, format=format, engine=_engine(plan.site, format))
    checks = policy(case_of_plan(other))
    Problems([] if allow_unsupported else problems_of(checks, partial(place_in, None))).raise_as(PolicyError)
    return msgspec.structs.replace(other, findings=[*findings_of(checks), *plan.findings])


def _partition(site: Site, asked: str | None) -> str:
    if site.abstract:
        raise InputError(f"{site.name} is an abstract profile", remedy="name a site that extends it: hpcgen list sites")
    return site.known_partition(asked or site.default_partition)


def _engine(site: Site, format: FormatName | None) -> EngineName:
    """The engine that runs the image: the site's preferred one, or one that reads another format, allowed if any is.

    Whether the site allows it is the contract's to say.
    """
    preferred = site.containers.preferred
    if format is None:
        return preferred
    format_for(format, "--format")
    if preferred in engines_reading(format):
        return preferred
    candidates = engines_reading(format)
    known = [e for e in candidates if e in site.containers.engines]
    allowed = [e for e in known if site.containers.engines[e].allowed]
    return (allowed or known or candidates)[0]


def _check_settings_used(said: Mapping[str, Mapping[str, str]], blocks: list[PlannedBlock]) -> None:
    names = {b.name for b in blocks} | {v for b in blocks for v in b.provides}
    problems = Problems()
    unused = [name for name in said if name not in names]
    for name in unused:
        message = f"this plan has no block {name!r}, so it cannot be set"
        problems.add(message, "--set", f"one of {', '.join(sorted(names))}")
    if unused:
        raise UnusedSettingError(problems, unused)
