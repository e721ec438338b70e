"""Site × stack → plan: the request is collected, resolved, laid out as a job and checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial

import msgspec

from hpcgen._version import __version__
from hpcgen.backends.engines import engine_format
from hpcgen.blocks.base import Facts
from hpcgen.blocks.capabilities import Capabilities
from hpcgen.blocks.requirements import Requirement
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.project import CONDA, SPACK
from hpcgen.catalog.secret_texts import check_plan
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import HpcgenError, InputError, PolicyError, Problem, Problems
from hpcgen.core.model.fields import EngineName, FormatName
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import BaseImage, Plan, PlannedBlock, PlannedConda, PlannedMpi
from hpcgen.core.model.project import BLOCK, Project
from hpcgen.core.model.site import Site
from hpcgen.core.model.spack import PlannedSpack
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.file_formats import KIT
from hpcgen.launch.job.layout import lay_out
from hpcgen.planning.agreement import Settings, agreeing
from hpcgen.planning.code import copied_files, with_code
from hpcgen.planning.findings import findings_of_plan
from hpcgen.planning.frameworks import pinned_demands
from hpcgen.planning.joint_releases import first_joint, with_remedies
from hpcgen.planning.memory import default_demands
from hpcgen.planning.own_wheels import named_pins
from hpcgen.planning.project import asked_files, project_of, resolved_with
from hpcgen.planning.question import (
    MisfitError,
    PlanRequest,
    UnusedSettingError,
    added_packages,
    place_in,
    question_of,
    with_blocks,
)
from hpcgen.planning.reproduce import reproduce
from hpcgen.planning.resolver.question import Apart, parse_settings
from hpcgen.planning.resolver.resolve import NoPlanError, resolve
from hpcgen.recipe.formats import engines_reading, format_for


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
    base: BaseImage | None = None,
) -> Plan:
    """Resolve a stack for a site.

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
    base: what the image says of itself that the stack names in `from`.
    UnknownNameError, InputError, ConflictError, PolicyError: see hpcgen.core.errors.
    """
    wanted = job or JobRequest()
    if any(node.gpu is not None and node.gpu.driver is None for node in site.partitions.values()):
        from hpcgen.planning.drivers import with_drivers

        site, site_document = with_drivers(catalog, site), site_document or catalog.document_of(site)
    terms = (format, allow_unsupported, latest_base)
    documents = (site_document, stack_document)
    planner = _Planner(catalog, site, wanted, *terms, *documents, command, kept or {}, unchecked, base)
    asked = PlanRequest(stack, partition, tuple(settings), tuple(added))
    try:
        if base is not None or stack.from_ is not None:
            from hpcgen.planning.from_image import planned_on

            return planned_on(base, asked, planner.plan)
        return planner.plan(asked)
    except NoPlanError as error:
        from hpcgen.planning.remedies import explained

        told = explained(error.question, asked, site, planner.plan)
        raise (told if error.first is None else with_remedies(error.first, told.remedies)) from None
    except UnusedSettingError as error:
        from hpcgen.planning.nearby import with_added

        raise with_added(error, asked, site, planner.plan) from None
    except MisfitError as error:
        from hpcgen.planning.nearby import on_gpus, with_other_job

        used = on_gpus(error, asked, catalog, planner.plan)
        raise used or with_other_job(error, asked, site, wanted, planner.plan) from None


class _Planner(msgspec.Struct, frozen=True):
    """Makes plans for one site. Its state does not change while remedies try other requests."""

    catalog: Catalog
    site: Site
    job: JobRequest
    format: FormatName | None
    allow_unsupported: bool
    latest_base: bool
    site_document: Document | None
    stack_document: Document | None
    command: Callable[[], str] | None
    kept: Mapping[str, str]
    unchecked: Collection[str]
    base: BaseImage | None = None

    def plan(self, asked: PlanRequest, job: JobRequest | None = None) -> Plan:
        """The plan of what is asked, also with another job; NoPlanError, without a word on what clashes, if none is."""
        request = job or self.job
        return first_joint(lambda apart: self._planned(asked, request, apart), self.catalog)

    def _planned(self, asked: PlanRequest, request: JobRequest, apart: Sequence[Apart]) -> Plan:
        """The plan in which some releases are apart, with what the network of the GPUs takes."""
        node = self.site.partitions.get(asked.partition or self.site.default_partition)
        if node is None or node.gpu is None:
            return self._whole(asked, request, apart)
        from hpcgen.planning.gpu_network import only_adds, wanted

        plain = asked
        try:
            found = self._whole(asked, request, apart)
        except UnusedSettingError as error:
            # It may be of what comes with that network alone.
            used = tuple(text for text in asked.settings if text.partition(".")[0] not in error.names)
            plain = msgspec.structs.replace(asked, settings=used)
            found = self._whole(plain, request, apart)
        demand = wanted(found, self.catalog, self.kept)
        if demand is not None:
            with suppress(HpcgenError):
                faster = self._whole(asked, request, apart, [demand])
                if only_adds(found, faster, self.catalog):
                    return faster
        return found if plain is asked else self._whole(asked, request, apart)

    def _whole(
        self, asked: PlanRequest, request: JobRequest, apart: Sequence[Apart], late: Sequence[Requirement] = ()
    ) -> Plan:
        """The plan of what is asked and of what is there by default."""
        draft, misfits = self._draft(asked, request, late, apart)
        broken, promised, idle = _held_to_contract(draft, self.catalog, self.unchecked, self.site_document)
        wrong = Problems([*misfits, *([] if self.allow_unsupported else broken)])
        if wrong:
            raise MisfitError(wrong, idle)
        findings = [*promised.findings, *findings_of_plan(draft, self.catalog, request, self.site_document)]
        findings.sort(key=lambda finding: finding.severity in ("note", "detail"))
        # By what other names somebody finds the site says nothing of what is built for it.
        nameless = msgspec.structs.replace(self.site, aliases=[])
        stack = promised.stack.as_planned()
        plan = msgspec.structs.replace(promised, findings=findings, site=nameless, stack=stack)
        check_plan(plan)
        return plan

    def _draft(
        self, asked: PlanRequest, request: JobRequest, late: Sequence[Requirement], apart: Sequence[Apart]
    ) -> tuple[Plan, list[Problem]]:
        """Blocks and job, before the contract is asked, and why the job does not fit."""
        partition = _partition(self.site, asked.partition)
        engine = _engine(self.site, self.format)
        said = parse_settings(asked.settings, self.catalog)
        own = with_code(asked.stack, self.stack_document)
        more = added_packages(self.catalog, own, asked.added)
        stack = with_blocks(self.catalog, more.stack, more.blocks)
        copied = copied_files(self.catalog, self.site, asked.stack, self.stack_document)
        added = stack.blocks.keys() - own.blocks.keys()
        blocks, project = self._resolved(asked.stack, stack, added, partition, said, more.demands, late, apart)
        _check_settings_used(said, blocks)
        job, misfits = lay_out(self.site, partition, stack, request)
        draft = Plan(
            number=KIT.newest,
            hpcgen=__version__,
            site=self.site,
            stack=stack,
            partition=partition,
            format=self.format or engine_format(engine),
            engine=engine,
            blocks=blocks,
            job=job,
            settings={f"{block}.{option}": value for block, values in said.items() for option, value in values.items()},
            command=self.command() if self.command else self._again(asked, request),
            copied=copied,
            project=project,
            conda=self._conda(partition, blocks, asked.stack),
            spack=self._spack(partition, blocks, asked.stack),
            latest_base=self.latest_base,
            base=self.base,
        )
        if self.base is not None:
            from hpcgen.planning.from_image import check_starts_from

            check_starts_from(self.base, draft.format)
        return draft, misfits

    def _conda(self, partition: str, blocks: Sequence[PlannedBlock], stack: Stack) -> PlannedConda | None:
        if not any(each.name == CONDA for each in blocks):
            return None
        from hpcgen.planning.conda_request import planned_conda

        return planned_conda(self.catalog, self.site, partition, blocks, self._document_of(stack))

    def _spack(self, partition: str, blocks: Sequence[PlannedBlock], stack: Stack) -> PlannedSpack | None:
        if not any(each.name == SPACK for each in blocks):
            return None
        from hpcgen.planning.spack_request import planned_spack

        return planned_spack(self.catalog, self.site, partition, blocks, self._document_of(stack))

    def _document_of(self, stack: Stack) -> Document | None:
        """The file that a stack is from."""
        return self.stack_document or self.catalog.document_of(stack)

    def _resolved(
        self,
        asked: Stack,
        stack: Stack,
        added: Collection[str],
        partition: str,
        said: Mapping[str, Mapping[str, str]],
        demands: Sequence[Requirement],
        late: Sequence[Requirement],
        apart: Sequence[Apart],
    ) -> tuple[list[PlannedBlock], Project | None]:
        """The blocks, and the packages of the user's project files."""
        documents, document = (self.site_document, self.stack_document), self._document_of(asked)
        stack, said, named_file = named_pins(self.catalog, stack, said, document)
        pinned = stack.blocks[BLOCK].options.get("packages") if BLOCK in stack.blocks else None
        required = list(pinned_demands(self.catalog, pinned if isinstance(pinned, list) else (), "`packages`"))

        def chosen(
            of_files: Sequence[Requirement], first: Mapping[str, str], without: Collection[str] = ()
        ) -> list[PlannedBlock]:
            of_packages = [each for each in required if not {*(each.allowed or ())} & {*without}]
            kept, of_all = {**first, **self.kept}, [*demands, *of_packages, *of_files]
            left = {name: block for name, block in stack.blocks.items() if name not in without}
            less = msgspec.structs.replace(stack, blocks=left)

            here = (self.catalog, self.site, partition, less)
            memory = default_demands(*here, said, of_all, files.files if files else (), self.kept)

            def with_settings(now: Settings) -> list[PlannedBlock]:
                asked = (self.catalog, self._seen(partition, less, now), partition, less, now, added)
                return resolve(question_of(*asked, *documents, kept, of_all, [*late, *memory], apart))

            facts = Facts.of(self.site, partition)
            found = agreeing(with_settings, self.catalog, facts, less, said)
            if facts.partition.gpu is None:
                return found
            from hpcgen.planning.gpu_memory import with_gpu_memory

            return with_gpu_memory(with_settings, self.catalog, facts, less, said, found)

        files = asked_files(self.catalog, stack, document, said, named_file)
        if files is None:
            return chosen((), {}), None
        architecture = self.site.system.architecture
        named = [block for block, values in said.items() if "version" in values]
        blocks = resolved_with(files, self.catalog, architecture, named, chosen)
        return blocks, project_of(files, self.catalog, blocks, architecture)

    def _seen(self, partition: str, stack: Stack, said: Settings) -> Site:
        """The site as blocks of the image see it, one of which may bring a newer driver's libraries."""
        if not any(self.catalog.has_block(name) and self.catalog.block(name).brings_driver for name in stack.blocks):
            return self.site
        from hpcgen.planning.forward import as_programs_see

        return as_programs_see(self.catalog, self.site, partition, stack, said)

    def _again(self, asked: PlanRequest, request: JobRequest) -> str:
        """The command line that makes the same plan."""
        return reproduce(
            self.site.name,
            asked.stack.name,
            asked.partition,
            asked.settings,
            self.format,
            self.allow_unsupported,
            request,
            added=asked.added,
            latest_base=self.latest_base,
        )


def _held_to_contract(
    plan: Plan, catalog: Catalog, unchecked: Collection[str], document: Document | None
) -> tuple[list[Problem], Plan, list[str]]:
    """Problems of the contract between image and host, the plan with findings, and blocks that leave its GPUs alone."""
    from hpcgen.launch.start import host_mpi
    from hpcgen.planning.contract.verdict import case_of, checks_of, findings_of, planned_licences, problems_of

    case = case_of(plan, catalog)
    plan = msgspec.structs.replace(
        plan, blocks=[_as_launched(each, case.capabilities[each.name]) for each in plan.blocks]
    )
    case = msgspec.structs.replace(case, plan=plan, host=host_mpi(plan, case.engine))
    checks = checks_of(case, unchecked)
    findings, licences = [*findings_of(checks), *case.doubts], planned_licences(case)
    broken = problems_of(checks, partial(place_in, document))
    unused = any(each.name == "GPU use" and each.outcome == "broken" for each in checks)
    idle = [name for name, has in case.capabilities.items() if unused and has.gpu_unused]
    return broken, msgspec.structs.replace(plan, findings=findings, licences=licences), idle


def _as_launched(block: PlannedBlock, capabilities: Capabilities) -> PlannedBlock:
    """A block with the facts for launching: of an MPI, of collectives, and of threads."""
    abi, flavour, settings = capabilities.mpi_abi, capabilities.mpi_flavour, list(capabilities.host_settings)
    mpi = PlannedMpi(abi=abi, flavour=flavour, host_settings=settings) if abi else None
    return msgspec.structs.replace(
        block,
        mpi=mpi,
        gpu_collectives=capabilities.gpu_collectives,
        gpu_networks=list(capabilities.gpu_networks),
        cpu_collectives=capabilities.cpu_collectives,
        thread_variables=list(capabilities.thread_variables),
        caches=list(capabilities.caches),
        kmp=capabilities.kmp,
        gpu_runtime=capabilities.gpu_runtime,
    )


def in_format(plan: Plan, format: FormatName, allow_unsupported: bool = False) -> Plan:
    """The same plan for another format; PolicyError where the site does not allow any engine that reads it."""
    from hpcgen.planning.contract.site import policy
    from hpcgen.planning.contract.verdict import case_of_plan, findings_of, problems_of

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
