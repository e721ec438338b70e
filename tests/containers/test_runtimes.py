"""Compilers and run times of trained models, and JAX, built and run for real on Debian 12 with Python 3.11."""

from __future__ import annotations

from pathlib import Path

import pytest
from container_tools import ChImage
from leftovers import remove
from test_bench import measured
from test_pytorch import built
from test_pytorch import collection as collection_with_torch

collection = collection_with_torch
DEBIAN = ("debian.version=12",)
"""The base that is at hand."""


@pytest.mark.slow
@pytest.mark.parametrize("stack", ["openvino", "tvm"])
def test_a_model_is_run_as_numpy_computes_it(stack: str, ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    image = built(ch_image, collection, tmp_path, stack, *DEBIAN)
    done = ch_image.run(["bash", tmp_path / "kit" / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    print(done.stdout)
    assert "inferences per second" in done.stdout
    remove(image)


@pytest.mark.slow
def test_two_ranks_of_jax_train_together(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    """The image's own mpiexec starts them; they talk over Gloo, in measurements too."""
    image = built(ch_image, collection, tmp_path, "jax", *DEBIAN, "mpi.provider=mpich", "mpich.obtain=wheels", ranks=2)
    done = ch_image.run(["bash", tmp_path / "kit" / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    print(done.stdout)
    assert "over 2 ranks" in done.stdout
    rows = measured(ch_image, collection, image, tmp_path, "--workload", "mnist-cnn,gan3d,allreduce,gemm")
    assert rows["mnist-cnn", "samples_per_second"].software.framework == "jax"
    assert rows["gan3d", "samples_per_second"].ranks_per_node == 2
    assert ("allreduce", "gigabytes_per_second") in rows and ("gemm", "gflops") in rows
    remove(image)


@pytest.mark.slow
def test_models_of_three_frameworks_are_converted(ch_image: ChImage, collection: Path, tmp_path: Path) -> None:
    chosen = [*DEBIAN, "onnx_tools.frameworks=sklearn,keras,pytorch", "onnxruntime.provider=cpu"]
    image = built(ch_image, collection, tmp_path, "onnx-convert", *chosen)
    done = ch_image.run(["bash", tmp_path / "kit" / "run.sh"], env={"HPCGEN_IMAGE": str(image)}, cwd=tmp_path)
    print(done.stdout)
    assert "converted sklearn keras pytorch" in done.stdout
    remove(image)
