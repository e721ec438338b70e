"""``hpcgen init`` in fourteen projects, one for each kind of file that it reads, two with mistakes.

The whole outputs are in ``golden``; ``--update-golden`` writes them anew.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.conftest import Command

HERE = Path(__file__).parent
LOCKS = HERE.parent / "readers" / "files"
LOCK_OF = {"pylock": "pylock.toml", "uv": "uv.lock", "poetry": "poetry.lock", "pdm": "pdm.lock"}
"""Projects with a lock that the tests of its reader have as well."""
PROJECTS = sorted(each.name for each in (HERE / "files").iterdir())
MISTAKES = {"mistakes-list": 4, "mistakes-table": 2}
SITES = ("lumi-g", "supermuc", "leonardo")


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A copy of one of the projects."""
    name = request.param
    shutil.copytree(HERE / "files" / name, tmp_path / name)
    if name in LOCK_OF:
        shutil.copy(LOCKS / LOCK_OF[name], tmp_path / name)
    # Under its own name a linter would take it for a configuration of ours.
    for each in tmp_path.rglob("pyproject.toml.in"):
        each.rename(each.with_suffix(""))
    return tmp_path / name


@pytest.mark.parametrize("project", PROJECTS, indirect=True)
def test_the_stack_is_the_golden_one(hpcgen: Command, project: Path, request: pytest.FixtureRequest) -> None:
    done = hpcgen("init", project.name)
    assert done.returncode == (3 if project.name in MISTAKES else 0), done.stderr
    text = (project / "hpcgen.yaml").read_text("utf-8")
    golden = HERE / "golden" / f"{project.name}.yaml"
    if request.config.getoption("--update-golden"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")
    assert hpcgen("init", project.name, "--dry-run").stdout == text


@pytest.mark.parametrize("project", sorted({*PROJECTS} - {*MISTAKES}), indirect=True)
def test_the_stack_is_valid_and_planned_at_once(hpcgen: Command, project: Path) -> None:
    hpcgen("init", project.name)
    stack = f"{project.name}/hpcgen.yaml"
    assert hpcgen("check", stack).returncode == 0
    for site in SITES:
        done = hpcgen("plan", "--site", site, "--stack", stack, "--account", "a")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("project", sorted(MISTAKES), indirect=True)
def test_mistakes_are_told_at_once_and_what_is_known_is_written(hpcgen: Command, project: Path) -> None:
    done = hpcgen("init", project.name)
    assert done.returncode == 3
    places = [line for line in done.stderr.splitlines() if line.startswith("hpcgen: error: ")]
    assert len(places) == MISTAKES[project.name] and all(f"{project.name}/" in line for line in places)
    assert hpcgen("plan", "--site", "supermuc", "--stack", f"{project.name}/hpcgen.yaml").returncode != 0


@pytest.mark.parametrize("project", ["torch"], indirect=True)
def test_guesses_are_data(hpcgen: Command, project: Path) -> None:
    found = json.loads(hpcgen("init", project.name, "--json", "--dry-run").stdout)
    assert found["file"] is None and found["stack"]["blocks"]["pytorch"] == {}
    guess = next(each for each in found["guesses"] if each["path"] == ["blocks", "pytorch"])
    assert guess["where"] == {"file": "requirements.txt", "line": 2, "column": 1}
    options = {each["words"][0]: each["words"][1] for each in found["options"]}
    assert options == {
        "--nodes": "2",
        "--ranks-per-node": "4",
        "--gpus": "4",
        "--time": "26:30:00",
        "--account": "pn00ab",
    }
    assert "0000" not in json.dumps(found), "the value of a variable that may be a secret"


@pytest.mark.parametrize("project", ["make"], indirect=True)
def test_a_stack_that_is_there_stays(hpcgen: Command, project: Path) -> None:
    own = "name: mine\ntitle: t\nblocks: {}\nrun: {command: [a]}\n"
    (project / "hpcgen.yaml").write_text(own, "utf-8")
    done = hpcgen("init", project.name)
    assert done.returncode == 7 and "-name: mine" in done.stderr and "+name: make" in done.stderr
    assert (project / "hpcgen.yaml").read_text("utf-8") == own
    done = hpcgen("init", project.name, "--force")
    kept = project / ".hpcgen" / "init" / "hpcgen.yaml.old"
    assert done.returncode == 0 and f"what was there is in {kept.relative_to(project.parent)}" in done.stderr
    assert kept.read_text("utf-8") == own and (project / ".hpcgen" / ".gitignore").read_text("utf-8") == "*\n"
    assert "already up to date" in hpcgen("init", project.name).stderr


@pytest.mark.parametrize("project", ["make"], indirect=True)
def test_lines_of_the_users_own_stay(hpcgen: Command, project: Path) -> None:
    hpcgen("init", project.name)
    file = project / "hpcgen.yaml"
    own = file.read_text("utf-8").replace("title: ", "title: Our ").replace("\nrun:", "\nrun:\n  binds: [data:/data]")
    file.write_text(own, "utf-8")
    done = hpcgen("init", project.name, "--force")
    assert "already up to date, including your own lines" in done.stderr and file.read_text("utf-8") == own
    (project / "requirements.txt").write_text("numpy\n", "utf-8")
    done = hpcgen("init", project.name)
    assert done.returncode == 7 and "python_packages" in done.stderr and "-  binds" not in done.stderr, done.stderr
    assert "--force makes these changes" in done.stderr and file.read_text("utf-8") == own
    assert hpcgen("init", project.name, "--force").returncode == 0
    text = file.read_text("utf-8")
    assert "title: Our " in text and "binds: [data:/data]" in text and "python_packages" in text
    assert hpcgen("check", str(file)).returncode == 0
    assert "already up to date" in hpcgen("init", project.name).stderr


@pytest.mark.parametrize("project", ["make"], indirect=True)
def test_lines_that_both_changed_stay_and_are_named(hpcgen: Command, project: Path) -> None:
    hpcgen("init", project.name)
    file = project / "hpcgen.yaml"
    file.write_text(file.read_text("utf-8").replace("name: make\n", "name: ours\n"), "utf-8")
    moved = project.rename(project.with_name("other"))
    done = hpcgen("init", moved.name)
    assert "hpcgen.yaml:4: your own lines stay; init has name: other" in done.stderr, done.stderr
    assert "name: ours" in (moved / "hpcgen.yaml").read_text("utf-8")


@pytest.mark.parametrize("project", ["cmake"], indirect=True)
def test_the_next_steps_have_the_size_of_the_job(hpcgen: Command, project: Path) -> None:
    done = hpcgen("init", project.name)
    assert done.stderr.splitlines()[-3:] == [
        "hpcgen:   hpcgen plan --site NAME",
        "hpcgen:   hpcgen build --site NAME",
        "hpcgen:   hpcgen submit --nodes 4 --ranks-per-node 48 --time 01:30:00",
    ]


@pytest.mark.parametrize(
    ("directives", "said"),
    [
        (
            '#BSUB -n 32 -R "span[ptile=16]"\n#BSUB -W 1:30\n#BSUB -J "many[1-10]%5"',
            "--nodes 2 --ranks-per-node 16 --time 01:30:00 --array 10%5",
        ),
        ("#BSUB -nnodes 2\n#BSUB -W 90", "--nodes 2 --time 01:30:00"),
        (
            '#PJM -L "node=2,elapse=0:10:00"\n#PJM --mpi proc=8\n#PJM --omp thread=12',
            "--nodes 2 --ranks-per-node 4 --threads 12 --time 00:10:00",
        ),
        ("#SBATCH --ntasks=8 --ntasks-per-node=4", "--nodes 2 --ranks-per-node 4"),
    ],
)
@pytest.mark.parametrize("project", ["cmake"], indirect=True)
def test_jobs_are_as_large_as_their_scripts_say(hpcgen: Command, project: Path, directives: str, said: str) -> None:
    (script,) = (each for each in project.rglob("*") if each.is_file() and "#SBATCH" in each.read_text("utf-8"))
    rest = [line for line in script.read_text("utf-8").splitlines() if not line.startswith("#")]
    script.write_text("\n".join(["#!/bin/bash", directives, *rest, ""]), "utf-8")
    done = hpcgen("init", project.name)
    assert done.stderr.splitlines()[-1] == f"hpcgen:   hpcgen submit {said}", done.stderr


def test_a_folder_with_nothing_known_says_what_is_read(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/Dockerfile").write_text("FROM debian\n", "utf-8")
    done = hpcgen("init", "p")
    assert done.returncode == 3 and not (tmp_path / "p/hpcgen.yaml").exists()
    assert "nothing in this folder" in done.stderr and "Dockerfile says nothing" in done.stderr
    assert "CMakeLists.txt" in done.stderr and "hpcgen stack new" in done.stderr
    assert hpcgen("init", "none").returncode == 3
    assert hpcgen("init", "p", "-o", "../x.yaml").returncode == 2


def test_a_file_of_which_nothing_can_be_read_is_named_all_the_same(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("_libgcc_mutex=0.1=main\n")
    (tmp_path / "train.py").write_text("import numpy\n")
    assert hpcgen("init").returncode == 3
    assert "files: [requirements.txt]" in (tmp_path / "hpcgen.yaml").read_text()
    assert hpcgen("plan", "--site", "workstation").returncode == 3
