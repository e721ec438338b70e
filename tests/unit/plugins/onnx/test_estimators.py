"""Estimators with converters of the user's own, at ties and with texts, converted by the frameworks themselves."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

VARIABLE = "HPCGEN_TEST_ONNX"
"""Names a Python with hpcgen's extra ``onnx`` and the frameworks, as tests/models/README.md says."""
MODELS = """
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

X = np.random.default_rng(0).normal(size=(200, 4)).astype("f4")
Y = np.digitize(X[:, 0], [-0.5, 0.5])


class Doubled(TransformerMixin, BaseEstimator):
    def fit(self, x, y=None):
        self.factor_ = 2.0
        return self

    def transform(self, x):
        return x * np.float32(2)


def doubled():
    return Doubled().fit(X)


def forest():
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(30, random_state=0).fit(X, Y)


def tied():
    from sklearn.linear_model import LogisticRegression

    # Each sample is as good as at a tie.
    fitted = LogisticRegression().fit(X, Y > 0)
    fitted.coef_, fitted.intercept_ = np.array([[1e-7, 0, 0, 0]]), np.array([0.0])
    return fitted


def words():
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer().fit(["Lüfter error", "node ok", "Straße node"])
"""
CONVERTERS = """
from models import Doubled
from onnx import TensorProto, helper
from skl2onnx import update_registered_converter


def shapes(operator):
    operator.outputs[0].type = operator.inputs[0].type.__class__([None, 4])


def convert(scope, operator, container):
    name = scope.get_unique_variable_name("two")
    container.add_initializer(name, TensorProto.FLOAT, [1], [2.0])
    names = [operator.inputs[0].full_name, name]
    container.add_node("Mul", names, operator.outputs[0].full_name, name=scope.get_unique_operator_name("Mul"))


update_registered_converter(Doubled, "Doubled", shapes, convert)
"""
STARTS = """
import os, sys

if "programs" in " ".join(sys.orig_argv):
    open(os.environ["STARTS"], "a").write(" ".join(sys.orig_argv[1:]) + "\\n")
"""


def converted(tmp_path: Path, factory: str, *words: str, **more: Any) -> tuple[int, dict[str, Any], str, list[str]]:
    """The exit status, the report, what was said, and the processes of Python that computed."""
    (tmp_path / "site").mkdir()
    for name, text in {"models": MODELS, "converters": CONVERTERS, "site/sitecustomize": STARTS}.items():
        (tmp_path / f"{name}.py").write_text(text)
    model = {"from": "sklearn", "factory": f"models.py:{factory}", "inputs": {"x": {"shape": ["batch", 4]}}, **more}
    optimise = dict.fromkeys(("ort-basic", "ort-extended", "ort-all"))
    (tmp_path / "e.yaml").write_text(json.dumps({"name": "e", "models": {"m": model}, "optimise": optimise}))
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{tmp_path / 'site'}", "STARTS": str(tmp_path / "starts")}
    command = [
        os.environ[VARIABLE],
        "-m",
        "hpcgen",
        "onnx",
        "convert",
        "e.yaml",
        "-o",
        "out",
        "--here",
        "--json",
        *words,
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr, (tmp_path / "starts").read_text().splitlines()


def test_a_forest_with_variants_takes_two_processes(tmp_path: Path) -> None:
    """The framework's, which converts and is measured, and that of ONNX Runtime for the model and all variants."""
    status, report, _, starts = converted(tmp_path, "forest", "--rounds", "2")
    assert not status and len(starts) == 2, starts
    timings = report["models"]["m"]["timings"]
    assert len(timings) == 5 and all(len(each["seconds"]) == 2 for each in timings)


def test_a_converter_of_the_users_own_serves_where_none_is_known(tmp_path: Path) -> None:
    status, _, said, _ = converted(tmp_path, "doubled", "--no-time", converters="converters.py")
    assert not status, said
    (tmp_path / "without").mkdir()
    status, _, said, _ = converted(tmp_path / "without", "doubled", "--no-time")
    assert status == 12 and "no converter to ONNX knows the estimator Doubled" in said and "converters" in said


def test_labels_at_ties_fail_no_conversion(tmp_path: Path) -> None:
    status, _, said, _ = converted(tmp_path, "tied", "--no-time")
    assert not status, said


def test_words_have_letters_beyond_ascii_capitals_and_may_be_none(tmp_path: Path) -> None:
    inputs = {"x": {"shape": ["batch", 1], "dtype": "string"}}
    status, _, said, _ = converted(tmp_path, "words", "--no-time", inputs=inputs)
    assert not status, said
