"""What a release says about itself, in the places that have to agree: .ci/check-release tries the archives."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORKFLOW = ROOT / ".github" / "workflows" / "tests.yml"


def test_the_workflow_passes_the_validator() -> None:
    words = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOW]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_workflow_runs_the_commands_of_the_readme() -> None:
    section = (ROOT / "README.md").read_text("utf-8").split("## Two commands")[1]
    commands = section.split("```sh\n")[1].split("```")[0].splitlines()
    steps = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]["readme"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == commands


def test_the_same_pythons_are_named_everywhere() -> None:
    said = metadata("hpcgen").get_all("Classifier") or []
    pythons = [each.split(" :: ")[-1] for each in said if re.search(r":: 3\.\d+$", each)]
    jobs = yaml.safe_load(WORKFLOW.read_text("utf-8"))["jobs"]
    assert jobs["readme"]["strategy"]["matrix"]["python"] == pythons
    assert sorted(jobs["release"]["steps"][1]["with"]["python-version"].split()) == pythons
    script = (ROOT / ".ci" / "check-release").read_text("utf-8")
    assert f"minors=({' '.join(each.split('.')[1] for each in pythons)})" in script
    assert metadata("hpcgen")["Requires-Python"] == f">={pythons[0]}"


def test_the_tests_that_meet_the_lowest_versions_exist() -> None:
    script = (ROOT / ".ci" / "check-release").read_text("utf-8")
    named = script.split("\ntests=(")[1].split(")")[0].split()
    assert len(named) > 10
    assert [name for name in named if not (ROOT / "tests" / "unit" / name).exists()] == []


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("citation-file-format", "CITATION.cff"),
        ("github-issue-config", ".github/ISSUE_TEMPLATE/config.yml"),
        ("github-issue-forms", ".github/ISSUE_TEMPLATE/[!c]*.yml"),
    ],
)
def test_what_platforms_read_passes_the_validator(schema: str, files: str) -> None:
    found = sorted(ROOT.glob(files))
    assert found
    words = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *found]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_readme_links_to_is_shipped() -> None:
    linked = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / "README.md").read_text("utf-8"))
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["sdist"]
    names = [*shipped["include"], *(path.name for path in ROOT.glob("*.md"))]
    assert [each for each in linked if each.split("/")[0] not in names] == []
