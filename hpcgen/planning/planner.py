"""site × stack → plan: what was asked is gathered, resolved, laid out as a job and looked over."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.blocks.base import Facts
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.requirements import Origin, Requirement, version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.config.yamlfile import Document
from hpcgen.engines import engine_format
from hpcgen.errors import InputError, PolicyError, Position, Problem, Problems, UnknownNameError, nearest
from hpcgen.job.layout import job_findings, lay_out
from hpcgen.model.fields import EngineName, FormatName
from hpcgen.model.job import JobRequest
from hpcgen.model.plan import Finding, Plan, PlannedBlock, PlannedMpi
from hpcgen.model.site import Site
from hpcgen.model.stack import Stack, StackBlock
from hpcgen.planning.findings import unverified_facts, unverified_releases
from hpcgen.recipe.formats import engines_reading, format_for
from hpcgen.resolver.choices import Choices
from hpcgen.resolver.question import Question
from hpcgen.resolver.resolve import resolve
from hpcgen.resolver.settings import parse_settings, unknown_block
from hpcgen.support.file_formats import KIT
from hpcgen.support.quoting import sh


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
    job: what is asked of the job; the site's layouts decide the rest.
    site_document, stack_document: where positions in messages come from.
    command: tells the command line that reproduces the plan; made from the arguments if None.
    kept: versions of blocks that are tried before all others, by the block's name.
    unchecked: parts of the contract that are not asked, such as ``network`` for a lock.

    Raises
    ------
    UnknownNameError, InputError, ConflictError, PolicyError: see hpcgen.errors.
    """
    request = job or JobRequest()
    chosen_partition = _partition(site, partition)
    engine = _engine(site, format)
    said = parse_settings(settings, catalog)
    stack = _with_blocks(catalog, stack, added)
    question = _question(catalog, site, chosen_partition, stack, said, site_document, stack_document, kept or {})
    blocks = resolve(question)
    _check_settings_used(said, blocks)
    laid_out, misfits = lay_out(site, chosen_partition, stack, request)
    again = reproduce(site.name, stack.name, partition, settings, format, allow_unsupported, request, added=added)
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
        command=command() if command is not None else again,
    )
    broken, promised = _held_to_contract(plan, catalog, unchecked, site_document)
    Problems([*misfits, *([] if allow_unsupported else broken)]).raise_as(PolicyError)
    findings = [*promised.findings, *_findings(plan, catalog, request)]
    findings.sort(key=lambda finding: finding.severity == "note")
    return msgspec.structs.replace(promised, findings=findings)


def _held_to_contract(
    plan: Plan, catalog: Catalog, unchecked: Collection[str], document: Document | None
) -> tuple[list[Problem], Plan]:
    """What breaks the contract between image and host, and the plan with what the contract finds and its blocks say."""
    from hpcgen.contract.verdict import case_of, checks_of, findings_of, planned_licences, problems_of

    case = case_of(plan, catalog)
    plan = msgspec.structs.replace(plan, blocks=[_with_mpi(each, case.capabilities[each.name]) for each in plan.blocks])
    case = msgspec.structs.replace(case, plan=plan)
    checks = checks_of(case, unchecked)
    findings, licences = findings_of(checks), planned_licences(case)
    broken = problems_of(checks, partial(_place, document))
    return broken, msgspec.structs.replace(plan, findings=findings, licences=licences)


def _with_mpi(block: PlannedBlock, capabilities: Capabilities) -> PlannedBlock:
    """A block that provides MPI, with what launching asks of it."""
    if not capabilities.mpi_abi:
        return block
    mpi = PlannedMpi(abi=capabilities.mpi_abi, flavour=capabilities.mpi_flavour)
    return msgspec.structs.replace(block, mpi=mpi)


def _findings(plan: Plan, catalog: Catalog, request: JobRequest) -> list[Finding]:
    """What else a person should know: of the job, and of what nobody has verified."""
    return [
        *job_findings(plan.site, plan.job, request),
        *unverified_facts(plan.site, plan.partition),
        *unverified_releases(catalog, plan.blocks),
    ]


def _question(
    catalog: Catalog,
    site: Site,
    partition: str,
    stack: Stack,
    said: Mapping[str, Mapping[str, str]],
    site_document: Document | None,
    stack_document: Document | None,
    kept: Mapping[str, str],
) -> Question:
    """What the resolver is asked."""
    facts = Facts.of(site, partition)
    roots = _roots(catalog, stack, stack_document, said)
    return Question(
        catalog=catalog,
        facts=facts,
        choices=Choices(catalog, facts, stack, stack_document, said),
        roots=roots,
        place=partial(_place, site_document),
        partition=partition,
        preferred_base=site.image.distribution,
        kept=kept,
    )


def in_format(plan: Plan, format: FormatName, allow_unsupported: bool = False) -> Plan:
    """The same plan for another format; PolicyError where the site does not allow any engine that reads it."""
    from hpcgen.contract.site import policy
    from hpcgen.contract.verdict import case_of_plan, findings_of, problems_of

    other = msgspec.structs.replace(plan, format=format, engine=_engine(plan.site, format))
    checks = policy(case_of_plan(other))
    Problems([] if allow_unsupported else problems_of(checks, partial(_place, None))).raise_as(PolicyError)
    return msgspec.structs.replace(other, findings=[*findings_of(checks), *plan.findings])


def _with_blocks(catalog: Catalog, stack: Stack, added: Sequence[str]) -> Stack:
    """The stack with further blocks, each as if it stood there by its name alone."""
    Problems(wrong for name in added for wrong in unknown_block(name, catalog, "--add")).raise_as(UnknownNameError)
    more = {name: StackBlock() for name in added if name not in stack.blocks}
    return msgspec.structs.replace(stack, blocks={**stack.blocks, **more}) if more else stack


def _roots(
    catalog: Catalog, stack: Stack, document: Document | None, said: Mapping[str, Mapping[str, str]]
) -> list[Requirement]:
    """Requirements of the stack, then of ``--set``, each with its place."""
    roots = []

    def add(name: str, versions: str, provider: str | None, origin: Origin) -> None:
        # What the stack names is there, and as a whole; --set narrows what is there anyway.
        demanded = origin.kind != "set"
        enough: Mapping[str, str] | None = {} if demanded else None
        version_range(versions or ">=0")
        if versions[:1].isdigit():
            versions = f"=={versions}"
        if name in catalog.virtuals:
            providers = catalog.virtuals[name] if provider is None else [provider]
            allowed = dict.fromkeys(providers, versions) if provider or versions else None
            roots.append(Requirement(name, allowed, origin, enough, demanded))
        else:
            roots.append(Requirement(catalog.identifier(name), {name: versions}, origin, enough, demanded))

    for name, block in stack.blocks.items():
        place = _stack_place(document, name)
        add(name, block.version, block.provider, Origin(f"stack {stack.name}", place, "stack", path=f"blocks.{name}"))
    if stack.run.mpi and "mpi" in stack.blocks:
        add("rank_test", "", None, Origin("the self-test of MPI", lambda: None, "stack"))
    for name, values in said.items():
        versions = values.get("version", "")
        provider = values.get("provider") if name in catalog.virtuals else None
        if versions or provider:
            _check_range(versions, f"--set {name}.version")
            origin = Origin(f"--set {name}", lambda: None, "set")
            add(name, versions, provider, origin)
            for virtual, providers in catalog.virtuals.items():
                # Where it stands for another virtual as well, its version is the same.
                if name in providers and virtual != catalog.identifier(name):
                    ranges = {**dict.fromkeys(providers, ""), name: versions}
                    roots.append(Requirement(virtual, ranges, origin, demanded=False))
    return roots


def _check_range(versions: str, where: str) -> None:
    if versions:
        try:
            version_range(versions)
        except InputError as error:
            raise InputError([problem.at(where) for problem in error.problems]) from None


def _stack_place(document: Document | None, name: str) -> Any:
    return lambda: document.position(["blocks", name], key=True) if document is not None else None


def _place(document: Document | None, path: str) -> Position | None:
    return document.position(path.split(".")) if document is not None else None


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
    for name in [name for name in said if name not in names]:
        message = f"this plan has no block {name!r}, so it cannot be set"
        remedy = nearest(name, sorted(names)) or f"with --add {name} the image has it"
        problems.add(message, "--set", f"one of {', '.join(sorted(names))}", remedy)
    problems.raise_as(UnknownNameError)


def reproduce(
    site: str,
    stack: str,
    partition: str | None,
    settings: Sequence[str],
    format: str | None,
    allow_unsupported: bool,
    job: JobRequest,
    before: Sequence[str] = (),
    verb: str = "render",
    mirrors: Sequence[str] = (),
    image_directory: str | None = None,
    added: Sequence[str] = (),
) -> str:
    """The command that gives the same result; ``before`` are words that stand before the subcommand ``verb``."""
    words = ["hpcgen", *before, verb, "--site", site, "--stack", stack]
    for option, value in (("--partition", partition), ("--format", format)):
        if value is not None:
            words += [option, value]
    for setting in settings:
        words += ["--set", setting]
    for name in added:
        words += ["--add", name]
    for mirror in mirrors:
        words += ["--mirror", mirror]
    if allow_unsupported:
        words.append("--allow-unsupported")
    for option, asked in (
        ("--nodes", job.nodes),
        ("--ranks-per-node", job.ranks_per_node),
        ("--threads", job.threads_per_rank),
        ("--time", job.walltime),
        ("--queue", job.queue),
        ("--account", job.account),
        ("--memory-per-rank", job.memory_per_rank_gb),
        ("--image-directory", image_directory),
    ):
        if asked is not None:
            words += [option, str(asked)]
    if job.command:
        words += ["--", *job.command]
    return " ".join(sh(word) for word in words)
