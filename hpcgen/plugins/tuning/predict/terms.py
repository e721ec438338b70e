"""The terms of the linear model, declared: what each one is, and how it is read from what was computed.

Which settings matter is MODAK's choice (docs/papers.md): application, framework, graph compiler, infrastructure and
layout. A number enters by its logarithm, a category by one column for each of its values; docs/models.md has the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Literal, NamedTuple

from hpcgen.plugins.tuning.measurements.records import Hardware, Measurement, Software, Workload, software_words

MANY_USES = 2.0
"""Operations per parameter, in relation to a dense network's, from which on parameters count as used again."""


class RunConditions(NamedTuple):
    """What is to run, with what, on what, in which layout."""

    workload: Workload
    software: Software
    hardware: Hardware
    nodes: int = 1
    ranks_per_node: int = 1
    threads_per_rank: int | None = None

    @property
    def ranks(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node

    @property
    def settings(self) -> tuple[str, str]:
        """What makes it another configuration than the next: all but the number of nodes."""
        return (software_words(self.software), f"{self.ranks_per_node} x {self.threads_per_rank or '?'}")

    def label(self) -> str:
        """In words, for the user."""
        software, layout = self.settings
        return f"{self.workload.name}, {software}, {self.hardware.name}, {self.nodes} x {layout}"


def identity(workload: Workload) -> str:
    """What tells workloads apart: training a network is another one than inference with it."""
    return f"{workload.name} {workload.kind}"


def case_of(row: Measurement) -> RunConditions:
    """What a row measured."""
    return RunConditions(row.workload, row.software, row.hardware, row.nodes, row.ranks_per_node, row.threads_per_rank)


class Term(NamedTuple):
    """One term.

    ``of``: what it describes. ``value``: a number above 0, or the name of a category; None where it is not known or
    does not apply. ``new``: whether a category that no row has may be asked for: the term is only what the others
    leave, and shrinks to none.
    """

    name: str
    of: Literal["workload", "software", "hardware", "layout"]
    kind: Literal["number", "category"]
    meaning: str
    value: Callable[[RunConditions], float | str | None]
    new: bool = False


def structure(workload: Workload) -> str | None:
    """``dense``, or ``convolution`` where a sample uses parameters many times; by the shape where FLOP is not known.

    A dense layer takes 2 operations for each parameter and sample, and 6 with the two products of the way back.
    """
    if workload.kind not in ("training", "inference"):
        return None
    if workload.gflop_per_sample and workload.parameters:
        dense = 6 if workload.kind == "training" else 2
        uses = workload.gflop_per_sample * 1e9 / workload.parameters / dense
        return "convolution" if uses >= MANY_USES else "dense"
    if workload.shape:
        return "convolution" if len(workload.shape) > 1 else "dense"
    return None


def _sample(case: RunConditions) -> int | None:
    return prod(case.workload.shape) if case.workload.shape else None


def _accelerator(case: RunConditions) -> str:
    return "gpu" if case.hardware.gpu else "cpu"


def _compiled(what: Callable[[RunConditions], str | None]) -> Callable[[RunConditions], str | None]:
    """The graph compiler together with something else, where there is one."""

    def value(case: RunConditions) -> str | None:
        other = what(case)
        return f"{case.software.compiler} × {other}" if case.software.compiler and other else None

    return value


def _release(case: RunConditions) -> str | None:
    software = case.software
    return f"{software.framework} {'.'.join(software.version.split('.')[:2])}" if software.version else None


TERMS: tuple[Term, ...] = (
    Term("workload", "workload", "category", "workload, beyond its numbers", lambda c: c.workload.name, True),
    Term("machine", "hardware", "category", "machine, beyond its numbers", lambda c: c.hardware.name, True),
    Term("parameters", "workload", "number", "parameters of the network", lambda c: c.workload.parameters),
    Term("operations", "workload", "number", "GFLOP for one sample", lambda c: c.workload.gflop_per_sample),
    Term("batch", "workload", "number", "samples of one rank in one step", lambda c: c.workload.batch),
    Term("sample", "workload", "number", "numbers in one sample", _sample),
    Term("kind", "workload", "category", "training, inference or other", lambda c: c.workload.kind),
    Term("structure", "workload", "category", "dense or convolution", lambda c: structure(c.workload)),
    Term("precision", "workload", "category", "of the numbers", lambda c: c.workload.precision),
    Term("framework", "software", "category", "its block", lambda c: c.software.framework),
    Term("release", "software", "category", "of the framework, its first two numbers", _release, True),
    Term("compiler", "software", "category", "graph compiler or engine", lambda c: c.software.compiler or "none"),
    Term("compiler × kind", "software", "category", "its gain by kind", _compiled(lambda c: c.workload.kind)),
    Term("compiler × structure", "software", "category", "by structure", _compiled(lambda c: structure(c.workload))),
    Term("compiler × accelerator", "software", "category", "on CPUs, on GPUs", _compiled(_accelerator)),
    Term("install", "software", "category", "where the framework is from", lambda c: c.software.install or None),
    Term("engine", "software", "category", "container engine", lambda c: c.software.engine or None),
    Term("mpi", "software", "category", "the MPI that the ranks used", lambda c: c.software.mpi or None),
    Term("accelerator", "hardware", "category", "cpu or gpu", _accelerator),
    Term("peak", "hardware", "number", "GFLOP/s of the processor or GPU", lambda c: c.hardware.peak_gflops),
    Term("bandwidth", "hardware", "number", "GB/s of its memory", lambda c: c.hardware.bandwidth_gbs),
    Term("cores", "hardware", "number", "of a node", lambda c: c.hardware.cores),
    Term("threads", "layout", "number", "of one rank", lambda c: c.threads_per_rank),
    Term("ranks", "layout", "number", "of all nodes", lambda c: c.ranks),
)
BY_NAME = {term.name: term for term in TERMS}
Described = Mapping[str, float | str]
"""A case by its terms, without those that are not known or do not apply."""


def described(case: RunConditions) -> Described:
    """What a case has of every term."""
    return {term.name: value for term in TERMS if (value := term.value(case)) is not None}
