"""An image that an older release made, of a kind that only a real tool can read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SPECIMENS = Path(__file__).parents[1] / "specimens" / "0.1.0"


def test_a_squashfs_gives_its_kit_back(tmp_path: Path, testbed_env: dict[str, str]) -> None:
    again = tmp_path / "again"
    words = ["rebuild", str(SPECIMENS / "images" / "hello.sqfs"), "-o", str(again), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "hpcgen", *words], capture_output=True, text=True, check=True, env=testbed_env
    )
    kit = {path.name: path.read_bytes() for path in (SPECIMENS / "kits" / "charliecloud").iterdir()}
    assert {path.name: path.read_bytes() for path in again.iterdir()} == kit
    assert sorted(json.loads(done.stdout)["files"]) == sorted(kit)
