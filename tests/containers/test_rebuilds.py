"""One line of code changed, and one more package: what is built anew by each engine, and in how many seconds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import REPORTS, BaseImage, Run
from test_build import record_in
from test_rendered_kits import site_profile

pytestmark = pytest.mark.slow
STACK = {
    "name": "pi",
    "title": "A project",
    "site": "here",
    "blocks": {"python_packages": {"options": {"files": ["requirements.txt"]}}},
    "copy": [{"from": "pi.py", "to": "/app/pi.py"}],
    "run": {"command": ["python3", "/app/pi.py"], "mpi": False},
}
OUTPUT = {"podman": "localhost/pi:1", "ch-image": "image", "apptainer": "image.sif"}
CHANGES = {
    "cold": {"requirements.txt": "packaging==24.1\n", "pi.py": "print(1)\n"},
    "code": {"pi.py": "print(2)\n"},
    "package": {"requirements.txt": "packaging==24.1\nattrs==24.2.0\n"},
}


@pytest.fixture
def build(
    machine_facts: dict[str, Any], base_image: BaseImage, by_engine: Callable[..., Run], tmp_path: Path
) -> Callable[[str], Run]:
    """By an engine, in the folder of the project."""
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles/here.yaml").write_text(json.dumps(site_profile(machine_facts, base_image)))
    (tmp_path / "hpcgen.yaml").write_text(yaml.safe_dump(STACK))

    words = ["build", "--json", "--engine"]
    return lambda engine: by_engine(engine, tmp_path, [*words, engine, "-o", OUTPUT[engine]])


@pytest.mark.parametrize("engine", OUTPUT)
def test_what_did_not_change_is_kept(engine: str, build: Callable[[str], Run], tmp_path: Path) -> None:
    seconds: dict[str, float] = {}
    for what, files in CHANGES.items():
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        record = record_in(build(engine))
        seconds[what] = sum(step.get("seconds", 0) for step in record["steps"])
        how = [(step["about"], step.get("result", "done"), step.get("seconds", 0)) for step in record["steps"]]
        print(engine, what, *how, sep="\n  ")
        kept = " ".join(about for about, result, _ in how if result == "cached")
        # Apptainer keeps no steps: what comes before the project's own packages is an image of its own.
        assert ("Python packages" in kept) == (what == "code" and engine != "apptainer"), kept
        assert ("packages" in kept.replace("Python packages", "")) == (what != "cold"), kept
    REPORTS.append(f"rebuild by {engine}: " + ", ".join(f"{what} {each:.0f} s" for what, each in seconds.items()))
