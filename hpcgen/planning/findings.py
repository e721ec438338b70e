"""What a plan says beside its blocks and its job: unverified and old facts, concerns, what gave way."""

from __future__ import annotations

from functools import lru_cache

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.blocks.requirements import version
from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.concerns import concerns_about
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.provenance import sourced_of
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Finding, Plan, PlannedBlock
from hpcgen.core.model.reasons import Reason
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.core.support.units import some
from hpcgen.launch.job.layout import job_findings
from hpcgen.planning.memory import memory_default
from hpcgen.planning.resolver.node import node_of

_facts_of = lru_cache(maxsize=8)(sourced_of)
"""Many stacks are planned for one site, whose facts are the same each time."""


def findings_of_plan(plan: Plan, catalog: Catalog, request: JobRequest, document: Document | None) -> list[Finding]:
    """All of them, and those about the job; ``document``: the profile's, with its parents merged in."""
    site = plan.site
    document = document or catalog.document_of(site) or InMemory(site, f"site {site.name}")
    return [
        *_open_questions(plan.stack),
        *job_findings(site, plan.partition, plan.job, request),
        *_assumed(catalog, plan),
        *site_findings(site, plan.partition, document),
        *memory_default(catalog, plan),
        *_release_concerns(catalog, plan.blocks),
        *_defaults_given_up(catalog, plan),
        *_older_for_packages(plan),
        *_compiled_for_older_cpu(catalog, plan),
        *_unsolved_packages(catalog, plan),
        *_unverified_releases(catalog, plan),
    ]


def _assumed(catalog: Catalog, plan: Plan) -> list[Finding]:
    """What is assumed of the node."""
    gpu = plan.site.partitions[plan.partition].gpu
    if gpu is None or not gpu.driver_assumed:
        return []
    from hpcgen.planning.drivers import assumption

    return assumption(catalog, plan)


def site_findings(site: Site, partition: str, document: Document) -> list[Finding]:
    """Which facts of the profile nobody has verified, and which were old when somebody looked them up.

    ``partition``: kind of node; what is said of the others is left out. ``document``: the profile's, with its parents
    merged in.
    """
    others = tuple(f"partitions.{other}." for other in site.partitions if other != partition)
    facts = [fact for fact in _facts_of(document) if not fact.path.startswith(others)]
    unverified = {fact.source_path or fact.path for fact in facts if fact.mark != "verified"}
    old = {fact.source_path for fact in facts if fact.source is not None and fact.source.old}
    told = {
        "unverified-facts": ("not verified in the profile of", unverified),
        "old-facts": ("from sources more than two years old in the profile of", old),
    }
    return [
        Finding(
            name=name,
            severity="detail",
            message=f"{what} {site.name}: {some(sorted(paths))}",
            remedy=f"see hpcgen show site {site.name}",
        )
        for name, (what, paths) in told.items()
        if paths
    ]


def _open_questions(stack: Stack) -> list[Finding]:
    """What the stack says that the image still lacks."""
    remedy = "bring it, then remove the line from `open` of the stack"
    return [Finding(name="open", severity="warning", message=text, remedy=remedy) for text in stack.open]


def _defaults_given_up(catalog: Catalog, plan: Plan) -> list[Finding]:
    """Options whose default gave way to a release that cannot be had with it."""
    node, found = node_of(catalog, plan.site, plan.partition), []
    for block in plan.blocks:
        if not catalog.has_block(block.name) or block.version not in catalog.releases(block.name):
            continue
        here = node.usual(block.name, ())
        option = here.gives_way(block.version)
        asked = plan.stack.blocks.get(block.name, StackBlock()).options
        if option and option not in asked and f"{block.name}.{option}" not in plan.settings:
            value, usual = block.options.get(option), here.choice.as_data()[option]
            message = f"{block.label} is taken with {block.name}.{option}={value}: with {usual}, the default, it is not"
            found.append(Finding(name="default", severity="note", message=f"{message} available for this node"))
    return found


def _older_for_packages(plan: Plan) -> list[Finding]:
    """Blocks of which no newer release goes with the Python packages of the others."""
    return [
        Finding(name="python-packages", severity="note", message=f"no newer {block.name} than {block.version}: {why}")
        for block in plan.blocks
        for reason in block.reasons
        if isinstance(reason, Reason) and reason.newer
        for why in dict.fromkeys(each.found for each in (reason, *reason.clash) if each.rule == "not beside")
    ]


def _compiled_for_older_cpu(catalog: Catalog, plan: Plan) -> list[Finding]:
    """That the compiler of the user's own code does not know the CPU yet, and which one does."""
    gnu, cpu = plan.block("gnu"), plan.site.partitions[plan.partition].cpu.target
    own = [each.name for each in plan.blocks if catalog.has_block(each.name) and catalog.block(each.name).of_project]
    if gnu is None or not any("gnu" in block.needs for block in plan.blocks if block.name in own):
        return []
    rows = catalog.releases("gnu")
    told = {number: compiler_flags(cpu, "gcc", number) for number in sorted(rows, key=version)}
    used, best = told.get(gnu.version, ()), [*told.values()][-1]
    if used == best or not used:
        return []
    first = next(number for number, flags in told.items() if flags == best)
    bases = some([f"{name} {range_}" for name, range_ in rows[first].on.items()])
    return [
        Finding(
            name="compiler",
            severity="note",
            message=f"{gnu.label} does not know the CPU {cpu}: own code is compiled for the nearest, {used[0]}",
            remedy=f"gnu {first} does, which comes with {bases}",
        )
    ]


UNSOLVED = "unsolved-packages"
"""The finding that a lock settles."""


def _unsolved_packages(catalog: Catalog, plan: Plan) -> list[Finding]:
    """Packages of the project of which no table knows what they require: a plan uses no network, and a lock does."""
    project = plan.project
    if project is None or project.hashed:
        return []
    needs = catalog.beside.wheel_facts().needs
    known = {*needs, *(pin.partition("==")[0] for pin in needs)}
    asked = (f"{each.name}=={each.version}" if each.version else each.name for each in project.packages)
    unknown = [each for each in asked if each not in known]
    if not unknown:
        return []
    message = f"not solved yet, since no table has what they require: {some(unknown, 8)}"
    remedy = "`hpcgen lock` solves all packages together, with the package index"
    return [Finding(name=UNSOLVED, severity="note", message=message, remedy=remedy)]


def _unverified_releases(catalog: Catalog, plan: Plan) -> list[Finding]:
    """One finding that names the chosen releases whose row nobody has verified."""
    blocks = unverified_blocks(catalog, plan)
    if not blocks:
        return []
    return [
        Finding(
            name="unverified-releases",
            severity="detail",
            message=f"not verified in the release tables: {some([each.label for each in blocks])}",
            remedy=f"see {' and '.join(f'hpcgen show block {each.name}' for each in blocks[:2])}",
        )
    ]


def unverified_blocks(catalog: Catalog, plan: Plan) -> list[PlannedBlock]:
    """The blocks of a plan whose release's row nobody has verified."""
    sources = [catalog.release(block, plan.site.system.architecture).source for block in plan.blocks]
    told = zip(plan.blocks, sources, strict=True)
    return [block for block, source in told if source is None or source.verified == "no"]


def _release_concerns(catalog: Catalog, blocks: list[PlannedBlock]) -> list[Finding]:
    """A warning for each concern of the release tables about a chosen release: it is insecure, or unmaintained."""
    return [
        Finding(name=each.kind, severity="warning", message=f"{block.label}: {each.message}", remedy=each.remedy)
        for block in blocks
        for each in concerns_about(block, catalog.releases(block.name))
    ]
