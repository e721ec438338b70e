"""Commands as a user starts them: hpcgen beside hpccm on a recipe of equal content."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from same_recipe import differences, hpccm_recipe
from timing import Command, Spread, alternating, ratios, spread
from warm_render import render_recipe

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.collections import collections_from_environment
from hpcgen.planning.planner import make_plan

GOAL = 1.5
"""``hpcgen render`` may take this many times as long as ``hpccm``."""


@dataclass(frozen=True)
class ColdStart:
    """Wall and processor seconds of each command, and hpcgen's against hpccm's."""

    wall: dict[str, Spread]
    processor: dict[str, Spread]
    ratio: dict[str, Spread]
    equal: str


def program(name: str) -> str:
    """The command beside the Python that runs this."""
    found = shutil.which(name, path=os.pathsep.join([sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]))
    if found is None:
        raise SystemExit(f"{name} is not installed beside {sys.executable}: pip install -e .")
    return found


def compiled(folder: Path) -> dict[str, str]:
    """Variables by which the first run of a command leaves its byte code for the next, outside the checkout."""
    return {"PYTHONPYCACHEPREFIX": str(folder / "bytecode")}


def measure(site: str, stack: str, rounds: int, folder: Path) -> ColdStart:
    """Time the commands; ``folder`` takes the recipe and the kit."""
    recipe, equal = _recipe(site, stack, folder)
    hpcgen, hpccm = program("hpcgen"), program("hpccm")
    asked = ["--site", site, "--stack", stack]
    words = {
        "hpcgen render": [hpcgen, "render", *asked],
        "hpccm --recipe": [hpccm, "--recipe", str(recipe)],
        "hpcgen render -o DIR": [hpcgen, "render", *asked, "-o", str(folder / "kit")],
        "hpcgen plan": [hpcgen, "plan", *asked],
        "hpcgen list sites": [hpcgen, "list", "sites"],
        "hpcgen --help": [hpcgen, "--help"],
        "hpcgen --version": [hpcgen, "--version"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    times = alternating({name: Command(line, compiled(folder)) for name, line in words.items()}, rounds)
    return ColdStart(
        wall={name: spread(found.wall) for name, found in times.items()},
        processor={name: spread(found.processor) for name, found in times.items()},
        ratio=ratios(times["hpcgen render"], times["hpccm --recipe"]),
        equal=equal,
    )


def _recipe(site: str, stack: str, folder: Path) -> tuple[Path, str]:
    """hpccm's recipe of what hpcgen renders as a Dockerfile, and a word on how equal the two are."""
    catalog = Catalog(collections_from_environment())
    plan = make_plan(catalog, catalog.site(site), catalog.stack(stack), format="docker", allow_unsupported=True)
    dockerfile = render_recipe(plan, catalog)
    path = folder / "same_recipe.py"
    path.write_text(hpccm_recipe(dockerfile), "utf-8")
    done = subprocess.run([program("hpccm"), "--recipe", str(path)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"hpccm does not take the recipe: {done.stderr.strip()}")
    found = differences(dockerfile, done.stdout)
    if found:
        raise SystemExit(f"the two recipes are not equal, so nothing can be compared: {'; '.join(found)}")
    lines = len(dockerfile.splitlines())
    return path, f"two Dockerfiles of {lines} and {len(done.stdout.splitlines())} lines with the same steps"
