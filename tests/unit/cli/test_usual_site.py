"""``site:`` of the user's own config file in the place of ``--site``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command

STACK = ["--stack", "mpi-hello"]
TOLD = "for workstation, the site of your config file"


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (tmp_path / "config.yaml").write_text("site: workstation\n")
    return {"HPCGEN_CONFIG": str(tmp_path / "config.yaml")}


@pytest.mark.parametrize("words", [["plan"], ["render"], ["contract"], ["graph"], ["explain", "blocks"]])
def test_a_plan_without_a_site_is_for_the_usual_one(
    words: list[str], configured: dict[str, str], hpcgen: Command
) -> None:
    done = hpcgen(*words, *STACK, env=configured)
    given = hpcgen(*words, *STACK, "--site", "workstation", env=configured)
    assert (done.returncode, done.stdout) == (given.returncode, given.stdout)
    assert TOLD in done.stderr and TOLD not in given.stderr


def test_a_project_is_built_for_it(configured: dict[str, str], hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "hpcgen.yaml").write_text("name: ours\ntitle: ours\nextends: mpi-hello\n")
    done = hpcgen("build", "--dry-run", "--engine", "podman", env=configured)
    assert done.returncode == 0 and TOLD in done.stderr
    assert hpcgen("plan", env=configured).stdout.startswith("ours for workstation")


def test_an_option_wins(configured: dict[str, str], hpcgen: Command) -> None:
    done = hpcgen("plan", *STACK, "--site", "supermuc", env=configured)
    assert done.stdout.startswith("mpi-hello for supermuc") and TOLD not in done.stderr


def test_a_kit_that_is_named_keeps_its_site(configured: dict[str, str], hpcgen: Command, tmp_path: Path) -> None:
    hpcgen("render", *STACK, "--site", "supermuc", "-o", "kit", env=configured)
    done = hpcgen("build", "kit", "--dry-run", "--accept-licence", "intel-eula", env=configured)
    assert TOLD not in done.stderr and "a KIT alone" not in done.stderr


@pytest.mark.parametrize("words", [["plan"], ["contract"], ["render"]])
def test_without_either_it_is_said_how_to_give_one(words: list[str], hpcgen: Command) -> None:
    done = hpcgen(*words, *STACK)
    assert done.returncode == 2
    assert "`hpcgen list sites` shows them; `site: NAME` in your own config file" in done.stderr
