"""A kit for inference built and run: an array of a real Slurm over files, taken up again, and a GPU that is not there.

The models are written by hand, as a conversion leaves them: the image has ONNX Runtime alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from container_tools import BaseImage, ChImage, Run, Slurm
from leftovers import remove
from test_rendered_kits import site_profile

from hpcgen.plugins.onnx.records import ConversionReport, Converted, OnnxFile, ReportedModel
from hpcgen.plugins.onnx.results import REPORT
from hpcgen.plugins.onnx.stack import STACK_FILE, serving_stack, stack_text
from tests.conftest import ROOT

MODELS, FILES, TASKS = ("one", "two"), 7, 3
GPU_DOES_NOT_COMPUTE = 76


def converted(folder: Path) -> tuple[Any, Any]:
    """Two models in the folder of a conversion; an input for both, and what NumPy computes of it."""
    sys.path.insert(0, str(ROOT / "building_blocks" / "files"))
    try:
        from onnx_model import example
    finally:
        sys.path.pop(0)
    model, x, wanted = example()
    file = OnnxFile(name="model.onnx", opset=13, nodes=3, parameters=1)
    models = {}
    for name in MODELS:
        (folder / name).mkdir(parents=True)
        (folder / name / "model.onnx").write_bytes(model)
        models[name] = ReportedModel(converted=Converted(model=name, origin="onnx", file=file))
    report = ConversionReport(ensemble="pair", models=models, given=[], hpcgen="0.2.0")
    (folder / REPORT).write_bytes(msgspec.json.encode(report))
    (folder / STACK_FILE).write_text(stack_text(serving_stack("pair", MODELS)))
    return x, wanted


def hpcgen(collection: Path, *words: object, cwd: Path, env: Any, status: int = 0) -> tuple[str, str]:
    command = [sys.executable, "-m", "hpcgen", "--collection", str(collection), *map(str, words)]
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout, done.stderr


def submit(cluster: Slurm, work: Path, *words: str, check: bool = True) -> Run:
    return cluster.run(["sbatch", "-W", *words], cwd=work, check=check, timeout=300)


def results(work: Path) -> dict[str, int]:
    """When each result was written, in nanoseconds."""
    folder = work / "results"
    return {str(each.relative_to(folder)): each.stat().st_mtime_ns for each in sorted(folder.rglob("*.npz"))}


def an_array_computes_each_file_once(cluster: Slurm, work: Path, wanted: Any) -> None:
    submit(cluster, work, "job.slurm")
    first = results(work)
    assert len(first) == FILES * len(MODELS)
    for name in first:
        with np.load(work / "results" / name) as found:
            np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-4)
    said = [each.read_text().splitlines()[-1] for each in sorted(work.glob("*.out"))]
    assert len(said) == TASKS and all("0 were there, 0 failed" in each for each in said), said
    # One is gone, one is half, one file has other data: the job does these again, and nothing else.
    (work / "results" / "one" / "x0.npz").unlink()
    half = work / "results" / "two" / "x1.npz"
    half.write_bytes(half.read_bytes()[:100])
    np.savez(work / "data" / "x2.npz", x=np.zeros((1, 256), "float32"))
    submit(cluster, work, "job.slurm")
    second = results(work)
    again = {name for name, written in second.items() if first[name] != written}
    assert again == {"one/x0.npz", "two/x1.npz", "one/x2.npz", "two/x2.npz"}


def a_gpu_that_does_not_compute_ends_the_job(cluster: Slurm, work: Path) -> None:
    program = ["python3", "/opt/onnx_serve/share/onnx_infer.py", "--provider", "cuda", "--output", "gpu", "data"]
    done = submit(cluster, work, "--array=0", "-o", "gpu.out", "job.slurm", *program, check=False)
    assert done.returncode == GPU_DOES_NOT_COMPUTE
    assert "has no CUDAExecutionProvider" in (work / "gpu.out").read_text() + "".join(
        each.read_text() for each in work.glob("*.err")
    )
    assert not (work / "gpu").exists()


def one_file_right_here(collection: Path, work: Path, image: Path, env: Any) -> None:
    words = ["onnx", "run", "converted", "one", "work/data/x0.npz", "-o", "here", "--image", image]
    for there in (0, 1):
        said = json.loads(hpcgen(collection, *words, "--json", cwd=work.parent, env=env)[0])
        assert (said["computed"], said["there"]) == (1 - there, there)
    assert (work.parent / "here" / "one" / "x0.npz").is_file()
    why = hpcgen(collection, *words, "--provider", "cuda", cwd=work.parent, env=env, status=10)[1]
    assert "the provider of the GPU does not compute here" in why
    (work.parent / "bad.npz").write_bytes(b"PK")
    words[4] = "bad.npz"
    assert "bad.npz holds no arrays" in hpcgen(collection, *words, cwd=work.parent, env=env, status=10)[1]


@pytest.mark.slow
def test_openvino_serves_on_nodes_without_gpus(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path
) -> None:
    """In an image of its own, without ONNX Runtime; what the job's words run elsewhere is run right here."""
    collection, kit, image = tmp_path / "collection", tmp_path / "kit", tmp_path / "image"
    (collection / "site_profiles").mkdir(parents=True)
    site = site_profile(machine_facts, plain_base_image)
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    x, wanted = converted(tmp_path / "converted")
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "x.npz", x=x)
    words = ["onnx", "serve-kit", "converted", "--site", "here", "--provider", "openvino", "-o", kit]
    said, _ = hpcgen(collection, *words, cwd=tmp_path, env=ch_image.env)
    assert "computed by openvino: openvino" in said
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    done, _ = hpcgen(collection, "run", image, cwd=tmp_path, env=ch_image.env)
    assert "one: openvino" in done
    run = ["onnx", "run", "converted", "one", "data", "-o", "by-hand", "--image", image]
    hpcgen(collection, *run, cwd=tmp_path, env=ch_image.env)
    for name in ("results/one", "results/two", "by-hand/one"):
        with np.load(tmp_path / name / "x.npz") as found:
            np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-4)
    why = hpcgen(collection, *run, "--provider", "cpu", cwd=tmp_path, env=ch_image.env, status=10)[1]
    assert "onnxruntime is not here" in why
    remove(image)


@pytest.mark.slow
def test_a_kit_runs_models_over_files_in_an_array_and_goes_on(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    ch_image: ChImage,
    slurm_cluster: Callable[..., Slurm],
    tmp_path: Path,
) -> None:
    cluster = slurm_cluster("general")
    site = site_profile(machine_facts, plain_base_image)
    site["scheduler"] = {"kind": "slurm", "output": "./%x.%A.%a.out", "error": "./%x.%A.%a.err"}
    site["partitions"]["cpu"]["queues"] = [{"name": cluster.partitions[0]}]
    collection, work, kit = tmp_path / "collection", tmp_path / "work", tmp_path / "kit"
    (collection / "site_profiles").mkdir(parents=True)
    (collection / "site_profiles" / "here.yaml").write_text(json.dumps(site))
    (work / "data").mkdir(parents=True)
    x, wanted = converted(tmp_path / "converted")
    for number in range(FILES):
        np.savez(work / "data" / f"x{number}.npz", x=x)
    words = ["onnx", "serve-kit", "converted", "--site", "here", "--array", f"{TASKS}", "--time", "10m", "-o", kit]
    said, _ = hpcgen(collection, *words, cwd=tmp_path, env=cluster.env)
    assert "computed by cpu: onnxruntime" in said and "submit  sbatch --parsable job.slurm" in said
    image = work / "pair-serve"
    ch_image.run(["bash", kit / "build.sh", image], cwd=tmp_path, env={"HPCGEN_BUILD_OPTIONS": "--no-cache"})
    for name in ("job.slurm", "preflight.sh"):
        (work / name).write_text((kit / name).read_text())
    an_array_computes_each_file_once(cluster, work, wanted)
    a_gpu_that_does_not_compute_ends_the_job(cluster, work)
    one_file_right_here(collection, work, image, ch_image.env)
    remove(image)
