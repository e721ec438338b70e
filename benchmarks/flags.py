"""What flags do to own code, kernels × flags × compilers: `python benchmarks/flags.py --compiler gcc-12 --rounds 9`.

`flags_kernels.c` is compiled by each compiler with each set of flags; `TARGET` is what hpcgen says for this CPU. In
each round every program runs every kernel once, the programs in turns, in every other round in the opposite order. A
ratio is that of one round to the same compiler's plain -O2, by the processor's time of the kernel alone: one thread
that asks nothing of the operating system, data in the cache.
``--rows FILE`` adds the medians and their intervals as measurements.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.core.model.fields import Source
from hpcgen.machine.detect.probes.cpu import read_cpuinfo, target_of
from hpcgen.plugins.tuning.bench.intervals import Interval, typical
from hpcgen.plugins.tuning.measurements.lines import append
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload

SOURCE = Path(__file__).with_name("flags_kernels.c")
KERNELS = ("halo", "triad", "dgemm", "branchy", "reductions")
PLAIN = "-O2"
FLAGS = (PLAIN, "-O2 TARGET", "-O3", "-O3 TARGET", "-O3 -march=native", "-O3 TARGET -ffast-math")


class Compiled(NamedTuple):
    """A program: by which compiler, of which version, with which flags (``words``: as they were in full)."""

    compiler: str
    version: str
    flags: str
    words: str
    program: Path


class Run(NamedTuple):
    """Seconds of one run of a kernel: of the processor, and on the clock; and its result."""

    processor: float
    wall: float
    result: float


Cell = tuple[str, Compiled]
"""A kernel and a program."""


def compile_all(compilers: Sequence[str], target: str, folder: Path) -> Iterator[Compiled]:
    """The programs; SystemExit if a compiler is missing or refuses."""
    for compiler in compilers:
        if shutil.which(compiler) is None:
            raise SystemExit(f"{compiler} is not on the PATH: name those that are with --compiler")
        said = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout
        version = re.findall(r"\d+\.\d+\.\d+", said)[0]
        name = "clang" if "clang" in said else "gcc"
        for number, flags in enumerate(FLAGS):
            words = flags.replace("TARGET", " ".join(compiler_flags(target, name, version)))
            program = folder / f"{compiler}-{number}"
            subprocess.run([compiler, *words.split(), "-o", program, SOURCE, "-lm"], check=True)
            yield Compiled(name, version, flags, words, program)


def measure(programs: Sequence[Compiled], rounds: int, times: float) -> dict[Cell, list[Run]]:
    """All runs of each kernel by each program, round by round."""
    found: dict[Cell, list[Run]] = defaultdict(list)
    for number in range(rounds):
        for kernel in KERNELS:
            for each in programs if number % 2 == 0 else reversed(programs):
                found[kernel, each].append(_run(each.program, kernel, times))
    return found


def _run(program: Path, kernel: str, times: float) -> Run:
    done = subprocess.run([program, kernel, str(times)], capture_output=True, text=True, check=True)
    return Run(*map(float, done.stdout.split()))


def speedup(runs: Sequence[Run], plain: Sequence[Run], by: str = "processor") -> Interval:
    """How many times as fast as plain -O2, round by round."""
    pairs = zip(plain, runs, strict=True)
    return typical([getattr(base, by) / getattr(run, by) for base, run in pairs])


def _plain(kernel: str, program: Compiled, found: Mapping[Cell, Sequence[Run]]) -> tuple[Compiled, Sequence[Run]]:
    """The program by the same compiler with plain -O2, and its runs."""
    same = (program.compiler, program.version)
    return next(
        (other, runs)
        for (of, other), runs in found.items()
        if of == kernel and other.flags == PLAIN and (other.compiler, other.version) == same
    )


def print_table(found: Mapping[Cell, Sequence[Run]]) -> None:
    """Ratios by the processor's time and by the clock, each kernel of each compiler on a line."""
    print("kernel      compiler      flags                       cpu: median (95 %)      wall    result")
    for (kernel, program), runs in found.items():
        _, plain = _plain(kernel, program, found)
        cpu, wall = speedup(runs, plain), speedup(runs, plain, "wall")
        interval = f"({cpu.low:.2f} to {cpu.high:.2f})" if cpu.low is not None else ""
        off = abs(runs[0].result - plain[0].result) / abs(plain[0].result)
        result = f"differs by {off:.0e}" if off else "the same"
        name = f"{program.compiler} {program.version}"
        print(f"{kernel:11} {name:13} {program.flags:26}  {cpu.value:.2f} {interval:18} {wall.value:6.2f}    {result}")


def rows(found: Mapping[Cell, Sequence[Run]], target: str, command: str) -> Iterator[Measurement]:
    """Measurements: the speed in relation to plain -O2 of the same compiler."""
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    hardware = Hardware(f"cpu-{target}", cpu=target, model=model[1] if model else "", cores=os.cpu_count())
    today = datetime.date.today().isoformat()
    for (kernel, program), runs in found.items():
        base, plain = _plain(kernel, program, found)
        if program is base:
            continue
        value = speedup(runs, plain)
        yield Measurement(
            workload=Workload(f"kernel-{kernel}", "hpc", precision="fp64"),
            software=_software(program),
            baseline=_software(base),
            hardware=hardware,
            metric="speedup",
            value=round(value.value, 3),
            low=round(value.low, 3) if value.low is not None else None,
            high=round(value.high, 3) if value.high is not None else None,
            repetitions=len(runs),
            threads_per_rank=1,
            measured=today,
            command=command,
            source=Source("measured by benchmarks/flags.py, processor time of one thread", today, "yes", today),
        )


def _software(program: Compiled) -> Software:
    return Software(program.compiler, program.version, environment={"CFLAGS": program.words})


def main() -> None:
    """Compile, measure, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--compiler", action="append", help="its command; may be repeated [default: gcc]")
    parser.add_argument("--target", help="archspec's name of the CPU [default: this machine's]")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--times", type=float, default=1.0, help="as much work in each run [default: about 0.1 s]")
    parser.add_argument("--rows", type=Path, help="add the medians to this file of measurements")
    parser.add_argument("--once", action="store_true", help="one short round: whether it works at all")
    asked = parser.parse_args()
    rounds, times = (1, 0.01) if asked.once else (asked.rounds, asked.times)
    target = asked.target or _this_cpu()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        programs = list(compile_all(asked.compiler or ["gcc"], target, Path(folder)))
        found = measure(programs, rounds, times)
    print(f"{target}, {rounds} rounds; load {before:.1f} before and {os.getloadavg()[0]:.1f} after; TARGET is")
    for each in programs:
        if each.flags == "-O2 TARGET":
            print(f"  {each.compiler} {each.version}: {each.words.partition(' ')[2]}")
    print_table(found)
    if asked.rows is not None:
        command = f"benchmarks/flags.py, processor time, load {before:.1f} to {os.getloadavg()[0]:.1f}"
        print(f"{append(asked.rows, rows(found, target, command))} rows in {asked.rows}")


def _this_cpu() -> str:
    """As `hpcgen site detect` names it, which is not misled by features that a hypervisor hides."""
    return target_of(read_cpuinfo(Path("/proc/cpuinfo").read_text("utf-8"))[0], platform.machine())


if __name__ == "__main__":
    main()
