"""What is said when a pipeline is written, what is left out of it, and what it does every week."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import Command
from tests.unit.plugins.fleet.test_fleet import locked_as_planned, write_fleet
from tests.unit.plugins.fleet.test_pipelines import SERVICES, job_of, steps_of, validate, written


def test_what_could_come_to_mean_another_hpcgen_is_said(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    commit = "0123456789" * 4
    for requirement, told in (
        ("hpcgen==0.2.0", "by name"),
        ("hpcgen @ git+https://example.org/hpcgen@main", "neither a commit nor a hash"),
        (f"hpcgen @ git+https://example.org/hpcgen@{commit}", ""),
        (f"hpcgen[lock] @ https://example.org/hpcgen.whl#sha256={'0' * 64}", ""),
    ):
        said = hpcgen("ci", "github", "--hpcgen", requirement).stderr
        assert (told in said, "--hpcgen" in said) == (True, bool(told)), said


def test_a_wheel_of_the_repository_is_installed_with_its_hash(hpcgen: Command, tmp_path: Path) -> None:
    write_fleet(tmp_path)
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/hpcgen-1+a b-py3-none-any.whl").write_bytes(b"wheel")
    done = hpcgen("ci", "github", "--hpcgen", "wheels/hpcgen-1+a b-py3-none-any.whl")
    told = yaml.safe_load(done.stdout)["env"]["HPCGEN_REQUIREMENT"]
    digest = hashlib.sha256(b"wheel").hexdigest()
    assert told == f"file:wheels/hpcgen-1+a%20b-py3-none-any.whl#sha256={digest}"
    assert "--hpcgen" not in done.stderr
    assert hpcgen("ci", "github", "--hpcgen", "wheels/other.whl").returncode == 3
    assert hpcgen("ci", "github", "--hpcgen", str(tmp_path / "wheels/other.whl")).returncode == 3


PINNED = ("--hpcgen", f"hpcgen @ git+https://example.org/hpcgen@{'0' * 40}")


def write_members(folder: Path, *members: str) -> Path:
    file = folder / "fleet.yaml"
    file.write_text("members:\n" + "".join(f"  - {{stack: mpi-hello, {each}}}\n" for each in members))
    return file


def test_members_that_no_machine_of_the_service_builds_are_said(hpcgen: Command, tmp_path: Path) -> None:
    write_members(
        tmp_path,
        "site: jupiter",
        "site: hlrs-testbed, name: sif",
        "site: workstation, name: by-docker, engine: docker",
        "site: workstation, name: by-buildah, engine: buildah",
    )
    said = hpcgen("ci", "gitlab").stderr
    assert "mpi-hello-jupiter: for aarch64, and no runner is named" in said
    assert "sif: debian:12 has no engine for singularity" in said
    assert "by-docker: debian:12 has buildah, not docker" in said and "by-buildah" not in said
    words = ("--runner", "aarch64=arm", "--image", "singularity=example.org/a:1", "--runner", "docker=big")
    assert hpcgen("ci", "gitlab", *PINNED, *words).stderr.count("warning") == 0
    said = hpcgen("ci", "github").stderr
    assert "has no engine" not in said and "by-docker" not in said and "no runner is named" not in said
    write_members(tmp_path, "site: hlrs-testbed, name: sif, engine: singularity", "site: supermuc, partition: no")
    said = hpcgen("ci", "github").stderr
    assert "sif: ubuntu-24.04 has apptainer, not singularity" in said
    assert "mpi-hello-supermuc" in said


def test_tests_that_need_the_sites_mpi_are_left_out_and_that_is_said(hpcgen: Command, tmp_path: Path) -> None:
    file = write_members(
        tmp_path,
        "site: supermuc",
        "site: supermuc, name: here, test_site: workstation",
        "site: supermuc, name: never, test: false",
        "site: workstation",
    )
    said = hpcgen("ci", "gitlab", *PINNED).stderr
    assert "note: mpi-hello-supermuc: no tests" in said and "here" not in said
    _, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
    assert "--skip-site-tests" in "".join(job_of(child, "mpi-hello-supermuc")["script"])
    # Built in a pipeline, it does not count as changed there because it was not tested.
    (tmp_path / "pipeline.yml").unlink()
    locked_as_planned(file, tested=False)
    _, child = written(hpcgen, tmp_path, "gitlab", "--jobs")
    assert [name for name in child if name.startswith("build ")] == ["build here", "build mpi-hello-workstation"]
    changed = json.loads(hpcgen("fleet", "--changed", "--json").stdout)
    assert [each["name"] for each in changed] == ["mpi-hello-supermuc", "here", "mpi-hello-workstation"]


@pytest.mark.parametrize("service", SERVICES)
def test_each_job_ends_and_a_folder_of_the_checkout_is_kept_by_the_cache(
    service: str, hpcgen: Command, tmp_path: Path
) -> None:
    write_fleet(tmp_path)
    jobs = ("--jobs",) if service == "gitlab" else ()
    for store, kept in ((".hpcgen/blocks", True), ("/scratch/blocks", False), ("docker://example.org/blocks", False)):
        file, pipeline = written(hpcgen, tmp_path, service, *jobs, "--cache", store, "--minutes", "70")
        assert ('--cache "$HPCGEN_STORE"' in file.read_text(), store in file.read_text()) == (True, True)
        if service == "github":
            assert [job["timeout-minutes"] for job in pipeline["jobs"].values()] == [30, 70, 30]
            used = [step["with"]["path"] for step in steps_of(pipeline) if "cache/" in step.get("uses", "")]
            assert (store in used) == kept
        else:
            job = job_of(pipeline, "mpi-hello-workstation")
            assert (job["timeout"], job.get("cache", {}).get("paths")) == ("70 minutes", [store] if kept else None)
            assert (pipeline["collect"]["timeout"], job["retry"]["max"]) == ("30 minutes", 2)


HPCGEN = """#!/bin/sh
echo "$1 $*" >> calls
case $1 in
  affected) echo "what is affected"; exit ${AFFECTED:-0} ;;
  tables) echo "what is newer"; exit ${TABLES:-0} ;;
esac
"""
CURL = """#!/bin/sh
for word; do case $word in *.zip) cp empty.zip "$word" 2> /dev/null ;; esac; done
cat > /dev/null
echo "$*" >> calls
echo '[{"iid": 7}]'
"""


@pytest.mark.parametrize("service", SERVICES)
def test_every_week_an_issue_is_opened_if_there_is_something_to_do(
    service: str, hpcgen: Command, tmp_path: Path
) -> None:
    """The scripts run as they are; hpcgen, curl and gh only say what they were asked, and how they ended."""
    write_fleet(tmp_path)
    file, pipeline = written(hpcgen, tmp_path, service, "--watch")
    validate(SERVICES[service], file)
    if service == "github":
        job = pipeline["jobs"]["watch"]
        assert (job["if"], pipeline["jobs"]["changed"]["if"]) == (
            "${{ github.event_name == 'schedule' }}",
            "${{ github.event_name != 'schedule' }}",
        )
        scripts = [step["run"] for step in job["steps"] if step.get("name") in ("Ask", "Open an issue")]
    else:
        assert [pipeline[name]["rules"][0] for name in ("watch", "changed", "images")] == [
            {"if": '$CI_PIPELINE_SOURCE == "schedule"'},
            *[{"if": '$CI_PIPELINE_SOURCE == "schedule"', "when": "never"}] * 2,
        ]
        retried = pipeline["watch"]["script"][0]
        scripts = ["\n".join([retried, *pipeline["watch"]["script"][-2:]])]
    programs = tmp_path / "bin"
    programs.mkdir()
    python = f'#!/bin/sh\n[ "$2" != pip ] || exit 0\nexec {sys.executable} "$@"\n'
    gh = '#!/bin/sh\necho "gh $*" >> calls\n'
    for name, text in (("hpcgen", HPCGEN), ("curl", CURL), ("gh", gh), ("python3", python)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (tmp_path / "empty.zip").write_bytes(b"PK\x05\x06" + bytes(18))

    def week(**env: str) -> tuple[int, str]:
        (tmp_path / "calls").write_text("")
        own = {"PATH": f"{programs}:{os.environ['PATH']}", "HPCGEN_FLEET": "fleet.yaml", "HPCGEN_TITLE": "it"}
        own |= {"CI_API_V4_URL": "https://example.org", "CI_PROJECT_ID": "3", "HPCGEN_ISSUE_TOKEN": "secret", **env}
        for script in scripts:
            words = ["bash", "-e", "-o", "pipefail", "-c", script]
            done = subprocess.run(
                words, cwd=tmp_path, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
            )
            if done.returncode:
                return done.returncode, done.stderr
        return 0, (tmp_path / "calls").read_text()

    opened = "gh issue create" if service == "github" else "issues/7"
    for env, there in (
        ({}, False),
        ({"AFFECTED": "13", "TABLES": "13"}, False),
        ({"AFFECTED": "1"}, True),
        ({"AFFECTED": "13", "TABLES": "14"}, True),
    ):
        status, calls = week(**env)
        assert (status, opened in calls) == (0, there), calls
        assert "secret" not in calls
    report = (tmp_path / ".hpcgen/watch.md").read_text()
    assert "what is affected" in report and "what is newer" in report
    # A mistake is no finding.
    assert week(AFFECTED="3")[0] == 3
    if service == "gitlab":
        status, said = week(AFFECTED="1", HPCGEN_ISSUE_TOKEN="")
        assert (status, "no HPCGEN_ISSUE_TOKEN" in said) == (1, True)


@pytest.mark.parametrize("service", SERVICES)
def test_advisories_keep_images_back_and_what_is_published_is_signed(
    hpcgen: Command, tmp_path: Path, service: str
) -> None:
    """The gate is that of the build; the key is in a file of its own while it is used."""
    members = "members:\n  - {stack: mpi-hello, site: workstation, format: docker}\n"
    (tmp_path / "fleet.yaml").write_text("registry: registry.example.org/hpc\n" + members)
    words = ("ci", service, "--advisories", "osv", "--fail-on", "high", "--sign")
    done = hpcgen(*words, *(["--jobs"] if service == "gitlab" else []))
    assert done.returncode == 0, done.stderr
    pipeline = yaml.safe_load(done.stdout)
    job = pipeline[".docker" if service == "gitlab" else "jobs"]
    steps = job["script"] if service == "gitlab" else [each.get("run", "") for each in job["build"]["steps"]]
    (build,) = (each for each in steps if "hpcgen build" in each)
    assert '--advisories "$HPCGEN_ADVISORIES" --fail-on high' in build
    (publish,) = (each for each in steps if "fleet publish" in each)
    assert any("'cvss>=" in each for each in steps)
    program = tmp_path / "bin" / "hpcgen"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nfor word; do [ -f "$word" ] && stat -c %a "$word" && cat "$word"; done; exit 0\n')
    program.chmod(0o755)
    (tmp_path / "key").write_text("SECRET\n")
    env = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "TMPDIR": str(tmp_path),
        "HPCGEN_FLEET": "f",
        "HPCGEN_MEMBER": "m",
    }
    before = set(tmp_path.iterdir())
    for key in ("SECRET", str(tmp_path / "key"), ""):
        more = {"HPCGEN_SIGNING_KEY": key, "CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main"}
        script = f'retried() {{ "$@" || true; }}\n{publish}'
        ran = subprocess.run(["bash", "-ec", script], env=env | more, capture_output=True, text=True, cwd=tmp_path)
        assert (ran.returncode != 0, ran.stdout) == ((False, "600\nSECRET\n") if key else (True, "")), ran.stderr
    assert set(tmp_path.iterdir()) == before
    assert hpcgen("ci", service, "--fail-on", "high").returncode == 2
