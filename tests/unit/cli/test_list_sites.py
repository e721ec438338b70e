"""``hpcgen list sites``: what jobs may count on at each, and which are left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.conftest import Command

PROFILE = """
name: ours
extends: stampede2
title: A machine whose profile extends one that is gone
partitions:
  skx:
    gpu: {vendor: nvidia, model: H100, count: 2, driver: "570.86"}
"""


def listed(hpcgen: Command, *words: str) -> dict[str, dict[str, Any]]:
    done = hpcgen("list", "sites", "--json", *words)
    assert done.returncode == 0, done.stderr
    return {each["name"]: each for each in json.loads(done.stdout)}


def test_what_is_archived_or_only_a_parent_is_listed_when_asked_for(hpcgen: Command) -> None:
    every, usual = listed(hpcgen, "--all"), listed(hpcgen)
    left_out = {name: entry for name, entry in every.items() if name not in usual}
    assert {"stampede2", "hawk", "archer2", "darwin", "tacc", "lumi"} <= left_out.keys()
    assert {"stampede3", "lumi-g", "workstation"} <= usual.keys()
    assert all(entry.get("archived") or entry.get("abstract") for entry in left_out.values())
    said = hpcgen("list", "sites").stderr
    assert "`--all` also lists " in said


def test_it_says_what_jobs_may_count_on(hpcgen: Command) -> None:
    every = listed(hpcgen, "--all")
    lumi = every["lumi-g"]
    assert (lumi["nodes"], lumi["driver"], lumi["mpi_verified"]) == ("several", "known", True)
    assert lumi["gpus"] == ["8 × Instinct MI250X (one die)"]
    # No MPI: Slurm's own launcher may start the image's, Torque has none.
    assert (every["slurm-nvidia"]["nodes"], every["slurm-nvidia"]["driver"]) == ("untried", "unknown")
    assert (every["torque-cpu"]["nodes"], every["torque-cpu"]["mpi_verified"]) == ("one", None)
    shown = {line.split()[0]: line for line in hpcgen("list", "sites").stdout.splitlines()}
    assert re.search(" singularity +slurm +several ", shown["lumi-g"])


def test_a_profile_that_extends_an_archived_one_is_not_archived(hpcgen: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine" / "site_profiles"
    folder.mkdir(parents=True)
    (folder / "ours.yaml").write_text(PROFILE)
    done = hpcgen("--collection", str(tmp_path / "mine"), "list", "sites", "--json")
    ours = next(each for each in json.loads(done.stdout) if each["name"] == "ours")
    assert "archived" not in ours
    assert (ours["gpus"], ours["driver"]) == (["2 × H100"], "known")


def test_all_is_of_sites_alone(hpcgen: Command) -> None:
    done = hpcgen("list", "stacks", "--all")
    assert done.returncode == 2
    assert "--all is only for sites" in done.stderr
