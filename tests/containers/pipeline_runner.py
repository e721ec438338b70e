"""Runs the jobs of a written pipeline here: their own commands in order, as the services start them.

Each job has a fresh copy of the repository and an environment with nothing in it but what the pipeline sets. Of the
actions and keywords that are the service's own, caches and artifacts are played; a checkout is the copy.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Runner:
    """``env``: what the machine itself has. ``caches`` and ``artifacts`` outlive a job: files by their paths."""

    def __init__(self, repository: Path, scratch: Path, env: Mapping[str, str]) -> None:
        self.repository, self.scratch, self.env = repository, scratch, dict(env)
        self.caches: dict[str, bytes] = {}
        self.artifacts: dict[str, bytes] = {}
        self.said = ""
        self._jobs = 0

    def checkout(self) -> Path:
        """A fresh copy of the repository."""
        self._jobs += 1
        folder = self.scratch / f"job{self._jobs}"
        shutil.copytree(self.repository, folder)
        return folder

    def shell(self, script: str, folder: Path, env: Mapping[str, str], words: list[str]) -> int:
        """The exit status; what it says is kept."""
        file = folder.parent / f"{folder.name}.sh"
        file.write_text(script)
        done = subprocess.run(
            [*words, str(file)],
            cwd=folder,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.said = done.stdout
        return done.returncode


def github_job(
    runner: Runner, workflow: dict[str, Any], name: str, given: Mapping[str, str], branch: bool = True
) -> tuple[int, dict[str, str]]:
    """Run a job's steps; its first status that is not 0, and its outputs.

    Parameters
    ----------
    given: the values of expressions.
    branch: it is the branch that publishes.
    """
    folder = runner.checkout()
    output = folder.parent / f"{folder.name}.output"
    output.touch()
    subprocess.run([sys.executable, "-m", "venv", folder.parent / f"{folder.name}.python"], check=True)
    path = f"{folder.parent / f'{folder.name}.python'}/bin:{runner.env['PATH']}"
    job, status = workflow["jobs"][name], 0
    for step in job["steps"]:
        condition = str(step.get("if", ""))
        if (status and "cancelled" not in condition) or ("refs/heads" in condition and not branch):
            continue
        if "uses" in step:
            _action(runner, step, folder, given)
            continue
        values = {**workflow["env"], **job.get("env", {}), **step.get("env", {})}
        env = {key: _expression(text, given) for key, text in values.items()}
        env |= {"PATH": path, "GITHUB_OUTPUT": str(output), "RUNNER_ENVIRONMENT": "self-hosted"}
        pipefail = ["-o", "pipefail"] if step.get("shell") == "bash" else []
        status = runner.shell(step["run"], folder, env, ["bash", "--noprofile", "--norc", "-e", *pipefail]) or status
        if status:
            return status, {}
    return status, dict(line.split("=", 1) for line in output.read_text().splitlines())


def _expression(text: str, given: Mapping[str, str]) -> str:
    found = re.fullmatch(r"\$\{\{ (.*) \}\}", text)
    if found is None:
        return text
    known, _, default = found[1].partition(" || ")
    return given.get(known, default.strip("'"))


def _action(runner: Runner, step: dict[str, Any], folder: Path, given: Mapping[str, str]) -> None:
    action, inputs = step["uses"].partition("@")[0], step.get("with", {})
    if action == "actions/cache/restore":
        _put(runner.caches, folder, inputs["path"])
    elif action == "actions/cache/save":
        runner.caches |= _taken(folder, inputs["path"])
    elif action == "actions/upload-artifact" and "parts" in inputs["path"]:
        runner.artifacts |= _taken(folder, inputs["path"])
    elif action == "actions/download-artifact":
        _put(runner.artifacts, folder, inputs["path"])


def gitlab_job(runner: Runner, pipeline: dict[str, Any], name: str, variables: Mapping[str, str]) -> int:
    """Run a job; its exit status."""
    folder = runner.checkout()
    job = pipeline[name]
    base = pipeline.get(job.get("extends", ""), {})
    job = {**base, **job, "variables": {**base.get("variables", {}), **job.get("variables", {})}}
    for path in job.get("cache", {}).get("paths", []):
        _put(runner.caches, folder, path)
    _put(runner.artifacts, folder, ".hpcgen")
    env = {**pipeline.get("variables", {}), **job["variables"], **variables}
    # Each line is echoed and evaluated in one shell. Source: gitlab-runner, shells/bash.go.
    script = "set -eo pipefail\nset +o noclobber\n" + "".join(f"{line}\n" for line in job["script"])
    status = runner.shell(script, folder, env, ["bash", "--noprofile", "--norc"])
    if not status and "push" in job.get("cache", {}).get("policy", "pull-push"):
        for path in job.get("cache", {}).get("paths", []):
            runner.caches |= _taken(folder, path)
    if not status or job.get("artifacts", {}).get("when") == "always":
        for path in job.get("artifacts", {}).get("paths", []):
            runner.artifacts |= _taken(folder, path)
    return status


def _taken(folder: Path, pattern: str) -> dict[str, bytes]:
    found = {}
    for top in folder.glob(pattern):
        files = [top] if top.is_file() else [each for each in top.rglob("*") if each.is_file()]
        found |= {os.path.relpath(each, folder): each.read_bytes() for each in files}
    return found


def _put(kept: Mapping[str, bytes], folder: Path, below: str) -> None:
    for name, data in kept.items():
        if name.startswith(below):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
