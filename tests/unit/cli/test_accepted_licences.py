"""Licences that a person has to accept: noted by render, wanted by lock and build, accepted in four ways."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.licences import with_licences
from hpcgen.kit.lockfile.lock import parse_lock, sealed_text
from hpcgen.recipe.assemble import assemble
from tests.conftest import Command
from tests.helpers.contract_cases import OMNI_PATH, Workshop, changed
from tests.helpers.locks import CATALOG, lock
from tests.helpers.terminal import on_a_terminal


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "collection")


def licensed(workshop: Workshop, tmp_path: Path) -> list[str]:
    """A kit in which Intel MPI is, whose licence a person has to accept."""
    workshop.profile.write_text(json.dumps(changed(OMNI_PATH, {}), indent=1))
    return ["--site", str(workshop.profile), "--stack", "mpi-hello"]


def builder(tmp_path: Path) -> dict[str, str]:
    """A machine on which an engine is: the question comes before anything is done with it."""
    (tmp_path / "bin").mkdir()
    for name in ("ch-image", "docker"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho 0.38\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}


NOBODY = {"HPCGEN_ACCEPT_LICENCES": ""}
REFUSED = "Intel Simplified Software License must be accepted by the user: https://"


def test_render_notes_a_licence_and_build_wants_it_accepted(
    hpcgen: Command, workshop: Workshop, tmp_path: Path
) -> None:
    words = licensed(workshop, tmp_path)
    rendered = hpcgen("render", *words, "-o", "kit", env=NOBODY)
    assert rendered.returncode == 0
    assert "building it requires --accept-licence intel-simplified" in rendered.stderr
    [licence] = json.loads((tmp_path / "kit" / "plan.json").read_text())["licences"]
    assert licence["name"] == "intel-simplified" and "accepted" not in licence
    lacking = hpcgen("build", *words, env={**NOBODY, "PATH": str(tmp_path)})
    assert lacking.returncode == 69 and REFUSED not in lacking.stderr
    env = {**NOBODY, **builder(tmp_path)}
    for what in ([*words], ["kit"]):
        done = hpcgen("build", *what, env=env)
        assert (done.returncode, REFUSED in done.stderr) == (6, True)
        assert "add --accept-licence intel-simplified, or set HPCGEN_ACCEPT_LICENCES=intel-simplified" in done.stderr


def test_lock_wants_every_licence_before_it_asks_anybody(hpcgen: Command, workshop: Workshop, tmp_path: Path) -> None:
    done = hpcgen("lock", *licensed(workshop, tmp_path), env=NOBODY)
    assert (done.returncode, REFUSED in done.stderr) == (6, True)
    assert not (tmp_path / "hpcgen.lock").exists()


@pytest.mark.parametrize("how", ["option", "all", "environment", "config"])
def test_a_licence_is_accepted_in_four_ways(hpcgen: Command, workshop: Workshop, tmp_path: Path, how: str) -> None:
    words, env = licensed(workshop, tmp_path), dict(NOBODY)
    if how == "environment":
        env["HPCGEN_ACCEPT_LICENCES"] = "other, intel-simplified"
    elif how == "config":
        (tmp_path / "config.yaml").write_text("licences: {intel-simplified: 2026-11-20}\n")
        env["HPCGEN_CONFIG"] = str(tmp_path / "config.yaml")
    else:
        words += ["--accept-licence", "all" if how == "all" else "intel-simplified"]
    done = hpcgen("contract", *words, "--json", env=env)
    [row] = [row for row in json.loads(done.stdout) if row["name"] == "licences"]
    assert row["outcome"] == "holds", row
    # No engine is needed to come beyond the question.
    engine = {"PATH": str(tmp_path)}
    built = hpcgen("build", *words, "--kit", "kit", env={**env, **engine})
    assert REFUSED not in built.stderr and built.returncode == 69
    [licence] = json.loads((tmp_path / "kit" / "plan.json").read_text())["licences"]
    assert licence["accepted"] is True


def test_a_licence_is_asked_for_once_on_a_terminal(workshop: Workshop, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "hpcgen", "build", *licensed(workshop, tmp_path)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HPCGEN_")}
    env = {**clean, "HPCGEN_CONFIG": str(tmp_path / "config.yaml"), "HPCGEN_ENTRY_POINTS": "0", **builder(tmp_path)}
    asked = on_a_terminal(words, "n\n", env, tmp_path)
    assert "Do you accept it?" in asked and "must be accepted by the user" in asked
    assert not (tmp_path / "config.yaml").exists()
    assert "saved in" in on_a_terminal(words, "y\n", env, tmp_path)
    assert "intel-simplified: 20" in (tmp_path / "config.yaml").read_text()
    assert "Do you accept it?" not in on_a_terminal(words, "", env, tmp_path)


def test_the_hash_of_an_image_does_not_depend_on_who_accepted_what(workshop: Workshop) -> None:
    plan = workshop.plan(changed(OMNI_PATH, {}), "hello")
    accepted = replace(plan, licences=[replace(each, accepted=True) for each in plan.licences])
    catalog = Catalog([workshop.folder])
    first, second = (assemble(each, catalog).labels["io.hpcgen.content"] for each in (plan, accepted))
    assert plan.licences and first == second


def test_a_fleet_asks_once_for_all_its_images(hpcgen: Command, workshop: Workshop, tmp_path: Path) -> None:
    licensed(workshop, tmp_path)
    profile = str(workshop.profile)
    members = [{"name": name, "site": profile, "stack": "mpi-hello"} for name in ("one", "two")]
    (tmp_path / "fleet.yaml").write_text(json.dumps({"members": members}))
    done = hpcgen("build", "--all", env=NOBODY)
    assert (done.returncode, done.stderr.count(REFUSED)) == (6, 1)
    accepted = hpcgen("build", "--all", "--accept-licence", "all", env={**NOBODY, "PATH": str(tmp_path)})
    assert REFUSED not in accepted.stderr and "0 built, 2 failed" in accepted.stderr


def test_a_pipeline_passes_the_answer_on(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(json.dumps({"members": [{"site": "workstation", "stack": "mpi-hello"}]}))
    text = hpcgen("ci", "github").stdout
    assert "HPCGEN_ACCEPT_LICENCES: ${{ vars.HPCGEN_ACCEPT_LICENCES }}" in text


def test_a_lock_tells_what_was_accepted_and_a_build_from_it_asks_nobody(
    hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPCGEN_ACCEPT_LICENCES", "")
    settings = ("base.provider=debian", "mpi.provider=intel_mpi", "intel_mpi.version=2021.17.2")
    open_lock = lock("mpi-hello", settings=settings)
    plan = with_licences(open_lock.plan, ["intel-simplified"])
    assembly = assemble(plan, CATALOG, open_lock.pins)
    for name, each in (("open", open_lock.plan), ("accepted", plan)):
        text = sealed_text(each, assembly, open_lock.pins, open_lock.collections)
        assert [one.accepted for one in parse_lock(text, name).plan.licences] == [name == "accepted"]
        (tmp_path / f"{name}.lock").write_text(text)
    # 6 is a licence that nobody accepted, 69 a program that is missing.
    env, nothing = {**NOBODY, **builder(tmp_path)}, {**NOBODY, "PATH": str(tmp_path)}
    assert hpcgen("build", "--locked", "open.lock", env=env).returncode == 6
    assert hpcgen("build", "--locked", "accepted.lock", env=nothing).returncode == 69
    # What moves a lock keeps what was accepted in the old one.
    assert with_licences(open_lock.plan, (), before=plan.licences).licences == plan.licences
