"""The second hour of three people with a project that the tutorial made: data, a changed dependency, jobs, moves.

Each line that is typed is printed with its seconds, and what each person's folder and images take with the bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from container_tools import REPORTS, Slurm
from test_tutorial import Reader, home  # noqa: F401

PROJECT = {
    "hpcgen.yaml": """\
name: pi
title: A project
blocks:
  python_packages: {options: {files: [requirements.txt]}}
copy:
  - {from: ., to: /app}
run:
  command: [python3, /app/pi.py]
  mpi: false
""",
    "requirements.txt": "packaging==24.1\n",
    "pi.py": """\
import os
import sys
import packaging
rounds = open("/data/rounds").read().strip() if os.path.exists("/data/rounds") else "none"
print(f"packaging {packaging.__version__}, rounds {rounds}, {' '.join(sys.argv[1:])}")
""",
}


class Person:
    """Somebody who types, and what that took."""

    def __init__(self, reader: Reader, name: str) -> None:
        self.reader, self.name = reader, name

    def types(self, line: str) -> str:
        began = time.monotonic()
        said = self.reader.types(f"{{ {line} ; }} 2>&1")
        print(f"{self.name} [{time.monotonic() - began:5.1f} s] $ {line}\n{said}")
        return said


@pytest.fixture
def people(
    home: Path,  # noqa: F811
    testbed_env: dict[str, str],
    slurm_cluster: Callable[..., Slurm],
) -> Iterator[Callable[[str], Person]]:
    cluster = slurm_cluster("general")
    reader = Reader(home, {**testbed_env, **cluster.env, "BUILDAH_ISOLATION": "chroot"})
    reader.types("python3 -m venv ~/env && ~/env/bin/pip install -q ~/hpcgen")
    reader.types("export PATH=$PATH:~/env/bin")
    (home / "pi").mkdir()
    for name, text in PROJECT.items():
        (home / "pi" / name).write_text(text)
    reader.types("cd ~/pi")
    yield lambda name: Person(reader, name)


@pytest.mark.slow
def test_three_people_go_on(people: Callable[[str], Person], home: Path) -> None:  # noqa: F811
    began = time.monotonic()

    ada = people("Ada")
    ada.types("hpcgen build --site workstation")
    ada.types("mkdir ~/data && echo 7 > ~/data/rounds")
    assert "there is no" in ada.types("hpcgen run --bind ~/dota:/data || true")
    assert "packaging 24.1, rounds 7" in ada.types("hpcgen run --bind ~/data:/data:ro")
    assert "would hide /app" in ada.types("hpcgen run --bind ~/data:/app || true")
    assert "changed, rounds 7, changed" in ada.types(
        "sed -i 's/, rounds/, changed, rounds/' pi.py; "
        "hpcgen run --live --bind ~/data:/data -- python3 /app/pi.py changed"
    )
    assert "inside" in ada.types("hpcgen shell -- sh -c 'echo inside; ls /app'")

    ben = people("Ben")
    ben.types("sed -i s/24.1/24.2/ requirements.txt")
    said = ben.types("hpcgen run")
    assert "changed since that was built" in said and "requirements.txt" in said and "packaging 24.1" in said
    ben.types("hpcgen build --site workstation")
    assert "packaging 24.2" in ben.types("hpcgen run")
    ben.types("hpcgen convert podman:pi:workstation ~/pi.tar && ls -l ~/pi.tar")
    ben.types("hpcgen convert pi:workstation ~/pi-folder && du -sb ~/pi-folder")

    cleo = people("Cleo")
    start = "~/pi-folder --site slurm-cpu --engine charliecloud --threads 2 --time 5m"
    assert "packaging 24.2" in cleo.types(f"hpcgen run {start}")
    for each in ("one", "two"):
        assert f"24.2, changed, rounds 7, {each}" in cleo.types(
            f"hpcgen submit {start} --bind ~/data:/mnt/1 -- sh -c '"
            f"sed s,/data/,/mnt/1/,g /app/pi.py > two.py; python3 two.py {each}'"
        )
    assert cleo.types("ls .hpcgen/jobs").split()[:2] == ["pi-1", "pi-2"]
    assert "on a node" in cleo.types(f"hpcgen shell {start} --nodes 1 -- sh -c 'echo on a node'")
    assert "/.hpcgen" not in cleo.types("hpcgen plan --site workstation")
    cleo.types("hpcgen clean --dry-run --older-than 0; du -sb .hpcgen")
    cleo.types("hpcgen clean jobs --older-than 0 --yes")
    assert not cleo.types("ls .hpcgen/jobs").strip()
    REPORTS.append(f"second hour: three people typed it in {time.monotonic() - began:.0f} s")
