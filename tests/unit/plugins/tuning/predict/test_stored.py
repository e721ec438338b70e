"""A model as a file: the same bytes for the same rows, read back whole, damaged ones refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.plugins.tuning.predict.fitting import fit
from hpcgen.plugins.tuning.predict.linear import model_text, read_model
from tests.unit.plugins.tuning.predict.rows import COMPILED, MACHINES, WORKLOADS, made


def test_a_model_is_the_same_when_it_is_read_back(tmp_path: Path) -> None:
    model = fit(made())
    text = model_text(model)
    assert text == model_text(fit(made())) and json.loads(text)["model"] == 1
    (tmp_path / "model.json").write_text(text)
    again = read_model(tmp_path / "model.json")
    assert again == model and model_text(again) == text
    asked = (WORKLOADS[0], COMPILED, MACHINES[0], 2)
    assert again.predict(*asked) == model.predict(*asked)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not a model"),
        ("[" * 100_000, "is not a model"),
        ("[]", "not understood"),
        ('{"model": 1, "columns": 3}', "not understood"),
        ('{"model": 0}', "is damaged"),
        ('{"model": 9}', "newer hpcgen"),
    ],
)
def test_what_is_no_model_is_refused(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InputError, match=why):
        read_model(tmp_path / "model.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["rows"][0]["position"].pop(),
        lambda data: data["columns"][0].update(term="nonsense"),
        lambda data: data["seen"][0].update(term="nonsense"),
    ],
)
def test_a_damaged_model_is_refused(tmp_path: Path, change: object) -> None:
    data = json.loads(model_text(fit(made())))
    change(data)  # type: ignore[operator]
    (tmp_path / "model.json").write_text(json.dumps(data))
    with pytest.raises(InputError, match="not understood"):
        read_model(tmp_path / "model.json")


def test_nothing_of_scikit_learn_is_needed_to_ask_a_model(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(model_text(fit(made())))
    code = """
import sys
for name in ("numpy", "scipy", "sklearn", "matplotlib"):
    sys.modules[name] = None
from pathlib import Path
from hpcgen.plugins.tuning.predict import asked, held_out, pairs, plots, scaling
from hpcgen.core.errors import MissingToolError
from hpcgen.plugins.tuning.predict.fitting import fit
from hpcgen.plugins.tuning.predict.linear import read_model
model = read_model(Path("model.json"))
hardware, workload = next(iter(model.machines.values())), next(iter(model.workloads.values()))
from hpcgen.plugins.tuning.measurements.records import Software
print(model.predict(workload, Software(framework="pytorch"), hardware).value > 0)
try:
    fit([])
except MissingToolError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "True",
        "the Python package numpy is needed to fit models, and is not installed",
        "  remedy: pip install 'matplotlib>=3.10.5' 'optuna>=4' 'scikit-learn>=1.7.2' 'scipy>=1.15.3'",
    ], done.stderr
