"""A folder of notebooks in Python and R by hpcgen init: built by ch-image, all cells run, and the server asked."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
import yaml
from container_tools import BaseImage, Tool
from test_rendered_kits import site_profile

pytestmark = pytest.mark.slow

SCRIPT = "library(data.table)\nx <- data.table(a = 1:4)\ncat('sum', x[, sum(a)], '\\n')\n"
LOCK = {"R": {"Version": "4.2.2"}, "Packages": {"data.table": {"Package": "data.table", "Source": "Repository"}}}


def notebook(code: str, kernel: str, language: str) -> str:
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": code, "id": "a"}
    about = {"kernelspec": {"name": kernel, "display_name": kernel, "language": language}}
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]})


@pytest.fixture
def project(tmp_path: Path, machine_facts: dict[str, Any], base_image: BaseImage) -> Path:
    folder = tmp_path / "demo"
    folder.mkdir()
    (folder / "a.ipynb").write_text(notebook("import tabulate\nprint(6 * 7)", "python3", "python"), "utf-8")
    (folder / "b.ipynb").write_text(notebook(SCRIPT, "ir", "R"), "utf-8")
    (folder / "fit.R").write_text(SCRIPT, "utf-8")
    (folder / "renv.lock").write_text(json.dumps(LOCK, indent=1), "utf-8")
    (folder / "Dockerfile").write_text("FROM python:3.11\nRUN pip install tabulate\n", "utf-8")
    (folder / "here.yaml").write_text(yaml.safe_dump(site_profile(machine_facts, base_image)), "utf-8")
    return folder


def test_notebooks_are_run_and_served(project: Path, testbed_env: dict[str, str]) -> None:
    here = Tool({**testbed_env, "HPCGEN_RECORDS": str(project / "records")})
    hpcgen = [sys.executable, "-m", "hpcgen"]
    here.run([*hpcgen, "init"], cwd=project)
    stack = yaml.safe_load((project / "hpcgen.yaml").read_text("utf-8"))
    assert stack["blocks"]["r"]["options"]["packages"] == ["data.table", "IRkernel"]
    image = project.parent / "image"
    words = ["--set", "r.version===4.2.2", "--engine", "ch-image", "-o", str(image)]
    here.run([*hpcgen, "build", "--site", "here.yaml", *words], cwd=project)
    assert "linear algebra" in here.run(["ch-run", "--set-env", str(image), "--", "/opt/hpcgen/selftest.sh"]).stdout
    inside = [*hpcgen, "run", "--site", "here.yaml", str(image)]
    assert "sum 10" in here.run([*inside, "--", "Rscript", "/app/fit.R"], cwd=project).stdout
    here.run([*inside, "--", "jupyter", "execute", "--inplace", "a.ipynb", "b.ipynb"], cwd=project)
    for name, expected in (("a", "42"), ("b", "sum 10")):
        outputs = json.loads((project / f"{name}.ipynb").read_text("utf-8"))["cells"][0]["outputs"]
        assert expected in "".join(text for each in outputs for text in each.get("text", [])), outputs
    asks_for_its_token(inside, here.env, project)
    # There lies the token.
    assert (project / ".cache/jupyter/data/runtime").stat().st_mode & 0o77 == 0


def asks_for_its_token(command: list[str], env: Mapping[str, str], folder: Path) -> None:
    """The server of the stack, as ``hpcgen run`` starts it; only who knows its token has an answer."""
    log = folder / "server.log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out, env=env, cwd=folder) as process:
        try:
            end = time.monotonic() + 90
            while not (match := re.search(r"(http://127\.0\.0\.1:\d+)/lab\?(token=\w+)", log.read_text("utf-8"))):
                assert process.poll() is None and time.monotonic() < end, log.read_text("utf-8")
                time.sleep(0.5)
            with urlopen(f"{match[1]}/api/status?{match[2]}", timeout=30) as answer:
                assert answer.status == 200
            with pytest.raises(HTTPError) as refused:
                urlopen(f"{match[1]}/api/contents", timeout=30)
            assert refused.value.code == 403
        finally:
            process.terminate()
