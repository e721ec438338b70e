"""Site, partition, engine and account of ``hpcgen.yaml`` and of the user's config file in the place of options."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.other_names import sites_of_host
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


def test_init_names_the_next_commands_without_it(configured: dict[str, str], hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("print(1)\n")
    assert "  hpcgen plan\n" in hpcgen("init", env=configured).stderr
    assert "`site: NAME` in hpcgen.yaml saves the option" in hpcgen("init").stderr


@pytest.mark.parametrize("words", [["plan"], ["contract"], ["render"], ["build"], ["job"], ["graph"], ["lock"]])
def test_without_either_it_is_said_how_to_give_one(words: list[str], hpcgen: Command) -> None:
    done = hpcgen(*words, *STACK)
    assert done.returncode == 2
    assert "plan mpi-hello for which site?" in done.stderr
    assert "in hpcgen.yaml or in your config file saves the option" in done.stderr


@pytest.mark.parametrize(
    ("host", "sites"),
    [
        ("uan01.lumi.csc.fi", ["lumi-c", "lumi-g"]),
        ("daint-ln001", ["alps"]),
        ("login02.snellius.surf.nl", ["snellius"]),
        ("localhost", ["workstation"]),
        ("build-4711.example.org", []),
    ],
)
def test_a_hosts_name_says_which_sites_are_meant(host: str, sites: list[str]) -> None:
    assert sites_of_host(Catalog(), host) == sites


PROJECT = "name: ours\ntitle: ours\nextends: mpi-hello\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "hpcgen.yaml").write_text(PROJECT + "site: supermuc\npartition: fat\naccount: pn12ab\n")
    (tmp_path / "config.yaml").write_text("site: workstation\nengine: podman\naccounts: {supermuc: mine}\n")
    return tmp_path


def test_the_project_wins_over_the_config_file_and_options_win_over_both(project: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_CONFIG": str(project / "config.yaml")}
    done = hpcgen("render", env=env)
    assert "for supermuc, the site of hpcgen.yaml" in done.stderr
    again = "hpcgen render --site supermuc --stack hpcgen.yaml --partition fat --account pn12ab"
    assert f"made by hpcgen 0.2.0: {again}\n" in done.stdout
    said = hpcgen(*again.split()[1:], env={"HPCGEN_CONFIG": ""})
    assert said.stdout == done.stdout
    job = hpcgen("job", "--partition", "thin", "--account", "asked", env=env).stdout
    assert "--account=asked\n" in job and "--partition=micro" in job


def test_what_is_said_for_one_site_is_not_taken_at_another(project: Path, hpcgen: Command) -> None:
    done = hpcgen("render", "--site", "slurm-cpu", env={"HPCGEN_CONFIG": str(project / "config.yaml")})
    assert "hpcgen render --site slurm-cpu --stack hpcgen.yaml\n" in done.stdout, done.stderr
    other = hpcgen("render", *STACK, env={"HPCGEN_CONFIG": str(project / "config.yaml")})
    assert "hpcgen render --site workstation --stack mpi-hello --engine podman\n" in other.stdout, other.stderr


def test_the_engine_is_that_of_plans_kits_builds_and_starts(project: Path, hpcgen: Command) -> None:
    env = {"HPCGEN_CONFIG": str(project / "config.yaml")}
    assert ", run by podman" in hpcgen("plan", *STACK, env=env).stdout
    assert "\npodman build " in hpcgen("build", *STACK, "--dry-run", env=env).stdout
    assert "podman run" in hpcgen("job", *STACK, env=env).stdout
    assert ", run by docker" in hpcgen("plan", *STACK, "--engine", "docker", env=env).stdout


def test_an_engine_or_partition_that_a_site_lacks_is_told_and_left(project: Path, hpcgen: Command) -> None:
    (project / "config.yaml").write_text("site: workstation\nengine: ch-image\npartition: gpu\n")
    done = hpcgen("plan", *STACK, env={"HPCGEN_CONFIG": str(project / "config.yaml")})
    assert "workstation lacks or forbids the engine ch-image named by your config file" in done.stderr
    assert "workstation has no partition gpu, which your config file names" in done.stderr
    assert ", partition main, format docker, run by docker" in done.stdout


def test_an_engine_that_does_not_exist_is_refused_with_its_file(project: Path, hpcgen: Command) -> None:
    (project / "hpcgen.yaml").write_text(PROJECT + "site: workstation\nengine: podmann\n")
    done = hpcgen("plan")
    assert done.returncode == 3
    assert "hpcgen.yaml: no engine that starts images is called 'podmann'" in done.stderr
    assert "did you mean podman" in done.stderr


def test_defaults_of_a_stack_are_in_no_plan(project: Path, hpcgen: Command) -> None:
    stack = json.loads(hpcgen("plan", "--json").stdout)["stack"]
    assert not {"site", "partition", "engine", "account"} & set(stack)
