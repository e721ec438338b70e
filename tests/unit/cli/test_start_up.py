"""What commands cost at their start, held by counts: a machine's speed and load are no matter of a test.

A number that must grow is a decision: measure before and after with ``python benchmarks/run.py cold``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import GOLDEN, OWN_SETTINGS, ROOT

PLAN = "--site supermuc --stack tf-horovod"
COMPLETION = {"_HPCGEN_COMPLETE": "bash_complete", "COMP_WORDS": "hpcgen plan --site super", "COMP_CWORD": "3"}
NEVER = {
    *("yaml", "packaging.requirements", "packaging.tags", "packaging.utils", "importlib.metadata", "rich", "email"),
    *(
        "jsonschema",
        "hpccm.building_blocks",
        "hpccm.templates",
        "ctypes",
        "tempfile",
        "random",
        "socket",
        "ssl",
        "http",
        "sqlite3",
    ),
}
"""What none of these commands needs, once the collection's files were read."""
SITES = sum("\nabstract: true\n" not in path.read_text() for path in (ROOT / "site_profiles").glob("*.yaml"))
"""Profiles of real systems, each of which is read where they are listed."""
if sys.version_info >= (3, 11):
    # Python 3.10's own platform, which click loads by uuid, has it.
    NEVER.add("subprocess")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for byte code and what is kept of the collection."""
    return tmp_path_factory.mktemp("kept")


def start(words: str, kept: Path, **more: str) -> tuple[dict[str, int], set[str]]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("HPCGEN_", "PYTHON"))}
    env |= {**OWN_SETTINGS, "PYTHONPYCACHEPREFIX": str(kept), **more}
    command = [sys.executable, "-m", "tests.helpers.start_up", *words.split()]
    for _ in range(2):
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=120)
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said["counts"], set(said["loaded"])


@pytest.mark.parametrize(
    ("words", "own", "files", "expressions"),
    [
        ("--version", 5, 0, 26),
        ("--help", 11, 0, 26),
        ("list sites", 65, 4 * SITES + 4, 80),
        (f"plan {PLAN}", 203, 49, 120),
        (f"render {PLAN}", 202, 49, 126),
        ("", 57, 0, 75),  # completes a site's name
    ],
)
def test_commands_load_read_and_start_no_more_than_they_need(
    words: str, own: int, files: int, expressions: int, kept: Path
) -> None:
    counts, loaded = start(words, kept, **({} if words else COMPLETION))
    most = {"own modules": own, "files": files, "expressions": expressions, "processes": 0, "sockets": 0}
    assert {name: counts.get(name, 0) for name in most if counts.get(name, 0) > most[name]} == {}
    assert counts["own modules"] >= own - 3, "fewer are loaded: lower the number here"
    assert loaded & NEVER == set()


def test_the_script_of_an_image_costs_no_more_than_it_needs(kept: Path, tmp_path: Path) -> None:
    """What ``run`` does before it starts the engine; archives and ranges of versions are for others to read."""
    shutil.copytree(GOLDEN / "supermuc" / "mpi-hello", tmp_path / "image/opt/hpcgen/kit")
    counts, loaded = start(f"job {tmp_path}/image --site supermuc", kept)
    most = {"own modules": 209, "files": 10, "expressions": 140, "processes": 0, "sockets": 0}
    assert {name: counts.get(name, 0) for name in most if counts.get(name, 0) > most[name]} == {}
    assert counts["own modules"] >= most["own modules"] - 3, "fewer are loaded: lower the number here"
    assert loaded & {"packaging.specifiers", "tarfile", "tomllib", "zipfile"} == set()
