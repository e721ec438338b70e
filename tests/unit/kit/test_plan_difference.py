"""Kits, locks, images and what was built last, compared by their plans."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Command

KIT = ("render", "--site", "supermuc", "--stack", "mpi-hello", "-q", "-o")


def changed(hpcgen: Command, *words: str | Path) -> list[tuple[str, str]]:
    said = hpcgen("diff", *map(str, words), "--json")
    assert said.returncode == (0 if said.stdout == "[]\n" else 1), said.stderr
    return [(each["what"], each["name"]) for each in json.loads(said.stdout)]


def test_two_kits_differ_by_what_was_asked_and_what_follows(hpcgen: Command, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    assert hpcgen(*KIT, str(one)).returncode == 0
    assert hpcgen(*KIT, str(other), "--nodes", "4", "--set", "mpi.provider=mpich").returncode == 0
    found = changed(hpcgen, one, other)
    assert found[0] == ("command", "--set mpi.provider") and found[-1] == ("job", "nodes")
    assert {("block", "mpich"), ("block", "intel_mpi")} <= set(found)
    assert changed(hpcgen, one, one / "plan.json") == []


def test_an_edited_file_is_named(hpcgen: Command, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    for kit in (one, other):
        assert hpcgen(*KIT, str(kit)).returncode == 0
    (other / "job.slurm").write_text((other / "job.slurm").read_text() + "# mine\n")
    assert changed(hpcgen, one, other) == [("result", "job.slurm")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("supermuc",), "name two things to compare, or none"),
        (("kit", "supermuc"), "compare a site profile with a site profile"),
        ((), "there is no hpcgen.yaml in this folder"),
        (("supermuc@nowhere", "supermuc"), "no profiles in"),
    ],
)
def test_what_cannot_be_compared(
    hpcgen: Command, words: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in hpcgen("diff", *words).stderr


def test_a_profile_of_another_commit(hpcgen: Command, tmp_path: Path) -> None:
    """Its parents are those of that commit, too."""
    profiles = tmp_path / "ours" / "site_profiles"
    profiles.mkdir(parents=True)
    child, parent = profiles / "lab-two.yaml", profiles / "lab.yaml"
    child.write_text("name: lab-two\nextends: lab\n")
    parent.write_text("name: lab\nextends: workstation\nimage: {distribution: debian}\n")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    parent.write_text("name: lab\nextends: workstation\nimage: {distribution: ubuntu}\n")
    for name in ("lab-two", str(child)):
        said = hpcgen("--collection", str(tmp_path / "ours"), "diff", "--all", f"{name}@HEAD", name).stdout
        assert said.startswith("image.distribution: debian [HEAD:site_profiles/lab.yaml:3] → ubuntu ["), said
