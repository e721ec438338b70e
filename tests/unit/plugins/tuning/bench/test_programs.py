"""The programs that run inside images: read by Python 3.6, whole on one line, and started here with what is here."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hpcgen.core.errors import InputError, UnknownNameError
from hpcgen.core.model.job import Job
from hpcgen.core.support.quoting import sh
from hpcgen.plugins.tuning.bench.networks import count
from hpcgen.plugins.tuning.bench.program import MARK, BenchRefusal, RankResult, asked, bootstrap, read_results
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import FRAMEWORKS, workload_named, workloads
from tests.conftest import ROOT

PROGRAMS = sorted((ROOT / "hpcgen" / "bench" / "programs").glob("*.py"))
ONE = Job(nodes=1, ranks_per_node=1, threads_per_rank=2, walltime_s=60, command=[])


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_python_3_6_reads_them(path: Path) -> None:
    ast.parse(path.read_text("utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_their_text_is_one_word_of_a_shell(framework: str) -> None:
    text = bootstrap(framework)
    assert shlex.split(sh(text)) == [text]
    # Linux takes 128 KiB in one argument, and the whole job script is one.
    assert len(text) < 20_000


def test_every_workload_has_programs_and_its_request_is_one_word() -> None:
    for workload in workloads().values():
        assert set(workload.frameworks) <= set(FRAMEWORKS)
        text = asked(workload, Variant(), ONE, 2)
        sh(text)
        assert text.isascii() and len(text) < 20_000
        assert bool(json.loads(text)["layers"]) == (workload.network is not None)


@pytest.mark.parametrize(
    ("name", "parameters", "gflop"),
    [
        # What Keras prints of its example mnist_cnn; torchvision of resnet50, with 4.09 billion multiply-adds;
        # of resnet18 and of alexnet; CANDLE's README of P1B2; Hugging Face's transformers of BertModel.
        ("mnist-cnn", 1_199_882, None),
        ("resnet50-inference", 25_557_032, 8.18),
        ("resnet18", 11_689_512, None),
        ("alexnet", 61_100_840, None),
        ("mlp", 29_540_618, None),
        ("bert-base-inference", 109_482_240, 22.3),
    ],
)
def test_networks_are_as_large_as_those_they_are_called_after(name: str, parameters: int, gflop: float | None) -> None:
    record = workload_named(name).record
    assert record.parameters == parameters
    assert gflop is None or record.gflop_per_sample == pytest.approx(gflop, rel=0.01)


def test_networks_end_in_their_classes() -> None:
    for workload in workloads().values():
        if (network := workload.network) is not None:
            assert count(network.layers, network.shape).shape == (network.classes,)
            assert not network.generator or count(network.generator, (network.noise,)).shape == network.shape


def test_an_unknown_workload() -> None:
    with pytest.raises(UnknownNameError, match="did you mean resnet50"):
        workload_named("resnet5")


def started(framework: str, modules: Path, **changed: Any) -> list[RankResult | BenchRefusal]:
    """What a program prints here, with modules of a folder in place of the framework's."""
    data = {**json.loads(asked(workload_named("gemm"), Variant(), ONE, 0.01)), "size": 8, **changed}
    words = [sys.executable, "-c", bootstrap(framework), json.dumps(data)]
    done = subprocess.run(words, env={"PYTHONPATH": str(modules)}, capture_output=True, text=True, check=True)
    return read_results(done.stdout.splitlines())


NUMPY = """
__version__ = "0.1"
class random:
    class RandomState:
        def __init__(self, seed): pass
        def rand(self, *shape): return self
        def astype(self, kind): return self
def dot(a, b): pass
"""


def test_a_program_measures_and_refuses(tmp_path: Path) -> None:
    (tmp_path / "numpy.py").write_text(NUMPY)
    (result,) = started("numpy", tmp_path)
    assert isinstance(result, RankResult)
    assert result.rate == pytest.approx(2e-9 * 8**3 / result.step_seconds)
    assert result.steps >= 3 and result.version == "0.1"
    # Of Python alone, whatever the process was before.
    assert 4e6 < result.memory < 1e8 and result.node == os.uname().nodename
    (refused,) = started("numpy", tmp_path, compiler="xla")
    assert refused == BenchRefusal("NumPy has no compiler xla; name another compiler, or none")
    (refused,) = started("numpy", tmp_path, allocator="mimalloc")
    assert isinstance(refused, BenchRefusal) and "no libmimalloc" in refused.cannot


def test_a_missing_framework_is_a_reason(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcuda.so.1: not found')")
    assert started("pytorch", tmp_path) == [BenchRefusal("Python cannot import torch: libcuda.so.1: not found")]


def test_lines_of_others_are_passed_over_and_damaged_ones_are_not() -> None:
    line = '{"rate": 3.0, "step_seconds": 1.0, "steps": 3, "overhead": 0.5, "version": "2", "library": null, '
    line += '"memory": 9, "node": "n1"}'
    lines = ["starting", f"{MARK} {line}", "done", f'{MARK} {{"cannot": "no GPU"}}']
    assert read_results(lines) == [RankResult(3.0, 1.0, 3, 0.5, "2", 9, "n1"), BenchRefusal("no GPU")]
    strange = [line.replace("3.0", "-3.0"), line.replace('"2"', '"2;"'), line.replace("null", '"../lib.so"')]
    strange += [
        line.replace(": 9", ": 1e300"),
        line.replace(": 9", ": 9999999999999999"),
        line.replace("n1", "\\u001b[2J"),
    ]
    for damaged in ("", "{", '{"rate": "fast"}', '{"cannot": 3}', '{"cannot": "\\u001b[2J"}', "[1]", *strange):
        with pytest.raises(InputError, match="damaged"):
            read_results([f"{MARK} {damaged}"])
