"""Ratios by pairs of rows: how much faster one choice of software was than another, shrunk towards "no difference".

Two rows that differ in one choice alone are compared, so that nothing of machine, network or layout has to be modelled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.plugins.tuning.measurements.records import (
    HIGHER_IS_BETTER,
    Hardware,
    Measurement,
    Metric,
    Software,
    Workload,
)
from hpcgen.plugins.tuning.predict.terms import identity, structure

SPEEDS: tuple[Metric, ...] = ("samples_per_second", "seconds_per_epoch", "seconds_per_batch", "seconds", "gflops")
"""Metrics that say how fast a program is, what people look at first."""
RUNTIMES = frozenset({"onnxruntime", "openvino", "tvm"})
"""What runs the models of a framework in its place."""
STRENGTH = 1.0
"""How many machines' ratios an expectation counts for, of those that are less like the case: it is not tuned."""
UNKNOWN = 10
"""How many releases away rows count as that do not say theirs."""
NEAR = 3
"""Releases within which rows may decide: about a year of TensorFlow's, PyTorch's and ONNX Runtime's."""
_INSTALLS = ("hub", "pip", "package", "source")


class SoftwareChange(NamedTuple):
    """One choice of software in place of another; ``turned``: the pair has it the other way round."""

    name: str
    turned: bool = False


class RatioPair(NamedTuple):
    """A ratio that was measured, as a row of speedup; ``ratio``: its logarithm, of the change as it is named.

    ``turned``: the row has it the other way round.
    """

    row: Measurement
    change: str
    ratio: float
    turned: bool


class PairCase(NamedTuple):
    """What is asked: how many times as fast ``software`` is as ``baseline``."""

    workload: Workload
    software: Software
    baseline: Software
    hardware: Hardware


class ShrunkRatio(NamedTuple):
    """An answer: the logarithm of the ratio, the pairs that it rests on, those most like the case first.

    ``releases``: how many releases away the nearest of those is that are most like it; None where they do not say it.
    """

    ratio: float
    change: str
    used: list[RatioPair]
    releases: int | None

    @property
    def near(self) -> bool:
        """Whether it rests on a release near the one that is asked for."""
        return self.releases is not None and self.releases <= NEAR


def as_run(software: Software) -> Software:
    """Software by what computed: rows may name the model's framework and what ran in its place."""
    if software.compiler not in RUNTIMES:
        return software
    return replace(
        software, framework=software.compiler, version=software.blocks.get(software.compiler), compiler="", install=""
    )


def change_of(software: Software, baseline: Software) -> SoftwareChange | None:
    """The choice in which two differ: a runtime, a graph compiler or the way of installing; None for anything else."""
    one, other = as_run(software), as_run(baseline)
    if one.framework != other.framework:
        runs = one.framework in RUNTIMES and other.framework not in RUNTIMES and not one.compiler and not other.compiler
        return SoftwareChange(f"{one.framework} for {other.framework}") if runs else None
    if one.compiler != other.compiler:
        return None if other.compiler else SoftwareChange(f"{one.compiler} in {one.framework}")
    if one.install == other.install or not (one.install and other.install):
        return None
    turned = _INSTALLS.index(one.install) < _INSTALLS.index(other.install)
    first, second = (other, one) if turned else (one, other)
    return SoftwareChange(f"{first.framework} by {first.install}, not {second.install}", turned)


def pairs(rows: Iterable[Measurement]) -> list[RatioPair]:
    """Every ratio of two choices of one release: those that were measured as such, and speeds of one setting."""
    speeds: dict[tuple[object, ...], list[Measurement]] = defaultdict(list)
    found = []
    for row in rows:
        if row.metric in SPEEDS:
            speeds[_setting(row)].append(row)
        elif row.baseline is not None and row.software.version == row.baseline.version:
            found.append(_pair(row, row.baseline))
    for of_setting in speeds.values():
        for base in of_setting:
            found += [_pair(_speedup(row, base), base.software) for row in of_setting if _one_release(row, base)]
    return [pair for pair in found if pair is not None]


def _setting(row: Measurement) -> tuple[object, ...]:
    """All that two rows of a pair have in common."""
    work, layout = row.workload, (row.nodes, row.ranks_per_node, row.threads_per_rank, row.interop_threads)
    variables = str(sorted(row.software.environment.items()))
    return (identity(work), work.batch, work.precision, row.hardware.name, row.metric, *layout, variables)


def _one_release(row: Measurement, base: Measurement) -> bool:
    one, other = as_run(row.software), as_run(base.software)
    change = change_of(row.software, base.software)
    if change is None or change.turned:
        return False
    if one.framework != other.framework:
        return True
    # A graph compiler is compared in the same build.
    return one.version == other.version and (one.compiler == other.compiler or one.install == other.install)


def _speedup(row: Measurement, base: Measurement) -> Measurement:
    ratio = row.value / base.value
    value = ratio if row.metric in HIGHER_IS_BETTER else 1 / ratio
    day = min(row.measured, base.measured) if row.measured and base.measured else None
    known = {"metric": "speedup", "value": value, "baseline": base.software, "low": None, "high": None}
    return replace(row, measured=day, **known)


def _pair(row: Measurement, base: Software) -> RatioPair | None:
    change = change_of(row.software, base)
    if change is None:
        return None
    return RatioPair(row, change.name, log(row.value) * (-1 if change.turned else 1), change.turned)


def releases_between(one: str | None, other: str | None) -> int | None:
    """How many minor releases two versions of one major release are apart; None where that cannot be said.

    Of two that are not known nothing says that they differ.
    """
    if one is None or other is None:
        return 0 if one is other else None
    first, second = (each.split(".") for each in (one, other))
    if first[0] != second[0] or not all(each[1:2] and each[1].isdigit() for each in (first, second)):
        return None
    return abs(int(first[1]) - int(second[1]))


def distance(pair: RatioPair, case: PairCase) -> int | None:
    """How many releases a pair is away from a case; None where a release is not known, or is another major one."""
    apart = [releases_between(*each) for each in _versions(pair, case)]
    return None if None in apart else max((each for each in apart if each is not None), default=None)


def _versions(pair: RatioPair, case: PairCase) -> list[tuple[str | None, str | None]]:
    """The versions of the frameworks in a pair and in a case."""
    row = pair.row
    known = {each.framework: each.version for each in map(as_run, (row.software, row.baseline or row.software))}
    asked = {each.framework: each.version for each in map(as_run, (case.software, case.baseline))}
    return [(known.get(name), version) for name, version in asked.items()]


def _other_major(pair: RatioPair, case: PairCase) -> bool:
    versions = _versions(pair, case)
    return any(one.split(".")[0] != other.split(".")[0] for one, other in versions if one and other)


def shrunk_ratio(known: Sequence[RatioPair], case: PairCase) -> ShrunkRatio | None:
    """What pairs say of a case; None where none is of the same change in the same major release.

    From no difference to the mean of all pairs of the change, from there to those of such networks on such hardware, to
    those of the workload, and so on: each mean counts by how many machines it is of, and how near their releases are.
    """
    change = change_of(case.software, case.baseline)
    if change is None:
        return None
    like = [pair for pair in known if pair.change == change.name and not _other_major(pair, case)]
    if not like:
        return None
    ratio, nearest = 0.0, like
    for alike in (_any, _kind, _network, _network_there):
        if members := [pair for pair in like if alike(pair.row, case)]:
            ratio, nearest = _shrunk(members, case, ratio), members
            like = [*members, *(pair for pair in like if not alike(pair.row, case))]
    said = (pair for pair in nearest if all(version for version, _ in _versions(pair, case)))
    apart = [each for each in (distance(pair, case) for pair in said) if each is not None]
    return ShrunkRatio(-ratio if change.turned else ratio, change.name, like, min(apart, default=None))


def _shrunk(members: Sequence[RatioPair], case: PairCase, expected: float) -> float:
    # Rows of one network on one machine are near copies of each other: they count once.
    cells: dict[tuple[str, str], list[RatioPair]] = defaultdict(list)
    for pair in members:
        cells[identity(pair.row.workload), pair.row.hardware.name].append(pair)
    weight, total = STRENGTH, STRENGTH * expected
    for cell in cells.values():
        weights = [_weight(pair, case) for pair in cell]
        mean = sum(w * pair.ratio for w, pair in zip(weights, cell, strict=True)) / sum(weights)
        weight, total = weight + max(weights), total + max(weights) * mean
    return total / weight


def _weight(pair: RatioPair, case: PairCase) -> float:
    apart = distance(pair, case)
    return 1 / (1 + (UNKNOWN if apart is None else apart))


def _any(row: Measurement, case: PairCase) -> bool:
    return True


def _kind(row: Measurement, case: PairCase) -> bool:
    return (row.workload.kind, structure(row.workload)) == (case.workload.kind, structure(case.workload))


def _network(row: Measurement, case: PairCase) -> bool:
    return identity(row.workload) == identity(case.workload)


def _network_there(row: Measurement, case: PairCase) -> bool:
    return _network(row, case) and row.hardware.name == case.hardware.name
