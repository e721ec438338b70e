"""`site new --from` and `site doctor --from`: a profile from what administrators have, and held against it later."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import ROOT, Command

AURELIA = ROOT / "tests" / "sites" / "aurelia"
ALL = [word for kind in ("slurm", "reframe", "spack") for word in ("--from", kind, str(AURELIA / kind))]


@pytest.fixture
def profile(hpcgen: Command, tmp_path: Path) -> Path:
    path = tmp_path / "aurelia.yaml"
    done = hpcgen("site", "new", "aurelia", *ALL, "-o", str(path))
    assert done.returncode == 0, done.stderr
    assert "contradiction: partitions.gpu.cpu.sockets is 2" in done.stderr
    return path


def test_a_profile_of_several_files_is_checked_and_holds(hpcgen: Command, profile: Path) -> None:
    assert hpcgen("check", str(profile)).returncode == 0
    held = hpcgen("site", "doctor", str(profile), *ALL)
    assert held.returncode == 0, held.stderr
    assert held.stdout == ""
    assert "no drift" in held.stderr


def test_what_files_say_otherwise_is_drift(hpcgen: Command, profile: Path) -> None:
    profile.write_text(profile.read_text("utf-8").replace("cores: 128", "cores: 64", 1), "utf-8")
    done = hpcgen("site", "doctor", str(profile), "--from", "slurm", str(AURELIA / "slurm"), "--json")
    drift = json.loads(done.stdout)["drift"]
    assert [(each["fact"], each["seen"]) for each in drift] == [("partitions.batch.cpu.cores", 128)]
    assert drift[0]["how"].endswith("nodes.conf:2")


def test_as_data_with_contradictions(hpcgen: Command) -> None:
    data = json.loads(hpcgen("site", "new", "aurelia", *ALL, "--json").stdout)
    assert data["facts"]["partitions.batch.cpu.cores"]["value"] == 128
    assert [each["path"] for each in data["contradictions"]] == [
        "partitions.gpu.cpu.threads_per_core",
        "partitions.gpu.cpu.sockets",
    ]


def test_mistakes_in_several_files_are_told_together(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text("no line\n", "utf-8")
    missing = ["--from", "spack", str(tmp_path / "packages.yaml")]
    done = hpcgen("site", "new", "x", "--from", "slurm", str(tmp_path / "slurm.conf"), *missing)
    assert done.returncode == 3
    assert "slurm.conf:1:1" in done.stderr and "packages.yaml: no such file or folder" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["site", "new", "x", "--system", "y"],
        ["site", "doctor", "workstation", "--login", "--from", "slurm", "slurm.conf"],
    ],
)
def test_options_that_do_not_fit(hpcgen: Command, words: list[str]) -> None:
    assert hpcgen(*words).returncode == 2
