"""``hpcgen bench`` in an image that has no more than NumPy: programs by the launch line, refusals, an interrupt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from container_tools import ChImage

from hpcgen.plugins.tuning.measurements.lines import read_lines
from hpcgen.plugins.tuning.measurements.records import Measurement


def bench(image: Path, *words: str) -> list[str]:
    collection = str(image.parent / "collection")
    return [sys.executable, "-m", "hpcgen", "--collection", collection, "bench", str(image), "--seconds", "1", *words]


def measured(
    ch_image: ChImage, collection: Path, image: Path, folder: Path, *words: str
) -> dict[tuple[str, str], Measurement]:
    """The rows of a short measurement by two ranks of another image, by workload and metric."""
    rows = folder / "rows.jsonl"
    options = ["--site", "here", "--layout", "2x1", "--rounds", "1", "--seconds", "1", "--to", str(rows)]
    command = [sys.executable, "-m", "hpcgen", "--collection", str(collection), "bench", str(image), *options, *words]
    print(ch_image.run(command, cwd=folder).stdout)
    return {(row.workload.name, row.metric): row for row in read_lines(rows, "rows")}


def test_variants_are_measured_or_have_a_reason(python_image: Path, ch_image: ChImage, tmp_path: Path) -> None:
    words = ["--workload", "gemm,mlp", "--vary", "threads=1,2", "--vary", "allocator=malloc,jemalloc", "--rounds", "2"]
    done = subprocess.run(
        bench(python_image, *words, "--json"), env=dict(ch_image.env), capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    gemm = [each for each in told["variants"] if each["workload"] == "gemm"]
    assert [len(each["rates"]) for each in gemm] == [2, 0, 2, 0]
    assert "the image has no libjemalloc" in gemm[1]["verdict"]
    (why,) = {each["verdict"] for each in told["variants"] if each["workload"] == "mlp"}
    assert why == "there is no program for it with the image's blocks, only with pytorch, tensorflow, jax"
    kept = python_image.parent / "collection" / "measurements" / "bench.jsonl"
    rows = [row for row in read_lines(kept, "rows") if row.metric == "gflops"]
    assert [row.threads_per_rank for row in rows] == [1, 2]
    assert all(row.software.engine == "charliecloud" and row.software.content for row in rows)
    assert rows[0].low is not None and rows[0].low <= rows[0].value


def test_an_interrupt_keeps_what_is_known(python_image: Path, ch_image: ChImage, tmp_path: Path) -> None:
    kept = tmp_path / "rows.jsonl"
    words = bench(python_image, "--workload", "gemm", "--rounds", "1000", "--to", str(kept))
    with subprocess.Popen(words, env=dict(ch_image.env), stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "round 2 of" in line:
                break
        time.sleep(0.5)
        os.kill(process.pid, signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert "interrupted" in said
    assert read_lines(kept, "rows")[0].repetitions in (1, 2)
