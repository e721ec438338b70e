"""Findings about facts that nobody has verified, that may be out of date, or that tables warn of."""

from __future__ import annotations

from functools import lru_cache

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.concerns import concerns_about
from hpcgen.core.config.provenance import sourced_of
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.model.plan import Finding, Plan, PlannedBlock
from hpcgen.core.model.site import Site
from hpcgen.core.support.units import some

_facts_of = lru_cache(maxsize=8)(sourced_of)
"""Many stacks are planned for one site, whose facts are the same each time."""


def site_findings(site: Site, partition: str, document: Document) -> list[Finding]:
    """Which facts of the profile nobody has verified, and which were old when somebody looked them up.

    Parameters
    ----------
    partition: kind of node; what is said of the others is left out.
    document: the profile's, with its parents merged in.
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


def unverified_releases(catalog: Catalog, plan: Plan) -> list[Finding]:
    """One finding that names the chosen releases whose row nobody has verified."""
    rows, names = [], []
    for block in plan.blocks:
        source = catalog.release(block, plan.site.system.architecture).source
        if source is None or source.verified == "no":
            rows.append(f"{block.name} {block.version}")
            names.append(block.name)
    if not rows:
        return []
    return [
        Finding(
            name="unverified-releases",
            severity="detail",
            message=f"not verified in the release tables: {some(rows)}",
            remedy=f"see {' and '.join(f'hpcgen show block {name}' for name in names[:2])}",
        )
    ]


def release_concerns(catalog: Catalog, blocks: list[PlannedBlock]) -> list[Finding]:
    """A warning for each concern of the release tables about a chosen release: it is insecure, or unmaintained."""
    return [
        Finding(name=each.kind, severity="warning", message=f"{block.label}: {each.message}", remedy=each.remedy)
        for block in blocks
        for each in concerns_about(block, catalog.releases(block.name))
    ]
