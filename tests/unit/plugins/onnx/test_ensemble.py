"""Ensemble files: what they say, and every mistake at its place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.onnx.convert import spelled
from hpcgen.plugins.onnx.ensemble import read_ensemble

GOOD = """\
name: three
target: {provider: cpu}
models:
  net:
    from: pytorch
    factory: models.py:net
    file: weights/net.pt
    inputs: {x: {shape: [batch, 3, length]}}
    axes: {length: 8}
    outputs: {y: {absolute: 1e-3}}
    data: [data.npz]
    batches: [1, 4]
  trees:
    from: sklearn
    file: trees.pkl
    inputs: {x: {shape: [batch, 4], dtype: float64}}
    data: [data.npy]
  old:
    from: tensorflow
    file: saved
    inputs: {x: {shape: [1, 4]}}
include: [helpers]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("models.py", "weights/net.pt", "data.npz", "data.npy", "trees.pkl", "saved/saved_model.pb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "layers.py").write_text("x")
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    file = folder / "ensemble.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        read_ensemble(file)
    return [str(each).replace(f"{file}:", "") for each in caught.value.problems]


def test_an_ensemble_names_its_models_and_their_files(folder: Path) -> None:
    (folder / "ensemble.yaml").write_text(GOOD)
    loaded = read_ensemble(folder / "ensemble.yaml")
    assert loaded.chosen(()) == ["net", "trees", "old"]
    assert loaded.given("net") == ["models.py", "weights/net.pt", "data.npz", "helpers"]
    (folder / "ensemble.yaml").write_text(GOOD.replace("file: trees.pkl", "file: trees.pkl\n    converters: models.py"))
    assert read_ensemble(folder / "ensemble.yaml").given("trees")[:2] == ["trees.pkl", "models.py"]
    plain = spelled(loaded.ensemble)
    assert plain["models"]["net"]["inputs"]["x"]["shape"] == ["batch", 3, "length"]
    assert plain["models"]["net"]["from"] == "pytorch" and plain["models"]["trees"]["stochastic"] is False


@pytest.mark.parametrize(
    ("said", "instead", "wanted"),
    [
        ("from: sklearn", "from: sklearm", ["14:11", "did you mean sklearn?"]),
        ("    file: trees.pkl\n", "", ["14:5", "the location of trees is not set"]),
        ("file: trees.pkl", "file: tree.pkl", ["15:11", "there is no tree.pkl"]),
        ("shape: [batch, 3, length]", "shape: [batch, -3, length]", ["8:33", "a length of at least 1"]),
        ("axes: {length: 8}", "axes: {lenght: 8}", ["9:12", "did you mean length?"]),
        ("axes: {length: 8}", "axes: {}", ["8:13", "nothing says how long the axis length"]),
        ("[batch, 3, length]", "[1, 3, length]", ["12:14", "no input of net has an axis batch"]),
        ("file: weights/net.pt", "file: ../net.pt", ["7:11", "no .. in it"]),
        ("factory: models.py:net", "factory: models.py", ["6:14", "FILE.py:FUNCTION"]),
        ("factory: models.py:net", "factory: gone.py:net", ["6:14", "there is no gone.py"]),
        ("data: [data.npy]", "data: [data.csv]", ["17:12", "a file .npz or .npy"]),
        ("dtype: float64", "dtype: double", ["16:44", "float64"]),
        ("file: saved\n", "file: saved\n    factory: models.py:net\n", ["21:14", "has no factory"]),
        ("absolute: 1e-3", "absolute: -1", ["10:29", "at least 0"]),
        ("target: {provider: cpu}", "target: {partition: gpu}", ["2:21", "without its site"]),
        ("  old:\n", "  said:\n", ["18:3", "no model can be called said"]),
        ("file: trees.pkl", "file: trees.pkl\n    converters: data.npy", ["16:17", "data.npy is not a Python file"]),
        ("file: trees.pkl", "file: trees.pkl\n    converters: gone.py", ["16:17", "there is no gone.py"]),
        ("include: [helpers]", "include: [nothing]", ["22:11", "there is no nothing"]),
    ],
)
def test_mistakes_have_a_place(folder: Path, said: str, instead: str, wanted: list[str]) -> None:
    assert GOOD.count(said) == 1
    found = problems(folder, GOOD.replace(said, instead))
    assert len([each for each in found if all(word in each for word in wanted)]) == 1, found


def test_all_mistakes_are_told_at_once(folder: Path) -> None:
    text = GOOD.replace("trees.pkl", "tree.pkl").replace("models.py:net", "gone.py:net").replace("[helpers]", "[gone]")
    assert [each.partition(": ")[0] for each in problems(folder, text)] == ["6:14", "15:11", "22:11"]


def test_what_leads_elsewhere_is_refused(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "key"
    secret.write_text("secret")
    (folder / "trees.pkl").unlink()
    (folder / "trees.pkl").symlink_to(secret)
    assert "leads out of the ensemble's folder" in problems(folder, GOOD)[0]
    (folder / "trees.pkl").unlink()
    os.mkfifo(folder / "trees.pkl")
    assert "not a regular file" in problems(folder, GOOD)[0]
    (folder / "trees.pkl").unlink()
    (folder / "trees.pkl").write_text("x")
    (folder / "saved" / "link").symlink_to(secret)
    assert "saved/link is a symbolic link" in problems(folder, GOOD)[0]
