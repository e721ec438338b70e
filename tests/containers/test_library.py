"""``hpcgen.build``, ``test``, ``run`` and ``submit`` as a notebook calls them, with real engines and a real Slurm."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Slurm, Tool
from test_build import Small, output_of
from test_build import here as here
from test_build import small as small

SUBMITTING = """
import io, json, sys
from pathlib import Path

import hpcgen

collection, output, result = sys.argv[1:]
catalog = hpcgen.Catalog([Path(collection)])
record = hpcgen.build(hpcgen.plan("here", "small", catalog=catalog), engine="ch-image", output=output, catalog=catalog)
job = hpcgen.submit(record, folder="jobs", walltime="5m", catalog=catalog)
printed = io.StringIO()
# The stream of a notebook has no bytes below it.
sys.stdout = printed
ended = hpcgen.follow(job)
try:
    hpcgen.follow(hpcgen.submit(record, ["sh", "-c", "exit 3"], folder="jobs", catalog=catalog))
except hpcgen.JobFailedError as error:
    refused = str(error)
Path(result).write_text(json.dumps({
    "job": repr(job), "state": ended.state, "output": printed.getvalue(), "refused": refused,
}))
"""

NOTEBOOK = """
import json, sys, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hpcgen

collection, engine, output, result = sys.argv[1:]
catalog = hpcgen.Catalog([Path(collection)])
plan = hpcgen.plan("here", "small", catalog=catalog)
said = []
record = hpcgen.build(plan, engine=engine, output=output, say=said.append, catalog=catalog)
kept = hpcgen.run(record, keep_output=True, catalog=catalog)
with ThreadPoolExecutor(1) as pool:
    # As a server of notebooks may: signals reach the main thread alone.
    beside = pool.submit(hpcgen.run, record, ["echo", "in a thread"], keep_output=True, catalog=catalog).result()
wrong = hpcgen.run(record, ["false"], check=False, catalog=catalog)
try:
    hpcgen.run(record, ["false"], catalog=catalog)
except hpcgen.JobFailedError as error:
    refused = str(error)
tests = hpcgen.test(record, catalog=catalog, say=said.append)
Path(result).write_text(json.dumps({
    "format": plan.format, "record": repr(record), "kind": record.image.kind, "said": said, "output": kept.output,
    "beside": beside.output, "status": wrong.exit_status, "refused": refused, "tests": tests.counts,
    "failed": tests.count("failed"),
}))
"""


def notebook(here: Tool, small: Small, engine: str, folder: Path) -> dict[str, Any]:
    (folder / "notebook.py").write_text(NOTEBOOK)
    words = [small.collection("hello"), engine, output_of(engine, folder), folder / "result.json"]
    here.run([sys.executable, folder / "notebook.py", *words], cwd=folder)
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


@pytest.mark.parametrize(
    ("engine", "kind"), [("ch-image", "directory"), pytest.param("podman", "podman", marks=pytest.mark.slow)]
)
def test_a_notebook_builds_starts_and_tests_an_image(
    engine: str, kind: str, here: Tool, small: Small, base_image: BaseImage, tmp_path: Path
) -> None:
    # Which engine starts it is the profile's to say; a plan is built in the format that the named builder reads.
    runner = {"ch-image": "charliecloud", "podman": "podman"}[engine]
    small.profile["containers"] = {"preferred": runner, "engines": {runner: {"allowed": True}}}
    found = notebook(here, small, engine, tmp_path)
    assert found["kind"] == kind and f"built {kind} {output_of(engine, tmp_path)}" in found["record"]
    assert found["output"].strip() == "hello" and found["beside"].strip() == "in a thread"
    assert found["status"] == 1 and found["refused"].startswith("false ended with status 1")
    assert found["failed"] == 0 and " passed, 0 failed" in found["tests"]
    assert any(line.startswith("building small for here with") for line in found["said"])
    assert found["said"][-1].startswith("added to the build record ")


def test_a_notebook_submits_to_slurm_and_follows(
    slurm_cluster: Callable[..., Slurm], here: Tool, small: Small, tmp_path: Path
) -> None:
    cluster = slurm_cluster("general")
    small.profile["containers"] = {"preferred": "charliecloud", "engines": {"charliecloud": {"allowed": True}}}
    small.profile["scheduler"] = {"kind": "slurm", "output": "./%x.%j.out"}
    small.profile["partitions"]["cpu"]["queues"] = [{"name": cluster.partitions[0]}]
    (tmp_path / "notebook.py").write_text(SUBMITTING)
    words = [small.collection("hello"), tmp_path / "image", tmp_path / "result.json"]
    Tool({**cluster.env, **here.env}).run([sys.executable, tmp_path / "notebook.py", *words], cwd=tmp_path)
    found = json.loads((tmp_path / "result.json").read_text())
    assert found["job"].startswith("<Submitted job ") and found["job"].endswith("/jobs/.hpcgen/jobs/small-1/job.slurm>")
    assert found["state"] == "COMPLETED" and "hello" in found["output"].splitlines()
    assert "with status 3" in found["refused"]
