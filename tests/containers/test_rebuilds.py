"""One line of code changed, and one more package: what is built anew by each engine, and in how many seconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import REPORTS, BaseImage, Run, Sid, SidHpcgen, Tool
from test_build import record_in
from test_rendered_kits import BASE_IN_SID, CERTIFICATES, site_profile

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
    request: pytest.FixtureRequest,
    machine_facts: dict[str, Any],
    base_image: BaseImage,
    testbed_env: dict[str, str],
    tmp_path: Path,
) -> Callable[[str, Path], Run]:
    """By an engine, in the folder of the project."""
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles/here.yaml").write_text(json.dumps(site_profile(machine_facts, base_image)))
    (tmp_path / "hpcgen.yaml").write_text(yaml.safe_dump(STACK))

    def start(engine: str, folder: Path) -> Run:
        words = ["build", "--engine", engine, "-o", OUTPUT[engine], "--json"]
        if engine != "apptainer":
            own = {"HPCGEN_COLLECTIONS": str(folder), "HPCGEN_RECORDS": str(folder / "records")}
            here = Tool({**testbed_env, **own, "BUILDAH_ISOLATION": "chroot"})
            return here.run([sys.executable, "-m", "hpcgen", *words], cwd=folder)
        sid: Sid = request.getfixturevalue("sid")
        sid_hpcgen: SidHpcgen = request.getfixturevalue("sid_hpcgen")
        binds = [(sid.folder(folder), "/p"), (base_image.archive.parent, BASE_IN_SID)]
        own = {"HPCGEN_COLLECTIONS": "/p", "HPCGEN_RECORDS": "/p/records", "APPTAINER_CACHEDIR": "/p/cache"}
        return sid_hpcgen.run(words, binds=[*binds, (CERTIFICATES, str(CERTIFICATES))], env=own, cwd="/p")

    return start


@pytest.mark.parametrize("engine", OUTPUT)
def test_what_did_not_change_is_kept(engine: str, build: Callable[[str, Path], Run], tmp_path: Path) -> None:
    seconds: dict[str, float] = {}
    for what, files in CHANGES.items():
        for name, text in files.items():
            (tmp_path / name).write_text(text)
        record = record_in(build(engine, tmp_path))
        seconds[what] = sum(step.get("seconds", 0) for step in record["steps"])
        how = [(step["about"], step.get("result", "done"), step.get("seconds", 0)) for step in record["steps"]]
        print(engine, what, *how, sep="\n  ")
        kept = " ".join(about for about, result, _ in how if result == "cached")
        # Apptainer keeps no steps: what comes before the project's own packages is an image of its own.
        assert ("Python packages" in kept) == (what == "code" and engine != "apptainer"), kept
        assert ("packages" in kept.replace("Python packages", "")) == (what != "cold"), kept
    REPORTS.append(f"rebuild by {engine}: " + ", ".join(f"{what} {each:.0f} s" for what, each in seconds.items()))
