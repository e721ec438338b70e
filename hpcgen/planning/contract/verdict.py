"""All checks of a plan, and what follows from them: errors, findings, a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from hpcgen.backends.engines import engine_for
from hpcgen.blocks.inputs.wheels import with_sources
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError, Position, Problem, Problems
from hpcgen.core.model.conda import PIP_LIST, CondaPackage
from hpcgen.core.model.plan import Finding, Plan, PlannedLicence
from hpcgen.core.model.project import BLOCK
from hpcgen.core.model.release import Release
from hpcgen.core.model.site import SiteEngine
from hpcgen.launch.start import host_mpi
from hpcgen.planning.contract import conda, fabric, gpu, malloc, mpi, second_mpi, site
from hpcgen.planning.contract import engine as engines
from hpcgen.planning.contract.case import Check, ContractCase, Untried, skipped
from hpcgen.recipe.assemble import assemble, outline


def _packages(case: ContractCase) -> list[Check]:
    """The checks of a project's packages, which most plans do not have."""
    if case.plan.project is None:
        return [skipped("Python packages", "no file of a project asks for packages")]
    from hpcgen.planning.contract import packages

    return packages.packages(case)


CHECKS: dict[str, Callable[[ContractCase], Check | list[Check]]] = {
    "policy": site.policy,
    "C library": site.c_library,
    "MPI ABI": mpi.abi,
    "one MPI": second_mpi.packages,
    "private MPI": mpi.private,
    "MPI version": mpi.version,
    "PMI": mpi.pmi,
    "transport key": mpi.transport_key,
    "fabric provider": fabric.provider,
    "libfabric": fabric.libfabric,
    "TCP fallback": fabric.fallback,
    "collectives": fabric.collectives,
    "GPU use": gpu.use,
    "GPU driver": gpu.driver,
    "GPU architecture": gpu.architecture,
    "GPU memory": gpu.memory,
    "conda packages": conda.packages,
    "CPU": site.cpu,
    "malloc": malloc.served,
    "memory": site.memory,
    "Python packages": _packages,
    "binds": engines.binds,
    "engine": engines.flags,
    "user namespaces": engines.user_namespaces,
    "within a node": engines.within_node,
    "shared memory": engines.shared_memory,
    "locked memory": engines.locked_memory,
    "copy devices": engines.copy_devices,
    "launch": engines.launch,
    "network": site.network,
    "licences": site.licences,
}
"""Every check by its name, in the order of the table."""

AT_START = ("policy", "MPI version", "libfabric", "TCP fallback", "binds", "user namespaces", "within a node")
"""What is asked again of an image that is there, for a site that may be another one than it was built for."""

OVERRULE = "add --allow-unsupported to continue anyway"


def case_of(plan: Plan, catalog: Catalog, accepted: Collection[str] = ()) -> ContractCase:
    """The case for the checks of a plan; InputError if the plan does not fit the collections."""
    image = outline(plan, catalog)

    def bases() -> dict[str, str]:
        return {
            f"{name} {version}": str(row.values["glibc"])
            for name in catalog.virtuals.get("base", [])
            for version, row in catalog.releases(name).items()
            if "glibc" in row.values
        }

    return msgspec.structs.replace(
        case_of_plan(plan),
        capabilities=image.capabilities,
        forward=_forward(catalog, plan),
        releases={block.name: catalog.release(block, plan.site.system.architecture) for block in plan.blocks},
        packages=image.packages,
        requested=image.requested,
        mpi_packages=catalog.beside.mpi_packages,
        known_blocks=lambda: catalog.names("block"),
        bases=bases,
        assembly=lambda: assemble(plan, catalog),
        accepted=accepted,
        doubts=image.doubts,
        untried=_untried(plan, catalog),
    )


def _forward(catalog: Catalog, plan: Plan) -> Release | None:
    """The row of the block that brings a newer driver's libraries."""
    block = next((each for each in plan.blocks if catalog.block(each.name).brings_driver), None)
    return catalog.release(block) if block is not None else None


def _untried(plan: Plan, catalog: Catalog) -> dict[str, Untried]:
    """The project's packages that blocks would bring, had a table their version."""
    if plan.project is None:
        return {}
    from hpcgen.planning.own_wheels import nearest

    named = [(each, block) for each in plan.project.packages if (block := catalog.distributions.get(each.name))]
    return {
        each.name: Untried(
            block,
            catalog.said_of(block, each.version) if each.version else Release(),
            nearest(catalog, block, each.version or "0"),
            catalog.block(block).agrees,
        )
        for each, block in named
    }


def case_of_plan(plan: Plan) -> ContractCase:
    """A plan alone, for checks that need nothing of its blocks."""
    known = plan.site.containers.engines.get(plan.engine, SiteEngine())
    engine = engine_for(plan.engine, known.version)
    return ContractCase(plan=plan, engine=engine, host=host_mpi(plan, engine))


def checks_of(case: ContractCase, without: Collection[str] = (), only: Collection[str] = ()) -> list[Check]:
    """Every check but those ``without``, or those ``only``; one may answer several times."""
    found: list[Check] = []
    for name, check in CHECKS.items():
        if name not in without and (not only or name in only):
            answer = check(case)
            found += answer if isinstance(answer, list) else [answer]
    return found


def problems_of(checks: Sequence[Check], place: Callable[[str], Position | str | None]) -> list[Problem]:
    """Problems for all broken checks, each at the fact of the profile that decides.

    ``place``: tells the position of a fact in the profile.
    """
    return [
        Problem(
            each.reason,
            where=place(each.path) if each.path else None,
            expected=each.expected,
            remedy=f"{each.remedy}, or {OVERRULE}" if each.remedy else OVERRULE,
        )
        for each in checks
        if each.outcome == "broken"
    ]


def findings_of(checks: Sequence[Check]) -> list[Finding]:
    """Warnings for what is broken and overruled, or doubtful; one detail for all that is not known.

    Licences are no finding: whether the user has accepted one is no fact of the plan.
    """
    found = [
        Finding(name=each.name, severity="warning", message=each.reason, remedy=each.remedy)
        for each in checks
        if each.outcome in ("broken", "doubtful") and each.name != "licences"
    ]
    missing = list(dict.fromkeys(each.name for each in checks if each.outcome == "unknown"))
    if missing:
        message = f"the profile lacks facts to check {', '.join(missing)}"
        found.append(Finding(name="contract", severity="detail", message=message, remedy="see hpcgen contract"))
    return found


def planned_licences(case: ContractCase) -> list[PlannedLicence]:
    """The licences that the user must accept before the build, in the order of the blocks."""
    needed = {each.name: each for of_block in case.capabilities.values() for each in of_block.licences}
    return [PlannedLicence(each.name, each.title, each.url) for each in needed.values()]


OWN = (BLOCK, PIP_LIST)
"""Lists of the user's own packages; what blocks bring is for their tables to say."""


class BroughtFrameworkError(PolicyError):
    """Chosen packages require what ``blocks`` install for the site, and the plan does not have these."""

    blocks: tuple[str, ...] = ()


def hold_chosen(
    plan: Plan, catalog: Catalog, wheels: Mapping[str, Sequence[str]], *, allow_unsupported: bool = False
) -> list[Finding]:
    """Findings against the chosen packages, as warnings.

    wheels: hashed lines by the name of their list, as a lock pins them.
    allow_unsupported: what is broken is a warning too.
    PolicyError: all that is broken, where it is not allowed; BroughtFrameworkError if further blocks may mend it.
    """
    lines = [line for own in OWN for name in with_sources(own, wheels) for line in wheels[name]]
    if not lines:
        return []
    from hpcgen.planning.contract import packages

    case = case_of(plan, catalog)
    checks = packages.chosen(case, lines)
    beside = [line for name in with_sources(BLOCK, wheels) for line in wheels[name]]
    brought = packages.by_accident(case, catalog.distributions, beside)
    checks += brought.values()
    problems = problems_of(checks, lambda path: f"{path} of the profile of {plan.site.name}")
    if brought and not allow_unsupported:
        refused = BroughtFrameworkError(problems)
        refused.blocks = tuple(brought)
        raise refused
    if not allow_unsupported:
        Problems(problems).raise_as(PolicyError)
    return findings_of(checks)


def hold_brought(
    plan: Plan, catalog: Catalog, chains: Sequence[Sequence[str]], chosen: Sequence[CondaPackage] = ()
) -> list[Finding]:
    """Findings against packages that bring a second MPI by what they depend on, as warnings.

    chains: each from an OS package that was asked for down to an MPI's own.
    chosen: conda packages.
    PolicyError: all of them, unless the plan was made although it breaks the contract.
    """
    if plan.block("mpi") is None or not (chains or chosen):
        return []
    case = case_of(plan, catalog)
    checks = [*second_mpi.brought(case, chains), *conda.mpi(case, chosen)]
    if not plan.overruled:
        Problems(problems_of(checks, lambda path: None)).raise_as(PolicyError)
    return findings_of(checks)
