"""Inference over files: what goes into the image, and what the program makes of arrays, files and arrays of jobs."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpcgen.blocks.steps import Run
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.stack import RunSpec, Stack, StackBlock
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from tests.conftest import ROOT

FILES = ROOT / "building_blocks" / "files"
PARTS = ("onnx_sessions", "onnx_arrays", "onnx_infer")


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    monkeypatch.syspath_prepend(str(FILES))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in [name for name in os.environ if name.startswith(("SLURM_", "HPCGEN_TASK"))]:
        monkeypatch.delenv(name)
    yield SimpleNamespace(**{name: __import__(name) for name in PARTS})
    for name in PARTS:
        sys.modules.pop(name, None)


class Doubler:
    """A model of two inputs by rows; ``fixed``: how many it takes at a time, and ``seen`` what it was given."""

    def __init__(self, fixed: int | None = None) -> None:
        import numpy as np

        self.inputs = [(name, [fixed or "batch", 2], np.dtype("float32")) for name in "ab"]
        self.outputs, self.seen = ["sum"], list[int]()

    def run(self, feeds: dict[str, Any]) -> list[Any]:
        self.seen.append(len(feeds["a"]))
        return [feeds["a"] + feeds["b"]]


def planned(site: str, *settings: str, partition: str | None = None, gpus: int = 0) -> Plan:
    catalog = Catalog()
    run = RunSpec(command=["true"], mpi=False, gpus_per_node=gpus)
    stack = Stack(name="it", title="it", blocks={"onnx_serve": StackBlock()}, run=run)
    return make_plan(catalog, catalog.site(site), stack, settings=settings, partition=partition)


def provider_file(plan: Plan) -> str:
    steps: list[Run] = [step for _, step in assemble(plan, Catalog()).builder.steps]
    (text,) = [file.text for step in steps for file in step.files if file.path == "files/tests/onnx_serve_provider"]
    return text.strip()


@pytest.mark.parametrize(
    ("site", "partition", "settings", "gpus", "provider"),
    [
        ("supermuc", None, [], 0, "cpu"),
        ("darwin", "gpu-t4", [], 1, "cuda"),
        ("darwin", "gpu-v100", ["onnxruntime.provider=tensorrt"], 1, "tensorrt"),
        ("supermuc", None, ["onnx_serve.runtime=openvino"], 0, "openvino"),
    ],
)
def test_the_image_knows_its_provider(
    site: str, partition: str | None, settings: list[str], gpus: int, provider: str
) -> None:
    plan = planned(site, *settings, partition=partition, gpus=gpus)
    assert provider_file(plan) == provider
    names = {each.name for each in plan.blocks}
    assert ("openvino" in names) == (provider == "openvino") != ("onnxruntime" in names)


def test_rows_are_computed_in_pieces(program: SimpleNamespace) -> None:
    import numpy as np

    arrays = {name: np.arange(14, dtype="float32").reshape(7, 2) for name in "ab"}
    model = Doubler()
    (found,) = program.onnx_arrays.infer(model, arrays, 3)
    assert model.seen == [3, 3, 1]
    assert (found == arrays["a"] * 2).all()


def test_a_fixed_batch_is_filled_up_and_cut_again(program: SimpleNamespace) -> None:
    import numpy as np

    arrays = {name: np.arange(10, dtype="float32").reshape(5, 2) for name in "ab"}
    model = Doubler(fixed=4)
    (found,) = program.onnx_arrays.infer(model, arrays, 3)
    assert model.seen == [4, 4]
    assert (found == arrays["a"] * 2).all() and len(found) == 5


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"a": (3, 2)}, "it has no b, only a"),
        ({"a": (3, 2), "b": (3, 5)}, "b has the shape (3, 5), the model takes ['batch', 2]"),
        ({"a": (3,), "b": (3, 2)}, "a has the shape (3,)"),
    ],
)
def test_what_does_not_fit_the_model_is_said(
    program: SimpleNamespace, tmp_path: Path, arrays: dict[str, tuple[int, ...]], why: str
) -> None:
    import numpy as np

    np.savez(tmp_path / "x.npz", **{name: np.zeros(shape, "float32") for name, shape in arrays.items()})  # type: ignore[arg-type]
    with pytest.raises(program.onnx_sessions.Cannot) as refused:
        program.onnx_arrays.read_data(tmp_path / "x.npz", Doubler())
    assert why in str(refused.value) and "x.npz" in str(refused.value)


def test_arrays_of_text_and_of_objects_are_refused_and_wider_numbers_narrowed(
    program: SimpleNamespace, tmp_path: Path
) -> None:
    import numpy as np

    ok = np.ones((2, 2))
    np.savez(tmp_path / "wide.npz", a=ok, b=ok)
    found = program.onnx_arrays.read_data(tmp_path / "wide.npz", Doubler())
    assert found["a"].dtype == np.float32
    np.savez(tmp_path / "text.npz", a=np.array([["x", "y"]]), b=ok)
    np.savez(tmp_path / "object.npz", a=np.array([[{}, {}]], dtype=object), b=ok)
    for name, why in (("text", "the model takes float32"), ("object", "holds no arrays of numbers")):
        with pytest.raises(program.onnx_sessions.Cannot, match=why):
            program.onnx_arrays.read_data(tmp_path / f"{name}.npz", Doubler())


def test_a_result_counts_as_there_if_it_is_whole_and_of_the_same_model_and_data(
    program: SimpleNamespace, tmp_path: Path
) -> None:
    import numpy as np

    arrays, place = program.onnx_arrays, tmp_path / "out" / "x.npz"
    assert not arrays.is_whole(place, b"mark")
    arrays.write(place, {"sum": np.ones(3)}, b"mark")
    assert arrays.is_whole(place, b"mark") and not arrays.is_whole(place, b"of another model")
    with np.load(place) as found:
        assert found["sum"].sum() == 3
    place.write_bytes(place.read_bytes()[:-20])
    assert not arrays.is_whole(place, b"mark")
    assert [each.name for each in place.parent.iterdir()] == ["x.npz"]


def test_what_a_killed_process_had_begun_is_removed(program: SimpleNamespace, tmp_path: Path) -> None:
    import numpy as np

    here, gone = program.onnx_arrays.here(), 2**22 + 1
    # A container counts processes by itself, so that the same number may be a process that is alive elsewhere.
    killed, *others = (f".x.npz.{each}.partial" for each in (f"{here}.{gone}", f"{here}.1", f"{here}0.{gone}"))
    for each in (killed, *others):
        (tmp_path / each).write_bytes(b"half")
    program.onnx_arrays.write(tmp_path / "x.npz", {"sum": np.ones(3)}, b"")
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*others, "x.npz"])


def test_data_in_folders_called_as_models_are_theirs_alone(program: SimpleNamespace, tmp_path: Path) -> None:
    for name in ("one/a.npz", "one/deep/b.npy", "two/a.npz", "two/.hidden.npz", "two/readme.txt"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    found = program.onnx_infer.work(["one", "two"], [tmp_path / "data"])
    assert [(name, str(place)) for name, _, place in found] == [
        ("one", "one/a.npz"),
        ("one", "one/deep/b.npz"),
        ("two", "two/a.npz"),
    ]
    both = program.onnx_infer.work(["one", "three"], [tmp_path / "data" / "two" / "a.npz"])
    assert [str(place) for _, _, place in both] == ["one/a.npz", "three/a.npz"]
    (tmp_path / "data" / "one" / "a.npy").touch()
    with pytest.raises(program.onnx_sessions.Cannot, match="would have the same result"):
        program.onnx_infer.work(["one", "two"], [tmp_path / "data"])


@pytest.mark.parametrize(
    ("environment", "words", "share"),
    [
        ({}, ["--tasks", "4"], (0, 1)),
        ({"SLURM_ARRAY_TASK_ID": "7", "SLURM_ARRAY_TASK_MIN": "5", "SLURM_ARRAY_TASK_COUNT": "4"}, [], (2, 4)),
        ({"HPCGEN_TASK": "2"}, ["--tasks", "3"], (2, 3)),
        ({"HPCGEN_TASK": "2", "SLURM_ARRAY_TASK_COUNT": "8"}, ["--tasks", "3"], (2, 8)),
        ({"HPCGEN_TASK": "2"}, ["--shard", "2/8"], (1, 8)),
        ({"HPCGEN_TASK": "3"}, ["--tasks", "3"], "of an array of 3"),
        ({"HPCGEN_TASK": "3"}, [], "nothing says of how many"),
        ({}, ["--shard", "9/8"], "not one of so many"),
    ],
)
def test_each_task_of_an_array_has_its_share(
    program: SimpleNamespace,
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    words: list[str],
    share: tuple[int, int] | str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    asked = program.onnx_infer.options([*words, "data"])
    if isinstance(share, tuple):
        assert program.onnx_infer.shard(asked) == share
    else:
        with pytest.raises(program.onnx_sessions.Cannot, match=share):
            program.onnx_infer.shard(asked)


@pytest.mark.parametrize(
    ("names", "node", "name"),
    [
        ({"x", "cast_input"}, "x", "x"),
        ({"y", "inner"}, "y/sink_port_0", "y"),
        ({"b", "a"}, "Result_7", "a"),
        (set(), "Result_7", "output3"),
    ],
)
def test_openvino_takes_the_names_of_the_model_in_onnx(
    program: SimpleNamespace, names: set[str], node: str, name: str
) -> None:
    """Where it has taken nodes out, their names are the input's too."""
    port = SimpleNamespace(get_names=lambda: names, get_node=lambda: SimpleNamespace(get_friendly_name=lambda: node))
    assert program.onnx_sessions.name_of(port, "output3") == name


def test_nodes_that_a_provider_computed_are_counted(program: SimpleNamespace, tmp_path: Path) -> None:
    profile = tmp_path / "profile.json"
    profile.write_text(
        '[{"cat": "Session", "name": "model_run"},'
        '{"cat": "Node", "name": "conv_kernel_time", "args": {"provider": "CUDAExecutionProvider"}},'
        '{"cat": "Node", "name": "conv_fence_before", "args": {}},'
        '{"cat": "Node", "name": "shape_kernel_time", "args": {"provider": "CPUExecutionProvider"}}]'
    )
    found = program.onnx_sessions.nodes_by_provider(profile)
    assert found == {"CUDAExecutionProvider": 1, "CPUExecutionProvider": 1}
