"""Starts that are sealed off: without a network, with nothing of the host but the folder of the job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.job import JobRequest
from hpcgen.launch.script import job_script
from hpcgen.planning.planner import make_plan
from tests.helpers.site_engines import SITE


def script(folder: Path, engine: str, version: str | None = None, shown: Sequence[Bind] = ()) -> str:
    """The start of a stack with MPI on a site with file systems, a host MPI and variables, by an engine."""
    site = json.loads(json.dumps(SITE))
    site["containers"] = {"preferred": engine, "engines": {engine: {"version": version} if version else {}}}
    site["file_systems"] = {"work": {"kind": "lustre", "path": "/lustre/work", "bind": True}}
    site["environment"] = {"OF_THE_SITE": "yes"}
    site["fabric"] = {"kind": "ethernet"}
    (folder / "site.yaml").write_text(json.dumps(site))
    catalog = Catalog()
    stack = catalog.stack("mpi-hello")
    plan = make_plan(catalog, catalog.site(str(folder / "site.yaml")), stack, job=JobRequest(nodes=1, ranks_per_node=1))
    how: dict[str, Any] = {"direct": True, "preflight": "", "sealed": True, "shown": shown}
    return job_script(plan, {"PATH": "/opt/x/bin:/usr/bin"}, "/image", **how)[1]


@pytest.mark.parametrize(
    ("engine", "version", "words"),
    [
        ("charliecloud", "0.38", ["unshare --user --map-root-user --net", "ch-run --private-tmp\n", "env -i\n"]),
        ("charliecloud", "0.30", ["--private-tmp --no-home\n"]),
        ("apptainer", None, ["--containall --no-home\n", "--net --network none\n"]),
        ("singularity", None, ["--containall --no-home\n", "--net --network none\n"]),
        ("podman", None, ["--network=none --cap-drop=ALL --security-opt=no-new-privileges\n"]),
        ("docker", None, ["--network=none --cap-drop=ALL --security-opt=no-new-privileges\n", "--user"]),
    ],
)
def test_nothing_of_the_host_enters(tmp_path: Path, engine: str, version: str | None, words: list[str]) -> None:
    text = script(tmp_path, engine, version)
    for each in words:
        assert each in text
    for each in ("/lustre/work", "/var/run/host", "srun", "--ipc=host"):
        assert each not in text
    assert text.count('"$folder"') == (2 if engine in ("apptainer", "singularity") else 1)
    if engine == "charliecloud":
        # No variable comes by itself, so those of the job are named.
        assert 'OF_THE_SITE="${OF_THE_SITE-}"\n' in text and 'OMP_NUM_THREADS="${OMP_NUM_THREADS-}"\n' in text


@pytest.mark.parametrize(
    ("engine", "option"), [("charliecloud", "-b"), ("apptainer", "-B"), ("podman", "-v"), ("docker", "-v")]
)
def test_folders_that_are_named_are_shown(tmp_path: Path, engine: str, option: str) -> None:
    text = script(tmp_path, engine, "0.38" if engine == "charliecloud" else None, [Bind("/lustre/data", "/media")])
    assert f"{option} /lustre/data:/media" in text and "/lustre/work" not in text


@pytest.mark.parametrize(
    ("engine", "why"), [("charliecloud", "does not say its version"), ("podman-hpc", "modules"), ("shifter", "no opt")]
)
def test_an_engine_that_cannot_be_sealed_is_refused(tmp_path: Path, engine: str, why: str) -> None:
    with pytest.raises(PolicyError, match=why) as caught:
        script(tmp_path, engine)
    assert "apptainer" in caught.value.problems[0].expected and "--engine" in caught.value.problems[0].remedy
