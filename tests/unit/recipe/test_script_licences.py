"""Licences in kits' build scripts, run with an engine that only writes down that it was started."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.core.model.plan import Plan
from hpcgen.core.support.writing import write_kit
from hpcgen.kit.kit import make_kit
from tests.helpers import locks
from tests.helpers.terminal import on_a_terminal

ENGINE = '#!/bin/bash\necho "$0 $*" >> "$TOLD"\n'
REFUSED = "Intel Simplified Software License must be accepted by the user: https://"
REMEDY = (
    "  remedy: read it, then add --accept-licence intel-simplified, or set HPCGEN_ACCEPT_LICENCES=intel-simplified\n"
)
ACCEPTED = "build.sh: this build accepts the Intel Simplified Software License (intel-simplified), https://"


@pytest.fixture(scope="module")
def plan() -> Plan:
    settings = ("base.provider=debian", "mpi.provider=intel_mpi", "intel_mpi.version=2021.17.2")
    return locks.lock("mpi-hello", settings=settings).plan


def kit_of(plan: Plan, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The words and the environment by which its build script is run."""
    write_kit(folder / "kit", make_kit(plan, locks.CATALOG).files)
    (folder / "engine").write_text(ENGINE)
    (folder / "engine").chmod(0o755)
    mine = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    own = {"HPCGEN_ENGINE": str(folder / "engine"), "TOLD": str(folder / "told")}
    return ["bash", str(folder / "kit" / "build.sh")], {**mine, **own}


def test_a_build_script_wants_licences_accepted_before_it_starts_anything(plan: Plan, tmp_path: Path) -> None:
    script, env = kit_of(plan, tmp_path)
    for words in ([], ["--accept-licence"], ["--accept-licence", "intel"]):
        done = subprocess.run([*script, *words], env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        assert (done.returncode, REFUSED in done.stderr, REMEDY in done.stderr) == (77, True, True)
        assert ACCEPTED not in done.stderr
        assert not (tmp_path / "told").exists()


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (["--accept-licence", "other", "--accept-licence", "intel-simplified"], ""),
        (["--accept-licence", "all"], ""),
        ([], "other, intel-simplified"),
    ],
)
def test_a_build_script_names_what_it_accepts(plan: Plan, tmp_path: Path, words: list[str], variable: str) -> None:
    script, env = kit_of(plan, tmp_path)
    env["HPCGEN_ACCEPT_LICENCES"] = variable
    done = subprocess.run([*script, *words], env=env, capture_output=True, text=True)
    assert (done.returncode, ACCEPTED in done.stderr) == (0, True), done.stderr
    assert "engine build " in (tmp_path / "told").read_text()


def test_a_build_script_asks_nobody_for_what_the_lock_says_was_accepted(plan: Plan, tmp_path: Path) -> None:
    accepted = replace(plan, licences=[replace(each, accepted=True) for each in plan.licences])
    script, env = kit_of(accepted, tmp_path)
    done = subprocess.run(script, env=env, capture_output=True, text=True)
    assert (done.returncode, ACCEPTED in done.stderr) == (0, True), done.stderr


def test_a_build_script_asks_on_a_terminal(plan: Plan, tmp_path: Path) -> None:
    script, env = kit_of(plan, tmp_path)
    asked = on_a_terminal(script, "n\n", env, tmp_path)
    assert "Intel Simplified Software License (intel-simplified): https://" in asked
    assert "Do you accept it? [y/N]: " in asked and REFUSED in asked
    assert not (tmp_path / "told").exists()
    on_a_terminal(script, "y\n", env, tmp_path)
    assert (tmp_path / "told").exists()
