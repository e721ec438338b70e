"""The site's policy, the network of its build host, and licences."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.backends.engines import engine_format
from hpcgen.core.support.units import some
from hpcgen.planning.contract.case import Check, ContractCase, holds, skipped
from hpcgen.recipe.formats import engines_reading

OTHER_FORMAT = "leave --format out"
"""The remedy where no engine of the site reads the recipe."""


def policy(case: ContractCase) -> list[Check]:
    """The site is open and allows the engine."""
    name, site, engine = "policy", case.site, case.plan.engine
    closed, found = [], []
    if site.status == "closed":
        since = f" ({site.closed})" if site.closed is not None else ""
        reason = f"{site.name} is closed{since}: no job can run there"
        remedy = "keep its profile as a reference, and plan for a site that is open: hpcgen list sites"
        closed.append(Check("site-closed", "doubtful", reason, remedy, "", "status"))
    known = site.containers.engines.get(engine)
    if known is not None and known.allowed:
        return [*closed, holds(name, f"{site.name} allows {engine}")]
    allowed = sorted({engine_format(each) for each, its in site.containers.engines.items() if its.allowed})
    expected = f"the format {' or '.join(allowed)}"
    if known is None:
        reason = f"the profile of {site.name} lists no engine for the format {case.plan.format}"
        found.append(Check(name, "broken", reason, OTHER_FORMAT, expected, "containers.engines"))
    else:
        reason = f"{site.name} does not allow {_refused(case)}"
        path = f"containers.engines.{engine}"
        found.append(Check(name, "broken", reason, OTHER_FORMAT, expected, path))
    return closed + found


def _refused(case: ContractCase) -> str:
    """Every engine for the format that the site knows, with its reasons."""
    engines = case.site.containers.engines
    reading = engines_reading(case.plan.format)
    refused = {name: its for name, its in engines.items() if name in reading}
    why = []
    for name, its in refused.items():
        date = f", {its.decided}" if its.decided is not None else ""
        why.append(f"{name}: {its.reason}{date}")
    return f"{' or '.join(refused)} ({'; '.join(why)})"


def network(case: ContractCase) -> Check:
    """The building host reaches every input, or a mirror has it."""
    name, site = "network", case.site
    if case.plan.supply == "bundle":
        return holds(name, "the build takes everything from a bundle")
    if site.network.internet.build:
        return holds(name, "the building host reaches the internet")
    if site.network.proxy is not None:
        return holds(name, "the building host reaches the internet by a proxy")
    missing = list(dict.fromkeys(filter(None, _beyond_reach(case))))
    if not missing:
        return holds(name, "mirrors have everything that the build needs")
    reason = f"the building host has no internet, and no mirror for {some(missing, 6)}"
    remedy = "hpcgen lock and hpcgen bundle create where there is a network, then render --bundle; or --mirror"
    return Check(name, "broken", reason, remedy, "a mirror in network.mirrors, or a bundle", "network.internet.build")


def _beyond_reach(case: ContractCase) -> Iterator[str]:
    """Kinds of input that no mirror has; empty for what one has."""
    if case.assembly is None:
        return
    assembly, mirrors = case.assembly(), case.site.network.mirrors
    yield from (stage.image.unmirrored(mirrors) for stage in (assembly.builder, assembly.final))
    base = case.plan.blocks[0].name
    if any(assembly.packages.values()) and base not in mirrors.apt and base not in mirrors.dnf:
        yield f"packages of {base}"
    yield from (item.unmirrored(mirrors) for _, item in assembly.inputs)


def licences(case: ContractCase) -> list[Check]:
    """Every licence that the build accepts has been accepted by the user."""
    name = "licences"
    needed = {each.name: each for of_block in case.capabilities.values() for each in of_block.licences}
    if not needed:
        return [skipped(name, "no licence needs acceptance")]
    found = []
    for each in needed.values():
        if each.name not in case.accepted:
            reason = f"{each.title} is not accepted: {each.url}"
            remedy = f"lock and build require --accept-licence {each.name}"
            found.append(Check(name, "doubtful", reason, remedy))
    return found or [holds(name, f"accepted: {', '.join(needed)}")]
