"""What hpcgen gains over `pip install`: `python benchmarks/gains/run.py --python pytorch=VENV/bin/python …`.

Of each workload there is one process for each variant, and they take turns: `plain` as a user starts it, `default` as
hpcgen's image does, `optimise` with a graph compiler or engine that `hpcgen optimise` chooses from, `tuned` with what
`hpcgen tune` found (`--tuned`), `expert` with what somebody sets by hand. A ratio is that of one round. All but `plain`
and `expert` run in the image of `--image`, or in the same Python with the variables that hpcgen sets.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from rows import (
    CHOSEN,
    DEFAULT,
    EXPERT,
    IMAGE,
    MEMORY,
    OPENMP,
    PLAIN,
    ROWS,
    TUNED,
    Row,
    Way,
    program_of,
    request_of,
    tuned,
)
from workers import Measured, Start, measure

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.core.model.fields import Source
from hpcgen.machine.detect.probes.cpu import read_cpuinfo, target_of
from hpcgen.plugins.tuning.bench.intervals import geometric
from hpcgen.plugins.tuning.measurements.lines import append
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software
from hpcgen.plugins.tuning.predict.pairs import RUNTIMES

OWN = "own"
BF16 = "-bf16"


class Machine(msgspec.Struct, frozen=True):
    """Where is measured: the Pythons and images by framework, threads, archspec's name of the CPU, where
    MPI's programs are, and the profile that images are started for (that of the image without one).
    """

    pythons: Mapping[str, str]
    images: Mapping[str, str]
    threads: int
    target: str
    mpi: str
    site: str = ""


def ways_of(row: Row, asked: argparse.Namespace) -> dict[str, Way]:
    """The variants of a row, first the one that others are compared with."""
    if asked.memory:
        return {PLAIN: Way(), **MEMORY}
    if asked.engines:
        faster = {name: way for name, way in row.ways.items() if way.compiler and name != EXPERT}
        return {DEFAULT: Way(IMAGE), **faster}
    if asked.openmp:
        return {PLAIN: Way(), **OPENMP}
    settings = dict(asked.tuned).get(row.name)
    more = {TUNED: tuned(settings), **row.ways} if settings else row.ways
    ways = {PLAIN: Way(), DEFAULT: Way(IMAGE), **more}
    if row.framework == OWN:
        return {PLAIN: Way(flags="-O2"), DEFAULT: Way(flags="-O3 TARGET"), **more}
    if asked.bf16 and row.bf16:
        for name in (DEFAULT, row.bf16):
            ways[name + BF16] = msgspec.structs.replace(ways[name], precision="bf16")
    return ways


def starts_of(row: Row, ways: Mapping[str, Way], machine: Machine, folder: Path) -> dict[str, Start]:
    """How the variants are started; SystemExit where the program is missing."""
    if row.framework == OWN:
        return {name: _own(name, way, machine, folder) for name, way in ways.items()}
    text = program_of(row.framework)
    found = {}
    for name, way in ways.items():
        words = ["-c", text, request_of(row, way, machine.threads)]
        threads = {"OMP_NUM_THREADS": str(machine.threads)} if name != PLAIN or machine.threads == 1 else {}
        image = machine.images.get(row.framework) if not name.startswith((PLAIN, EXPERT)) else None
        if image is None:
            found[name] = Start([machine.pythons[row.framework], *words], {**threads, **way.environment})
        else:
            site = ["--site", machine.site] if machine.site else ["--trust-image"]
            run = ["hpcgen", "run", image, *site, "--quiet", "--threads", str(machine.threads), "--"]
            found[name] = Start([*run, *_inside(way), "python3", *words])
    return found


def _inside(way: Way) -> list[str]:
    """The program that gives a way its variables in an image, which has the default's."""
    more = [f"{name}={value}" for name, value in way.environment.items() if IMAGE.get(name) != value]
    less = [word for name in IMAGE if name not in way.environment for word in ("-u", name)]
    return ["env", *less, *more] if less or more else []


def _own(name: str, way: Way, machine: Machine, folder: Path) -> Start:
    """The halo exchange, compiled with a variant's flags by the MPI's compiler."""
    program = folder / f"halo-{name}"
    version = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout.strip()
    flags = way.flags.replace("TARGET", " ".join(compiler_flags(machine.target, "gcc", version))).split()
    source = Path(__file__).with_name("halo.c")
    subprocess.run([f"{machine.mpi}/mpicc", *flags, "-o", program, source, "-lm"], check=True)
    return Start([f"{machine.mpi}/mpiexec", "-n", str(machine.threads), str(program)], way.environment)


def lines_of(row: Row, found: Measured, by: str) -> Iterator[str]:
    """A row in words: each variant's ratio to the first with its interval, and how far its results are from those."""
    waited = sum(found.waited) / max(1, len(found.waited))
    load = max(found.load, default=0.0)
    base = next(iter(found.turns))
    yield f"{row.name}: {len(found.load)} rounds, load {load:.1f}, CPUs wanted by others {waited:.0%} of the time"
    for name, turns in found.turns.items():
        gain, off = found.gain(name, base, by), found.off(name, base)
        bounds = f"({gain.low:.2f} to {gain.high:.2f})" if gain.low is not None and gain.high is not None else ""
        results = "" if off is None else f"  results differ by {off:.0e}" if off else "  results the same"
        memory = max(turn.memory for turn in turns) / 2**20
        shown = f"  {memory:.0f} MiB" if memory else ""
        yield f"  {name:14} {gain.value:5.2f} {bounds:16} {getattr(turns[0], by) * 1e3:8.1f} ms{shown}{results}"
    for name, why in found.refused.items():
        yield f"  {name:14} not measured: {why}"


def measurements(
    row: Row, found: Measured, ways: Mapping[str, Way], machine: Machine, by: str
) -> Iterator[Measurement]:
    """Rows for ``measurements/``: the speed in relation to the first variant."""
    base = next(iter(ways))
    model = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
    hardware = Hardware(
        name=f"cpu-{machine.target}", cpu=machine.target, model=model[1] if model else "", cores=os.cpu_count()
    )
    today = datetime.date.today().isoformat()
    waited = sum(found.waited) / max(1, len(found.waited))
    said = f"load up to {max(found.load):.1f}, CPUs wanted by others {waited:.0%} of the time" if found.load else ""
    told = f"measured by benchmarks/gains/run.py, {'processor time' if by == 'cpu' else 'the clock'}; {said}"
    for name in found.turns:
        # A row has one workload for both, so a ratio of two precisions is none.
        if name == base or ways[name].precision:
            continue
        gain, way = found.gain(name, base, by), ways[name]
        yield Measurement(
            workload=row.workload.record,
            software=_software(row, way, machine),
            baseline=_software(row, ways[base], machine),
            hardware=hardware,
            metric="speedup",
            value=round(gain.value, 3),
            low=round(gain.low, 3) if gain.low is not None else None,
            high=round(gain.high, 3) if gain.high is not None else None,
            repetitions=len(found.turns[name]),
            threads_per_rank=machine.threads,
            measured=today,
            command=f"benchmarks/gains/run.py, {name}",
            source=Source(from_=told, checked=today, as_of=today, verified="yes"),
        )


_VERSION = """
from importlib.metadata import PackageNotFoundError, version
for name in {names!r}:
    try:
        print(version(name))
        break
    except PackageNotFoundError:
        pass
"""
_NAMES = {
    "pytorch": ["torch"],
    "tensorflow": ["tensorflow", "tensorflow-cpu"],
    "numpy": ["scipy"],
    "onnxruntime": ["onnxruntime"],
    "openvino": ["openvino"],
}


def _software(row: Row, way: Way, machine: Machine) -> Software:
    if row.framework == OWN:
        return Software(framework="gcc", environment={"CFLAGS": way.flags})
    return Software(
        framework="scipy" if row.framework == "numpy" else row.framework,
        version=_version(row.framework, row, machine),
        blocks={way.compiler: _version(way.compiler, row, machine)} if way.compiler in RUNTIMES else {},
        install="pip",
        compiler=way.compiler,
        engine="none" if row.framework not in machine.images else "",
        environment=dict(way.environment),
    )


def _version(name: str, row: Row, machine: Machine) -> str:
    """The release of a framework or runtime in the Python of the row."""
    asked = _VERSION.format(names=_NAMES[name])
    words = [machine.pythons[row.framework], "-c", asked]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return said.strip().partition("+")[0]


_OFFERED = {"default": [DEFAULT], "the best that hpcgen offers": [DEFAULT, CHOSEN, TUNED, "onnxruntime", "openvino"]}


def summary(all_found: Mapping[str, Measured], by: str) -> Iterator[str]:
    """The geometric mean over the rows of the default, and of the best of the same precision that is no expert's."""
    for title, names in _OFFERED.items():
        gains = [
            max(found.gain(name, PLAIN, by).value for name in names if name in found.turns)
            for found in all_found.values()
            if PLAIN in found.turns and any(name in found.turns for name in names)
        ]
        if gains:
            mean, count = geometric(gains).value, len(gains)
            yield f"{title}: {mean:.2f} in the geometric mean of {count}, {min(gains):.2f} to {max(gains):.2f}"


def main() -> None:
    """Measure, print row by row, and keep if asked."""
    asked = _arguments()
    machine = Machine(
        pythons=dict(each.split("=", 1) for each in asked.python),
        images=dict(each.split("=", 1) for each in asked.image),
        threads=asked.threads,
        target=asked.target or _this_cpu(),
        mpi=asked.mpi or str(Path(shutil.which("mpicc") or "/missing/mpicc").parent),
        site=asked.site,
    )
    by, clock = ("cpu", "processor time") if asked.processor else ("wall", "the clock")
    kept: dict[str, Measured] = {}
    print(f"{machine.target}, {os.cpu_count()} CPUs, {machine.threads} threads, by {clock}")
    for name in asked.row or ROWS:
        row = ROWS[name]
        missing = "mpicc" if row.framework == OWN else f"--python {row.framework}="
        if not (Path(machine.mpi, "mpicc").exists() if row.framework == OWN else row.framework in machine.pythons):
            print(f"{name}: left out without {missing}", flush=True)
            continue
        ways = ways_of(row, asked)
        with tempfile.TemporaryDirectory() as folder:
            found = measure(starts_of(row, ways, machine, Path(folder)), asked.rounds, asked.seconds, asked.starts)
        base = next(iter(ways))
        if base not in found.turns:
            print(f"{name}: the {base} variant cannot be measured: {found.refused.get(base)}", flush=True)
            continue
        kept[name] = found
        print("\n".join(lines_of(row, found, by)), flush=True)
        if asked.rows is not None:
            append(asked.rows, measurements(row, found, ways, machine, by))
    print("\n".join(summary(kept, by)))
    if asked.json is not None:
        asked.json.write_text(json.dumps({name: msgspec.to_builtins(each) for name, each in kept.items()}))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    more = {"action": "append", "default": [], "metavar": "FRAMEWORK=PATH"}
    parser.add_argument("--python", **more, help="pytorch, tensorflow or numpy, and a Python that has it")
    parser.add_argument("--image", **more, help="the same, and an image of hpcgen's, which the default runs in")
    parser.add_argument("--site", default="", help="profile that images are started for [default: the image's own]")
    parser.add_argument("--mpi", help="folder of mpicc and mpiexec for the own code [default: of the PATH]")
    parser.add_argument("--row", action="append", choices=list(ROWS), help="only this workload; may be repeated")
    parser.add_argument(
        "--tuned",
        action="append",
        default=[],
        type=_tuned,
        metavar="'ROW SETTING…'",
        help="what `hpcgen tune` found for a workload, in its words, such as 'fft env.HPCGEN_FFT_WORKERS=all'; "
        "flags=… of the halo exchange come last",
    )
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=1.0, help="about how long a turn is [default: 1]")
    parser.add_argument("--starts", type=int, default=1, help="the rounds are divided among so many starts")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--target", help="archspec's name of the CPU [default: this machine's]")
    parser.add_argument(
        "--processor", action="store_true", help="compare processor time; with --threads 1 on a busy machine"
    )
    parser.add_argument("--memory", action="store_true", help="compare ways of allocating memory instead")
    parser.add_argument("--engines", action="store_true", help="compare graph compilers and engines with the default")
    parser.add_argument("--openmp", action="store_true", help="compare how threads of OpenMP wait and where they run")
    parser.add_argument("--bf16", action="store_true", help="bfloat16 beside it, which gives other results")
    parser.add_argument("--rows", type=Path, help="add the ratios to this file of measurements")
    parser.add_argument("--json", type=Path, help="write all turns here")
    return parser.parse_args()


def _tuned(text: str) -> tuple[str, dict[str, str]]:
    """A workload and its settings."""
    settings, _, flags = text.partition(" flags=")
    name, *words = settings.split()
    if name not in ROWS:
        raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(ROWS)}")
    return name, dict(word.split("=", 1) for word in words) | ({"flags": flags} if flags else {})


def _this_cpu() -> str:
    """As `hpcgen site detect` names it, which is not misled by features that a hypervisor hides."""
    return target_of(read_cpuinfo(Path("/proc/cpuinfo").read_text("utf-8"))[0], platform.machine())


if __name__ == "__main__":
    main()
