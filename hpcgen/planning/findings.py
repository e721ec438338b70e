"""What a plan rests on that nobody has verified."""

from __future__ import annotations

from hpcgen.catalog.catalog import Catalog
from hpcgen.model.plan import Finding, PlannedBlock
from hpcgen.model.site import Site
from hpcgen.support.units import some


def unverified_facts(site: Site, partition: str) -> list[Finding]:
    """One finding that names the facts of the profile that nobody has verified."""
    others = [p for p in site.partitions if p != partition]
    paths = [
        path
        for path, source in site.sources.items()
        if source.verified == "no" and not any(f"{path}.".startswith(f"partitions.{other}.") for other in others)
    ]
    if not paths:
        return []
    return [
        Finding(
            name="unverified-facts",
            severity="note",
            message=f"not verified in the profile of {site.name}: {some(sorted(paths))}",
            remedy=f"see hpcgen show site {site.name}",
        )
    ]


def unverified_releases(catalog: Catalog, blocks: list[PlannedBlock]) -> list[Finding]:
    """One finding that names the chosen releases whose row nobody has verified."""
    rows = []
    for block in blocks:
        source = catalog.release(block).source
        if source is not None and source.verified == "no":
            rows.append(f"{block.name} {block.version}")
    if not rows:
        return []
    return [
        Finding(
            name="unverified-releases",
            severity="note",
            message=f"not verified in the release tables: {some(rows)}",
            remedy="see hpcgen show block NAME",
        )
    ]
