"""What the programs of ``hpcgen onnx`` say of data, versions and a full disk, where no framework is needed."""

from __future__ import annotations

import errno
import json
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from hpcgen.plugins.onnx.programs import common, data, quantise
from hpcgen.plugins.onnx.records import Converted
from hpcgen.plugins.onnx.work import ModelWork

PROGRAMS = Path(common.__file__).parent
JOB: dict[str, Any] = {"ensemble": {"seed": 7}}


def model(*files: str, **more: Any) -> common.Model:
    given = {"from": "onnx", "inputs": {"x": {"shape": ["batch", 4]}}, "data": list(files), **more}
    return common.Model("candle", given)


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "given").mkdir()
    return tmp_path / "given"


def refusal(file: str, **more: Any) -> common.Cannot:
    with pytest.raises(common.Cannot) as caught:
        data.read_data(file, model(**more))
    assert caught.value.message.startswith("candle: ") and caught.value.remedy
    return caught.value


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((5, 7), "f4"), "has the shape [5, 7], and the ensemble file says float32 [batch, 4]: axis 1 is 7"),
        (np.zeros((5, 4)), "has the type float64, and the ensemble file says float32 [batch, 4]"),
        (np.zeros(4, "f4"), "has the shape [4], and"),
        (np.zeros((0, 4), "f4"), "axis 0 is 0 long and not at least 1"),
    ],
)
def test_data_that_are_not_as_declared_are_refused(given: Path, array: Any, said: str) -> None:
    np.save(given / "x.npy", array)
    assert said in refusal("x.npy").message


def test_data_that_are_missing_or_cannot_be_read_are_refused(given: Path) -> None:
    np.savez(given / "other.npz", y=np.zeros((2, 4), "f4"))
    (given / "text.npy").write_text("1 2 3")
    np.save(given / "objects.npy", np.array([{}], object), allow_pickle=True)
    assert "has no array for the input x: it has y" in refusal("other.npz").message
    assert "the test data away.npy are missing" in refusal("away.npy").message
    assert "cannot be read as NumPy data" in refusal("text.npy").message
    assert "cannot be read as NumPy data" in refusal("objects.npy").message


TEXTS = {"x": {"shape": ["batch", 2], "dtype": "string"}}


def test_texts_are_those_of_the_data_or_of_the_fitted_estimator(given: Path) -> None:
    np.save(given / "x.npy", np.array([["a", "n"], ["b", "m"]]))
    of = model("x.npy", inputs=TEXTS)
    assert data.datasets(of, JOB, [])[0][1]["x"].dtype.kind == "U"
    drawn = data.random_feeds(of, data.with_batch(of, 50), 7)["x"]
    assert drawn.shape == (50, 2) and set(drawn[:, 0]) == {"a", "b"} and set(drawn[:, 1]) == {"m", "n"}
    with pytest.raises(common.Cannot, match="the valid texts for its input x are unknown"):
        data.datasets(model(inputs=TEXTS), JOB, [])
    assert "has the type string, and the ensemble file says float32" in refusal("x.npy").message
    np.save(given / "x.npy", np.zeros((2, 2)))
    assert ".astype('str')" in refusal("x.npy", inputs=TEXTS).remedy


def test_estimators_are_tried_on_many_samples_and_on_wider_values() -> None:
    of = model(inputs={"x": {"shape": ["batch", 4], "low": -1.0}})
    (_, plain), (label, wide) = data.many_rows(of, JOB)
    assert plain["x"].shape == wide["x"].shape == (data.ROWS, 4) and of.axes == {"batch": 2}
    assert label.endswith("ten times as wide") and plain["x"].min() > -1.01 and wide["x"].min() < -8


def test_one_axis_has_one_length_in_all_inputs(given: Path) -> None:
    np.savez(given / "two.npz", x=np.zeros((2, 4), "f4"), y=np.zeros((3, 4), "f4"))
    both = {each: {"shape": ["batch", 4]} for each in "xy"}
    assert "axis 0 is 3 long and not 2" in refusal("two.npz", inputs=both).message


def test_nan_in_data_is_said(given: Path) -> None:
    np.save(given / "x.npy", np.array([[1, 2, np.nan, np.inf]], "f4"))
    findings: list[str] = []
    data.read_data("x.npy", model(), findings)
    assert findings[0].startswith("x.npy: 2 of 4 values of x are NaN or infinite, the first at [0, 2]")


def test_a_model_is_tried_on_the_data_and_batches_that_are_asked_for_else_on_the_example(given: Path) -> None:
    np.save(given / "x.npy", np.ones((5, 4), "f4"))
    tried = [(name, each["x"].shape) for name, each in data.datasets(model(), JOB, [])]
    assert tried == [("random, batch 2", (2, 4))]
    tried = [(name, each["x"].shape) for name, each in data.datasets(model("x.npy", batches=[8]), JOB, [])]
    assert tried == [("x.npy", (5, 4)), ("random, batch 8", (8, 4))]
    assert data.traced(model(axes={"batch": 1}), JOB)["x"].shape == (2, 4)


def test_random_values_are_those_of_the_seed_and_lie_between_low_and_high() -> None:
    words = {"ids": {"shape": ["batch", 300], "dtype": "int64", "low": 3, "high": 9}}
    first, again = (data.random_feeds(model(inputs=words), {"batch": 4}, 7)["ids"] for _ in range(2))
    assert np.array_equal(first, again) and first.dtype == np.int64
    assert set(np.unique(first)) == set(range(3, 9))
    assert not np.array_equal(first, data.random_feeds(model(inputs=words), {"batch": 4}, 8)["ids"])


def test_numbers_and_text_are_as_the_record_takes_them() -> None:
    assert [common.number(each) for each in (math.nan, math.inf, -math.inf, 1)] == ["nan", "inf", "-inf", 1.0]
    assert common.text("one\ntwo\x1b[31m \u2028three") == "one two [31m three"
    assert len(common.text("x" * 5000)) == 2000


@pytest.mark.parametrize(
    ("version", "wanted", "fits"),
    [("2.13.0+cpu", ">=2.3,<2.14", True), ("2.13.0", "2.13", True), ("2.1.3", "2.13", False), ("1.9.1", "<1.9", False)],
)
def test_a_version_fits_a_range(version: str, wanted: str, fits: bool) -> None:
    assert common.fits(version, wanted) is fits


def test_a_step_runs_on_its_own_and_a_file_that_is_missing_is_said(tmp_path: Path) -> None:
    """A child, as the host starts it; nothing of the work folder shadows the programs' own modules."""
    for name in ("given", "programs"):
        (tmp_path / name).mkdir()
    for each in PROGRAMS.glob("*.py"):
        (tmp_path / "programs" / each.name).write_text(each.read_text())
    (tmp_path / "given" / "common.py").write_text("raise SystemExit('foreign code')\n")
    (tmp_path / "given" / "onnx.py").write_text("raise ImportError('no onnx')\n")
    record = {"from": "sklearn", "inputs": {"x": {"shape": [2]}}, "file": "away.pkl"}
    (tmp_path / "job.json").write_text(json.dumps({"ensemble": {"models": {"m": record}}}))
    command = [sys.executable, "programs/main.py", "m", "convert"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    said = msgspec.json.decode((tmp_path / "said" / "m.convert.json").read_bytes(), type=Converted)
    assert done.returncode == 1 and said.failed == "m: away.pkl is missing" and said.remedy in done.stderr


@pytest.mark.parametrize("failure", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: you …")])
def test_too_little_memory_is_said_with_the_limit(failure: Exception) -> None:
    message, remedy = common.reason(failure, "m", {"memory_bytes": 2_000_000_000})
    assert message == "m: it needs more memory than the 2.0 GB that it may take (--memory)" and remedy
    assert common.reason(failure, "m", {})[0] == "m: it needs more memory than there is"


def test_a_step_may_take_no_more_memory_than_it_was_given(tmp_path: Path) -> None:
    """A file from elsewhere that unpacks to more: the step ends, and says so."""
    for name in ("given", "programs"):
        (tmp_path / name).mkdir()
    for each in PROGRAMS.glob("*.py"):
        (tmp_path / "programs" / each.name).write_text(each.read_text())
    (tmp_path / "programs" / "variants.py").write_text(
        "RUNTIME = {}\n\n\ndef begun(model, variant):\n    return {}\n\n\n"
        "def work(asked, model, record, variant):\n    bytearray(1 << 32)\n"
    )
    job = {"memory_bytes": 1 << 30, "ensemble": {"models": {"m": {"from": "onnx", "inputs": {}}}}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    command = [sys.executable, "programs/main.py", "m", "fp16"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "m: it needs more memory than the 1.1 GB that it may take" in done.stderr


def test_a_step_that_lacks_memory_beside_others_is_left_for_a_start_of_its_own(tmp_path: Path) -> None:
    for name in ("given", "programs"):
        (tmp_path / name).mkdir()
    for each in PROGRAMS.glob("*.py"):
        (tmp_path / "programs" / each.name).write_text(each.read_text())
    (tmp_path / "programs" / "variants.py").write_text(
        "RUNTIME = {}\n\n\ndef begun(model, variant):\n    return {'findings': []}\n\n\n"
        "def work(asked, model, record, variant):\n    if variant == 'fp16':\n        raise MemoryError\n"
    )
    (tmp_path / "job.json").write_text(json.dumps({"ensemble": {"models": {"m": {"from": "onnx", "inputs": {}}}}}))

    def run(*steps: str) -> tuple[int, list[str]]:
        done = subprocess.run([sys.executable, "programs/main.py", "m", *steps], cwd=tmp_path, capture_output=True)
        return done.returncode, sorted(path.name for path in (tmp_path / "said").iterdir())

    assert run("ort-all", "fp16", "ort-basic") == (4, ["m.ort-all.json"])
    # By itself it has its say, and those after it too.
    assert run("fp16", "ort-basic") == (1, ["m.fp16.json", "m.ort-all.json", "m.ort-basic.json"])


def test_a_full_disk_is_said_as_such() -> None:
    full = OSError(errno.ENOSPC, "No space left on device", "m/model.onnx")
    for failure in (full, RuntimeError("write failed: No space left on device")):
        message, remedy = common.reason(failure, "m", {})
        assert message.startswith("m: the disk is full: ") and "MB are free" in remedy


class EncodeError(Exception):
    """As protobuf's."""


@pytest.mark.parametrize(("side", "told"), [(30_000, "its weight W has 3.6 GB"), (10, "its weights are too large")])
def test_a_weight_too_large_to_quantise_is_said_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, side: int, told: str
) -> None:
    def refuse(*args: Any, **more: Any) -> None:
        raise EncodeError("Failed to serialize proto")

    weights = [
        SimpleNamespace(name=name, dims=dims, data_type=1) for name, dims in {"b": [3], "W": [side, side]}.items()
    ]
    proto = SimpleNamespace(graph=SimpleNamespace(initializer=weights, node=[]))
    helper = SimpleNamespace(tensor_dtype_to_np_dtype=lambda kind: np.dtype("f4"))
    onnx = SimpleNamespace(load=lambda path, load_external_data: proto, helper=helper)
    quantization = SimpleNamespace(quantize_dynamic=refuse, QuantType=SimpleNamespace(QInt8=1))
    monkeypatch.setitem(sys.modules, "onnx", onnx)
    monkeypatch.setitem(sys.modules, "onnxruntime.quantization", quantization)
    monkeypatch.delitem(sys.modules, "hpcgen.plugins.onnx.programs.onnxfile", raising=False)
    with pytest.raises(common.Cannot) as caught:
        quantise.dynamic(tmp_path / "model.onnx", tmp_path / "out.onnx", True)
    sys.modules.pop("hpcgen.plugins.onnx.programs.onnxfile", None)
    assert caught.value.message.startswith(
        f"it cannot be quantised: {told}, and ONNX Runtime's quantisation writes one"
    )
    assert "split that layer" in caught.value.remedy


def test_runtimes_are_opened_as_the_program_over_files_opens_them(tmp_path: Path) -> None:
    """The module of the block onnx_serve lies beside the programs, and what it refuses is theirs to say."""
    ModelWork(tmp_path, "m").write({})
    (tmp_path / "onnxruntime.py").write_text(
        "__version__ = '1.32.0'\ndef get_available_providers(): return ['CPUExecutionProvider']\n"
    )
    program = (
        "from programs import common, runtimes\n"
        "for runtime, provider in (('onnxruntime', 'cuda'), ('other', 'cpu')):\n"
        "    try:\n        runtimes.open_runtime(runtime, 'model.onnx', 1, provider)\n"
        "    except common.Cannot as why:\n        print(why.message, '|', why.remedy)\n"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "onnxruntime 1.32.0 of this image has no CUDAExecutionProvider, only CPUExecutionProvider | "
        "take an image for this partition: hpcgen onnx serve-kit",
        "there is no runtime other | name onnxruntime, openvino or tvm",
    ]
