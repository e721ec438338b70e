"""Pipelines and arrays of large fleets: in as many parts as the service takes, with one text for all jobs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpcgen.plugins.fleet.pipelines import gitlab
from hpcgen.plugins.fleet.pipelines.github import MATRIX
from tests.conftest import Command
from tests.unit.plugins.fleet.test_fleet import BUILDING_SITE
from tests.unit.plugins.fleet.test_large_fleets import write_members
from tests.unit.plugins.fleet.test_pipelines import SERVICES, job_of, run_step, validate


def written(hpcgen: Command, folder: Path, *words: str) -> dict[str, Any]:
    done = hpcgen("ci", *words, "-o", "pipeline.yml")
    assert done.returncode == 0, done.stderr
    data: dict[str, Any] = yaml.safe_load((folder / "pipeline.yml").read_text())
    return data


def test_github_gets_no_matrix_of_more_than_256_jobs(hpcgen: Command, tmp_path: Path) -> None:
    write_members(tmp_path, 600)
    workflow = written(hpcgen, tmp_path, "github")
    validate(SERVICES["github"], tmp_path / "pipeline.yml")
    builds = [name for name in workflow["jobs"] if name.startswith("build")]
    assert builds == ["build", "build-2", "build-3"]
    assert workflow["jobs"]["collect"]["needs"] == ["changed", *builds]
    run_step(workflow, "changed", "List the images to build", tmp_path)
    lines = (tmp_path / "output").read_text().splitlines()
    outputs = {name: json.loads(value) for name, _, value in (line.partition("=") for line in lines)}
    assert [len(each) for each in outputs.values()] == [256, 256, 88]
    assert [each["name"] for part in outputs.values() for each in part] == [f"m{number:05d}" for number in range(600)]
    for job, output in zip(builds, outputs, strict=True):
        told = workflow["jobs"][job]
        assert told["strategy"]["matrix"] == {"member": f"${{{{ fromJSON(needs.changed.outputs.{output}) }}}}"}
        assert told["if"] == f"${{{{ needs.changed.outputs.{output} != '[]' }}}}"
        assert told["steps"] == workflow["jobs"]["build"]["steps"]
        assert workflow["jobs"]["changed"]["outputs"][output] == f"${{{{ steps.list.outputs.{output} }}}}"


def test_the_text_of_githubs_steps_is_written_once(hpcgen: Command, tmp_path: Path) -> None:
    write_members(tmp_path, 10)
    small = hpcgen("ci", "github").stdout
    write_members(tmp_path, 16 * 256)
    large = hpcgen("ci", "github").stdout
    assert large.count("hpcgen build --fleet") == 1
    assert len(large) - len(small) < 15 * 600
    assert "steps: &steps\n" in large and large.count("steps: *steps\n") == 15
    assert "&steps" not in small


def test_a_fleet_that_outgrew_its_workflow_is_built_in_several_runs(hpcgen: Command, tmp_path: Path) -> None:
    write_members(tmp_path, 10)
    workflow = written(hpcgen, tmp_path, "github")
    write_members(tmp_path, MATRIX + 44)
    said = run_step(workflow, "changed", "List the images to build", tmp_path)
    assert "44 members must wait for the next run" in said
    assert "hpcgen ci github" in said
    assert (tmp_path / "output").read_text().count('"name"') == MATRIX
    # 1 MB is what all outputs of one job may have, in UTF-16.
    write_members(tmp_path, 5000, ", format: charliecloud")
    lines = hpcgen("ci", "github", "--jobs", "--parts", "99").stdout
    assert len(lines.encode("utf-16")) < 1_000_000
    assert lines.count("\n") == 16


def test_gitlabs_jobs_share_their_text_and_no_child_is_too_large(
    hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # GitLab's limit is 2 MB of objects, and the text of a thousand jobs is a fifth of that: here of a fifth as many.
    assert gitlab.CHILD == 1000
    monkeypatch.setattr(gitlab, "CHILD", 200)
    write_members(tmp_path, 500)
    parent = written(hpcgen, tmp_path, "gitlab")
    validate(SERVICES["gitlab"], tmp_path / "pipeline.yml")
    files = parent["changed"]["artifacts"]["paths"]
    assert files == [".hpcgen/jobs.yml", ".hpcgen/jobs-2.yml", ".hpcgen/jobs-3.yml"]
    started = [parent[name]["trigger"]["include"][0]["artifact"] for name in ("images", "images-2", "images-3")]
    assert started == files
    assert " --parts 3 " in parent["changed"]["script"][-1]
    (tmp_path / ".hpcgen").mkdir()
    done = hpcgen("ci", "gitlab", "--jobs", "--parts", "3", "-o", ".hpcgen/jobs.yml")
    assert done.returncode == 0, done.stderr
    names = []
    for file in files:
        validate(SERVICES["gitlab"], tmp_path / file)
        text = (tmp_path / file).read_text()
        child = yaml.safe_load(text)
        builds = [name.removeprefix("build ") for name in child if name.startswith("build ")]
        names += builds
        assert len(builds) <= 200 and len(text) < 40_000
        assert job_of(child, builds[0])["variables"]["HPCGEN_MEMBER"] == builds[0]
        # They write one cache, in turns.
        assert child["collect"]["resource_group"].startswith("hpcgen-fleet")
    assert names == [f"m{number:05d}" for number in range(500)]


SBATCH = """#!/bin/sh
cat "$2" >> submitted
echo $(($(grep -c '^#!' submitted) + 100))
"""


def test_an_array_is_cut_where_the_batch_system_ends(hpcgen: Command, tmp_path: Path, collection: Path) -> None:
    profile = collection / "site_profiles" / "mine.yaml"
    profile.write_text(BUILDING_SITE)
    write_members(tmp_path, 1500)
    words = ("--collection", "collection", "build", "--all", "--array", "--on", "mine", "--account", "abc")
    done = hpcgen(*words, "--dry-run")
    # Slurm's own default: numbers to 1000.
    assert "#SBATCH --array=0-1000\n" in done.stdout and "#SBATCH --array=0-498\n" in done.stdout
    assert "--dependency" not in done.stdout
    profile.write_text(f"{BUILDING_SITE}scheduler: {{max_array_size: 500}}\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sbatch", "scontrol"):
        (programs / name).write_text(SBATCH)
        (programs / name).chmod(0o755)
    done = hpcgen(*words, "--limit", "4", env={"PATH": f"{programs}:/usr/bin:/bin"})
    assert (done.returncode, done.stdout.split()) == (0, ["101", "102", "103"]), done.stderr
    scripts = (tmp_path / "submitted").read_text().split("#!")[1:]
    assert [script.count("#SBATCH --array=0-499%4\n") for script in scripts] == [1, 1, 1]
    waits = [[line for line in script.splitlines() if "--dependency" in line] for script in scripts]
    assert waits == [[], ["#SBATCH --dependency=afterany:101"], ["#SBATCH --dependency=afterany:102"]]
    members = [line.strip() for script in scripts for line in script.splitlines() if line.startswith("    m")]
    assert members == [f"m{number:05d}" for number in range(1500)]
    names = sorted(path.name for path in tmp_path.glob(".hpcgen/jobs/*/*.slurm"))
    assert names == ["build.slurm"] * 3
