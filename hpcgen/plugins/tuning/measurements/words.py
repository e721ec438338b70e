"""Measurements in words, for tables and reports."""

from __future__ import annotations

from hpcgen.plugins.tuning.measurements.records import UNITS, Measurement, Software


def software_words(software: Software) -> str:
    """``tensorflow 2.1 (source) + xla``."""
    name = f"{software.framework} {software.version}" if software.version else software.framework
    origin = f" ({software.install})" if software.install else ""
    compiler = f" + {software.compiler}" if software.compiler else ""
    mpi = f", MPI {software.mpi}" if software.mpi else ""
    engine = f", {software.engine}" if software.engine else ""
    variables = "".join(f", {key}={value}" for key, value in sorted(software.environment.items()))
    return name + origin + compiler + mpi + engine + variables


def layout_words(row: Measurement) -> str:
    """``4 x 4 x 12``: nodes, ranks on each, threads of each rank; ``?`` where that is not known."""
    return f"{row.nodes} x {row.ranks_per_node} x {row.threads_per_rank or '?'}"


def value_words(row: Measurement) -> str:
    """The number with its unit and, where it is known, its interval."""
    interval = f" ({row.low:.4g} to {row.high:.4g})" if row.low is not None and row.high is not None else ""
    return f"{row.value:.4g}{interval} {UNITS[row.metric]}"
