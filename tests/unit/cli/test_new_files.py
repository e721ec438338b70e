"""`block new` and `stack new` write a start that `check` is content with and that can be planned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command


@pytest.mark.parametrize("name", ["petsc", "my-tool", "7zip", "a.b_c"])
def test_a_new_block_passes_check_and_is_rendered(hpcgen: Command, collection: Path, name: str) -> None:
    done = hpcgen("block", "new", name, "-o", str(collection))
    assert done.returncode == 0, done.stderr
    blocks = collection / "building_blocks"
    checked = hpcgen("--trust-collections", "check", str(collection))
    assert checked.returncode == 0, checked.stderr
    assert sorted(path.name for path in blocks.glob("*.*")) == [f"{name}.py", f"{name}.yaml"]
    words = ["--collection", str(collection), "render", "--site", "workstation", "--stack", "mpi-hello", "--add", name]
    rendered = hpcgen(*words)
    assert f"mkdir -p /opt/{name}/bin" in rendered.stdout, rendered.stderr


def test_a_new_stack_passes_check_and_is_planned(hpcgen: Command, collection: Path) -> None:
    file = collection / "recipes" / "ours.yaml"
    assert hpcgen("stack", "new", "ours", "-o", str(file)).returncode == 0
    assert hpcgen("--trust-collections", "check", str(file)).returncode == 0
    planned = hpcgen("--collection", str(collection), "plan", "--site", "workstation", "--stack", "ours")
    assert planned.returncode == 0, planned.stderr
    assert hpcgen("stack", "new", "ours").stdout == file.read_text()


def test_the_folders_of_a_new_collection_are_made(hpcgen: Command, tmp_path: Path) -> None:
    assert hpcgen("block", "new", "petsc", "-o", "ours").returncode == 0
    assert hpcgen("stack", "new", "ours", "-o", "ours/recipes/ours.yaml").returncode == 0
    assert hpcgen("site", "new", "ours", "-o", "ours/site_profiles/ours.yaml").returncode == 0
    found = {path.relative_to(tmp_path / "ours").as_posix() for path in (tmp_path / "ours").rglob("*.*")}
    assert found == {
        "building_blocks/petsc.py",
        "building_blocks/petsc.yaml",
        "recipes/ours.yaml",
        "site_profiles/ours.yaml",
    }


def test_no_file_that_exists_is_replaced(hpcgen: Command, collection: Path) -> None:
    table = collection / "building_blocks" / "petsc.yaml"
    table.write_text("mine")
    done = hpcgen("block", "new", "petsc", "-o", str(collection))
    assert (done.returncode, table.read_text()) == (7, "mine")
    assert "petsc.yaml already exists" in done.stderr
    assert not table.with_suffix(".py").exists()
    assert hpcgen("stack", "new", "s", "-o", str(table)).returncode == 7


@pytest.mark.parametrize("kind", ["block", "stack"])
def test_a_name_that_is_none_is_refused(hpcgen: Command, kind: str) -> None:
    done = hpcgen(kind, "new", "../x")
    assert done.returncode == 3
    assert f"NAME: '../x' cannot be a {kind}'s name" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("site", "new", "aur"),
        ("stack", "new", "ours"),
        ("job", "--site", "workstation", "--stack", "mpi-hello"),
        ("graph", "--site", "workstation", "--stack", "mpi-hello"),
    ],
    ids=lambda words: words[0],
)
def test_a_dash_is_stdout(hpcgen: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    done = hpcgen(*words, "-o", "-")
    assert (done.returncode, done.stdout) == (0, hpcgen(*words).stdout)
    assert list(tmp_path.glob("*-*")) == []
