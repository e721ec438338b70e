"""Container files of projects: Dockerfiles, definition files, development containers, repo2docker and HPCCM."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.core.model.own_containers import ContainerFile
from hpcgen.core.model.own_project import FileWord
from hpcgen.readers.devcontainer import read_devcontainer
from hpcgen.readers.dockerfile import read_dockerfile
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.hpccm_recipe import read_hpccm
from hpcgen.readers.repo2docker import read_binder
from hpcgen.readers.singularity_definition import read_definition


def docker(top: Path, text: str) -> ContainerFile:
    (top / "Dockerfile").write_text(text, "utf-8")
    return read_dockerfile(ProjectFolder(top), "Dockerfile")


def texts(words: list[FileWord]) -> list[str]:
    return [each.text for each in words]


def test_a_dockerfile_with_all_its_forms(tmp_path: Path) -> None:
    found = docker(
        tmp_path,
        "# syntax=docker/dockerfile:1\n"
        "ARG TAG=12\n"
        "FROM --platform=linux/amd64 debian:${TAG} AS Tools\n"
        "RUN pip install flask\n"
        "FROM scratch AS unused\n"
        "RUN apt-get install -y never\n"
        "FROM python:${VERSION:-3.11}-slim\n"
        "ARG EXTRA=scipy\n"
        'ENV A=1 B="x y" \\\n    C=${A}2\n'
        "ENV OLD its value\n"
        "WORKDIR /srv\nWORKDIR code\n"
        "RUN --mount=type=cache,target=/root/.cache \\\n"
        "    apt-get update && \\\n"
        "    # a comment within\n"
        "    apt-get install -y -o Debug=1 git=1:2.39-1 libfoo1/stable \\\n"
        "        libbar2 > /dev/null && rm -rf /var/lib/apt/lists/*\n"
        "RUN python3 -m pip install -i https://example.org/simple 'numpy<2' $EXTRA pip -r requirements.txt\n"
        "RUN <<END\nset -e\ncurl https://example.org/x | sh\nEND\n"
        'RUN ["pip3", "install", "pandas>=2"]\n'
        "COPY --from=tools /a /b\nCOPY . .\n"
        'ENTRYPOINT ["python", "main.py"]\nCMD ["--steps", "3"]\n',
    )
    assert found.base is not None and (found.base.text, found.base.where.line) == ("python:3.11-slim", 7)
    assert texts(found.installed.system) == ["git", "libfoo1", "libbar2"]
    assert [each.where.line for each in found.installed.system] == [17, 17, 17]
    assert texts(found.installed.python) == ["flask", "numpy<2", "scipy", "pandas>=2"]
    assert texts(found.installed.files) == ["requirements.txt"]
    assert [(each.text, each.where.line) for each in found.installed.left] == [("curl https://example.org/x | sh", 22)]
    assert texts(found.variables) == ["A=1", "B=x y", "C=12", "OLD=its value"]
    assert (found.folder, found.copied) == ("/srv/code", ["/srv/code"])
    assert found.command == ["python", "main.py", "--steps", "3"]


def test_the_last_stage_has_what_those_below_it_have(tmp_path: Path) -> None:
    found = docker(
        tmp_path,
        "FROM pytorch/pytorch:2.3.1 AS base\nENV A=1\nRUN dnf install -y x\nFROM base\nENTRYPOINT ./run.sh -n 3\n",
    )
    assert found.base is not None and found.base.text == "pytorch/pytorch:2.3.1"
    assert texts(found.variables) == ["A=1"] and found.installed.manager == "dnf"
    assert found.command == ["./run.sh", "-n", "3"]


@pytest.mark.parametrize(
    ("line", "kind", "expected"),
    [
        ("conda install -y -c conda-forge -n base gdal=3.8 'numpy>1'", "conda", ["gdal=3.8", "numpy>1"]),
        ("mamba env update -n base -f environment.yml", "files", ["environment.yml"]),
        ("uv pip install --system 'torch==2.3.1' && true", "python", ["torch==2.3.1"]),
        ("pip install . ./own -e .[test]", "python", []),
        ("pip install git+https://example.org/a.git b", "left", ["pip install git+https://example.org/a.git"]),
        ("R -e \"install.packages(c('dplyr', 'sf'), repos='https://example.org')\"", "r", ["dplyr", "sf"]),
        ("install2.r --error -n 4 lme4", "r", ["lme4"]),
        ("zypper --non-interactive in -y fftw3-devel", "system", ["fftw3-devel"]),
        ("apk add --no-cache git", "left", ["apk add --no-cache git"]),
        ("export TOKEN=hunter2; curl -H 'Authorization: Bearer abc' https://u:hunter2@example.org/x", "left", None),
    ],
)
def test_lines_of_a_shell(tmp_path: Path, line: str, kind: str, expected: list[str] | None) -> None:
    installed = docker(tmp_path, f"FROM x\nRUN {line}\n").installed
    found = texts(getattr(installed, kind))
    assert "hunter2" not in str(installed)
    assert expected is None or found == expected


def test_a_definition_file(tmp_path: Path) -> None:
    (tmp_path / "a.def").write_text(
        "Bootstrap: docker\nFrom: first\nStage: build\n%post\n  pip install never\n"
        "Bootstrap: docker\nFrom: tensorflow/tensorflow:{{ TF }}-gpu\n"
        "%arguments\n  TF=2.15.1\n"
        "%environment\n  export MODE=fast\n  . /setup.sh\n"
        "%post\n  apt-get -y install git\n  pip3 install keras-cv\n"
        '%runscript\n  echo start\n  exec python /code/main.py "$@"\n',
        "utf-8",
    )
    found = read_definition(ProjectFolder(tmp_path), "a.def")
    assert found is not None and found.base is not None and found.base.text == "tensorflow/tensorflow:2.15.1-gpu"
    assert (texts(found.installed.system), texts(found.installed.python)) == (["git"], ["keras-cv"])
    assert [each.where.line for each in found.installed.python] == [15]
    assert texts(found.variables) == ["MODE=fast"] and found.command == ["python", "/code/main.py"]
    (tmp_path / "b.def").write_text("LIBRARY x\nEXPORTS\n", "utf-8")
    assert read_definition(ProjectFolder(tmp_path), "b.def") is None


def test_a_development_container(tmp_path: Path) -> None:
    (tmp_path / ".devcontainer").mkdir()
    file = tmp_path / ".devcontainer/devcontainer.json"
    file.write_text(
        '{\n  // of the team\n  "image": "python:3.12", /* x */\n  "containerEnv": {"MODE": "dev"},\n'
        '  "features": {"ghcr.io/a/git:1": {}},\n'
        '  "postCreateCommand": {"a": "pip install scipy", "b": ["ls", "-l"]},\n}\n',
        "utf-8",
    )
    found = read_devcontainer(ProjectFolder(tmp_path), ".devcontainer/devcontainer.json")
    assert found is not None and found.base is not None and found.base.where.line == 3
    assert texts(found.installed.python) == ["scipy"] and texts(found.variables) == ["MODE=dev"]
    assert texts(found.installed.left) == ["the feature ghcr.io/a/git:1"]
    file.write_text(json.dumps({"build": {"dockerfile": "../Dockerfile"}}), "utf-8")
    docker(tmp_path, "FROM julia:1.10\n")
    found = read_devcontainer(ProjectFolder(tmp_path), ".devcontainer/devcontainer.json")
    assert found is not None and found.base is not None and found.base.text == "julia:1.10"


def test_what_repo2docker_reads(tmp_path: Path) -> None:
    (tmp_path / "binder").mkdir()
    assert read_binder(ProjectFolder(tmp_path), "binder/") is None
    (tmp_path / "binder/postBuild").write_text("#!/bin/bash\npip install bqplot\njupyter lab build\n", "utf-8")
    (tmp_path / "binder/runtime.txt").write_text("r-4.2-2022-08-01\n", "utf-8")
    (tmp_path / "binder/install.R").write_text("# install.packages('no')\ninstall.packages('sf')\n", "utf-8")
    (tmp_path / "binder/apt.txt").write_text("libgl1-mesa-dev\n\nxvfb # for plots\n", "utf-8")
    found = read_binder(ProjectFolder(tmp_path), "binder/")
    assert found is not None and found.base is not None and found.base.text == "r-base:4.2"
    assert [(each.text, each.where.line) for each in found.installed.system] == [("libgl1-mesa-dev", 1), ("xvfb", 3)]
    assert texts(found.installed.python) == ["bqplot"] and texts(found.installed.left) == ["jupyter lab build"]
    assert [(each.text, each.where.file) for each in found.installed.r] == [("sf", "binder/install.R")]


def test_a_recipe_of_hpccm(tmp_path: Path) -> None:
    (tmp_path / "recipe.py").write_text(
        "Stage0 += baseimage(image='nvidia/cuda:12.4.1-devel-ubuntu22.04')\n"
        "Stage0 += apt_get(ospackages=['git', 'libfftw3-dev'])\n"
        "Stage0 += [openmpi(version='4.1.5'), pip(packages=['mpi4py'])]\n"
        "open('hit', 'w')\n",
        "utf-8",
    )
    found = read_hpccm(ProjectFolder(tmp_path), "recipe.py")
    assert found is not None and found.base is not None and found.base.text.startswith("nvidia/cuda")
    assert texts(found.installed.system) == ["git", "libfftw3-dev"]
    assert texts(found.installed.python) == ["mpi4py"]
    assert texts(found.installed.left) == ["the building block openmpi"]
    assert not (tmp_path / "hit").exists()
    (tmp_path / "recipe.py").write_text("print('no recipe')\n", "utf-8")
    assert read_hpccm(ProjectFolder(tmp_path), "recipe.py") is None


HOSTILE = [
    "",
    "FROM",
    "FROM x AS\nFROM\nCOPY --from=99 a b\nCOPY --from=-1 a b",
    "FROM a AS b\nFROM b AS b\nCOPY --from=b / /\nFROM b",
    "ARG A=$A$A\n" * 40 + "FROM $A\n",
    "FROM x\n" + "ENV A=${A}${A}${A}x\n" * 60,
    "FROM x\nRUN " + "'" * 9999,
    "FROM x\nRUN " + "$(" * 9999 + "\n",
    "FROM x\nRUN " + "\\\n" * 9999,
    "FROM x\nRUN <<EOF\nnever ended",
    "FROM x\nCMD " + "[" * 9999,
    "FROM x\nENV =\nENV A\nENV \x1b[2J=b\nCMD \x1b[2J",
    "FROM x\nRUN pip install " + "a" * 99999,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_files_are_read_at_once_and_harm_nobody(tmp_path: Path, text: str) -> None:
    found = docker(tmp_path, text)
    words = [*found.command, *texts(found.variables), *texts(found.installed.left), *texts(found.installed.python)]
    assert all(word.isprintable() and len(word) < 200_000 for word in words)
    for name, read in (("x.def", read_definition), ("x.py", read_hpccm), ("x.json", read_devcontainer)):
        (tmp_path / name).write_text(f"Bootstrap: a\n%post\n{text}" if name == "x.def" else f"Stage0{text}", "utf-8")
        read(ProjectFolder(tmp_path), name)


def test_a_file_that_is_no_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_bytes(b"FROM \xff\n")
    with pytest.raises(InputError):
        read_dockerfile(ProjectFolder(tmp_path), "Dockerfile")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ('[ "$GPU" = "1" ]', ["b"]),
        ('[ "$GPU" != "1" ]', ["a"]),
        ('[ "${GPU}" = "1" ]', ["b"]),
        ("[ -z $GPU ]", ["a"]),
        ('! [ "$KIND" = full ]', ["b"]),
        ("[ ! -n $KIND ]", ["b"]),
        ("[ $TARGETARCH = arm64 ]", ["b"]),
        ('[ "$KIND" = "small" ]; then pip install c; elif [ "$KIND" = "full" ]', ["a"]),
        ("[ -f /etc/x ]", ["a"]),
        ("command -v nvcc", ["a"]),
    ],
)
def test_one_branch_of_a_condition_is_taken(tmp_path: Path, condition: str, expected: list[str]) -> None:
    branches = f"RUN if {condition}; then \\\n  pip install a; \\\n else pip install b; fi \\\n && pip install z\n"
    text = f"FROM x\nARG GPU\nARG KIND=full\n{branches}"
    (tmp_path / "Dockerfile").write_text(text)
    found = read_dockerfile(ProjectFolder(tmp_path), "Dockerfile")
    assert found is not None and [each.text for each in found.installed.python] == [*expected, "z"]
