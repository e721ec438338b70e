"""A project of C over MPI, with a Makefile and a job script and no file of hpcgen's: init, build, run."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Tool
from leftovers import remove
from test_rendered_kits import site_profile

PROJECT = Path(__file__).parent.parent / "unit/project/files/make"


@pytest.mark.slow
def test_a_project_is_built_and_run_as_init_says(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> None:
    """Nothing is added to what init writes but which MPI it is: that of wheels, which need no hour."""
    sites = tmp_path / "ours/site_profiles"
    sites.mkdir(parents=True)
    (sites / "here.yaml").write_text(json.dumps(site_profile(machine_facts, plain_base_image)))
    project = tmp_path / "ring"
    shutil.copytree(PROJECT, project)
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(tmp_path / "records")})
    hpcgen = [sys.executable, "-m", "hpcgen", "--collection", str(tmp_path / "ours")]
    here.run([*hpcgen, "init"], cwd=project)
    words = ["--site", "here", "--set", "mpi.provider=mpich", "--set", "mpich.obtain=wheels"]
    image = tmp_path / "image"
    here.run([*hpcgen, "build", *words, "--engine", "ch-image", "-o", str(image)], cwd=project)
    done = here.run([*hpcgen, "run", str(image), "--ranks-per-node", "2"], cwd=project)
    assert "ring of 2, sum of the ranks 1, of first" in done.stdout
    remove(image)
