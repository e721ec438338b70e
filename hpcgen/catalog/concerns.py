"""What release tables say of ranges of releases: in which ways they can be had, which are insecure, unmaintained or in
part gone, and which other blocks' releases they do not work beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.release import Beside, Concern, Release, ReleaseTable, ReleaseWay, Unlisted

Said = TypeVar("Said", Concern, Beside, ReleaseWay, Unlisted)


def with_said_of_ranges(releases: dict[str, Release], tables: Sequence[ReleaseTable]) -> dict[str, Release]:
    """Rows of a block's tables, each with what the tables say of a range that it lies in, after its own."""
    concerns = _once([each for table in tables for each in table.concerns])
    beside = _once([each for table in tables for each in table.beside])
    ways = _once([each for table in tables for each in table.ways])
    unlisted = _once([each for table in tables for each in table.unlisted])
    if not concerns and not beside and not ways and not unlisted:
        return releases
    return {
        version: msgspec.structs.replace(
            release,
            concerns=[*release.concerns, *_about(version, concerns)],
            beside=[*release.beside, *_about(version, beside)],
            ways=[*release.ways, *_about(version, ways)],
            unlisted=[*release.unlisted, *_about(version, unlisted)],
        )
        for version, release in releases.items()
    }


def _once(said: list[Said]) -> list[Said]:
    """A collection's copy of a table says the same again."""
    return [each for number, each in enumerate(said) if each not in said[:number]]


def _about(version: str, said: list[Said]) -> list[Said]:
    from hpcgen.blocks.requirements import in_range

    return [each for each in said if in_range(version, each.versions)]


def concerns_about(block: PlannedBlock, releases: Mapping[str, Release]) -> list[Concern]:
    """Those that hold for a block as it was planned: of its release, with its options."""
    return [
        each
        for each in releases[block.version].concerns
        if all(str(block.options.get(option, "")) in values for option, values in each.only.items())
    ]
