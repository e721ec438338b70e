"""What ``hpcgen onnx convert`` says of models and data that cannot be converted, in the image of its stack."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from container_tools import ChImage
from test_onnx_convert import convert
from test_onnx_convert import image as image_of_onnx_convert
from test_pytorch import collection as collection_with_torch

from hpcgen.plugins.onnx.records import Converted

pytestmark = pytest.mark.slow
collection = collection_with_torch
image = image_of_onnx_convert

MODELS = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x):
        return self.a(x)


class Branch(Net):
    def forward(self, x):
        if x.sum() > 0:
            return self.a(x)
        return self.b(x)


class Never(Net):
    def forward(self, x):
        return self.b(x) if x.sum() > 1e30 else self.a(x)


class Dropping(Net):
    def eval(self):
        return self

    def forward(self, x):
        return self.a(nn.functional.dropout(x, training=self.training))


class Special(Net):
    def forward(self, x):
        return torch.special.bessel_j0(self.a(x))


def made(kind):
    torch.manual_seed(1)
    return globals()[kind]()
"""
FILES = """\
import joblib, models, numpy, onnx, sklearn.base, torch
from sklearn.linear_model import LogisticRegression
from sklearn.manifold import Isomap

net = models.made("Net")
torch.save({each: value for each, value in net.state_dict().items() if each != "b.bias"}, "keys.pt")
with torch.no_grad():
    net.a.weight[1, 2] = float("nan")
torch.save(net.state_dict(), "nan.pt")
numpy.save("shape.npy", numpy.zeros((5, 7), "f4"))
numpy.savez("other.npz", y=numpy.zeros((5, 4), "f4"))
x = numpy.random.default_rng(1).random((60, 4)).astype("f4")
joblib.dump(Isomap().fit(x), "isomap.pkl")
version, sklearn.base.__version__ = sklearn.base.__version__, "1.3.0"
joblib.dump(LogisticRegression().fit(x, x[:, 0] > 0.5), "old.pkl")
ends = [onnx.helper.make_tensor_value_info(name, 1, ["batch", 4]) for name in "xy"]
graph = onnx.helper.make_graph([onnx.helper.make_node("Relu", ["x"], ["y"])], "g", ends[:1], ends[1:])
new = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 99)], ir_version=8)
onnx.save(new, "new.onnx")
open("cut.onnx", "wb").write(new.SerializeToString()[:-9])
"""


def torch_model(kind: str = "Net", **more: Any) -> dict[str, Any]:
    given = {"from": "pytorch", "factory": "models.py:made", "arguments": {"kind": kind}}
    return {**given, "inputs": {"x": {"shape": ["batch", 4]}}, **more}


def file_model(kind: str, file: str) -> dict[str, Any]:
    return {"from": kind, "file": file, "inputs": {"x": {"shape": ["batch", 4]}}}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "shape": (torch_model(data=["shape.npy"]), "has the shape [5, 7], and the ensemble file says float32 [batch, 4]"),
    "data": (torch_model(data=["other.npz"]), "other.npz has no array for the input x: it has y"),
    "nan": (torch_model(file="nan.pt"), "the weight a.weight of nan.pt has 1 of 12 values NaN or infinite"),
    "keys": (torch_model(file="keys.pt"), "the weights of keys.pt are not those of models.py:made: missing b.bias"),
    "branch": (torch_model("Branch"), "has lost control flow that depends on the data: models.py:16: "),
    "never": (torch_model("Never"), "has lost control flow that depends on the data: models.py:23: "),
    "dropout": (torch_model("Dropping"), "two runs of the original on the same data differ: y"),
    "operator": (torch_model("Special"), "no converter to ONNX knows the operator prims.bessel_j0"),
    "estimator": (file_model("sklearn", "isomap.pkl"), "no converter to ONNX knows the estimator Isomap"),
    "version": (file_model("sklearn", "old.pkl"), "was written by scikit-learn 1.3.0, and here is scikit-learn 1."),
    "opset": (file_model("onnx", "new.onnx"), "it has opset 99, and "),
    "cut": (file_model("onnx", "cut.onnx"), "cut.onnx is not an ONNX model, or is truncated"),
}


@pytest.fixture
def folder(ch_image: ChImage, image: Path, tmp_path: Path) -> Path:
    """An ensemble's folder, with files that the image's own packages wrote."""
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "files.py").write_text(FILES)
    start = ["ch-run", "-b", f"{tmp_path}:/mnt/0", "-c", "/mnt/0", f"--set-env={image}/ch/environment", str(image)]
    subprocess.run([*start, "--", "python3", "files.py"], env=ch_image.env, check=True)
    return tmp_path


def said(folder: Path, model: str) -> Converted:
    return msgspec.json.decode((folder / model / "said" / f"{model}.convert.json").read_bytes(), type=Converted)


def test_each_wrong_input_is_said_with_its_model_and_what_to_do(
    ch_image: ChImage, collection: Path, image: Path, folder: Path
) -> None:
    """None hinders the others, and one that is right is converted among them."""
    models = {name: {**model, "outputs": {"y": None}} for name, (model, _) in WRONG.items()}
    for name in ("estimator", "version", "opset", "cut"):
        del models[name]["outputs"]
    models["right"] = torch_model(outputs={"y": None})
    (folder / "ensemble.yaml").write_text(json.dumps({"name": "wrong", "models": models}))
    done = convert(ch_image, collection, image, folder / "ensemble.yaml")
    assert done.returncode == 12 and not (folder / "out").exists()
    for name, (_, expected) in WRONG.items():
        found = said(folder / "out.failed", name)
        assert found.failed.startswith(f"{name}: ") and expected in found.failed and found.remedy
        assert f"error: {name}: " in done.stderr
    right = said(folder / "out.failed", "right")
    assert [bool(each.failed) for each in right.attempts] == [False] and not right.failed
