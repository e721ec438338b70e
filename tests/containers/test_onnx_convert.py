"""``hpcgen onnx convert`` in the image of its stack: three frameworks, an altered weight, code in a pickle, dropout."""

from __future__ import annotations

import json
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import ChImage
from leftovers import remove
from test_pytorch import built
from test_pytorch import collection as collection_with_torch

from hpcgen.catalog.catalog import Catalog
from hpcgen.images.reference import parse_image
from hpcgen.plugins.onnx.convert import job_of
from hpcgen.plugins.onnx.ensemble import read_ensemble
from hpcgen.plugins.onnx.records import Converted
from hpcgen.plugins.onnx.start import ImageRunner, run_steps
from hpcgen.plugins.onnx.target import OnnxTarget
from hpcgen.plugins.onnx.work import ModelWork

pytestmark = pytest.mark.slow
collection = collection_with_torch

MODELS = """\
def net():
    import torch

    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3))


def shaken():
    import torch

    class Shaken(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(8, 64)

        def forward(self, x):
            y = self.layer(x)
            return y + 0.1 * torch.randn_like(y)

    torch.manual_seed(3)
    return Shaken()


def trees():
    import numpy as np
    from sklearn.ensemble import GradientBoostingClassifier

    random = np.random.RandomState(3)
    x = random.rand(200, 8).astype("f4")
    return GradientBoostingClassifier(n_estimators=10).fit(x, (x[:, 0] > 0.5).astype(int))


def layers():
    import numpy as np
    from sklearn.neural_network import MLPRegressor

    x = np.random.RandomState(3).rand(300, 8).astype("f4")
    return MLPRegressor(hidden_layer_sizes=(32, 16), max_iter=60, random_state=1).fit(x, x[:, 0] * 2)


def dense():
    import keras

    keras.utils.set_random_seed(3)
    layers = [keras.layers.Dense(5, activation="relu"), keras.layers.Dense(2)]
    return keras.Sequential([keras.layers.Input((8,)), *layers])


def slow():
    import time

    open("begun", "w").close()
    time.sleep(600)
"""
INPUT: dict[str, Any] = {"inputs": {"x": {"shape": ["batch", 8]}}}
THREE = {
    "net": {"from": "pytorch", "factory": "models.py:net", "outputs": {"y": None}, "batches": [1, 4], **INPUT},
    "trees": {"from": "sklearn", "factory": "models.py:trees", **INPUT},
    "dense": {"from": "keras", "factory": "models.py:dense", "outputs": {"y": None}, **INPUT},
}
SHAKEN = {"from": "pytorch", "factory": "models.py:shaken", "outputs": {"y": None}, **INPUT}
CODE = """
import os, socket
tried = []
for path in {paths!r}:
    try:
        open(path, "w").close()
        tried.append("wrote " + path)
    except OSError as failure:
        tried.append(type(failure).__name__)
try:
    socket.create_connection(("127.0.0.1", {port}), 5)
    tried.append("connected")
except OSError as failure:
    tried.append(type(failure).__name__)
tried.append(os.environ.get("SECRET", "no secret"))
tried.append("read " + open({secret!r}).read() if os.path.exists({secret!r}) else "no file")
open("found.txt", "w").write("\\n".join(tried))
"""


class Hostile:
    """What runs code when it is loaded."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (self.code, {})


@pytest.fixture(scope="module")
def image(ch_image: ChImage, collection: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("convert")
    chosen = ["debian.version=12", "onnx_tools.frameworks=sklearn,keras,pytorch", "onnxruntime.provider=cpu"]
    image = built(ch_image, collection, folder, "onnx-convert", *chosen)
    yield image
    remove(image)


def ensemble(folder: Path, models: dict[str, Any]) -> Path:
    (folder / "models.py").write_text(MODELS)
    (folder / "ensemble.yaml").write_text(json.dumps({"name": "trial", "models": models}))
    return folder / "ensemble.yaml"


def words(collection: Path, image: Path, file: Path, *more: str) -> list[str]:
    start = [sys.executable, "-m", "hpcgen", "--collection", str(collection), "onnx", "convert", str(file)]
    return [*start, "-o", str(file.parent / "out"), "--image", str(image), "--no-time", *more]


def convert(
    ch_image: ChImage, collection: Path, image: Path, file: Path, *more: str, **env: str
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        words(collection, image, file, *more), env={**ch_image.env, **env}, capture_output=True, text=True, check=False
    )
    print(done.stderr)
    return done


def test_an_ensemble_of_three_frameworks_computes_the_same_and_an_altered_weight_is_caught(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = ensemble(tmp_path, THREE)
    done = convert(ch_image, collection, image, file, "--json")
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert list(report["models"]) == ["net", "trees", "dense"]
    for name, model in report["models"].items():
        largest = max(each["largest_absolute"] for each in model["converted"]["differences"])
        print(name, model["converted"]["attempts"], largest)
        assert largest < 1e-5 and (tmp_path / "out" / name / "model.onnx").is_file()
    # The same program on the converted model, of which one weight is another now.
    for name, value in ch_image.env.items():
        monkeypatch.setenv(name, value)
    model = tmp_path / "out" / "net" / "model.onnx"
    assert "computes the same" in validated(tmp_path / "same", collection, image, file, model.read_bytes())
    data = bytearray(model.read_bytes())
    weights = raw_weights(tmp_path, ch_image, image)
    place = bytes(data).index(weights)
    data[place + 2 : place + 4] = b"\x80\x3f"
    assert "y" in validated(tmp_path / "altered", collection, image, file, bytes(data))


def raw_weights(folder: Path, ch_image: ChImage, image: Path) -> bytes:
    """The first weights of the converted net, as they lie in its file."""
    text = (
        "import numpy as n, onnx, onnx.numpy_helper as h, sys; m = onnx.load('/mnt/0/model.onnx');"
        "a = [h.to_array(i) for i in m.graph.initializer if len(i.dims) == 2][0]; print(a.astype('f4').tobytes().hex())"
    )
    found = ch_image.exec(image, ["python3", "-c", text], binds=[(folder / "out" / "net", "/mnt/0")])
    return bytes.fromhex(found.stdout.split()[-1])[:16]


def validated(folder: Path, collection: Path, image: Path, file: Path, model: bytes) -> str:
    """What the validation says of a model in the place of the converted net."""
    loaded = read_ensemble(file)
    work = ModelWork(folder, "net")
    work.make(loaded)
    (work.result / "model.onnx").write_bytes(model)
    runner = ImageRunner(parse_image(str(image)), Catalog([collection]))
    target = OnnxTarget(provider="cpu", engine="onnxruntime", runtime="1.32.0")
    run_steps(runner, work, ["validate"], job_of(loaded, target, runner.threads, 0), 600)
    said = work.said("validate", Converted)
    assert said is not None
    print(said.failed or "computes the same")
    return said.failed or "computes the same"


def test_code_in_a_pickle_runs_inside_alone_and_without_a_network(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("key")
    outside = [str(tmp_path / "outside"), str(Path.home() / "hpcgen-outside"), "/dev/shm/hpcgen-outside", "/etc/x"]
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        code = CODE.format(paths=outside, port=server.getsockname()[1], secret=str(secret))
        (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Hostile(code)))
        file = ensemble(tmp_path, {"evil": {"from": "sklearn", "file": "evil.pkl", **INPUT}})
        done = convert(ch_image, collection, image, file, SECRET="key")
        with pytest.raises(TimeoutError):
            server.accept()
    assert done.returncode == 12 and "evil" in done.stderr
    tried = (tmp_path / "out.failed" / "evil" / "found.txt").read_text().splitlines()
    print(tried)
    assert tried[-3:] == ["ConnectionRefusedError" if "Refused" in tried[-3] else "OSError", "no secret", "no file"]
    assert not any(Path(path).exists() for path in outside)
    assert not (tmp_path / "out").exists()


def test_a_stochastic_model_passes_with_the_flag_alone(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path
) -> None:
    done = convert(ch_image, collection, image, ensemble(tmp_path, {"shaken": SHAKEN}))
    assert done.returncode == 12 and "stochastic: true" in done.stderr
    done = convert(ch_image, collection, image, ensemble(tmp_path, {"shaken": {**SHAKEN, "stochastic": True}}))
    assert done.returncode == 0


def test_an_interrupt_ends_what_was_started(ch_image: ChImage, collection: Path, image: Path, tmp_path: Path) -> None:
    file = ensemble(tmp_path, {"slow": {"from": "pytorch", "factory": "models.py:slow", **INPUT}})
    process = subprocess.Popen(
        words(collection, image, file), env=dict(ch_image.env), stderr=subprocess.PIPE, text=True
    )
    begun = tmp_path / "out.partial" / "slow" / "begun"
    until = time.monotonic() + 120
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert begun.exists()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "Traceback" not in said and not list(tmp_path.glob("out*"))
    inside = [path for path in Path("/proc").glob("[0-9]*/cwd") if _leads_to(path, tmp_path)]
    assert not inside


def _leads_to(link: Path, folder: Path) -> bool:
    try:
        return str(link.readlink()).startswith(str(folder))
    except OSError:
        return False
