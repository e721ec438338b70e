"""A project that uv has locked: planned, built in Debian 12 by ch-image, and imported there."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import BaseImage, Tool
from test_rendered_kits import site_profile

from hpcgen.supply.net.pip_settings import pip_settings
from hpcgen.supply.pin.uv_resolver import run_uv

pytestmark = pytest.mark.slow

PROJECT = """[project]
name = "demo"
version = "0.1"
requires-python = ">=3.11"
dependencies = ["msgspec==0.19.0", "click>=8,<9"]

[project.optional-dependencies]
table = ["tabulate==0.9.0"]
"""
STACK: dict[str, Any] = {
    "name": "demo",
    "title": "a project of somebody",
    "blocks": {
        "debian": {"version": "12"},
        "python_packages": {"options": {"files": ["uv.lock"], "groups": ["table"]}},
    },
    "run": {"command": ["python3", "-c", "import msgspec"], "mpi": False},
}
SHOWN = "import click, msgspec, tabulate; print(msgspec.__version__, tabulate.__version__)"


def remote_index() -> str:
    """The index of this machine that containers see too."""
    return next(address for address in pip_settings().indexes if address.startswith("https:"))


@pytest.fixture
def project(tmp_path: Path, machine_facts: dict[str, Any], base_image: BaseImage) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT, "utf-8")
    (folder / "hpcgen.yaml").write_text(yaml.safe_dump(STACK), "utf-8")
    profile = site_profile(machine_facts, base_image)
    (folder / "here.yaml").write_text(yaml.safe_dump(profile), "utf-8")
    done = run_uv(["lock"], [remote_index()], folder, "lock a project")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_project_locked_by_uv_is_built_and_imported(project: Path, testbed_env: dict[str, str]) -> None:
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(project / "records")})
    image = project / "image"
    words = ["build", "--site", "here.yaml", "--engine", "ch-image", "-o", str(image)]
    here.run([sys.executable, "-m", "hpcgen", *words], cwd=project)
    listed = (image / "opt/hpcgen/kit/files/requirements/project.txt").read_text("utf-8").splitlines()
    assert [line.partition("==")[0] for line in listed] == ["click", "msgspec", "tabulate"]
    assert all(line.count("--hash=sha256:") == 1 for line in listed)
    said = here.run(["ch-run", str(image), "--", "/opt/python/bin/python", "-c", SHOWN]).stdout
    assert said.split()[-2:] == ["0.19.0", "0.9.0"]
