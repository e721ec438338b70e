"""A stack that lies in the folder of a project, as ``hpcgen.yaml``: no command asks for it by name."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest

import hpcgen as hpcgen_library
from hpcgen.builders.records.store import save
from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.project_stack import changed_since
from hpcgen.core.model.record import BuildRecord, BuiltImage
from tests.conftest import Command

STACK = """\
name: project
title: A project of somebody's
blocks:
  mpi4py: {}
  mpi: {}
run:
  command: [python3, first.py]
  environment: {OURS: "1"}
"""


@pytest.fixture
def hpcgen(hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with a records folder of the test's own, and an engine that is asked whether it is there."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text("#!/bin/sh\necho 28.0\n")
    docker.chmod(0o755)
    own = {"HPCGEN_RECORDS": str(tmp_path / "records"), "PATH": f"{docker.parent}:{os.environ['PATH']}"}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return partial(hpcgen, env=own)


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    file = tmp_path / "hpcgen.yaml"
    file.write_text(STACK)
    return file


def build(hpcgen: Command, folder: Path, site: str, day: int, built_in: Path | None = None) -> Path:
    """What is left of a build: an image of the folder's stack, unpacked, with its kit, and its record."""
    image = folder / "images" / f"{site}-{day}"
    for inside in ("opt/hpcgen", "ch"):
        (image / inside).mkdir(parents=True)
    done = hpcgen("render", "--site", site, "-o", str(image / "opt/hpcgen/kit"))
    assert done.returncode == 0, done.stderr
    record = BuildRecord(
        id=f"{day:08d}-project-{site}",
        hpcgen="0.2.0",
        started=f"2026-11-{day:02d}T10:00:00Z",
        site=site,
        stack="project",
        partition="main",
        format="charliecloud",
        content="ab" * 32,
        engine="charliecloud",
        folder=str(built_in or folder),
        image=BuiltImage(kind="directory", name=str(image)),
    )
    save(record)
    return image


def test_it_is_planned_where_no_stack_is_named(hpcgen: Command, stack: Path) -> None:
    named = hpcgen("plan", "--site", "workstation", "--stack", "hpcgen.yaml")
    assert (found := hpcgen("plan", "--site", "workstation")).stdout == named.stdout, found.stderr
    assert "project for workstation" in found.stdout
    assert "--stack hpcgen.yaml" in hpcgen("render", "--site", "workstation").stdout
    built = hpcgen("build", "--site", "workstation", "--engine", "docker", "--dry-run")
    assert "project:workstation" in built.stdout, built.stderr


@pytest.mark.parametrize("words", [["plan"], ["render"], ["contract"], ["lock"], ["build"], ["job"]])
def test_without_it_commands_say_that_it_is_not_there(hpcgen: Command, words: list[str]) -> None:
    done = hpcgen(*words, "--site", "workstation")
    assert done.returncode == 2
    assert "there is no hpcgen.yaml in this folder" in done.stderr


def test_a_build_of_it_needs_a_site_and_a_kit_stays_a_kit(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    assert "plan hpcgen.yaml for which site?" in hpcgen("build").stderr
    assert hpcgen("render", "--site", "workstation", "-o", "kit").returncode == 0
    stack.write_text("name: [broken")
    assert "project:workstation" in hpcgen("build", "kit", "--engine", "docker", "--dry-run").stdout


def test_the_image_that_was_built_last_there_is_started(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    older = build(hpcgen, tmp_path, "workstation", 1)
    newer = build(hpcgen, tmp_path, "workstation", 2)
    cluster = build(hpcgen, tmp_path, "supermuc", 1)
    build(hpcgen, tmp_path, "workstation", 9, built_in=tmp_path / "elsewhere")
    done = hpcgen("job")
    assert done.returncode == 0, done.stderr
    assert f"{newer}: built last in this folder, for workstation (record 00000002)" in done.stderr
    assert str(newer) in done.stdout and str(older) not in done.stdout and "first.py" in done.stdout
    assert str(cluster) in hpcgen("job", "--site", "supermuc").stdout


def test_what_the_stack_says_now_decides_how_it_is_started(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    build(hpcgen, tmp_path, "workstation", 1)
    before = hpcgen("job")
    stack.write_text(STACK.replace("first.py", "second.py").replace('"1"', '"two"'))
    after = hpcgen("job")
    assert "second.py" in after.stdout and "first.py" not in after.stdout
    assert "OURS=two" in after.stdout.replace("'", "")
    assert "changed since that was built" not in before.stderr + after.stderr
    stack.write_text(STACK.replace("mpi4py: {}", 'mpi4py: {version: ">=4"}'))
    assert "changed since that was built: the block mpi4py (build" in hpcgen("job").stderr


def test_the_file_that_changed_is_named(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    """Of many files in a folder; those of jobs are not among them."""
    (tmp_path / "code").mkdir()
    for name in ("one.py", "two.py"):
        (tmp_path / "code" / name).write_text("pass\n")
        os.utime(tmp_path / "code" / name, (1, 1))
    stack.write_text(STACK + "copy: [{from: code, to: /app}]\n")
    build(hpcgen, tmp_path, "workstation", 1)
    (tmp_path / "code" / ".hpcgen" / "jobs").mkdir(parents=True)
    (tmp_path / "code" / ".hpcgen" / "jobs" / "output").write_text("of a job")
    assert "changed since" not in hpcgen("job").stderr
    (tmp_path / "code" / "two.py").write_text("print()\n")
    assert "warning: changed since that was built: code/two.py (build it again" in hpcgen("job").stderr


def test_a_change_is_planned_for_a_site_that_is_named(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    """An image that was built there has nothing to do with it."""
    build(hpcgen, tmp_path, "workstation", 1)
    done = hpcgen("job", "--set", "mpi4py.install=wheel")
    assert done.returncode == 2 and "plan hpcgen.yaml for which site?" in done.stderr
    assert "no image was built" not in done.stderr


def test_without_an_image_it_is_said_what_to_do(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    for words in (["run"], ["submit"], ["test"], ["job"]):
        done = hpcgen(*words)
        assert done.returncode == 2
        assert "no image was built from hpcgen.yaml in this folder yet: hpcgen build --site NAME" in done.stderr
    image = build(hpcgen, tmp_path, "workstation", 1)
    image.rename(tmp_path / "away")
    gone = hpcgen("job")
    assert f"{image}, the last image built here, no longer exists" in gone.stderr
    assert "hpcgen build --site workstation" in gone.stderr


def test_what_changed_since_the_last_build_is_told(hpcgen: Command, stack: Path, tmp_path: Path) -> None:
    assert "no image was built from hpcgen.yaml in this folder yet" in hpcgen("diff").stderr
    build(hpcgen, tmp_path, "workstation", 1)
    assert hpcgen("diff").returncode == 0
    stack.write_text(STACK.replace("first.py", "second.py").replace("  mpi: {}", "  mpi: {}\n  hwloc: {}"))
    done = hpcgen("diff")
    assert done.returncode == 1
    assert "the recipe project changed" in done.stdout and "python3 first.py → python3 second.py" in done.stdout
    assert "stack project asks for hwloc" in done.stdout.partition("blocks")[2]


def test_a_changed_list_of_packages_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    stack = "{name: p, title: t, blocks: {python_packages: {options: {files: [requirements.txt]}}}, run: {mpi: false, "
    Path("hpcgen.yaml").write_text(stack + "command: [python3, a.py]}}", "utf-8")
    Path("requirements.txt").write_text("h5py==3.11.0\n", "utf-8")
    plan = hpcgen_library.plan("workstation", "hpcgen.yaml", catalog=Catalog())
    assert changed_since(Catalog(), plan) == ""
    Path("requirements.txt").write_text("h5py==3.12.1\n", "utf-8")
    assert changed_since(Catalog(), plan) == "requirements.txt"


def test_it_is_checked_as_a_stack_whatever_it_says(hpcgen: Command, stack: Path) -> None:
    stack.write_text("name: p\ntitle: t\nextends: mpi-hello\nsite: workstation\n")
    assert "hpcgen.yaml: ok" in hpcgen("check", "hpcgen.yaml").stderr
    stack.write_text("name: p\ntitle: t\nextends: mpi-hello\nacount: pn12ab\n")
    assert "did you mean account?" in hpcgen("check", "hpcgen.yaml").stderr


def test_a_preferred_engine_gives_way_for_an_image_that_it_cannot_start(
    hpcgen: Command, stack: Path, tmp_path: Path
) -> None:
    build(hpcgen, tmp_path, "workstation", 1)
    stack.write_text(f"{STACK}engine: podman\n")
    done = hpcgen("job")
    assert done.returncode == 0, done.stderr
    assert "ch-run" in done.stdout and "podman" not in done.stdout
    assert "podman run" in hpcgen("job", "--site", "workstation", "--stack", "hpcgen.yaml").stdout
