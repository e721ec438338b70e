"""The workloads of the table, and their variants: what a variable, a graph compiler or a flag changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.core.model.job import Job
from hpcgen.plugins.tuning.bench import program
from hpcgen.plugins.tuning.bench.variants import HUGE_PAGES, Variant, variant_of
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload, workload_named
from hpcgen.plugins.tuning.measurements.records import Precision, Workload

Framework = Literal["pytorch", "tensorflow", "numpy", "own"]
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
IMAGE = {**KEPT, **HUGE_PAGES}
"""What images have by default over glibc 2.36 and newer; a test holds that."""

TCMALLOC = {"LD_PRELOAD": "libtcmalloc_minimal.so.4"}
LAST = {"HPCGEN_CHANNELS_LAST": "1"}
WORKERS = {"HPCGEN_FFT_WORKERS": "all"}
PLAIN, DEFAULT, CHOSEN, TUNED, EXPERT = "plain", "default", "optimise", "tuned", "expert"


class Way(msgspec.Struct, frozen=True):
    """How a variant differs: variables, a graph compiler or engine, a precision, threads between operations, flags of
    own code.
    """

    environment: Mapping[str, str] = {}
    compiler: str = ""
    precision: Precision | None = None
    interop: int | None = None
    flags: str = ""


class Row(msgspec.Struct, frozen=True):
    """One workload of the table.

    ``ways``: its variants beside the plain one and the default. ``bf16``: the variant of which there is one in that
    precision, too, "" for none.
    """

    workload: BenchWorkload
    framework: Framework
    ways: Mapping[str, Way]
    bf16: str = EXPERT

    @property
    def name(self) -> str:
        """The workload's, where it is not that of another framework."""
        return ("tf-" if self.framework == "tensorflow" else "") + self.workload.name


def _rows() -> list[Row]:
    # OpenVINO loses by the default's memory, so its images have none of it.
    engines = {"onnxruntime": Way(IMAGE, "onnxruntime"), "openvino": Way(compiler="openvino")}
    frozen = {**TCMALLOC, **LAST, "TORCHINDUCTOR_FREEZING": "1"}
    compiled = {CHOSEN: Way(IMAGE, "torch.compile")}
    by_hand = {EXPERT: Way(TCMALLOC)}
    record = Workload(name="halo", kind="hpc", precision="fp64", shape=[510, 510])
    halo = BenchWorkload("halo", record, ("own",), "a halo exchange over MPI")
    return [
        Row(workload_named("resnet18"), "pytorch", {**compiled, EXPERT: Way({**TCMALLOC, **LAST})}),
        Row(
            workload_named("resnet18-inference"),
            "pytorch",
            {**engines, **compiled, EXPERT: Way(frozen, "torch.compile")},
        ),
        Row(workload_named("bert-small"), "pytorch", {**compiled, **by_hand}),
        Row(workload_named("bert-small-inference"), "pytorch", {**engines, **compiled, **by_hand}),
        Row(workload_named("lstm"), "pytorch", {**compiled, **by_hand}),
        Row(
            workload_named("fft"),
            "numpy",
            {CHOSEN: Way({**IMAGE, **WORKERS}), EXPERT: Way({**TCMALLOC, **WORKERS})},
            bf16="",
        ),
        Row(halo, "own", {EXPERT: Way(flags="-O3 TARGET -ffast-math")}),
        Row(workload_named("resnet18"), "tensorflow", {CHOSEN: Way(IMAGE, "xla"), **by_hand}),
    ]


ROWS = {row.name: row for row in _rows()}
MEMORY = {"kept": Way(KEPT), "huge": Way(IMAGE), "tcmalloc": Way(TCMALLOC)}
"""What is compared where the question is how memory is allocated (``--memory``)."""

OPENMP = {
    DEFAULT: Way(IMAGE),
    "active": Way({**IMAGE, "OMP_WAIT_POLICY": "active"}),
    "passive": Way({**IMAGE, "OMP_WAIT_POLICY": "passive"}),
    "bound": Way({**IMAGE, "OMP_PROC_BIND": "close", "OMP_PLACES": "cores"}),
}
"""What is compared where the question is how threads wait and where they run (``--openmp``)."""


def tuned(settings: Mapping[str, str]) -> Way:
    """The default with what ``hpcgen tune`` found, by its names; ``flags`` are those of own code.

    InputError: a setting is none. KeyError: an allocator that is not Debian's.
    """
    flags = settings.get("flags", "-O3 TARGET")
    variant = variant_of({name: value for name, value in settings.items() if name != "flags"})
    kept = {} if variant.memory == "plain" else IMAGE
    preload = {"": {}, "tcmalloc": TCMALLOC}[variant.allocator]
    environment = {**kept, **preload, **variant.environment}
    return Way(environment, variant.compiler, interop=variant.interop, flags=flags)


def request_of(row: Row, way: Way, threads: int) -> str:
    """What the program of ``hpcgen bench`` is asked for."""
    variant = Variant(
        compiler=way.compiler, precision=way.precision, interop=way.interop, environment=dict(way.environment)
    )
    job = Job(nodes=1, ranks_per_node=1, threads_per_rank=threads, walltime_s=0, command=[])
    return program.asked(row.workload, variant, job, 1)


def program_of(framework: Framework) -> str:
    """The program of ``hpcgen bench``, whose steps are timed on request."""
    folder = Path(program.__file__).with_name("programs")
    names = ("bench_common", f"bench_{framework}")
    first, last = ((folder / f"{name}.py").read_text("utf-8") for name in names)
    steps = Path(__file__).with_name("steps.py").read_text("utf-8")
    return program.packed({names[0]: first, "steps": steps, names[1]: last})
