"""What changed in a fleet of 1,000 members, against one of 16 members with the same 16 plans."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cold_start import compiled, program
from timing import Command, Spread, alternating, ratios, spread

PLANS, MEMBERS = 16, 1_000
GOAL = 3.0
"""How many times as long the large fleet may take."""


@dataclass(frozen=True)
class Fleets:
    """Seconds of ``hpcgen fleet`` by number of members, and the ratio of both, pair by pair."""

    wall: dict[int, Spread]
    processor: dict[int, Spread]
    ratio: dict[str, Spread]


def measure(rounds: int, folder: Path) -> Fleets:
    """Write both fleets into ``folder`` and run the command on them in turns."""
    profiles = folder / "fleet" / "site_profiles"
    profiles.mkdir(parents=True)
    for number in range(PLANS):
        profile = f"name: machine-{number}\nextends: workstation\ntitle: Machine {number} of a made-up collection\n"
        (profiles / f"machine-{number}.yaml").write_text(profile, "utf-8")
    commands = {f"{size}": Command(_words(folder / "fleet", size), compiled(folder)) for size in (PLANS, MEMBERS)}
    times = alternating(commands, rounds)
    return Fleets(
        wall={int(size): spread(each.wall) for size, each in times.items()},
        processor={int(size): spread(each.processor) for size, each in times.items()},
        ratio=ratios(times[f"{MEMBERS}"], times[f"{PLANS}"]),
    )


def _words(folder: Path, size: int) -> list[str]:
    members = (
        f"  - {{stack: mpi-hello, site: machine-{number % PLANS}, name: member-{number}}}\n" for number in range(size)
    )
    file = folder / f"fleet-{size}.yaml"
    file.write_text("collections: [.]\nmembers:\n" + "".join(members), "utf-8")
    return [program("hpcgen"), "fleet", "--json", "--fleet", str(file)]
