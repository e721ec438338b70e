"""Written pipelines, run here job by job: hpcgen from its wheel, a small image built, published and remembered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from container_tools import BaseImage, Buildah
from loopback_registry import Registry
from pipeline_runner import Runner, github_job, gitlab_job
from test_fleet import TINY
from test_locking import registry
from test_rendered_kits import site_profile

from hpcgen.plugins.fleet.records import LockedImage, lock_text, read_lock

__all__ = ["registry"]

pytestmark = pytest.mark.slow
CHECKOUT = Path(__file__).parents[2]
NAME = "tiny-here"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "build", "--wheel", "--outdir", folder, CHECKOUT], check=True)
    return next(folder.glob("*.whl"))


@pytest.fixture
def repository(
    wheel: Path, registry: Registry, machine_facts: dict[str, Any], plain_base_image: BaseImage, tmp_path: Path
) -> Path:
    """A fleet with one small member, and the wheel."""
    folder = tmp_path / "repository"
    for name in ("site_profiles", "recipes", "wheels"):
        (folder / name).mkdir(parents=True)
    (folder / "site_profiles/here.yaml").write_text(json.dumps(site_profile(machine_facts, plain_base_image)))
    (folder / "recipes/tiny.yaml").write_text(TINY)
    (folder / "wheels" / wheel.name).write_bytes(wheel.read_bytes())
    member = {"stack": "tiny", "site": "here", "format": "docker", "engine": "buildah", "test": False}
    fleet = {"collections": ["."], "registry": f"{registry.host}/hpc", "members": [member]}
    (folder / "fleet.yaml").write_text(json.dumps(fleet))
    return folder


@pytest.fixture
def runner(repository: Path, registry: Registry, buildah: Buildah, tmp_path: Path) -> Runner:
    env = {**buildah.env, "HOME": str(tmp_path / "home"), "HPCGEN_RECORDS": str(tmp_path / "records")}
    env |= {"CONTAINERS_REGISTRIES_CONF": str(tmp_path / "home/.config/containers/registries.conf")}
    env |= {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "BUILDAH_"))}
    return Runner(repository, tmp_path, env)


def written(repository: Path, *words: str) -> dict[str, Any]:
    (given,) = (repository / "wheels").glob("*.whl")
    command = [sys.executable, "-m", "hpcgen", "ci", *words, "--hpcgen", f"wheels/{given.name}", "-o", "pipeline.yml"]
    env = {**os.environ, "HPCGEN_TRUST_COLLECTIONS": "1"}
    done = subprocess.run(command, cwd=repository, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pipeline: dict[str, Any] = yaml.safe_load((repository / "pipeline.yml").read_text())
    return pipeline


LOGIN = {"HPCGEN_REGISTRY_USER": "me", "HPCGEN_REGISTRY_PASSWORD": "secret"}
SECRETS = {f"secrets.{name}": value for name, value in LOGIN.items()}


def test_githubs_jobs_build_publish_and_remember(runner: Runner, repository: Path, registry: Registry) -> None:
    workflow = written(repository, "github")

    def changed() -> list[dict[str, str]]:
        status, outputs = github_job(runner, workflow, "changed", SECRETS)
        assert status == 0, runner.said
        found: list[dict[str, str]] = json.loads(outputs["members"])
        return found

    (member,) = changed()
    given = {**SECRETS, "matrix.member.name": member["name"], "matrix.member.format": member["format"]}
    status, _ = github_job(runner, workflow, "build", {**given, "secrets.HPCGEN_REGISTRY_PASSWORD": "guess"})
    assert status and not runner.artifacts, runner.said
    status, _ = github_job(runner, workflow, "build", given)
    assert status == 0, runner.said
    status, _ = github_job(runner, workflow, "collect", SECRETS)
    assert status == 0, runner.said
    assert list(registry.manifests)[1:] == ["hpc/fleet-lock:fleet"]
    # The cache is gone: the registry has the list.
    runner.caches.clear()
    assert changed() == []


def test_gitlabs_first_and_last_job_run(runner: Runner, repository: Path) -> None:
    """Its build needs a base image from a registry: its store is of another kind than this machine's."""
    on_branch = {"CI_COMMIT_BRANCH": "main", "CI_DEFAULT_BRANCH": "main", **LOGIN}
    parent = written(repository, "gitlab")
    assert gitlab_job(runner, parent, "changed", on_branch) == 0, runner.said
    jobs = yaml.safe_load(runner.artifacts.pop(".hpcgen/jobs.yml"))
    assert f"build {NAME}" in jobs
    assert gitlab_job(runner, jobs, "collect", on_branch) == 0, runner.said


def test_the_registrys_list_keeps_what_others_published(registry: Registry, tmp_path: Path) -> None:
    members = [{"stack": "mpi-hello", "site": "workstation"}]
    (tmp_path / "fleet.yaml").write_text(json.dumps({"registry": f"{registry.host}/hpc", "members": members}))

    def hpcgen(*words: str, password: str = "secret") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **LOGIN, "HPCGEN_REGISTRY_PASSWORD": password}
        command = [sys.executable, "-m", "hpcgen", "fleet", *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)

    def lock(name: str, **images: str) -> str:
        made = {
            key: LockedImage(content="a" * 64, format="docker", engine="podman", published=where)
            for key, where in images.items()
        }
        (tmp_path / name).write_text(lock_text(made))
        return name

    assert "nothing new" in hpcgen("pull-lock").stderr
    for name in (lock("one.lock", one="example.org/one:1", kept=""), lock("two.lock", two="example.org/two:1")):
        done = hpcgen("push-lock", "--lock", name)
        assert done.stdout == f"docker://{registry.host}/hpc/fleet-lock:fleet\n", done.stderr
    assert "fleet.lock: one, two" in hpcgen("pull-lock").stderr
    assert set(read_lock(tmp_path / "fleet.lock")) == {"one", "two"}
    wrong = hpcgen("pull-lock", password="guess")
    assert wrong.returncode == 11 and "was not read: init" in wrong.stderr, wrong.stderr
    assert hpcgen("push-lock", password="guess").returncode == 11
