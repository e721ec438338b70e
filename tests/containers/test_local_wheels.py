"""``hpcgen build --wheel-dir``: a package that is on no index comes from a folder, by its hash, with each engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import BaseImage, Run
from test_bazel_fetch import SIX
from test_rendered_kits import site_profile

from tests.helpers.stub_packages import sha256, wheel

pytestmark = pytest.mark.slow
NAME = "hpcgen_test_of_a_folder"
OUTPUT = {"podman": "localhost/folder:1", "ch-image": "image", "apptainer": "image.sif"}
STACK = {
    "name": "folder",
    "title": "A package of a folder, and one of the index",
    "site": "here",
    "blocks": {"python_packages": {"options": {"files": ["requirements.txt"]}}},
    "run": {"command": ["python3", "-c", f"import {NAME}"], "mpi": False},
}


@pytest.mark.parametrize("engine", OUTPUT)
def test_a_package_of_a_folder(
    engine: str, machine_facts: dict[str, Any], base_image: BaseImage, by_engine: Callable[..., Run], tmp_path: Path
) -> None:
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles/here.yaml").write_text(json.dumps(site_profile(machine_facts, base_image)))
    (tmp_path / "hpcgen.yaml").write_text(yaml.safe_dump(STACK))
    own = sha256(wheel(tmp_path / "wheels", NAME, "1.0"))
    (tmp_path / "requirements.txt").write_text(f"{SIX}\n{NAME}==1.0 --hash=sha256:{own}\n")
    words = ["build", "--json", "--engine", engine, "--wheel-dir", "wheels", "-o", OUTPUT[engine]]
    # Its self-test has pip check both packages.
    by_engine(engine, tmp_path, words)
    components = by_engine(engine, tmp_path, ["inspect", "--json", OUTPUT[engine]])
    assert NAME.replace("_", "-") in components.stdout.replace("_", "-")
