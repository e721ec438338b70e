"""An image that hpcgen did not build: it converts models, and is measured beside one of hpcgen's and without any."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, ChImage, SidHpcgen
from leftovers import remove
from test_rendered_kits import site_profile

from hpcgen.plugins.tuning.measurements.lines import read_lines

# Their images take minutes to build.
pytestmark = pytest.mark.slow

# As projects publish theirs: the framework lies beside the distribution's Python, and only PATH leads there.
RECIPE = """\
FROM {base}
RUN apt-get update -q && apt-get install -q -y --no-install-recommends python3-venv
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install -q numpy scikit-learn onnx onnxruntime skl2onnx
ENV PATH=/opt/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin
"""
MODELS = """\
def trees():
    import numpy as np
    from sklearn.ensemble import RandomForestClassifier

    x = np.random.RandomState(3).rand(200, 8).astype("f4")
    return RandomForestClassifier(n_estimators=5).fit(x, (x[:, 0] > 0.5).astype(int))
"""
INPUTS = {"inputs": {"x": {"shape": ["batch", 8]}}}
TREES = {"from": "sklearn", "factory": "models.py:trees", **INPUTS}
NET = {"from": "pytorch", "factory": "models.py:trees", "outputs": {"y": None}, **INPUTS}
HPCGEN = [sys.executable, "-m", "hpcgen"]


@pytest.fixture(scope="module")
def folder(
    base_image: BaseImage,
    machine_facts: dict[str, Any],
    ch_image: ChImage,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Path]:
    """``image``, made by hand, as a folder and as an OCI archive; a profile of this machine; an ensemble."""
    folder = tmp_path_factory.mktemp("foreign")
    (folder / "Dockerfile").write_text(RECIPE.format(base=base_image.ch_image))
    ch_image.build("foreign", folder / "Dockerfile")
    ch_image.run(["ch-convert", "-i", "ch-image", "-o", "dir", "foreign", folder / "image"])
    ch_image.run([*HPCGEN, "convert", folder / "image", folder / "image.oci"])
    ch_image.run([*HPCGEN, "convert", folder / "image.oci", "podman:localhost/foreign:1"])
    (folder / "here.yaml").write_text(json.dumps(site_profile(machine_facts, base_image)))
    (folder / "models.py").write_text(MODELS)
    (folder / "ensemble.yaml").write_text(json.dumps({"name": "trial", "models": {"trees": TREES, "net": NET}}))
    yield folder
    remove(folder)


def converting(image: str, *words: str) -> list[str]:
    return [*HPCGEN, "onnx", "convert", "ensemble.yaml", "--image", image, "--on", "here.yaml", "--no-time", *words]


def converted(folder: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert report["foreign"] and report["image"].startswith("sha256:") and report["models"]["trees"]["converted"]
    assert {"python", "sklearn", "onnx", "skl2onnx"} <= set(report["blocks"])
    return report


@pytest.mark.parametrize(
    "image", ["image", "ch-image:foreign", pytest.param("podman:localhost/foreign:1", marks=pytest.mark.slow)]
)
def test_models_are_converted_in_it(image: str, ch_image: ChImage, folder: Path, tmp_path: Path) -> None:
    ch_image.run(converting(image, "--only", "trees", "-o", str(tmp_path / "out")), cwd=folder)
    converted(tmp_path / "out")


def test_all_that_it_lacks_is_said_at_once(ch_image: ChImage, python_image: Path, folder: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    done = ch_image.run(converting("image", "-o", out), cwd=folder, check=False)
    assert done.returncode == 69 and "lacks what is needed: torch (it has /opt/venv/bin/python3" in done.stdout
    assert "/opt/venv/bin/python3 -m pip install torch" in done.stdout
    # One of hpcgen's own for something else.
    done = ch_image.run(converting(str(python_image), "--only", "trees", "-o", out), cwd=folder, check=False)
    assert done.returncode == 69 and "lacks what is needed: onnx, onnxruntime, sklearn, skl2onnx" in done.stdout
    assert not Path(out).exists()


def test_an_archive_is_unpacked_once_and_runs_models(ch_image: ChImage, folder: Path, tmp_path: Path) -> None:
    env = {**ch_image.env, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = converting("image.oci", "--only", "trees", "-o", str(tmp_path / "out"))
    assert ch_image.run(words, cwd=folder, env=env).stdout.count("unpacks ") == 1
    report = converted(tmp_path / "out")
    data = "import numpy; numpy.save('x.npy', numpy.ones((3, 8), 'f4'))"
    ch_image.exec(
        folder / "image", ["python3", "-c", f"import os; os.chdir('/mnt/1'); {data}"], binds=[(tmp_path, "/mnt/1")]
    )
    words = ["onnx", "run", "out", "trees", "x.npy", "-o", "results", "--image", str(folder / "image.oci")]
    done = ch_image.run([*HPCGEN, *words, "--on", str(folder / "here.yaml")], cwd=tmp_path, env=env)
    assert "unpacks " not in done.stdout and "1 computed" in done.stdout
    assert (tmp_path / "results" / "trees" / "x.npz").exists()
    assert report["image"] == f"sha256:{ch_image.run(['sha256sum', folder / 'image.oci']).stdout.split()[0]}"


def test_it_is_measured_beside_ours_and_without_a_container(
    ch_image: ChImage, python_image: Path, folder: Path, tmp_path: Path
) -> None:
    words = ["--workload", "gemm", "--rounds", "2", "--seconds", "1", "--to", str(tmp_path / "rows.jsonl")]
    images = ["image", "podman:localhost/foreign:1", str(python_image)]
    # The site is that of the image of which it is known: the collection beside it has the profile.
    command = [*HPCGEN, "--collection", str(python_image.parent / "collection"), "bench", *images]
    python = ["--here", "--python", sys.executable]
    print(ch_image.run([*command, *python, *words], cwd=folder).stdout)
    rows = [each for each in read_lines(tmp_path / "rows.jsonl", "rows") if each.metric == "gflops"]
    software = {each.software.engine + each.software.foreign: each.software for each in rows}
    ours, its = software["charliecloud"], software[f"charliecloud{folder / 'image'}"]
    assert its.content.startswith("sha256:") and its.unknown == ["install", "blocks"] and its.stack is None
    assert not ours.foreign and ours.blocks and ours.stack == "python-packages" and not ours.unknown
    assert software["podmanpodman:localhost/foreign:1"].content.startswith("sha256:")
    assert software["none"].foreign == "" and len({each.threads_per_rank for each in rows}) == 1 and len(rows) == 4


def test_apptainer_starts_it_as_an_ordinary_user(sid_hpcgen: SidHpcgen, folder: Path, tmp_path: Path) -> None:
    for name in ("here.yaml", "models.py", "ensemble.yaml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    sid_hpcgen.sid.folder(tmp_path)
    # What makes a folder one of Apptainer's; it says no PATH, so the Python is found where images have one.
    (folder / "image" / ".singularity.d" / "env").mkdir(parents=True)
    binds = [(tmp_path, "/w"), (folder / "image", "/image")]
    words = ["bench", "/image", "--engine", "apptainer", "--workload", "gemm", "--rounds", "1", "--seconds", "1"]
    sid_hpcgen.run([*words, "--site", "here.yaml", "--to", "rows.jsonl"], binds=binds, cwd="/w")
    (row, *_) = read_lines(tmp_path / "rows.jsonl", "rows")
    assert row.software.engine == "apptainer" and row.software.foreign == "/image"
    # Some of the files are root's alone.
    assert row.software.content == "" and row.software.unknown == ["install", "blocks", "content"]
    words = converting("/image", "--engine", "apptainer", "--only", "trees", "-o", "out")[len(HPCGEN) :]
    sid_hpcgen.run(words, binds=binds, cwd="/w")
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["foreign"] and "image" not in report and report["blocks"]["sklearn"]
