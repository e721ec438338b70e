"""Tests that blocks have for several nodes: how many ranks of which, and what becomes of their output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.model.job import Job
from hpcgen.core.model.performance import TIMES, Measure
from hpcgen.core.model.recipe_facts import FigureTable, RankTest
from hpcgen.core.model.record import Figure, TestResult
from hpcgen.core.support.quoting import sh
from hpcgen.core.support.units import counted, some
from hpcgen.images.recorded import recorded_kit
from hpcgen.images.reference import ImageReference
from hpcgen.kit.kit import read_facts
from hpcgen.launch.start import start
from hpcgen.recipe.formats import FACTS_FILE
from hpcgen.running.here import status_text
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.conditions import is_look
from hpcgen.running.verify.lines import KEPT_LINES
from hpcgen.running.verify.starts import StartResult

RANK_MARK = "hpcgen-rank:"
"""Before the name of its node, in what each rank of a test prints first."""
_LACKS = "hpcgen-lacks:"
_NO_DEVICE = 77
_FEW = 6
_NETWORK = re.compile(r"via NET/([^/]+)/")
_DIRECT = re.compile(r"via NET/.*/GDRDMA")


class LaunchShape(msgspec.Struct, frozen=True):
    """How a test is started: nodes, ranks on each, threads of each rank."""

    nodes: int
    ranks: int
    threads: int


class RanksOutput(msgspec.Struct, frozen=True):
    """What the ranks of a test printed, and on which nodes they ran or lacked the device."""

    lines: list[str]
    ranks: list[str]
    lacking: list[str]


def rank_tests_of(image: ImageReference) -> list[RankTest] | None:
    """The tests for several nodes that an image's kit names; None where its kit is of a release that had none.

    InputError: its recipe.json is damaged.
    """
    file = recorded_kit(image).files.get(FACTS_FILE)
    if file is None:
        return None
    try:
        return read_facts(msgspec.json.decode(file.text), f"{FACTS_FILE} in {image}").rank_tests
    except (msgspec.MsgspecError, RecursionError) as failure:
        raise InputError(f"{FACTS_FILE} in {image} is damaged: {failure}") from failure


def shape_of(test: RankTest, job: Job) -> LaunchShape | None:
    """What a test is started with in a job's allocation; None where the job has no GPU for its ranks."""
    cores = job.ranks_per_node * job.threads_per_rank
    if test.ranks == "per_gpu":
        gpus = job.gpus_per_node or 0
        return LaunchShape(job.nodes, gpus, max(1, cores // gpus)) if gpus else None
    if test.ranks == "all":
        return LaunchShape(job.nodes, job.ranks_per_node, job.threads_per_rank)
    if test.ranks == "pair":
        return LaunchShape(1, 2, job.threads_per_rank)
    return LaunchShape(min(2, job.nodes) if test.ranks == "two" else job.nodes, 1, job.threads_per_rank)


def command_of(test: RankTest, command: str = "") -> list[str]:
    """What each rank starts: the test's command, or another in its place, which first says where it runs."""
    device = sh(test.device)
    lacks = f'if [ ! -e {device} ]; then echo "{_LACKS} $(uname -n)"; exit {_NO_DEVICE}; fi; ' if test.device else ""
    return ["sh", "-c", f'{lacks}echo "{RANK_MARK} $(uname -n)"; {command or test.command}']


def fixed_launcher(whole: ImageJob, job: ImageJob) -> str:
    """The launcher of a job, if it starts as many ranks as the allocation has instead of those of the job; else ""."""
    sizes = [(each.plan.job.nodes, each.plan.job.ranks_per_node) for each in (whole, job)]
    outer, other = (start(each.plan, each.environment).outer for each in (job, whole))
    return outer[0] if sizes[0] != sizes[1] and outer and outer == other else ""


def read_output(lines: Iterable[str]) -> RanksOutput:
    """Tell apart what the ranks say of themselves and what the test prints."""
    found = RanksOutput([], [], [])
    for line in lines:
        for mark, names in ((RANK_MARK, found.ranks), (_LACKS, found.lacking)):
            if line.startswith(mark):
                names.append(line.removeprefix(mark).strip())
                break
        else:
            if not is_look(line):
                found.lines.append(line)
    return found


def networks(lines: Iterable[str]) -> list[str]:
    """The networks over which NCCL says, with ``NCCL_DEBUG=INFO``, that it goes from node to node."""
    return sorted({found[1] for line in lines for found in _NETWORK.finditer(line)})


def direct_paths(lines: Iterable[str]) -> bool:
    """Whether NCCL says that the network reads and writes the memory of the GPUs itself."""
    return any(_DIRECT.search(line) for line in lines)


def result_of(test: RankTest, shape: LaunchShape, ended: StartResult) -> TestResult:
    """Whether a test passed: all its ranks ran, on as many nodes as were meant, and it printed what it should."""
    said = read_output(ended.lines)
    nodes = sorted(set(said.ranks))
    figures = read_figures(test.figures, said.lines)
    result = TestResult(
        group=test.block,
        name=test.name,
        result="passed",
        seconds=ended.seconds,
        output="\n".join(said.lines[-KEPT_LINES:]),
        ranks=len(said.ranks),
        nodes=nodes,
        figures=figures,
    )
    if said.lacking and not said.ranks:
        return skipped(test, f"no {test.device} on {some(sorted(set(said.lacking)), _FEW)}")
    if wrong := _wrong(test, shape, ended, said, nodes):
        return msgspec.structs.replace(result, result="failed", reason=wrong)
    where = f"{counted(len(said.ranks), 'rank')} on {some(nodes, _FEW)}"
    missing = f"no table of {test.figures} in its output" if test.figures and not figures else ""
    measured = "; ".join(filter(None, [summary(figures) or missing, where]))
    return msgspec.structs.replace(result, reason=measured)


def skipped(test: RankTest, why: str) -> TestResult:
    """The result of a test that was not started, or not on any node."""
    return TestResult(group=test.block, name=test.name, result="skipped", reason=why)


def _wrong(test: RankTest, shape: LaunchShape, ended: StartResult, said: RanksOutput, nodes: list[str]) -> str:
    wanted = shape.nodes * shape.ranks
    if said.lacking:
        return f"no {test.device} on {some(sorted(set(said.lacking)), _FEW)}"
    if ended.status is None:
        return f"it was ended after {ended.seconds:g} s"
    if ended.status:
        return f"the start ended with {status_text(ended.status)}"
    if len(said.ranks) != wanted:
        return f"{len(said.ranks)} of {wanted} ranks started"
    if len(nodes) != shape.nodes:
        return f"{counted(wanted, 'rank')} started on {some(nodes, _FEW)}, not on {counted(shape.nodes, 'node')}"
    if test.expect and not any(test.expect in line for line in said.lines):
        return f'no "{test.expect}" in the output'
    return ""


# The tables that benchmarks print → numbers that can be compared. The one place where these are read.
#
# OSU: ``# Size Latency (us)``, ``Avg Latency(us)`` or ``Bandwidth (MB/s)``, then a line for each size (print_header of
# its util/osu_util.c, 5.9 to 7.5). nccl-tests: size, count, type, operation and root, then time, bandwidth of the
# algorithm and of the bus, out of place; ``# Avg bus bandwidth`` at the end (as in reports of 2.13 and later). HPL:
# ``T/V N NB P Q Time Gflops``, of which T/V begins with W (its HPL_pdtest.c; seen with 2.3).

_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
_OSU_HEAD = re.compile(r"# Size\s+(?:Avg )?(Latency|Bandwidth) ?\(([^)\s]+)\)")
_OSU_ROW = re.compile(rf"(\d+)\s+({_NUMBER})(?:\s|$)")
_NCCL_ROW = re.compile(rf"\s*(\d+)\s+\d+\s+[a-z]\w*\s+\w+\s+-?\d+\s+{_NUMBER}\s+{_NUMBER}\s+({_NUMBER})\s")
_NCCL_AVERAGE = re.compile(rf"# Avg bus bandwidth\s*:\s*({_NUMBER})")
_HPL_ROW = re.compile(rf"W\w+\s+(\d+)\s+\d+\s+\d+\s+\d+\s+{_NUMBER}\s+({_NUMBER})\s*")


def read_figures(table: FigureTable, lines: Iterable[str]) -> list[Figure]:
    """All numbers of a table, in their order; none where the output has no such table."""
    return _READERS[table](lines) if table else []


def pattern_of(table: FigureTable, measure: Measure, at: int | None) -> str:
    """A regular expression, for a whole output, that finds a number of a table; ``at``: a size in bytes."""
    if table == "nccl_tests":
        return rf"(?m)^\s*{at}(?:\s+\S+){{6}}\s+(\S+)" if at is not None else r"# Avg bus bandwidth\s*:\s*(\S+)"
    if at is not None:
        return rf"(?m)^{at}\s+(\S+)"
    return r"(?m)^# Size.*\n\d+\s+(\S+)" if measure in TIMES else r"(?ms).*^\d+\s+(\S+)"


def summary(figures: list[Figure]) -> str:
    """What people look for: the latency of the smallest message, or the last number; "" without any."""
    if not figures:
        return ""
    best = figures[0] if figures[0].name == "latency" else figures[-1]
    at = f" at {best.at} {best.at_unit}" if best.at is not None else ""
    return f"{best.name} {best.value:g} {best.unit}{at}"


def _osu(lines: Iterable[str]) -> list[Figure]:
    found: list[Figure] = []
    name = unit = ""
    for line in lines:
        if head := _OSU_HEAD.match(line):
            name, unit = head[1].lower(), head[2]
        elif name and (row := _OSU_ROW.match(line)):
            found.append(Figure(name=name, value=float(row[2]), unit=unit, at=int(row[1]), at_unit="bytes"))
    return found


def _nccl_tests(lines: Iterable[str]) -> list[Figure]:
    found: list[Figure] = []
    for line in lines:
        if row := _NCCL_ROW.match(line):
            value = float(row[2])
            found.append(Figure(name="bus bandwidth", value=value, unit="GB/s", at=int(row[1]), at_unit="bytes"))
        elif average := _NCCL_AVERAGE.match(line):
            found.append(Figure(name="average bus bandwidth", value=float(average[1]), unit="GB/s"))
    return found


def _hpl(lines: Iterable[str]) -> list[Figure]:
    rows = (row for line in lines if (row := _HPL_ROW.fullmatch(line)))
    return [
        Figure(name="performance", value=float(row[2]), unit="GFLOPS", at=int(row[1]), at_unit="equations")
        for row in rows
    ]


_READERS: dict[str, Callable[[Iterable[str]], list[Figure]]] = {"osu": _osu, "nccl_tests": _nccl_tests, "hpl": _hpl}
