#!/usr/bin/env python3
"""What a large fleet compiles, planned and not built: how long the planning takes, how many blocks, in which chain."""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from hpcgen.api import default_catalog
from hpcgen.core.support.units import duration
from hpcgen.plugins.fleet.changes import member_states
from hpcgen.plugins.fleet.compiled import fleet_work, in_levels
from hpcgen.plugins.fleet.file import load_fleet
from hpcgen.plugins.fleet.matrix import combinations, outcomes

BLOCK_S, IMAGE_S = 1800.0, 300.0
"""Made up: what a block takes to compile, and an image for the rest."""


def main() -> None:
    """Plan, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=5000, help="of the fleet (default: %(default)s)")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HPCGEN_RECORDS"] = f"{folder}/records"
        write_fleet(Path(folder), asked.members)
        for name, value in measure(Path(folder)).items():
            print(f"{name}: {value}")


def write_fleet(folder: Path, members: int) -> None:
    """Members of all that renders: each stack on each partition in each way, and again on sites of the same kind."""
    catalog = default_catalog()
    wanted = combinations(catalog)
    found = outcomes(catalog, wanted, os.cpu_count() or 1)
    good = [each for each, told in zip(wanted, found, strict=True) if told.result in ("renders", "cpu")]
    (folder / "site_profiles").mkdir()
    lines = []
    for number in range(members):
        each, copy = good[number % len(good)], number // len(good)
        site = f"{each.site}-{copy}" if copy else each.site
        profile = folder / "site_profiles" / f"{site}.yaml"
        if copy and not profile.exists():
            profile.write_text(f"name: {site}\nextends: {each.site}\ntitle: Another {each.site}\n", "utf-8")
        member = {"name": f"m-{number}", "stack": each.stack, "site": site, "partition": each.partition}
        lines.append(f"  - {json.dumps({**member, 'settings': each.settings})}\n")
    (folder / "fleet.yaml").write_text("collections: [.]\nmembers:\n" + "".join(lines), "utf-8")


def measure(folder: Path) -> dict[str, Any]:
    """Figures of a fleet by what they are of; seconds are of the processor."""
    begun = time.process_time()
    loaded = load_fleet(folder / "fleet.yaml", allow=lambda offered: None)
    states = member_states(loaded, {})
    planned = time.process_time()
    work = fleet_work(loaded, states, folder / "store", lambda state: state.plan is not None)
    found = time.process_time()
    jobs = {key: replace(job, seconds=BLOCK_S) for key, job in work.jobs.items()}
    timed = replace(work, jobs=jobs, images=dict.fromkeys(work.images, IMAGE_S))
    chain = timed.longest
    told = time.process_time()
    total = BLOCK_S * len(jobs) + IMAGE_S * len(work.images)
    apart = BLOCK_S * sum(map(len, work.wanted.values())) + IMAGE_S * len(work.images)
    return {
        "members": f"{len(states)}, {sum(each.plan is None for each in states)} of them without a plan",
        "different plans": len({each.content for each in states if each.plan is not None}),
        "planned in": f"{planned - begun:.1f} s",
        "blocks found in": f"{found - planned:.1f} s, their order and critical path in {told - found:.2f} s",
        "blocks": f"{sum(map(len, work.wanted.values()))}, {len(jobs)} different ones",
        "at the same time": ", then ".join(str(len(level)) for level in in_levels(list(jobs.values()))),
        "critical path": f"{', '.join(name for name, _ in chain)}: {duration(sum(took or 0.0 for _, took in chain))}",
        "one after the other": f"{duration(total)}; with each block compiled in each image {duration(apart)}",
        "peak of memory": f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB",
    }


if __name__ == "__main__":
    main()
