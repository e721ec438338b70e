"""The standard workloads: one record each, and the frameworks whose programs run it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import msgspec

from hpcgen.core.errors import UnknownNameError, did_you_mean
from hpcgen.plugins.tuning.bench.networks import (
    NeuralNetwork,
    alexnet,
    bert,
    gan3d,
    lstm,
    mlp,
    mnist_cnn,
    resnet18,
    resnet50,
)
from hpcgen.plugins.tuning.measurements.records import UNITS, Metric, Workload

FRAMEWORKS = ("pytorch", "tensorflow", "jax", "mpi4py", "numpy")
"""Each has a program ``bench_NAME.py``; the first of an image that runs a workload is used."""

LEARNT = ("pytorch", "tensorflow", "jax")


class OwnProgram(msgspec.Struct, frozen=True):
    """A command of the user's, and where its figure is; see :mod:`hpcgen.plugins.tuning.bench.own_program`."""

    words: tuple[str, ...]
    figure: str = ""
    lower: bool = False


class BenchWorkload(msgspec.Struct, frozen=True):
    """One workload.

    name: on the command line, where training and inference of a network are two.
    record: what is recorded of it.
    frameworks: those with a program for it, as in :data:`FRAMEWORKS`.
    network: what learns or infers; without one it is a single operation on ``size`` numbers (gemm, fft: of each side).
    ranks: the fewest that it makes sense with.
    adds: what its ranks do at the same time adds up.
    own: a program of the user's, which is started in the place of hpcgen's.
    """

    name: str
    record: Workload
    frameworks: tuple[str, ...]
    title: str
    metric: Metric = "samples_per_second"
    network: NeuralNetwork | None = None
    size: int = 0
    ranks: int = 1
    adds: bool = True
    own: OwnProgram | None = None

    @property
    def unit(self) -> str:
        """Of its rates, of which more is better."""
        if self.own is None:
            return UNITS[self.metric]
        return ("1/figure" if self.own.lower else "") if self.own.figure else "runs/s"

    def text(self, rate: float) -> str:
        """A rate for people."""
        return f"{rate:.4g} {self.unit}".rstrip()


def _network(
    name: str, title: str, network: NeuralNetwork, batch: int, *frameworks: str, **known: object
) -> BenchWorkload:
    """A workload of a network, by all frameworks unless some are named; ``known``: further fields of its record."""
    kind = "inference" if name.endswith("-inference") else "training"
    record = msgspec.convert({"name": name.removesuffix("-inference"), "kind": kind, **known}, Workload)
    flop = network.training_flop if record.kind == "training" else network.inference_flop
    record = msgspec.structs.replace(
        record,
        parameters=network.parameters,
        gflop_per_sample=round(flop / 1e9, 6),
        batch=batch,
        shape=list(network.shape),
    )
    return BenchWorkload(name, record, frameworks or LEARNT, title, network=network)


def _both(name: str, title: str, network: NeuralNetwork, batch: int, layers: int) -> Iterator[BenchWorkload]:
    """Its training and its inference."""
    yield _network(name, title, network, batch, layers=layers)
    yield _network(f"{name}-inference", f"{title}, inference", network, batch, layers=layers)


def _operation(name: str, title: str, metric: Metric, size: int, *frameworks: str) -> BenchWorkload:
    record = Workload(name=name, kind="hpc", shape=[size] if name == "stream" else [size, size])
    if name == "fft":
        record = msgspec.structs.replace(record, precision="fp64")
    return BenchWorkload(name, record, frameworks, title, metric, size=size)


def _all() -> Iterator[BenchWorkload]:
    yield _network("mnist-cnn", "a small CNN on 28x28", mnist_cnn(), 128, layers=4, samples=60000)
    yield _network("mlp", "a wide MLP, CANDLE's P1B2", mlp(), 64, layers=4, samples=2400)
    yield _network("alexnet", "AlexNet on 224x224", alexnet(), 128, layers=8)
    for name, size, batch in (("resnet50", 224, 96), ("resnet50-small", 64, 8)):
        yield from _both(name, f"ResNet-50 on {size}x{size}", resnet50(size), batch, 50)
    yield from _both("resnet18", "ResNet-18 on 96x96", resnet18(96), 16, 18)
    yield _network("gan3d", "a step of a 3D GAN on 25x25x25", gan3d(), 8)
    yield _network("bert-base-inference", "BERT-base on 128 words, inference", bert(128, 12, 768), 1, layers=12)
    yield from _both("bert-small", "BERT-small on 128 words", bert(128, 4, 512), 8, 4)
    # Keras and JAX have one bias where PyTorch has two.
    yield _network("lstm", "an LSTM on 35 words", lstm(), 20, "pytorch", layers=2)
    yield _operation("gemm", "a matrix product", "gflops", 2048, "pytorch", "tensorflow", "jax", "numpy")
    yield _operation("fft", "a convolution by SciPy's Fourier transforms", "gflops", 1024, "numpy")
    yield _operation("stream", "the triad a = b + 3 c", "gigabytes_per_second", 1 << 25, "pytorch", "numpy")
    yield BenchWorkload(
        "allreduce",
        Workload(name="allreduce", kind="network", shape=[1 << 24]),
        ("mpi4py", "pytorch", "jax"),
        "a sum over ranks",
        "gigabytes_per_second",
        size=1 << 24,
        ranks=2,
        adds=False,
    )


@cache
def workloads() -> dict[str, BenchWorkload]:
    """All of them, by the name on the command line."""
    return {each.name: each for each in _all()}


def workload_named(name: str) -> BenchWorkload:
    """One of them; UnknownNameError with the nearest."""
    known = workloads()
    if name not in known:
        raise UnknownNameError(f"no workload is called {name!r}", "--workload", remedy=did_you_mean(name, list(known)))
    return known[name]
