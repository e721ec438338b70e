"""Standard workloads inside built images: how fast each variant of threads, compiler, allocator and the like runs."""

from hpcgen.plugins.tuning.bench.running import (
    BenchCase,
    BenchOutcome,
    Rate,
    measure,
    outcomes_for,
    run_rounds,
    run_variants,
)
from hpcgen.plugins.tuning.bench.variants import Variant, parse_variants
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload, workload_named, workloads

__all__ = [
    "BenchCase",
    "BenchOutcome",
    "BenchWorkload",
    "Rate",
    "Variant",
    "measure",
    "outcomes_for",
    "parse_variants",
    "run_rounds",
    "run_variants",
    "workload_named",
    "workloads",
]
