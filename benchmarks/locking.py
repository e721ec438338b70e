"""What locking Python packages takes, against uv alone: `python benchmarks/locking.py --rounds 9`. Needs a network.

In each round uv resolves 40 packages with hashes, and hpcgen makes the wheel list of the same ones for the same Python,
with the same index and with uv's cache warm for both; the order alternates. What hpcgen's process learns once of pip's
settings is forgotten before each round. ``--index`` asks one index alone; otherwise both take those of pip's settings.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from hpcgen.bench.intervals import geometric
from hpcgen.locking.uv_resolver import run_uv
from hpcgen.locking.wheels import lock_wheels
from hpcgen.net.pip_settings import pip_settings

GOAL = 1.5
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


def by_uv(index: str | None) -> None:
    """uv alone, with the hashes of all files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "asked.in").write_text("\n".join(PACKAGES), "utf-8")
        words = ["pip", "compile", "asked.in", "--generate-hashes", "--output-file", "listing.txt", "--quiet"]
        words += [
            "--python-version",
            PYTHON,
            "--python-platform",
            f"{ARCHITECTURE}-manylinux_{GLIBC.replace('.', '_')}",
        ]
        words += ["--only-binary", ":all:", "--index-strategy", "unsafe-best-match"]
        done = run_uv(words, [index] if index else None, folder, "measure uv")
        if done.returncode != 0:
            raise SystemExit(done.stderr)


def by_hpcgen(index: str | None) -> None:
    """The wheel list that `hpcgen lock` and `hpcgen wheels lock` make."""
    lock_wheels(PACKAGES, PYTHON, ARCHITECTURE, GLIBC, indexes=[index] if index else None)


def seconds(work: Callable[[str | None], None], index: str | None) -> float:
    """The time of one call on the clock; pip's settings are read anew where hpcgen reads them."""
    if work is by_hpcgen:
        pip_settings.cache_clear()
    began = time.perf_counter()
    work(index)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--index", help="address of one simple index")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    pip_settings()
    by_uv(asked.index)
    by_hpcgen(asked.index)
    times: dict[str, list[float]] = {"uv": [], "hpcgen": []}
    for number in range(asked.rounds):
        pair = [("uv", by_uv), ("hpcgen", by_hpcgen)]
        for name, work in pair if number % 2 == 0 else reversed(pair):
            times[name].append(seconds(work, asked.index))
    found = geometric([ours / theirs for ours, theirs in zip(times["hpcgen"], times["uv"], strict=True)])
    if asked.json:
        json.dump({**times, "ratio": [found.value, found.low, found.high]}, sys.stdout, indent=2)
        return
    for name, all_of in times.items():
        print(f"{name}: {', '.join(f'{each:.2f}' for each in all_of)} s")
    low, high = found.low or found.value, found.high or found.value
    print(f"{len(PACKAGES)} packages: {found.value:.2f} times uv's own time ({low:.2f} to {high:.2f}); goal: {GOAL}")


if __name__ == "__main__":
    main()
