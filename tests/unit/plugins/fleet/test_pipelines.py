"""Pipelines: their schemas' validator takes them, one changed plan is one job, and nothing of a fleet is in a shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from hpcgen.plugins.fleet.records import read_lock
from tests.conftest import Command
from tests.unit.builders.test_build import docker
from tests.unit.plugins.fleet.test_fleet import locked_as_planned, write_fleet

SERVICES = {"github": "vendor.github-workflows", "gitlab": "vendor.gitlab-ci"}


def validate(schema: str, *files: Path) -> None:
    """The validator that other projects check their pipelines with, with the schemas that it carries."""
    import check_jsonschema

    done = CliRunner().invoke(check_jsonschema.main, ["--builtin-schema", schema, *map(str, files)])
    assert done.exit_code == 0, done.output


def written(hpcgen: Command, folder: Path, *words: str) -> tuple[Path, dict[str, Any]]:
    """The file that `hpcgen ci` writes, and what is in it."""
    file = folder / "pipeline.yml"
    done = hpcgen("ci", *words, "-o", "pipeline.yml")
    assert done.returncode == 0, done.stderr
    return file, yaml.safe_load(file.read_text())


def job_of(child: dict[str, Any], name: str) -> dict[str, Any]:
    """A job of GitLab's as it is with what it extends: mappings are merged, all else is replaced."""
    own = child[f"build {name}"]
    base = child[own["extends"]]
    return {**base, **own, "variables": {**base.get("variables", {}), **own["variables"]}}


def one_changed(folder: Path) -> None:
    """A fleet of six as it was built, then one of them with another setting."""
    locked_as_planned(write_fleet(folder))
    write_fleet(folder, tf_horovod_workstation="settings: [horovod.cpu_operations=gloo]")


@pytest.mark.parametrize("service", SERVICES)
def test_hpcgen_from_a_folder_of_this_machine_is_no_name_on_an_index(
    service: str, hpcgen: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hpcgen.core.support import extras

    monkeypatch.setattr(extras, "own_requirement", lambda: "")
    write_fleet(tmp_path)
    done = hpcgen("ci", service)
    assert "HPCGEN_REQUIREMENT: hpcgen @ git+https://HOST/PATH@COMMIT" in done.stdout and "hpcgen==" not in done.stdout
    assert "fill in HPCGEN_REQUIREMENT" in done.stderr


CHOICES = [
    (),
    ("--watch", "--cache", ".hpcgen/blocks", "--minutes", "700"),
    ("--runner", "charliecloud=self-hosted,hpc", "--runner", "ubuntu-22.04", "--hpcgen", "hpcgen @ git+https://x/y"),
]


@pytest.mark.parametrize("words", CHOICES)
@pytest.mark.parametrize("service", SERVICES)
def test_the_pipeline_passes_the_validator_of_its_schema(
    hpcgen: Command, tmp_path: Path, service: str, words: tuple[str, ...]
) -> None:
    write_fleet(tmp_path)
    file, _ = written(hpcgen, tmp_path, service, *words)
    validate(SERVICES[service], file)


def test_the_validator_would_say_no(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yml"
    bad.write_text("on: push\njobs: {x: {runs-on: a, steps: [{rum: x}]}}\n")
    with pytest.raises(AssertionError):
        validate(SERVICES["github"], bad)


def test_gitlabs_child_has_one_build_for_one_changed_plan(hpcgen: Command, tmp_path: Path) -> None:
    one_changed(tmp_path)
    file, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
    validate(SERVICES["gitlab"], file)
    builds = [name for name in child if name.startswith("build ")]
    assert builds == ["build tf-horovod-workstation"]
    job = job_of(child, "tf-horovod-workstation")
    assert job["variables"]["HPCGEN_MEMBER"] == "tf-horovod-workstation"
    assert job["artifacts"]["reports"] == {"junit": ".hpcgen/reports/*.xml"}
    assert child["collect"]["when"] == "always"


def test_github_gets_one_entry_of_its_matrix_for_one_changed_plan(hpcgen: Command, tmp_path: Path) -> None:
    one_changed(tmp_path)
    _, workflow = written(hpcgen, tmp_path, "github")
    outputs = run_list_step(workflow, tmp_path)
    assert [member["name"] for member in outputs] == ["tf-horovod-workstation"]
    build = workflow["jobs"]["build"]
    assert build["strategy"] == {
        "fail-fast": False,
        "matrix": {"member": "${{ fromJSON(needs.changed.outputs.members) }}"},
    }
    assert set(re.findall(r"matrix\.member\.(\w+)", json.dumps(build))) <= set(outputs[0])


def test_an_image_for_another_processor_goes_to_a_machine_that_has_it(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(
        "members:\n  - {stack: mpi-hello, site: jupiter}\n  - {stack: mpi-hello, site: workstation}\n"
    )
    _, workflow = written(hpcgen, tmp_path, "github")
    machines = {each["name"]: each["machine"] for each in run_list_step(workflow, tmp_path)}
    assert machines == {"mpi-hello-jupiter": "aarch64", "mpi-hello-workstation": "docker"}
    labels = json.loads(re.search(r"fromJSON\('(.*)'\)\[matrix", workflow["jobs"]["build"]["runs-on"])[1])  # type: ignore[index]
    assert labels["aarch64"] == ["ubuntu-24.04-arm"] and labels["docker"] == ["ubuntu-24.04"]

    file, child = written(hpcgen, tmp_path, "gitlab", "--jobs", "--runner", "big")
    validate(SERVICES["gitlab"], file)
    lost = job_of(child, "mpi-hello-jupiter")["script"]
    assert subprocess.run(["sh", "-ec", "\n".join(lost)], capture_output=True, text=True).returncode == 1
    assert job_of(child, "mpi-hello-workstation")["tags"] == ["big"]
    file, child = written(hpcgen, tmp_path, "gitlab", "--jobs", "--runner", "big", "--runner", "aarch64=arm,hpc")
    validate(SERVICES["gitlab"], file)
    assert job_of(child, "mpi-hello-jupiter")["tags"] == ["arm", "hpc"]


def run_step(workflow: dict[str, Any], job: str, name: str, folder: Path, **variables: str) -> str:
    """Run a step as GitHub does, with a stand-in for docker; what it printed."""
    programs = folder / "bin"
    if not programs.exists():
        programs.mkdir()
        docker(programs)
        (programs / "hpcgen").write_text(f'#!/bin/sh\nexec {sys.executable} -m hpcgen "$@"\n')
        (programs / "hpcgen").chmod(0o755)
    script = folder / "step.sh"
    script.write_text(next(step["run"] for step in workflow["jobs"][job]["steps"] if step.get("name") == name))
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", str(script)],
        cwd=folder,
        env={
            "PATH": f"{programs}:/usr/bin:/bin",
            "GITHUB_OUTPUT": str(folder / "output"),
            "HPCGEN_FLEET": workflow["env"]["HPCGEN_FLEET"],
            "HPCGEN_ENTRY_POINTS": "0",
            "HPCGEN_RECORDS": str(folder / "records"),
            # The hpcgen that is tested, where it is not the one that is installed.
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            **variables,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def run_list_step(workflow: dict[str, Any], folder: Path) -> Any:
    """What the first job says that changed, read as GitHub reads it."""
    if (folder / "fleet.lock").exists():
        (folder / ".hpcgen").mkdir(exist_ok=True)
        (folder / "fleet.lock").rename(folder / ".hpcgen" / "fleet.lock")
    (folder / "output").unlink(missing_ok=True)
    run_step(workflow, "changed", "List the images to build", folder)
    found = re.fullmatch(r"members=(.*)\n", (folder / "output").read_text())
    assert found is not None
    return json.loads(found[1])


def test_the_steps_of_the_workflow_build_publish_and_note_what_changed(hpcgen: Command, tmp_path: Path) -> None:
    """All steps that are ours, in their order; what GitHub itself does between them is left out."""
    one_changed(tmp_path)
    with (tmp_path / "fleet.yaml").open("a") as file:
        file.write("defaults: {test: false}\n")
    _, workflow = written(hpcgen, tmp_path, "github")
    (member,) = run_list_step(workflow, tmp_path)
    values = {"HPCGEN_MEMBER": member["name"], "HPCGEN_FORMAT": member["format"]}
    setup = "echo ready > setup"
    run_step(workflow, "build", "Make the runner ready", tmp_path, HPCGEN_SETUP_DOCKER=setup, **values)
    assert (tmp_path / "setup").exists()
    run_step(workflow, "build", "Build and test", tmp_path, **values)
    (row,) = json.loads(hpcgen("fleet", "--json", "--member", member["name"]).stdout)
    assert row["publish"] in run_step(workflow, "build", "Publish", tmp_path, **values)
    assert f"push {row['publish']}\n" in (tmp_path / "docker.calls").read_text()
    run_step(workflow, "collect", "Merge", tmp_path)
    noted = read_lock(tmp_path / ".hpcgen" / "fleet.lock")
    assert len(noted) == 6
    assert noted[member["name"]].published == row["publish"]
    assert run_list_step(workflow, tmp_path) == []


def test_nothing_changed_is_an_empty_matrix_and_a_child_that_says_so(hpcgen: Command, tmp_path: Path) -> None:
    locked_as_planned(write_fleet(tmp_path))
    file, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
    validate(SERVICES["gitlab"], file)
    assert list(child) == ["nothing changed"]
    _, workflow = written(hpcgen, tmp_path, "github")
    assert run_list_step(workflow, tmp_path) == []
    assert workflow["jobs"]["build"]["if"] == "${{ needs.changed.outputs.members != '[]' }}"
    # The condition of the jobs below compares this very text.
    assert (tmp_path / "output").read_text() == "members=[]\n"


def test_a_member_without_a_plan_fails_in_a_job_of_its_own(hpcgen: Command, tmp_path: Path) -> None:
    locked_as_planned(write_fleet(tmp_path))
    write_fleet(tmp_path, mpi_hello_supermuc="partition: nowhere")
    _, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
    assert "build mpi-hello-supermuc" in child
    _, workflow = written(hpcgen, tmp_path, "github")
    assert run_list_step(workflow, tmp_path) == [{"name": "mpi-hello-supermuc", "format": "", "machine": "docker"}]


def steps_of(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def test_the_workflow_lets_nothing_from_outside_into_a_shell(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    _, workflow = written(hpcgen, tmp_path, "github")
    scripts = [step["run"] for step in steps_of(workflow) if "run" in step]
    assert len(scripts) >= 6
    assert not [script for script in scripts if "${{" in script]


def test_the_workflow_has_least_rights_and_pinned_actions(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    file, workflow = written(hpcgen, tmp_path, "github")
    assert workflow["permissions"] == {"contents": "read"}
    assert not [job for job in workflow["jobs"].values() if "permissions" in job]
    for step in steps_of(workflow):
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", step["uses"])
    assert len(re.findall(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", file.read_text(), re.MULTILINE)) == sum(
        "uses" in step for step in steps_of(workflow)
    )
    (tmp_path / "fleet.yaml").write_text("registry: ghcr.io/me\nmembers: [{stack: mpi-hello, site: supermuc}]\n")
    _, workflow = written(hpcgen, tmp_path, "github")
    rights = {name: job.get("permissions") for name, job in workflow["jobs"].items()}
    write = {"contents": "read", "packages": "write"}
    assert rights == {"changed": {"contents": "read", "packages": "read"}, "build": write, "collect": write}


def test_only_the_branch_publishes_also_where_a_run_is_started_by_hand(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    _, workflow = written(hpcgen, tmp_path, "github", "--branch", "it's")
    (step,) = (each for each in workflow["jobs"]["build"]["steps"] if each.get("name") == "Publish")
    assert step["if"] == "${{ github.event_name != 'pull_request' && github.ref == 'refs/heads/it''s' }}"


@pytest.mark.parametrize("service", SERVICES)
def test_without_a_registry_nothing_is_published(hpcgen: Command, tmp_path: Path, service: str) -> None:
    (tmp_path / "fleet.yaml").write_text("members: [{stack: mpi-hello, site: supermuc}]\n")
    words = [service, "--jobs"] if service == "gitlab" else [service]
    file, _ = written(hpcgen, tmp_path, *words)
    assert "publish" not in file.read_text().replace("tests and publishes", "")


def test_gitlabs_parent_starts_the_child_with_its_own_choices(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    words = ("--runner", "charliecloud=hpc,big", "--image", "singularity=registry.example.org/apptainer:1")
    _, parent = written(hpcgen, tmp_path, "gitlab", *words)
    call = parent["changed"]["script"][-1]
    assert "--runner charliecloud=hpc,big --image singularity=registry.example.org/apptainer:1" in call
    assert parent["images"]["trigger"]["include"] == [{"artifact": ".hpcgen/jobs.yml", "job": "changed"}]
    _, child = written(hpcgen, tmp_path, "gitlab", "--jobs", *words)
    assert job_of(child, "mpi-hello-supermuc")["tags"] == ["hpc", "big"]
    assert job_of(child, "mpi-hello-hlrs-testbed")["image"] == "registry.example.org/apptainer:1"
    assert job_of(child, "mpi-hello-workstation")["variables"]["BUILDAH_ISOLATION"] == "chroot"


@pytest.mark.parametrize("service", SERVICES)
def test_the_shells_of_a_pipeline_are_sound(hpcgen: Command, tmp_path: Path, service: str) -> None:
    write_fleet(tmp_path)
    _, pipeline = written(hpcgen, tmp_path, service)
    if service == "github":
        scripts = [step["run"] for step in steps_of(pipeline) if "run" in step]
    else:
        _, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
        jobs = [*pipeline.values(), *child.values()]
        scripts = ["\n".join(job["script"]) for job in jobs if isinstance(job, dict) and "script" in job]
    shellcheck = Path(sysconfig.get_path("scripts"), "shellcheck")
    for script in scripts:
        words = [str(shellcheck), "-s", "bash", "-"]
        done = subprocess.run(words, input=script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_same_fleet_gives_the_same_bytes(hpcgen_process: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    for words in (("github",), ("gitlab",), ("gitlab", "--jobs")):
        seeds = [hpcgen_process("ci", *words, env={"PYTHONHASHSEED": seed}).stdout for seed in ("1", "2")]
        assert seeds[0] == seeds[1] != ""


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        (("gitlab", "--jobs", "--parts", "2"), 2, "requires -o FILE"),
        (("github", "--image", "x"), 2, "is only for GitLab"),
        (("gitlab", "--runner", "dockre=x"), 3, "does not name a format"),
        (("gitlab", "--fleet", "../fleet.yaml"), 3, "is not a path inside a repository"),
    ],
)
def test_what_makes_no_sense_is_refused(
    hpcgen: Command, tmp_path: Path, words: tuple[str, ...], status: int, told: str
) -> None:
    write_fleet(tmp_path)
    write_fleet(tmp_path.parent)
    done = hpcgen("ci", *words)
    assert (done.returncode, told in done.stderr) == (status, True), done.stderr


def test_collections_of_the_command_line_are_refused(hpcgen: Command, tmp_path: Path, collection: Path) -> None:
    write_fleet(tmp_path)
    done = hpcgen("--collection", str(collection), "ci", "github")
    assert (done.returncode, "collections:" in done.stderr) == (3, True)
