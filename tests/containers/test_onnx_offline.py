"""Trained models across the air gap: images by bundles, models converted, run and served with no network at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from container_tools import REPORTS, BaseImage, ChImage, run
from leftovers import remove
from test_offline import alone_with_loopback as alone
from test_offline import quiet_but_for_loopback as quiet
from test_rendered_kits import site_profile
from torch_mirror import TorchMirror

from hpcgen.plugins.onnx.results import read_report
from hpcgen.plugins.onnx.stack import STACK_FILE

pytestmark = pytest.mark.slow

HPCGEN = [sys.executable, "-m", "hpcgen"]
SETTINGS = ("debian.version=12", "onnx_tools.frameworks=sklearn,pytorch", "onnxruntime.provider=cpu")
SERVING = ("debian.version=12", "onnxruntime.provider=cpu")
MODELS = """\
def halves():
    import torch

    layer = torch.nn.Linear(8, 3)
    with torch.no_grad():
        layer.weight.fill_(0.5)
        layer.bias.copy_(torch.tensor([-1.0, 0.0, 1.0]))
    return torch.nn.Sequential(layer, torch.nn.ReLU())


def step():
    import numpy as np
    from sklearn.tree import DecisionTreeClassifier

    x = np.random.RandomState(3).rand(500, 8).astype("f4")
    return DecisionTreeClassifier(max_depth=1).fit(x, (x[:, 0] > 0.5).astype(int))
"""
INPUT: dict[str, Any] = {"inputs": {"x": {"shape": ["batch", 8]}}}
ENSEMBLE = {
    "name": "pair",
    "models": {
        "halves": {"from": "pytorch", "factory": "models.py:halves", "outputs": {"y": None}, **INPUT},
        "step": {"from": "sklearn", "factory": "models.py:step", "outputs": {"label": None, "p": None}, **INPUT},
    },
}


@pytest.fixture(scope="module")
def profile(
    machine_facts: dict[str, Any],
    plain_base_image: BaseImage,
    torch_mirror: TorchMirror,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """This machine, which has PyTorch's wheel from a mirror and Debian 12 from nowhere but what is named."""
    site = torch_mirror.added_to(site_profile(machine_facts, plain_base_image))
    del site["network"]["mirrors"]["images"]
    file = tmp_path_factory.mktemp("connected") / "here.yaml"
    file.write_text(json.dumps(site))
    return file


def image_over_the_gap(
    stack: str | Path, profile: Path, base: BaseImage, ch_image: ChImage, folder: Path, settings: tuple[str, ...]
) -> Path:
    """An image built with no network, from a bundle that was made where there is one."""
    folder.mkdir()
    image = ["--image", f"debian:12=oci-archive:{base.archive}"]
    lock, bundle = folder / "hpcgen.lock", folder / "bundle"
    words = [word for each in settings for word in ("--set", each)]
    run([*HPCGEN, "lock", "--site", profile, "--stack", stack, *words, *image, "-o", lock])
    done = run([*HPCGEN, "bundle", "create", "--lock", lock, "--stack", stack, *image, "-o", bundle])
    REPORTS.append(done.stdout.splitlines()[-1])
    assert not list(bundle.glob("files/*/tensorflow*"))
    quiet(alone([*HPCGEN, "build", "--bundle", bundle, "--no-cache", "-o", folder / "image"], ch_image.env))
    return folder / "image"


def results_are_right(folder: Path, x: Any) -> None:
    """What NumPy computes of the weights that the models have."""
    with np.load(folder / "halves" / "x.npz") as found:
        wanted = np.maximum(x.sum(axis=1, keepdims=True) * 0.5 + np.array([-1, 0, 1]), 0)
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-5)
    with np.load(folder / "step" / "x.npz") as found:
        np.testing.assert_array_equal(found["label"], x[:, 0] > 0.5)


def test_models_are_converted_run_and_served_with_no_network(
    profile: Path, plain_base_image: BaseImage, ch_image: ChImage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried = (profile, plain_base_image, ch_image)
    out, file = tmp_path / "out", tmp_path / "ensemble.yaml"
    image = image_over_the_gap("onnx-convert", *carried, tmp_path / "convert", SETTINGS)
    (tmp_path / "models.py").write_text(MODELS)
    file.write_text(json.dumps(ENSEMBLE))
    in_it = ["--image", image, "--trust-image"]
    quiet(alone([*HPCGEN, "onnx", "convert", file, "-o", out, *in_it, "--rounds", "2"], ch_image.env))
    report = read_report(out)
    assert [report.models[name].passed for name in ("halves", "step")] == [True, True]
    x = np.random.default_rng(3).random((200, 8)).astype("f4")
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "x.npz", x=x)
    for model in report.models:
        over = [*HPCGEN, "onnx", "run", out, model, tmp_path / "data", "-o", tmp_path / "by-hand"]
        quiet(alone([*over, *in_it], ch_image.env))
    results_are_right(tmp_path / "by-hand", x)
    remove(image)
    image = image_over_the_gap(out / STACK_FILE, *carried, tmp_path / "serve", SERVING)
    remove(out)
    monkeypatch.chdir(tmp_path)
    quiet(alone([*HPCGEN, "run", image, "--trust-image"], ch_image.env))
    results_are_right(tmp_path / "results", x)
    remove(image)
