"""What release tables say against releases: which of them are insecure, unmaintained, or in part gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from hpcgen.model.plan import PlannedBlock
from hpcgen.model.release import Concern, Release


def with_concerns(releases: dict[str, Release], concerns: Sequence[Concern]) -> dict[str, Release]:
    """Rows of a block's tables, each with the tables' concerns in whose range it lies, after its own."""
    if not concerns:
        return releases
    from hpcgen.blocks.requirements import in_range

    # A collection's copy of a table says the same again.
    told = [each for number, each in enumerate(concerns) if each not in concerns[:number]]

    def of(version: str, release: Release) -> Release:
        found = [*release.concerns, *(each for each in told if in_range(version, each.versions))]
        return msgspec.structs.replace(release, concerns=found) if found else release

    return {version: of(version, release) for version, release in releases.items()}


def concerns_about(block: PlannedBlock, releases: Mapping[str, Release]) -> list[Concern]:
    """Those that hold for a block as it was planned: of its release, with its options."""
    return [
        each
        for each in releases[block.version].concerns
        if all(str(block.options.get(option, "")) in values for option, values in each.only.items())
    ]
