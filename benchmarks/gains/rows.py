"""The workloads of the table, and their variants: what a variable, a graph compiler or a flag changes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from hpcgen.core.model.job import Job
from hpcgen.plugins.tuning.bench import program
from hpcgen.plugins.tuning.bench.networks import (
    RELU,
    AnyLayer,
    BatchNorm,
    Conv,
    Dense,
    GlobalPool,
    Layers,
    MaxPool,
    NeuralNetwork,
    Residual,
    bert,
    lstm,
)
from hpcgen.plugins.tuning.bench.variants import HUGE_PAGES, Variant
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload
from hpcgen.plugins.tuning.measurements.records import Precision, Workload

Framework = Literal["pytorch", "tensorflow", "numpy", "own"]
KEPT = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**32)}
IMAGE = {**KEPT, **HUGE_PAGES}
"""What images have by default over glibc 2.36 and newer; a test holds that."""

TCMALLOC = {"LD_PRELOAD": "libtcmalloc_minimal.so.4"}
LAST = {"HPCGEN_CHANNELS_LAST": "1"}
WORKERS = {"HPCGEN_FFT_WORKERS": "all"}
PLAIN, DEFAULT, CHOSEN, EXPERT = "plain", "default", "optimise", "expert"


class Way(msgspec.Struct, frozen=True):
    """How a variant differs: variables, a graph compiler or engine, a precision, flags of own code."""

    environment: Mapping[str, str] = {}
    compiler: str = ""
    precision: Precision | None = None
    flags: str = ""


class Row(msgspec.Struct, frozen=True):
    """One workload of the table.

    ``ways``: its variants beside the plain one and the default; ``size``: of an operation without a network.
    ``bf16``: the variant of which there is one in that precision, too, "" for none.
    """

    workload: Workload
    framework: Framework
    ways: Mapping[str, Way]
    network: NeuralNetwork | None = None
    size: int = 0
    bf16: str = ""

    @property
    def name(self) -> str:
        """The workload's, with ``-inference`` where that is another row."""
        ending = "-inference" if self.workload.kind == "inference" else ""
        return ("tf-" if self.framework == "tensorflow" else "") + self.workload.name + ending


def resnet18(size: int) -> NeuralNetwork:
    """ResNet-18 with 11,689,512 parameters, as in torchvision."""
    layers: list[AnyLayer] = [*_normed(64, 7, 2), RELU, MaxPool(size=3, stride=2, same=True)]
    for number in range(8):
        width, stride = 64 * 2 ** (number // 2), 2 if number in (2, 4, 6) else 1
        main = (*_normed(width, 3, stride), RELU, *_normed(width, 3, 1))
        layers += [Residual(main=main, shortcut=_normed(width, 1, stride) if stride == 2 else ()), RELU]
    return NeuralNetwork((size, size, 3), (*layers, GlobalPool(), Dense(units=1000)), 1000)


def _normed(filters: int, kernel: int, stride: int) -> Layers:
    return (Conv(filters=filters, kernel=kernel, stride=stride, bias=False), BatchNorm())


def _rows() -> list[Row]:
    conv, words, recurrent = resnet18(96), bert(128, 4, 512), lstm()

    def of(name: str, kind: Literal["training", "inference"], batch: int) -> Workload:
        return Workload(name=name, kind=kind, batch=batch)

    engines = {"onnxruntime": Way(IMAGE, "onnxruntime"), "openvino": Way(IMAGE, "openvino")}
    frozen = {**TCMALLOC, **LAST, "TORCHINDUCTOR_FREEZING": "1"}
    compiled = {CHOSEN: Way(IMAGE, "torch.compile")}
    by_hand = {EXPERT: Way(TCMALLOC)}
    return [
        Row(
            of("resnet18", "training", 16), "pytorch", {**compiled, EXPERT: Way({**TCMALLOC, **LAST})}, conv, 0, EXPERT
        ),
        Row(
            of("resnet18", "inference", 16),
            "pytorch",
            {**engines, EXPERT: Way(frozen, "torch.compile")},
            conv,
            0,
            EXPERT,
        ),
        Row(of("bert-small", "training", 8), "pytorch", {**compiled, **by_hand}, words, 0, EXPERT),
        Row(of("bert-small", "inference", 8), "pytorch", {**engines, **by_hand}, words, 0, EXPERT),
        Row(of("lstm", "training", 20), "pytorch", {**compiled, **by_hand}, recurrent, 0, EXPERT),
        Row(
            Workload(name="fft", kind="hpc", precision="fp64", shape=[1024, 1024]),
            "numpy",
            {CHOSEN: Way({**IMAGE, **WORKERS}), EXPERT: Way({**TCMALLOC, **WORKERS})},
            None,
            1024,
        ),
        Row(
            Workload(name="halo", kind="hpc", precision="fp64", shape=[510, 510]),
            "own",
            {EXPERT: Way(flags="-O3 TARGET -ffast-math")},
        ),
        Row(of("resnet18", "training", 16), "tensorflow", {CHOSEN: Way(IMAGE, "xla"), **by_hand}, conv, 0, EXPERT),
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


def request_of(row: Row, way: Way, threads: int) -> str:
    """What the program of ``hpcgen bench`` is asked for."""
    workload = BenchWorkload(row.name, row.workload, (row.framework,), "", network=row.network, size=row.size)
    variant = Variant(compiler=way.compiler, precision=way.precision, environment=dict(way.environment))
    job = Job(nodes=1, ranks_per_node=1, threads_per_rank=threads, walltime_s=0, command=[])
    return program.asked(workload, variant, job, 1)


def program_of(framework: Framework) -> str:
    """The program of ``hpcgen bench``, whose steps are timed on request."""
    folder = Path(program.__file__).with_name("programs")
    names = ("bench_common", f"bench_{framework}")
    first, last = ((folder / f"{name}.py").read_text("utf-8") for name in names)
    steps = Path(__file__).with_name("steps.py").read_text("utf-8")
    return program.packed({names[0]: first, "steps": steps, names[1]: last})
