"""``hpcgen onnx run`` up to where a runtime computes: what it is asked, what the container sees, what is said then."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, JobFailedError, UnknownNameError
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.onnx import run
from hpcgen.plugins.onnx.cli.onnx import PROVIDERS
from hpcgen.plugins.onnx.records import ConversionReport, Converted, Provider, ReportedModel
from hpcgen.plugins.onnx.results import REPORT
from hpcgen.plugins.onnx.run import RunRequest, run_here
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.starts import StartResult
from tests.conftest import Command


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    model = ReportedModel(converted=Converted(model="tree", origin="sklearn"))
    report = ConversionReport(conversion=1, ensemble="it", models={"tree": model}, given=[], hpcgen="0.2.0")
    (tmp_path / "it" / "tree").mkdir(parents=True)
    (tmp_path / "it" / REPORT).write_bytes(msgspec.json.encode(report))
    (tmp_path / "it" / "tree" / "model.onnx").write_bytes(b"no model")
    return tmp_path / "it"


def asked(folder: Path, *data: Path, model: str = "tree") -> RunRequest:
    return RunRequest(folder, model, data, folder.parent / "out")


def test_what_is_missing_is_said_before_anything_starts(converted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        asked(converted, tmp_path / "a.npz", tmp_path / "b.npz").checked()
    assert [each.message for each in refused.value.problems] == [
        f"there is no {tmp_path / name}" for name in ("a.npz", "b.npz")
    ]
    with pytest.raises(UnknownNameError, match="has no model 'tre'") as unknown:
        asked(converted, tmp_path, model="tre").checked()
    assert unknown.value.problems[0].remedy == "did you mean tree?"
    with pytest.raises(InputError, match="there is no converted ensemble"):
        asked(tmp_path, tmp_path).checked()
    (converted / "tree" / "int8-dynamic").mkdir()
    variant = msgspec.structs.replace(asked(converted, tmp_path), variant="int8-dynamc")
    with pytest.raises(UnknownNameError, match="tree has no variant 'int8-dynamc'") as unknown:
        variant.checked()
    assert unknown.value.problems[0].remedy == "did you mean int8-dynamic?"
    with pytest.raises(InputError, match="only for measuring"):
        msgspec.structs.replace(variant, variant="tvm").checked()


def test_the_container_is_sealed_and_sees_models_data_and_results_alone(
    converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("data/a", "data/b"):
        (tmp_path / name).mkdir(parents=True)
    seen: dict[str, object] = {}

    def start(job: ImageJob, timeout: float, tell: run.OnLine, folder: Path) -> StartResult:
        seen.update(job=job, folder=folder)
        tell("/media/b/x.npz: it has no y")
        failed = [{"data": "/media/b/x.npz", "why": "/media/b/x.npz: it has no y"}]
        done = {"task": 0, "tasks": 1, "computed": 0, "there": 0, "rows": 0, "models": {}, "seconds": 0.1}
        (folder / "run.json").write_bytes(msgspec.json.encode({**done, "failed": failed}))
        return StartResult(1, [], 1.0)

    monkeypatch.setattr(run, "start_job", start)
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    catalog = Catalog()
    plan = make_plan(catalog, catalog.site("workstation"), catalog.stack("onnxruntime"))
    lines: list[str] = []
    report = run.run_in_image(
        asked(converted, tmp_path / "data/a", tmp_path / "data/b"), ImageJob(plan, {}), catalog, lines.append
    )
    job = seen["job"]
    assert isinstance(job, ImageJob) and job.sealed and seen["folder"] == tmp_path / "out"
    assert {each.source: each.target for each in job.shown} == {
        str(converted): "/srv",
        str(tmp_path / "data"): "/media",
    }
    told = job.plan.stack.run.environment
    assert told["SLURM_ARRAY_TASK_ID"] == "3" and told["CUDA_VISIBLE_DEVICES"] == "1"
    words = ["--models", "/srv", "--output", ".", "--report", "./run.json", "--model", "tree", "--"]
    assert job.plan.job.command[3:] == [*words, "/media/a", "/media/b"]
    # What is said of data has the names that they have outside.
    why = f"{tmp_path}/data/b/x.npz: it has no y"
    assert lines == [why] and [(each.data, each.why) for each in report.failed] == [(why.partition(":")[0], why)]


def test_data_that_the_container_could_not_see_are_refused(converted: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no folder in common"):
        run._common([tmp_path, Path("/proc")])
    data = tmp_path / "data"
    data.mkdir()
    (tmp_path / "far.npz").write_bytes(b"")
    for name, target in {"good.npz": "x.npz", "far.npz": "../far.npz", "absolute.npy": str(data / "x.npz")}.items():
        (data / name).symlink_to(target)
    (data / "x.npz").write_bytes(b"")
    with pytest.raises(InputError, match="is a link that leads nowhere in the container") as refused:
        run._check_links([data], data)
    named = [each.message.partition(" ")[0] for each in refused.value.problems]
    assert named == [str(data / "absolute.npy"), str(data / "far.npz")]


def test_a_runtime_that_is_not_there_is_said_in_one_line(
    converted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole program is one word of the command, and runs as such."""
    # What would be found beside this Python is hidden from the process that is started.
    (tmp_path / "onnxruntime.py").write_text("raise ImportError('none of it')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.npz").write_bytes(b"")
    said: list[str] = []
    with pytest.raises(JobFailedError, match="onnxruntime is not here"):
        run_here(asked(converted, tmp_path / "data"), Catalog(), said.append)
    assert len(said) == 1, said


@pytest.mark.parametrize(
    ("status", "last", "message"),
    [
        (76, "CUDAExecutionProvider was asked for", "the provider of the GPU does not compute here: CUDAExec"),
        (-9, "half", "tree ended with the signal SIGKILL: half"),
        (0, "nothing was written", "tree ended with status 0: nothing was written"),
    ],
)
def test_how_it_ended_is_said(converted: Path, tmp_path: Path, status: int, last: str, message: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "run.json").write_text("{}")

    def start(tell: run.OnLine) -> StartResult:
        tell(last)
        return StartResult(status, [], 1.0)

    with pytest.raises(JobFailedError) as failed:
        run._ended(asked(converted, tmp_path), start, lambda text: None)
    assert failed.value.problems[0].message.startswith(message)


def test_a_report_that_is_none_is_not_believed(converted: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()

    def start(tell: run.OnLine) -> StartResult:
        (tmp_path / "out" / "run.json").write_text('{"task": -1}')
        return StartResult(0, [], 1.0)

    with pytest.raises(JobFailedError, match="is not a result of the program"):
        run._ended(asked(converted, tmp_path), start, lambda text: None)


def test_providers_that_are_not_there_are_refused_with_what_to_take(hpcgen: Command, converted: Path) -> None:
    assert get_args(Provider) == PROVIDERS
    words = ["onnx", "run", str(converted), "tree", str(converted), "-o", "out", "--here", "--provider"]
    for name, said in {"dnnl": "`openvino` computes by oneDNN's", "rocm": "`migraphx`", "gpu": "is not one of"}.items():
        done = hpcgen(*words, name)
        assert done.returncode == 2 and said in done.stderr


def test_the_command_wants_one_place_to_run(hpcgen: Command, converted: Path) -> None:
    words = ["onnx", "run", str(converted), "tree", str(converted), "-o", "out"]
    for more in ([], ["--here", "--image", "image.sif"]):
        done = hpcgen(*words, *more)
        assert done.returncode == 2 and "say either --image IMAGE or --here" in done.stderr
    done = hpcgen(*words, "--here", "--engine", "podman")
    assert done.returncode == 2 and "--here uses no image" in done.stderr
