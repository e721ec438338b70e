"""What locking Python packages takes, against uv alone: `python benchmarks/locking.py --rounds 9`. Needs a network.

In each round uv resolves 40 packages with hashes, and hpcgen makes the wheel list of the same ones for the same Python,
with the same indexes (for uv in pip's order) and with uv's cache warm for both; the order of the two alternates. What
hpcgen's process learns once of pip's settings is forgotten before each round. ``--index`` asks one index alone;
otherwise both take those of pip's settings.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hpcgen.plugins.tuning.bench.intervals import Interval, geometric
from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.uv_resolver import _environment, _uv
from hpcgen.supply.pin.wheels import lock_wheels

GOAL = 1.3
PYTHON, ARCHITECTURE, GLIBC = "3.11.2", "x86_64", "2.36"
PACKAGES = [
    "aiohttp",
    "attrs",
    "boto3",
    "click",
    "cryptography",
    "dask",
    "fastapi",
    "flask",
    "h5py",
    "httpx",
    "jinja2",
    "joblib",
    "jsonschema",
    "lxml",
    "matplotlib",
    "msgspec",
    "netcdf4",
    "networkx",
    "numba",
    "numpy",
    "pandas",
    "paramiko",
    "pillow",
    "psutil",
    "pyarrow",
    "pydantic",
    "pytest",
    "pyyaml",
    "requests",
    "rich",
    "scikit-learn",
    "scipy",
    "seaborn",
    "sqlalchemy",
    "statsmodels",
    "sympy",
    "tables",
    "tqdm",
    "xarray",
    "zarr",
]


def by_uv(index: str | None, packages: Sequence[str]) -> None:
    """uv alone, with the hashes of all files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "asked.in").write_text("\n".join(packages), "utf-8")
        words = ["pip", "compile", "asked.in", "--generate-hashes", "--output-file", "listing.txt", "--quiet"]
        words += [
            "--python-version",
            PYTHON,
            "--python-platform",
            f"{ARCHITECTURE}-manylinux_{GLIBC.replace('.', '_')}",
        ]
        words += ["--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
        settings = pip_settings()
        links = () if index else settings.links
        first, *more = [index] if index else settings.indexes
        words += [word for link in links for word in ("--find-links", link)]
        words += ["--default-index", first, *(word for each in more for word in ("--index", each))]
        command = [_uv("measure uv"), *words, "--no-config", "--python", sys.executable]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=_environment(os.environ))
        if done.returncode != 0:
            raise SystemExit(done.stderr)


def by_hpcgen(index: str | None, packages: Sequence[str]) -> None:
    """The wheel list that `hpcgen lock` and `hpcgen wheels lock` make."""
    lock_wheels(packages, PYTHON, ARCHITECTURE, GLIBC, indexes=[index] if index else None)


def _processor_time() -> float:
    """Of this process and of those that it started."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def seconds(
    work: Callable[[str | None, Sequence[str]], None], index: str | None, packages: Sequence[str]
) -> tuple[float, float]:
    """The time of one call on the clock, and on the processors; hpcgen reads pip's settings anew."""
    if work is by_hpcgen:
        pip_settings.cache_clear()
    began, used = time.perf_counter(), _processor_time()
    work(index, packages)
    return time.perf_counter() - began, _processor_time() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--index", help="address of one simple index")
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--once", action="store_true", help="one round of the least that there can be: to see that it works"
    )
    asked = parser.parse_args()
    packages = PACKAGES
    if asked.once:
        asked.rounds, packages = 1, PACKAGES[:1]
    pip_settings()
    by_uv(asked.index, packages)
    by_hpcgen(asked.index, packages)
    times: dict[str, list[tuple[float, float]]] = {"uv": [], "hpcgen": []}
    for number in range(asked.rounds):
        pair = [("uv", by_uv), ("hpcgen", by_hpcgen)]
        for name, work in pair if number % 2 == 0 else reversed(pair):
            times[name].append(seconds(work, asked.index, packages))
    clocks = {"clock": 0, "processors": 1}
    ratios = {clock: _ratio(times, place) for clock, place in clocks.items()}
    if asked.json:
        json.dump(
            {**times, "ratio": {name: [each.value, each.low, each.high] for name, each in ratios.items()}},
            sys.stdout,
            indent=2,
        )
        return
    print(f"{datetime.date.today()}: {len(packages)} packages, {asked.rounds} pairs; goal: {GOAL}")
    for clock, place in clocks.items():
        for name, all_of in times.items():
            print(f"{clock}: {name}: {', '.join(f'{each[place]:.2f}' for each in all_of)} s")
        found = ratios[clock]
        low, high = found.low or found.value, found.high or found.value
        print(f"{clock}: {found.value:.2f} times uv's own time ({low:.2f} to {high:.2f})")


def _ratio(times: Mapping[str, Sequence[tuple[float, float]]], place: int) -> Interval:
    """hpcgen's time to uv's, pair by pair."""
    return geometric([ours[place] / theirs[place] for ours, theirs in zip(times["hpcgen"], times["uv"], strict=True)])


if __name__ == "__main__":
    main()
