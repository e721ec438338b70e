"""The ensemble files of examples/onnx are valid, and name functions and files that are really made there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hpcgen.plugins.onnx.ensemble import read_ensemble

EXAMPLES = Path(__file__).parents[4] / "examples" / "onnx"


@pytest.mark.parametrize("name", ["ensemble.yaml", "all.yaml", "report.yaml", "more.yaml"])
def test_an_example_is_a_valid_ensemble(name: str, tmp_path: Path) -> None:
    for each in EXAMPLES.iterdir():
        if each.is_file():
            (tmp_path / each.name).write_bytes(each.read_bytes())
    written = (EXAMPLES / "make_files.py").read_text()
    networks = ("alexnet", "squeezenet", "bert", "candle")
    (tmp_path / "files" / "candle-saved").mkdir(parents=True)
    (tmp_path / "files" / "candle-saved" / "saved_model.pb").touch()
    text = (EXAMPLES / name).read_text()
    for word in text.replace("[", " ").replace("]", " ").split():
        if word.startswith("files/") and not (tmp_path / word).exists():
            file = word.removeprefix("files/")
            assert f'"{file}"' in written or file.removesuffix(".pt") in networks
            (tmp_path / word).touch()
    loaded = read_ensemble(tmp_path / name)
    for model in loaded.ensemble.models.values():
        if model.factory:
            file, _, function = model.factory.partition(":")
            tree = ast.parse((EXAMPLES / file).read_text())
            assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
