"""Strangers' models in ``hpcgen onnx convert``: files that fill memory or lead outside, and programs in pickles."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from container_tools import ChImage
from test_onnx_convert import image as image_of_onnx_convert
from test_onnx_convert import words
from test_pytorch import collection as collection_with_torch

pytestmark = pytest.mark.slow
collection = collection_with_torch
image = image_of_onnx_convert

MAKER = Path(__file__).with_name("onnx_hostile_models.py")
SECRET = "canary-4d1f-of-the-host"
MEMORY_GB, TIMEOUT_S = 3, 60


@pytest.fixture
def listener() -> tuple[int, list[bytes]]:
    """A port of the loopback, and what came in there."""
    heard: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def hear() -> None:
        while True:
            try:
                heard.append(server.accept()[0].recv(100))
            except OSError:
                return

    threading.Thread(target=hear, daemon=True).start()
    return server.getsockname()[1], heard


def processes_of(words: str) -> list[str]:
    """The processes of this machine that sleep as a model's program does."""
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return [line for line in found.splitlines() if words in line]


def peak_of_children() -> float:
    """The largest memory of any process that has ended below this one, in GB."""
    import resource

    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6


def test_strangers_models_see_and_change_nothing_of_the_host(
    ch_image: ChImage, collection: Path, image: Path, tmp_path: Path, listener: tuple[int, list[bytes]]
) -> None:
    port, heard = listener
    canary, home, work = tmp_path / "host" / "canary", tmp_path / "home", tmp_path / "work"
    for folder in (canary.parent, home, work):
        folder.mkdir()
    canary.write_text(SECRET)
    maker = work / MAKER.name
    maker.write_bytes(MAKER.read_bytes())
    start = ["ch-run", "-b", f"{work}:/mnt/0", "-c", "/mnt/0", f"--set-env={image}/ch/environment", str(image)]
    subprocess.run([*start, "--", "python3", maker.name, str(canary), str(port)], env=ch_image.env, check=True)
    limits = ["--timeout", str(TIMEOUT_S), "--memory", str(MEMORY_GB), "--json"]
    line = words(collection, image, work / "ensemble.yaml", *limits)
    done = subprocess.run(line, env={**ch_image.env, "HOME": str(home)}, capture_output=True, check=False)
    out, err = done.stdout.decode(), done.stderr.decode()
    print(err)
    report = json.loads(out)
    failed = {name: each["converted"].get("failed", "") for name, each in report["models"].items()}
    assert done.returncode == 12 and len(failed) >= 40 and not failed["good"]
    converted = {name for name, why in failed.items() if not why}
    assert converted <= {"good", "names"}, converted
    # Nothing was seen, changed, sent, planted or left running.
    assert canary.read_text() == SECRET and [each.name for each in canary.parent.iterdir()] == ["canary"]
    assert not heard and not [each for each in home.rglob("*") if each.name in ("planted", ".bashrc")]
    assert SECRET not in out + err and not processes_of("programs/main.py")
    for file in (work / "out.failed").rglob("*"):
        assert not file.is_symlink() or file.readlink().is_relative_to(canary.parent), file
        if file.is_file() and not file.is_symlink() and file.stat().st_size < 1 << 26:
            assert SECRET.encode() not in file.read_bytes(), file
    assert "\x1b" not in err and "\x1b" not in out
    for name in ("constant", "expand", "data-bomb", "data-huge", "memory"):
        assert "it needs more memory than the 3.0 GB" in failed[name], failed[name]
    for name in ("loop", "endless"):
        assert f"it was ended after {TIMEOUT_S} s" in failed[name], failed[name]
    print(f"{len(failed)} models, largest process {peak_of_children():.2f} GB")
    print("\n".join(f"{name}: {why}" for name, why in sorted(failed.items())), file=sys.stderr)
    assert peak_of_children() < MEMORY_GB + 1
