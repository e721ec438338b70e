"""Finding one site among 10, 1 000 and 10 000 of a collection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cold_start import compiled, program
from timing import CallTimes, Command, Spread, alternating, in_process, spread

from hpcgen.catalog.catalog import Catalog

SIZES: tuple[int, ...] = (10, 1_000, 10_000)
_PROFILE = "name: {name}\nextends: workstation\ntitle: Machine {number} of a made-up collection\n"


@dataclass(frozen=True)
class LookUp:
    """Seconds to find and read one site in a new catalog, and of the whole command, by size of the collection."""

    first: dict[int, CallTimes]
    wall: dict[int, Spread]
    processor: dict[int, Spread]


def measure(stack: str, count: int, rounds: int, folder: Path, budget: float, sizes: Sequence[int] = SIZES) -> LookUp:
    """Make collections of these sizes in ``folder`` and time them; commands alternate between the sizes."""
    collections = {size: _collection(folder / f"collection-{size}", size) for size in sizes}
    # The middle one: neither first nor last in any order of the folder.
    names = {size: _name(size // 2) for size in sizes}

    def look(size: int) -> object:
        return Catalog([collections[size]]).site(names[size])

    first = {size: in_process(lambda size=size: look(size), count, budget) for size in sizes}  # type: ignore[misc]
    commands = {}
    for size in sizes:
        words = [program("hpcgen"), "--collection", str(collections[size]), "render"]
        commands[str(size)] = Command([*words, "--site", names[size], "--stack", stack], compiled(folder))
    times = alternating(commands, rounds)
    return LookUp(
        first=first,
        wall={size: spread(times[str(size)].wall) for size in sizes},
        processor={size: spread(times[str(size)].processor) for size in sizes},
    )


def _name(number: int) -> str:
    return f"machine-{number:05}"


def _collection(folder: Path, size: int) -> Path:
    profiles = folder / "site_profiles"
    profiles.mkdir(parents=True)
    for number in range(size):
        name = _name(number)
        (profiles / f"{name}.yaml").write_text(_PROFILE.format(name=name, number=number), "utf-8")
    return folder
