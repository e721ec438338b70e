"""``hpcgen init`` where the best description of a project is its container."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import loads
from hpcgen.core.model.stack import Stack
from hpcgen.project.draft import Draft, stack_text
from hpcgen.project.making import draft_of
from tests.conftest import Command

DOCKERFILE = """\
FROM pytorch/pytorch:2.3.1-cuda12.1-cudnn8-runtime
ENV MODE=fast DATA=/data DEBIAN_FRONTEND=noninteractive API_KEY=4f3c9a7e21
RUN apt-get update && apt-get install -y python3-pip libgl1-mesa-glx libsndfile1 libopenmpi-dev
RUN pip install "timm>=1.0" scikit-learn && curl https://example.org/setup | sh
COPY . /workspace
WORKDIR /workspace
CMD ["python", "/workspace/tools/fit.py", "--fast"]
"""


def project(top: Path, **files: str) -> Path:
    for name, text in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text, "utf-8")
    return top


def drafted(top: Path, files: dict[str, str]) -> Draft:
    draft = draft_of(project(top, **files), Catalog())
    assert convert(loads(stack_text(draft), "hpcgen.yaml"), Stack).name == draft.data["name"]
    return draft


def remarks(draft: Draft) -> str:
    return "\n".join(f"{each.where.line if each.where else 0}: {each.text}" for each in draft.remarks)


def test_a_dockerfile_becomes_a_stack(tmp_path: Path) -> None:
    draft = drafted(
        tmp_path, {"Dockerfile": DOCKERFILE, "tools/fit.py": "import torch\nif __name__ == '__main__': 0\n"}
    )
    assert draft.blocks["python_packages"]["options"]["requirements"] == ["torch==2.3.1", "timm>=1.0", "scikit-learn"]
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libgl1", "libsndfile1"]
    assert {"pytorch", "mpi", "torchvision"} <= draft.blocks.keys()
    assert draft.data["run"]["command"] == ["python3", "/app/tools/fit.py", "--fast"]
    assert draft.data["run"]["environment"] == {"MODE": "fast"}
    said = remarks(draft)
    assert "4: curl https://example.org/setup | sh: not taken" in said
    assert "API_KEY may be secret" in said and "4f3c9a7e21" not in stack_text(draft)
    assert "not taken: DATA" in said and "pip" not in said


def test_of_one_file_for_each_distribution_that_of_debian_is_taken(tmp_path: Path) -> None:
    images = {"a": "zypper install -y gcc-fortran fftw3-devel", "b": "apt-get install -y libfftw3-dev mpi-default-dev"}
    files = {f"docker/Dockerfile.{name}": f"ARG base\nFROM ${{base}}\nRUN {line}\n" for name, line in images.items()}
    draft = drafted(tmp_path, {**files, "a.py": "print(1)\n"})
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libfftw3-dev"] and "mpi" in draft.blocks
    assert "opensuse_leap" not in draft.blocks and "Dockerfile.b is taken" in remarks(draft)


def test_packages_of_the_repository_of_cuda_are_not_asked_of_the_distribution(tmp_path: Path) -> None:
    install = "RUN apt-get install -y libxml2 cuda-minimal-build-12-1 libcusparse-dev-12-1 libcusolver-12-1 libcurl4\n"
    draft = drafted(tmp_path, {"Dockerfile": f"FROM nvidia/cuda:12.1.1-devel-ubuntu22.04\n{install}", "a.py": "0\n"})
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libxml2", "libcurl4"]


def test_of_one_file_for_each_vendor_that_of_amd_is_not_the_first(tmp_path: Path) -> None:
    files = {f"docker/Dockerfile.{name}": f"FROM ubuntu\nENV ARCH={name}\n" for name in ("amd", "intel", "nvidia")}
    draft = drafted(tmp_path, {**files, "requirements.txt": "numpy\n", "a.py": "print(1)\n"})
    assert draft.data["run"]["environment"] == {"ARCH": "nvidia"}


def test_a_list_in_a_file_wins(tmp_path: Path) -> None:
    dockerfile = "FROM tensorflow/tensorflow:2.15.1-gpu\nRUN pip install -r requirements.txt\nRUN pip install wandb\n"
    draft = drafted(tmp_path, {"Dockerfile": dockerfile, "requirements.txt": "numpy<2\n", "main.py": "print(1)\n"})
    assert draft.blocks["python_packages"] == {"options": {"files": ["requirements.txt"]}}
    assert draft.blocks["tensorflow"] == {"version": "==2.15.1"}
    assert "also installed by pip: wandb" in remarks(draft)


def test_a_list_elsewhere_is_found_by_the_line_that_installs_it(tmp_path: Path) -> None:
    dockerfile = "FROM python:3.11\nWORKDIR /src\nCOPY . .\nRUN pip install -r /src/deploy/needs.txt\n"
    draft = drafted(tmp_path, {"docker/Dockerfile": dockerfile, "deploy/needs.txt": "jax\n", "a.py": "print(1)\n"})
    assert draft.blocks["python_packages"] == {"options": {"files": ["deploy/needs.txt"]}}
    assert draft.blocks["python"] == {"version": ">=3.11"} and "jax" in draft.blocks


def test_packages_of_conda_and_of_other_distributions(tmp_path: Path) -> None:
    text = "FROM continuumio/miniconda3\nRUN conda install -c conda-forge python=3.11 gdal\nRUN pip install rasterio\n"
    draft = drafted(tmp_path / "a", {"Dockerfile": text, "a.py": "import torch\n"})
    assert draft.blocks["conda_packages"] == {
        "options": {"packages": ["python=3.11", "gdal"], "channels": ["conda-forge"]}
    }
    assert "pytorch" not in draft.blocks and "by pip: rasterio" in remarks(draft)
    text = "Bootstrap: docker\nFrom: rockylinux:9\n%post\n  dnf install -y fftw-devel gcc-c++\n"
    draft = drafted(tmp_path / "b", {"a.def": text, "a.py": "print(1)\n"})
    assert draft.blocks["os_packages"]["options"]["packages"] == ["fftw-devel"] and "rockylinux" in draft.blocks


@pytest.mark.parametrize(
    ("image", "asked"),
    [
        ("tensorflow/tensorflow:2.15-gpu", "tensorflow==2.15.*"),
        ("docker.io/pytorch/pytorch:latest", "torch"),
        ("nvcr.io/nvidia/pytorch:24.05-py3", "torch"),
        ("rocm/pytorch:rocm6.1_ubuntu22.04_py3.10_pytorch_2.1.2", "torch==2.1.2"),
        ("rocm/jax:rocm6.4.1-jax0.5.0-py3.12", "jax==0.5.0"),
    ],
)
def test_images_of_frameworks(tmp_path: Path, image: str, asked: str) -> None:
    draft = drafted(tmp_path, {"Dockerfile": f"FROM {image}\n", "a.py": "print(1)\n"})
    assert draft.blocks["python_packages"]["options"]["requirements"] == [asked]
    assert ("names no version" in remarks(draft)) is ("==" not in asked)


def test_an_image_that_nobody_knows_is_told(tmp_path: Path) -> None:
    draft = drafted(tmp_path, {"Dockerfile": "FROM example.org/team/base:1\n", "a.py": "print(1)\n"})
    assert "1: example.org/team/base:1 is not taken as the base" in remarks(draft)


def test_a_job_script_and_repo2docker(tmp_path: Path) -> None:
    files = {
        "Dockerfile": 'FROM python:3.11\nCMD ["python", "other.py"]\n',
        "job.sh": "#!/bin/bash\n#SBATCH -N 1\nsrun python main.py\n",
        "main.py": "print(1)\n",
        "other.py": "print(1)\n",
    }
    draft = drafted(tmp_path / "a", files)
    assert draft.data["run"]["command"] == ["python3", "/app/main.py"]
    files = {
        ".binder/environment.yml": "dependencies: [numpy]\n",
        ".binder/postBuild": "pip install x\n",
        "a.py": "1\n",
    }
    draft = drafted(tmp_path / "b", files)
    assert draft.blocks["conda_packages"] == {"options": {"files": [".binder/environment.yml"]}}


def test_requirements_of_the_stack_itself_are_planned(hpcgen: Command, tmp_path: Path) -> None:
    project(tmp_path, Dockerfile=DOCKERFILE, **{"tools/fit.py": "import torch\n"})
    assert hpcgen("init").returncode == 0 and hpcgen("check", "hpcgen.yaml").returncode == 0
    done = hpcgen("plan", "--site", "workstation", "--notes")
    assert done.returncode == 0, done.stderr
    assert "pytorch          2.3.1" in done.stdout and "scikit-learn (hpcgen.yaml:" in done.stderr
    wrong = (tmp_path / "hpcgen.yaml").read_text("utf-8").replace("timm>=1.0", "timm>=1.0 ; x")
    (tmp_path / "hpcgen.yaml").write_text(wrong, "utf-8")
    assert "with its range of versions" in hpcgen("check", "hpcgen.yaml").stderr


def test_no_second_mpi_comes_with_packages_of_a_container(tmp_path: Path) -> None:
    text = (
        "FROM debian:12\nENV SOLVER_TAG=v1.2 SOLVER_REPO=https://example.org/solver THREADS=4\n"
        "RUN apt-get install -y mpich libhdf5-mpich-dev libpnetcdf-dev libboost-mpi-dev libeigen3-dev libnetcdf-dev\n"
    )
    (tmp_path / "Dockerfile").write_text(text, "utf-8")
    (tmp_path / "main.py").write_text("print(1)\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libeigen3-dev", "libnetcdf-dev"]
    said = "\n".join(each.text for each in draft.remarks)
    assert "own MPI comes with them: libhdf5-mpich-dev, libpnetcdf-dev, libboost-mpi-dev" in said
    assert draft.data["run"]["environment"] == {"THREADS": "4"}


def test_no_second_mpi_comes_where_only_the_build_asks_for_one(tmp_path: Path) -> None:
    text = "FROM debian:12\nRUN apt-get install -y libscalapack-mpi-dev libelpa-dev libxc-dev\n"
    (tmp_path / "Dockerfile").write_text(text, "utf-8")
    (tmp_path / "CMakeLists.txt").write_text("find_package(MPI REQUIRED)\nadd_executable(a a.cpp)\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libxc-dev"] and "scalapack" in draft.blocks


def test_a_desktop_and_a_licence_are_left_to_the_user(tmp_path: Path) -> None:
    variables = "ENV ACCEPT_EULA=Y THREADS=4 GIT_SSL_NO_VERIFY=1\n"
    text = f"FROM debian:12\n{variables}RUN apt-get install -y xfce4-goodies tigervnc-common aria2\n"
    (tmp_path / "Dockerfile").write_text(text, "utf-8")
    (tmp_path / "main.py").write_text("print(1)\n", "utf-8")
    draft = draft_of(tmp_path, Catalog())
    assert draft.blocks["os_packages"]["options"]["packages"] == ["aria2"]
    assert draft.data["run"]["environment"] == {"THREADS": "4"}
    assert any("ACCEPT_EULA=Y accepts a licence" in each.text for each in draft.remarks)
