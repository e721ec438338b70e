"""site × stack → plan: what was asked is gathered, resolved, laid out as a job and looked over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hpcgen import __version__
from hpcgen.block import Facts
from hpcgen.catalog import Catalog
from hpcgen.errors import (
    HpcgenError,
    InputError,
    PolicyError,
    Position,
    Problem,
    UnknownNameError,
    did_you_mean,
)
from hpcgen.formats import ENGINE_FORMATS
from hpcgen.jobs import job_findings, resolve_job
from hpcgen.model.fields import EngineName, FormatName
from hpcgen.model.job import JobRequest
from hpcgen.model.plan import Finding, Plan, PlannedBlock
from hpcgen.model.site import Site
from hpcgen.model.stack import Stack, StackBlock
from hpcgen.options import RESERVED, BlockChoice, block_options
from hpcgen.requirements import Origin, Requirement, version_range
from hpcgen.resolve import Question, resolve
from hpcgen.settings import parse_settings
from hpcgen.text import sh
from hpcgen.yamlfile import Document


def make_plan(
    catalog: Catalog,
    site: Site,
    stack: Stack,
    *,
    partition: str | None = None,
    settings: Sequence[str] = (),
    format: FormatName | None = None,
    allow_unsupported: bool = False,
    job: JobRequest | None = None,
    site_document: Document | None = None,
    stack_document: Document | None = None,
    command: Callable[[], str] | None = None,
) -> Plan:
    """Resolve a stack for a site.

    Parameters
    ----------
    partition: kind of node; the profile's default if None.
    settings: ``BLOCK.OPTION=VALUE`` texts; also ``BLOCK.version=RANGE`` and ``VIRTUAL.provider=BLOCK``.
    format: another format than that of the site's preferred engine.
    allow_unsupported: a format that the site's policy forbids becomes a finding instead of an error.
    job: what is asked of the job; the site's layouts decide the rest.
    site_document, stack_document: where positions in messages come from.
    command: tells the command line that reproduces the plan; made from the arguments if None.

    Raises
    ------
    UnknownNameError, InputError, ConflictError, PolicyError: see hpcgen.errors.
    """
    if site.abstract:
        raise InputError(
            Problem(f"{site.name} is an abstract profile", remedy="name a site that extends it: hpcgen list sites")
        )
    request = job or JobRequest()
    chosen_partition = _partition(site, partition)
    engine, findings = _engine(site, site_document, format, allow_unsupported)
    said = parse_settings(settings, catalog)
    facts = Facts(
        partition=site.partitions[chosen_partition],
        fabric=site.fabric,
        mpi=site.mpi,
        network=site.network,
        architecture=site.system.architecture,
    )
    choices = Choices(catalog, facts, stack, stack_document, said)
    question = Question(
        catalog=catalog,
        facts=facts,
        choices=choices,
        roots=_roots(catalog, stack, stack_document, said),
        place=lambda path: _place(site_document, path),
        partition=chosen_partition,
        preferred_base=site.image.distribution,
    )
    blocks = resolve(question)
    _check_settings_used(said, blocks)
    laid_out = resolve_job(site, chosen_partition, stack, request)
    findings += [
        *job_findings(site, laid_out, request),
        *_unverified(site, chosen_partition),
        *_unverified_releases(catalog, blocks),
    ]
    again = reproduce(site.name, stack.name, partition, settings, format, allow_unsupported, request)
    return Plan(
        hpcgen=__version__,
        site=site,
        stack=stack,
        partition=chosen_partition,
        format=ENGINE_FORMATS[engine],
        engine=engine,
        blocks=blocks,
        job=laid_out,
        settings={f"{block}.{option}": value for block, values in said.items() for option, value in values.items()},
        command=command() if command is not None else again,
        findings=findings,
    )


class Choices(Mapping[str, BlockChoice]):
    """Options of every block that may come up, worked out when a block does come up."""

    def __init__(
        self,
        catalog: Catalog,
        facts: Facts,
        stack: Stack,
        document: Document | None,
        settings: Mapping[str, Mapping[str, str]],
    ) -> None:
        self._catalog = catalog
        self._facts = facts
        self._stack = stack
        self._document = document
        self._settings = settings
        self._made: dict[str, BlockChoice] = {}
        # Mistakes in what was said outright are told before anything is resolved, all at once.
        problems: list[Problem] = []
        for name in dict.fromkeys([*stack.blocks, *settings]):
            if name not in catalog.virtuals:
                try:
                    self[name]
                except UnknownNameError as error:
                    problems.extend(error.problems)
            else:
                problems.extend(_wrong_virtual_settings(catalog, name, settings.get(name, {})))
        if problems:
            raise UnknownNameError(problems)

    def __getitem__(self, name: str) -> BlockChoice:
        if name not in self._made:
            asked = self._stack.blocks.get(name, StackBlock())
            said = {k: v for k, v in self._settings.get(name, {}).items() if k not in RESERVED}
            self._made[name] = block_options(
                self._catalog.block(name),
                self._facts,
                asked.options,
                said,
                lambda option: self._where(name, option),
            )
        return self._made[name]

    def _where(self, name: str, option: str) -> Position | str | None:
        if option in self._settings.get(name, {}):
            return "--set"
        asked = self._stack.blocks.get(name)
        if asked is not None and option in asked.options and self._document is not None:
            return self._document.position(["blocks", name, "options", option])
        return None

    def __iter__(self) -> Iterator[str]:
        return iter(self._catalog.names("block"))

    def __len__(self) -> int:
        return len(self._catalog.names("block"))

    def __contains__(self, name: object) -> bool:
        try:
            self._catalog.find("block", str(name))
        except HpcgenError:
            return False
        return True


def _wrong_virtual_settings(catalog: Catalog, name: str, said: Mapping[str, str]) -> list[Problem]:
    providers = catalog.virtuals[name]
    problems = []
    for option, value in said.items():
        if option == "provider" and value not in providers:
            message = f"{value!r} does not provide {name}"
            problems.append(Problem(message, "--set", remedy=did_you_mean(value, providers)))
        elif option not in RESERVED:
            message = f"{name} is a virtual and has no option {option!r}"
            problems.append(
                Problem(
                    message,
                    "--set",
                    f"{name}.provider or {name}.version",
                    f"set it on {' or '.join(providers)}",
                )
            )
    return problems


def _roots(
    catalog: Catalog, stack: Stack, document: Document | None, said: Mapping[str, Mapping[str, str]]
) -> list[Requirement]:
    """Requirements of the stack, then of ``--set``, each with its place."""
    roots = []

    def add(name: str, versions: str, provider: str | None, origin: Origin) -> None:
        version_range(versions or ">=0")
        if versions[:1].isdigit():
            versions = f"=={versions}"
        if name in catalog.virtuals:
            providers = catalog.virtuals[name] if provider is None else [provider]
            allowed = dict.fromkeys(providers, versions) if provider or versions else None
            roots.append(Requirement(name, allowed, origin))
        else:
            virtual = next((v for v, names in catalog.virtuals.items() if name in names), name)
            roots.append(Requirement(virtual, {name: versions}, origin))

    for name, block in stack.blocks.items():
        place = _stack_place(document, name)
        add(name, block.version, block.provider, Origin(f"stack {stack.name}", place, "stack"))
    for name, values in said.items():
        versions, provider = values.get("version", ""), values.get("provider")
        if versions or provider:
            _check_range(versions, f"--set {name}.version")
            add(name, versions, provider, Origin(f"--set {name}", lambda: None, "set"))
    return roots


def _check_range(versions: str, where: str) -> None:
    if versions:
        try:
            version_range(versions)
        except InputError as error:
            found = error.problems[0]
            raise InputError(Problem(found.message, where, found.expected, found.remedy)) from None


def _stack_place(document: Document | None, name: str) -> Any:
    return lambda: document.position(["blocks", name], key=True) if document is not None else None


def _place(document: Document | None, path: str) -> Position | None:
    return document.position(path.split(".")) if document is not None else None


def _partition(site: Site, asked: str | None) -> str:
    name = asked or site.default_partition
    if name not in site.partitions:
        raise UnknownNameError(
            Problem(
                f"{site.name} has no partition {name!r}",
                "--partition",
                remedy=did_you_mean(name, list(site.partitions)),
            )
        )
    return name


def _engine(
    site: Site, document: Document | None, format: FormatName | None, allow_unsupported: bool
) -> tuple[EngineName, list[Finding]]:
    """The engine that runs the image, and a finding if the site's policy was overruled."""
    preferred = site.containers.preferred
    if format is None or ENGINE_FORMATS[preferred] == format:
        return preferred, []
    candidates = [e for e, f in ENGINE_FORMATS.items() if f == format]
    known = [e for e in candidates if e in site.containers.engines]
    for engine in known:
        if site.containers.engines[engine].allowed:
            return engine, []
    if known:
        reason = f"{site.name} does not allow {' or '.join(known)}: {site.containers.engines[known[0]].reason}"
        place = _place(document, f"containers.engines.{known[0]}")
    else:
        reason = f"the profile of {site.name} lists no engine for the format {format}"
        place = _place(document, "containers.engines")
    if not allow_unsupported:
        allowed = sorted({ENGINE_FORMATS[name] for name, e in site.containers.engines.items() if e.allowed})
        raise PolicyError(
            Problem(
                reason,
                where=place,
                expected=f"the format {' or '.join(allowed)}",
                remedy="leave --format out, or add --allow-unsupported to write the recipe all the same",
            )
        )
    return (known or candidates)[0], [Finding(name="policy", severity="warning", message=reason)]


def _check_settings_used(said: Mapping[str, Mapping[str, str]], blocks: list[PlannedBlock]) -> None:
    names = {b.name for b in blocks} | {v for b in blocks for v in b.provides}
    unused = [name for name in said if name not in names]
    if unused:
        raise UnknownNameError(
            [
                Problem(
                    f"this plan has no block {name!r}, so it cannot be set",
                    "--set",
                    remedy=did_you_mean(name, sorted(names)),
                )
                for name in unused
            ]
        )


def _unverified(site: Site, partition: str) -> list[Finding]:
    """One finding that names the facts of the profile that nobody has verified."""
    others = [p for p in site.partitions if p != partition]
    paths = [
        path
        for path, source in site.sources.items()
        if source.verified == "no" and not any(path.startswith(f"partitions.{other}") for other in others)
    ]
    if not paths:
        return []
    return [
        Finding(
            name="unverified-facts",
            severity="note",
            message=f"not verified in the profile of {site.name}: {_some(sorted(paths))}",
            remedy=f"see hpcgen show site {site.name}",
        )
    ]


def _some(names: list[str], most: int = 4) -> str:
    """The first few names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _unverified_releases(catalog: Catalog, blocks: list[PlannedBlock]) -> list[Finding]:
    rows = []
    for block in blocks:
        source = catalog.releases(block.name)[block.version].source
        if source is not None and source.verified == "no":
            rows.append(f"{block.name} {block.version}")
    if not rows:
        return []
    return [
        Finding(
            name="unverified-releases",
            severity="note",
            message=f"not verified in the release tables: {_some(rows)}",
            remedy="see hpcgen show block NAME",
        )
    ]


def reproduce(
    site: str,
    stack: str,
    partition: str | None,
    settings: Sequence[str],
    format: str | None,
    allow_unsupported: bool,
    job: JobRequest,
    before: Sequence[str] = (),
) -> str:
    """The command that gives the same result; ``before`` are words that stand before the subcommand."""
    words = ["hpcgen", *before, "render", "--site", site, "--stack", stack]
    for option, value in (("--partition", partition), ("--format", format)):
        if value is not None:
            words += [option, value]
    for setting in settings:
        words += ["--set", setting]
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
    ):
        if asked is not None:
            words += [option, str(asked)]
    if job.command:
        words += ["--", *job.command]
    return " ".join(sh(word) for word in words)
