"""Images per second of layouts, with and without what hpcgen sets. Run it on a quiet machine.

    python benchmarks/layout/measure.py IMAGE --site SITE --layout 1x2 --layout 2x1 --rounds 7 --keep runs.jsonl

IMAGE is a Charliecloud folder of the stack tf-horovod, SITE a profile with the host's MPI; mpiexec is on PATH.
Per round and layout (ranks x threads) each way runs once, and every other round in the opposite order:

    plain     mpiexec -n RANKS ch-run --set-env IMAGE, and nothing of hpcgen
    hpcgen    hpcgen run IMAGE --site SITE --ranks-per-node RANKS --threads THREADS
    pools     the same with TensorFlow's own pools told the threads: TF_NUM_INTRAOP_THREADS, TF_NUM_INTEROP_THREADS

A run in which other programs left the machine alone in fewer than MINIMUM blocks of steps is done again. Each round
is a line of JSON in the file of --keep, which further calls add to; the table is over all of it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).with_name("mnist_cnn.py")
WAYS = ("plain", "hpcgen", "pools")
MINIMUM = 3
TRIES = 8


def command(
    way: str, image: str, site: str, ranks: int, threads: int, folder: Path
) -> tuple[list[str], dict[str, str]]:
    """The words and the added variables of one run."""
    if way == "plain":
        outside = ["mpiexec", "-n", str(ranks), "ch-run", "--set-env", "-b", f"{folder}:/mnt/0", "-c", "/mnt/0"]
        return [*outside, image, "--"], {}
    layout = ["--ranks-per-node", str(ranks), "--threads", str(threads)]
    words = [sys.executable, "-m", "hpcgen", "run", image, "--site", site, *layout, "--"]
    if way == "hpcgen":
        return words, {}
    return words, dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"), str(threads))


def run(way: str, given: argparse.Namespace, ranks: int, threads: int, folder: Path) -> dict[str, Any]:
    """One run that was left alone; what its rank 0 printed."""
    words, added = command(way, given.image, given.site, ranks, threads, folder)
    for _ in range(TRIES):
        program = ["python3", PROGRAM.name, "--blocks", str(given.blocks), "--quiet", str(given.quiet)]
        done = subprocess.run(
            [*words, *program], cwd=folder, env={**os.environ, **added}, capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"{way}, {ranks}x{threads}: status {done.returncode}\n{done.stdout}\n{done.stderr}")
        result: dict[str, Any] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
        if result["ranks"] != ranks:
            sys.exit(f"{way}: {result['ranks']} ranks instead of {ranks}")
        quiet = result["quiet_blocks"]
        print(f"{ranks}x{threads} {way}: {result['images_per_second']} images/s, {quiet} quiet", file=sys.stderr)
        if quiet >= MINIMUM:
            return result
    sys.exit(f"this machine is not quiet enough: {TRIES} runs in vain")


def table(rounds: list[dict[str, Any]]) -> str:
    """Median and range over the rounds and, round by round, the ratio to the plain start."""
    lines = ["layout  way     rounds  median images/s  lowest  highest  ratio to plain (range)         busy cores"]
    for layout in sorted({each["layout"] for each in rounds}):
        mine = [each for each in rounds if each["layout"] == layout]
        for way in (way for way in WAYS if way in mine[0]):
            found = [each[way]["images_per_second"] for each in mine]
            ratios = [each[way]["images_per_second"] / each["plain"]["images_per_second"] for each in mine]
            ratio = f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            busy = statistics.median(each[way]["busy"] for each in mine)
            numbers = f"{statistics.median(found):15.0f}  {min(found):6.0f}  {max(found):7.0f}"
            lines.append(f"{layout:6}  {way:6}  {len(found):6}  {numbers}  {ratio:29}  {busy:.2f}")
    return "\n".join(lines)


def main() -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image")
    parser.add_argument("--site", required=True)
    parser.add_argument("--layout", action="append", required=True, metavar="RANKSxTHREADS")
    parser.add_argument("--way", action="append", choices=WAYS, help="all if left out; plain is needed")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--blocks", type=int, default=12, help="of steps in one run")
    parser.add_argument("--quiet", type=float, default=0.1, help="cores that others may use in a block that counts")
    parser.add_argument("--keep", type=Path, required=True, metavar="FILE")
    given = parser.parse_args()
    layouts = [tuple(int(number) for number in layout.split("x")) for layout in given.layout]
    done = len(given.keep.read_text().splitlines()) if given.keep.exists() else 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(PROGRAM, folder)
        for number in range(done, done + given.rounds * len(layouts)):
            ranks, threads = layouts[number % len(layouts)]
            ways = given.way or WAYS
            order = ways if number // len(layouts) % 2 == 0 else ways[::-1]
            results = {way: run(way, given, ranks, threads, folder) for way in order}
            with given.keep.open("a") as file:
                file.write(json.dumps({"layout": f"{ranks}x{threads}", **results}) + "\n")
    print(table([json.loads(line) for line in given.keep.read_text().splitlines()]))


if __name__ == "__main__":
    main()
