"""What the programs need of an image, and the message on what it lacks."""

from __future__ import annotations

import pytest

from hpcgen.core.errors import MissingToolError
from hpcgen.plugins.onnx.records import Ensemble, EnsembleModel
from hpcgen.plugins.onnx.start import modules_for, refuse_lacking
from hpcgen.running.python_inside import FoundPython


def test_only_frameworks_of_the_chosen_models_are_needed() -> None:
    models = {"a": EnsembleModel(from_="sklearn", inputs={}), "b": EnsembleModel(from_="keras", inputs={})}
    ensemble = Ensemble(name="x", models=models)
    assert modules_for(ensemble, ["a"]) == ["numpy", "onnx", "onnxruntime", "sklearn", "skl2onnx"]
    assert {"tensorflow", "keras", "tf2onnx", "skl2onnx"} <= set(modules_for(ensemble, ["a", "b"]))


def test_all_that_is_missing_is_one_message() -> None:
    found = FoundPython("/opt/venv/bin/python3", "3.11.2", {"numpy": "2.2.6", "onnx": ""})
    with pytest.raises(MissingToolError) as caught:
        refuse_lacking(found, ["numpy", "onnx", "onnxruntime", "sklearn"], "a.sif")
    (problem,) = caught.value.problems
    assert problem.message == (
        "a.sif lacks what is needed: onnxruntime, sklearn (it has /opt/venv/bin/python3 3.11.2 with numpy 2.2.6, onnx)"
    )
    assert "/opt/venv/bin/python3 -m pip install onnxruntime scikit-learn" in problem.remedy


def test_a_python_that_cannot_run_the_programs_is_refused() -> None:
    with pytest.raises(MissingToolError, match=r"has Python 3\.6\.9, which is too old"):
        refuse_lacking(FoundPython("/usr/bin/python3", "3.6.9", {"numpy": "1"}), ["numpy"], "a.sif")
