"""What changed in a fleet of many members, against one of 16 members with the same 16 plans."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from cold_start import compiled, program
from timing import Command, Spread, alternating, measured, ratios, spread

PLANS = 16
GOAL = 3.0
"""How many times as long the large fleet may take."""


@dataclass(frozen=True)
class Sizes:
    """Members of the fleet that is compared with one of as many as there are plans, of a large one, and its records."""

    members: int = 1_000
    large: int = 5_000
    records: int = 20_000


@dataclass(frozen=True)
class Fleets:
    """Seconds of ``hpcgen fleet`` by number of members, and the ratio of both, pair by pair."""

    sizes: Sizes
    wall: dict[int, Spread]
    processor: dict[int, Spread]
    ratio: dict[str, Spread]
    large: dict[str, Once]


@dataclass(frozen=True)
class Once:
    """One run of a command: seconds on the clock and of the processor, peak of memory in MiB."""

    wall: float
    processor: float
    memory: float


def measure(rounds: int, folder: Path, sizes: Sizes) -> Fleets:
    """Write both fleets into ``folder`` and run the command on them in turns."""
    profiles = folder / "fleet" / "site_profiles"
    profiles.mkdir(parents=True)
    for number in range(PLANS):
        profile = f"name: machine-{number}\nextends: workstation\ntitle: Machine {number} of a made-up collection\n"
        (profiles / f"machine-{number}.yaml").write_text(profile, "utf-8")
    commands = {f"{size}": Command(_words(folder / "fleet", size), compiled(folder)) for size in (PLANS, sizes.members)}
    times = alternating(commands, rounds)
    return Fleets(
        sizes=sizes,
        wall={int(size): spread(each.wall) for size, each in times.items()},
        processor={int(size): spread(each.processor) for size, each in times.items()},
        ratio=ratios(times[f"{sizes.members}"], times[f"{PLANS}"]),
        large=_large(folder, sizes),
    )


def _large(folder: Path, sizes: Sizes) -> dict[str, Once]:
    """What is done with a large fleet for Slurm, and with many records of its builds."""
    place = folder / "large"
    (place / "site_profiles").mkdir(parents=True)
    for number in range(PLANS):
        profile = (
            f"name: machine-{number}\nextends: supermuc\ntitle: Machine {number} of a made-up collection\n"
            "containers: {build_on: [login, compute]}\nnetwork: {internet: {login: true, compute: true}}\n"
        )
        (place / "site_profiles" / f"machine-{number}.yaml").write_text(profile)
    # A pipeline takes a path from where it is written.
    fleet = ["--fleet", Path(_words(place, sizes.large, "build_on: machine-0\n")[-1]).name]
    records = _records(place / "records", sizes.records)
    asked = {
        "fleet": ["fleet", *fleet],
        "fleet --changed": ["fleet", "--changed", *fleet],
        "ci github": ["ci", "github", *fleet],
        "ci github --jobs": ["ci", "github", "--jobs", "--parts", "16", *fleet],
        "ci gitlab": ["ci", "gitlab", *fleet],
        "ci gitlab --jobs": ["ci", "gitlab", "--jobs", "--parts", "5", *fleet, "-o", "child.yml"],
        "build --all --array": ["build", "--all", "--array", "--dry-run", "--account", "abc", *fleet],
        **{" ".join(words): words for words in (["records"], ["records", "--json"], ["records", "--limit", "5"])},
        "records prune": ["records", "prune", "--older-than", "1", "--dry-run"],
    }
    environment = {**compiled(folder), "HPCGEN_TRUST_COLLECTIONS": "1", "HPCGEN_RECORDS": str(records)}
    start = ["/usr/bin/env", "-C", str(place), program("hpcgen")]
    runs = {name: measured(Command([*start, *words], environment)) for name, words in asked.items()}
    return {name: Once(wall, processor, memory / 1024) for name, (wall, processor, memory) in runs.items()}


def _records(folder: Path, count: int) -> Path:
    """Records of builds, as the tests keep one of them."""
    folder.mkdir()
    stored = Path(__file__).parent.parent / "tests" / "specimens" / "0.1.0" / "records"
    text = next(stored.glob("*tf-horovod*.json")).read_text("utf-8")
    [identity] = re.findall(r'"id": ?"([^"]+)"', text)
    for number in range(count):
        other = f"{number:08x}{identity[8:]}"
        (folder / f"{other}.json").write_text(text.replace(identity, other), "utf-8")
    return folder


def _words(folder: Path, size: int, more: str = "") -> list[str]:
    members = (
        f"  - {{stack: mpi-hello, site: machine-{number % PLANS}, name: member-{number}}}\n" for number in range(size)
    )
    file = folder / f"fleet-{size}.yaml"
    file.write_text(f"{more}collections: [.]\nmembers:\n" + "".join(members), "utf-8")
    return [program("hpcgen"), "fleet", "--json", "--fleet", str(file)]
