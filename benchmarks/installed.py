#!/usr/bin/env python3
"""How many entries on the disk an environment takes as a venv and as installed images, and how long a cold import is.

Each round starts every Python once, in an order drawn anew, after the kernel has dropped what it keeps of files (this
needs root, and a machine with nothing else to do). Times are compared round by round with those of the venv.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import time
from pathlib import Path

from hpcgen.plugins.tuning.bench.intervals import Interval, ratio

_DROP = Path("/proc/sys/vm/drop_caches")


def main() -> None:
    """Print a line for each Python, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, epilog="Nothing here is a test: it reports and exits 0.")
    parser.add_argument("venv", type=Path, help="a folder with bin/python3 and the module")
    parser.add_argument("prefix", type=Path, nargs="+", help="where hpcgen install put bin/python3, of one image each")
    parser.add_argument("--module", default="torch", help="what is imported (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="imports of each (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON, times in seconds")
    asked = parser.parse_args()
    if asked.rounds < 2:
        parser.error("at least two rounds are needed for an interval")
    folders = [asked.venv, *asked.prefix]
    times: dict[Path, list[float]] = {folder: [] for folder in folders}
    for number in range(asked.rounds + 1):
        for folder in random.sample(folders, len(folders)):
            taken = _cold(folder / "bin" / "python3", asked.module)
            # In the first round byte code may still be compiled.
            times[folder] += [taken] if number else []
    rows = [_row(folder, times[folder], times[asked.venv]) for folder in folders]
    if asked.json:
        print(json.dumps({"module": asked.module, "rounds": asked.rounds, "rows": rows}, indent=1))
        return
    for row in rows:
        low, high = row["ratio_low"], row["ratio_high"]
        print(
            f"{row['what']}: {row['entries']} entries, {row['median_s']:.2f} s, "
            f"{row['ratio']:.2f} ({low:.2f} to {high:.2f}) of the venv's time"
        )


def _row(folder: Path, times: list[float], venv: list[float]) -> dict[str, str | int | float]:
    image = _image(folder)
    compared: Interval = ratio(times, venv)
    low = compared.low if compared.low is not None else compared.value
    high = compared.high if compared.high is not None else compared.value
    return {
        "what": str(image or folder),
        "entries": _entries(image or folder),
        "median_s": statistics.median(times),
        "ratio": compared.value,
        "ratio_low": low,
        "ratio_high": high,
    }


def _image(folder: Path) -> Path | None:
    """The image whose commands a prefix has; None for a venv."""
    found = sorted(folder.glob("share/hpcgen/*/installed.json"))
    return Path(json.loads(found[0].read_text())["image"]) if found else None


def _entries(path: Path) -> int:
    """Names on the disk: files, links and folders."""
    if not path.is_dir():
        return 1
    return 1 + sum(len(folders) + len(files) for _, folders, files in os.walk(path))


def _cold(python: Path, module: str) -> float:
    """Seconds of an import with nothing of it in memory."""
    os.sync()
    _DROP.write_text("3")
    began = time.perf_counter()
    subprocess.run([python, "-c", f"import {module}"], check=True)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
