"""What a whole `hpcgen lock` takes: numpy, scipy and pandas on Debian 12. `python benchmarks/whole_lock.py --rounds 5`.

The base image is that of the container tests (root, ``.ci/install-tools``), and the mirrors are this machine's own, so
a network is needed. ``--against FOLDER`` is another checkout, whose locks are made in turns with these and must pin the
same; the hashes of built-in blocks, which a lock has too, are those of a version.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests" / "containers"), str(ROOT)]

from container_tools import TESTBED, BaseImage, run, script, variables  # noqa: E402
from test_rendered_kits import site_profile  # noqa: E402
from timing import Command, start  # noqa: E402

from hpcgen.kit.lockfile.lock import parse_lock  # noqa: E402

GOAL_S = 12
PACKAGES = ["numpy==2.2.6", "scipy==1.15.3", "pandas==2.3.3"]
# With -m the folder that it is started in would come before every other, and so always the same hpcgen.
_PROGRAM = """
import runpy, sys
sys.path[0] = sys.argv.pop(1)
runpy.run_module("hpcgen", run_name="__main__", alter_sys=True)
"""


def _stack(packages: list[str]) -> dict[str, Any]:
    return {
        "name": "three",
        "title": "numpy, scipy and pandas",
        "blocks": {"python_packages": {"options": {"packages": packages}}},
        "run": {"command": ["python3", "-c", "import numpy, scipy, pandas"]},
    }


def _base() -> BaseImage:
    env = {**os.environ, **variables(script("environment"))}
    script("make-base", env=env)
    folder = Path(env["HPCGEN_TESTBED"])
    return BaseImage("debian:12", "localhost/debian:12", folder / "debian12.tar", folder / "debian12-root.tar")


def _locking(folder: Path, checkout: Path, name: str, base: BaseImage) -> Command:
    """Make a new lock with the hpcgen of a checkout."""
    asked = ["--site", folder / "here.yaml", "--stack", folder / "three.yaml"]
    image = ["--image", f"debian:12=oci-archive:{base.archive}"]
    words = [sys.executable, "-c", _PROGRAM, checkout, "lock", *asked, *image, "-o", folder / name]
    return Command([str(word) for word in words], {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument(
        "--once", action="store_true", help="one round of the least that there can be: to see that it works"
    )
    asked = parser.parse_args()
    packages = PACKAGES
    if asked.once:
        asked.rounds, packages = 1, PACKAGES[:1]
    base = _base()
    facts = json.loads(run([sys.executable, TESTBED / "machine_facts.py"]).stdout)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "here.yaml").write_text(json.dumps(site_profile(facts, base)), "utf-8")
        (folder / "three.yaml").write_text(json.dumps(_stack(packages)), "utf-8")
        checkouts = {"this": ROOT, **({"other": asked.against.resolve()} if asked.against else {})}
        times: dict[str, list[tuple[float, float]]] = {each: [] for each in checkouts}
        for number in range(asked.rounds):
            for each in checkouts if number % 2 else reversed(checkouts):
                (folder / each).unlink(missing_ok=True)
                times[each].append(start(_locking(folder, checkouts[each], each, base)))
            pins = [parse_lock((folder / each).read_text("utf-8"), each).pins for each in checkouts]
            if any(each != pins[0] for each in pins):
                raise SystemExit("the two checkouts pin something else")
    print(f"{datetime.date.today()}: {asked.rounds} rounds; goal: {GOAL_S} s on the clock")
    for each, all_of in times.items():
        for clock, place in (("clock", 0), ("processors", 1)):
            seconds = [found[place] for found in all_of]
            print(
                f"{each}: {clock}: median {statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})"
            )


if __name__ == "__main__":
    main()
