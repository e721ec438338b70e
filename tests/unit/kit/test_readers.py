"""Every golden file goes through a real reader: shellcheck and bash for scripts, hadolint for Dockerfiles."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.conftest import GOLDEN, ROOT

SCRIPTS = sorted(
    p
    for p in GOLDEN.rglob("*")
    if p.name in ("build.sh", "run.sh", "selftest.sh", "preflight.sh") or p.suffix in (".slurm", ".pbs")
)
DOCKERFILES = sorted(GOLDEN.rglob("Dockerfile"))
TOOLS = Path(sysconfig.get_path("scripts"))


def short(path: Path) -> str:
    return path.relative_to(GOLDEN).as_posix()


def test_there_are_golden_files_of_every_kind() -> None:
    names = {p.name for p in SCRIPTS} | {p.name for p in DOCKERFILES}
    assert {"build.sh", "selftest.sh", "preflight.sh", "job.slurm", "job.pbs", "run.sh", "Dockerfile"} <= names


@pytest.mark.parametrize("script", SCRIPTS, ids=short)
def test_script_is_clean_for_shellcheck(script: Path) -> None:
    done = subprocess.run([TOOLS / "shellcheck", "--norc", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("script", SCRIPTS, ids=short)
def test_script_parses(script: Path) -> None:
    shell = "bash" if script.read_text().startswith("#!/bin/bash") else "sh"
    # Where the locale of the caller is not installed, bash says so each time.
    env = {**os.environ, "LC_ALL": "C.UTF-8"}
    done = subprocess.run([shell, "-n", script], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def hadolint(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOOLS / "hadolint", "--config", ROOT / ".hadolint.yaml", "-"], input=text, capture_output=True, text=True
    )


@pytest.mark.parametrize("dockerfile", DOCKERFILES, ids=short)
def test_dockerfile_is_clean_for_hadolint(dockerfile: Path) -> None:
    done = hadolint(dockerfile.read_text())
    assert done.returncode == 0, done.stdout + done.stderr


def embedded(script: Path) -> str:
    found = re.search(r"<< 'HPCGEN_DOCKERFILE'\n(.*?)\nHPCGEN_DOCKERFILE\n", script.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("stack", ["tf-horovod", "mpi-hello"])
def test_charliecloud_dockerfile_keeps_to_the_dialect(stack: str) -> None:
    """What ch-image 0.31 and 0.45 both take; tests/containers lets the real ones read it."""
    text = embedded(GOLDEN / "supermuc" / stack / "build.sh")
    instructions = re.sub(r"\\\n", "", text).splitlines()
    words = {line.split()[0] for line in instructions if line and not line.startswith("#")}
    assert words <= {"ARG", "COPY", "ENV", "FROM", "LABEL", "RUN", "SHELL", "WORKDIR"}
    assert "--mount" not in text
    assert "<<" not in text
    assert not re.search(r"^FROM .*(@sha256|\$|--platform)", text, re.MULTILINE)
    assert not re.search(r"\\\n\s*#", text), "a comment inside a continued instruction"
    assert not re.search(r"^ENV .*\$\{\w+:-", text, re.MULTILINE)


def test_scripts_of_this_repository_are_clean_for_shellcheck() -> None:
    scripts = [ROOT / ".ci" / "run", ROOT / ".ci" / "install-tools"]
    done = subprocess.run([TOOLS / "shellcheck", *scripts], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
