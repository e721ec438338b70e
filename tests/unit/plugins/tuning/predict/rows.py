"""Rows of programs whose speed is known by a formula, so that a model can be held against it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hpcgen.catalog.collections import built_in
from hpcgen.plugins.tuning.measurements.collection import read_file
from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload

PAPERS = read_file(built_in() / "measurements" / "papers.yaml", "papers.yaml")
WORKLOADS = [
    Workload(
        name=f"net{n}", kind="training", parameters=n * 10**6, gflop_per_sample=float(n), batch=32, shape=[64, 64, 3]
    )
    for n in (2, 4, 9, 16, 30)
]
MACHINES = [
    Hardware(name=f"box{peak}", cores=cores, peak_gflops=float(peak), bandwidth_gbs=100.0)
    for peak, cores in ((500, 16), (900, 24), (1600, 32), (2500, 48))
]
PLAIN, COMPILED = Software(framework="pytorch"), Software(framework="pytorch", compiler="xla")


def speed(workload: Workload, software: Software, hardware: Hardware, nodes: int) -> float:
    """Samples per second: half of the peak, a quarter more with the compiler, and nodes^0.95."""
    assert workload.gflop_per_sample and hardware.peak_gflops
    base = 0.5 * hardware.peak_gflops / workload.gflop_per_sample
    return float(base * (1.25 if software.compiler else 1.0) * nodes**0.95)


def row(workload: Workload, software: Software, hardware: Hardware, nodes: int = 1) -> Measurement:
    """A measurement of the formula."""
    return Measurement(
        workload=workload,
        software=software,
        hardware=hardware,
        nodes=nodes,
        metric="samples_per_second",
        value=speed(workload, software, hardware, nodes),
    )


def made() -> list[Measurement]:
    """Every workload with and without the compiler on every machine, on 1 and 4 nodes."""
    return list(_all())


def _all() -> Iterator[Measurement]:
    for workload, hardware, software, nodes in product(WORKLOADS, MACHINES, (PLAIN, COMPILED), (1, 4)):
        yield row(workload, software, hardware, nodes)
