"""The image that is built for an ensemble: with its frameworks, in the versions that its models are from."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, InputError
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble, read_ensemble
from hpcgen.plugins.onnx.image import plan_of_image
from tests.conftest import Command

MODELS = """\
name: two
models:
  net: {from: torch-export, file: net, inputs: {x: {shape: [1]}}, version: "2.9"}
  other: {from: torch-export, file: net, inputs: {x: {shape: [1]}}, version: "2.10"}
  trees: {from: sklearn, file: net, inputs: {x: {shape: [1]}}}
  dense: {from: keras, file: net, inputs: {x: {shape: [1]}}}
optimise: {openvino: , int8-dynamic: }
"""


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedEnsemble:
    (tmp_path / "net").write_text("x")
    (tmp_path / "ensemble.yaml").write_text(MODELS)
    return read_ensemble(tmp_path / "ensemble.yaml")


def blocks(loaded: LoadedEnsemble, *names: str) -> dict[str, str]:
    plan = plan_of_image(loaded, list(names), Catalog(), "workstation")
    return {each.name: each.version for each in plan.blocks}


def test_an_image_has_the_frameworks_of_its_models_alone(loaded: LoadedEnsemble) -> None:
    trees = blocks(loaded, "trees")
    assert "tensorflow" not in trees and "pytorch" not in trees and {"onnx_tools", "openvino"} <= set(trees)
    both = blocks(loaded, "trees", "net")
    assert both["pytorch"].startswith("2.9.") and "tensorflow" not in both
    assert "tensorflow" in blocks(loaded, "dense")


def test_one_image_has_one_version(loaded: LoadedEnsemble) -> None:
    with pytest.raises(InputError, match=r"2\.9 and 2\.10") as caught:
        blocks(loaded, "net", "other")
    assert "--only" in caught.value.problems[0].remedy


def test_a_version_that_nothing_has_is_refused(loaded: LoadedEnsemble, tmp_path: Path) -> None:
    (tmp_path / "ensemble.yaml").write_text(MODELS.replace("2.10", "1.2"))
    with pytest.raises(HpcgenError, match=r"pytorch"):
        blocks(read_ensemble(tmp_path / "ensemble.yaml"), "other")


def test_without_the_packages_nothing_runs_here(loaded: LoadedEnsemble, hpcgen: Command) -> None:
    done = hpcgen("onnx", "convert", str(loaded.path), "-o", str(loaded.folder / "out"), "--here")
    assert done.returncode == 69 and "pip install 'onnx>=" in done.stderr
