"""Projects without a file of hpcgen's: init, build, run.

One in C over MPI with a Makefile and a job script, and one in Python whose setup.py compiles a module.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from container_tools import BaseImage, Tool
from leftovers import remove
from test_rendered_kits import site_profile

PROJECT = Path(__file__).parent.parent / "unit/project/files/make"
SETUP = """\
import numpy
from Cython.Build import cythonize
from setuptools import Extension, setup

kernels = Extension("fast.kernels", ["fast/kernels.pyx"], include_dirs=[numpy.get_include()])
setup(name="fast", install_requires=["numpy"], ext_modules=cythonize([kernels]))
"""
KERNELS = """\
def total(double[:] values):
    cdef double result = 0
    cdef Py_ssize_t i
    for i in range(values.shape[0]):
        result += values[i]
    return result
"""
PYBIND = """\
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <vector>
PYBIND11_MODULE(kernels, module) {
    module.def("total", [](const std::vector<double> &values) {
        double sum = 0;
        for (double value : values)
            sum += value;
        return sum;
    });
}
"""
PYPROJECT = """\
[build-system]
requires = [{1}]
build-backend = "{0}"
[project]
name = "fast"
version = "1.0"
dependencies = ["numpy"]
"""
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(fast CXX)
find_package(pybind11 REQUIRED CONFIG)
pybind11_add_module(kernels kernels.cpp)
install(TARGETS kernels DESTINATION fast)
"""
MESON = """\
project('fast', 'cpp', version: '1.0')
python = import('python').find_installation(pure: false)
python.install_sources('fast/__init__.py', subdir: 'fast')
python.extension_module('kernels', 'kernels.cpp', dependencies: dependency('pybind11'), install: true, subdir: 'fast')
"""
MAIN = """\
import fast.kernels
import numpy

if __name__ == "__main__":
    print("total", fast.kernels.total(numpy.ones(5)))
"""


class Here:
    """hpcgen with a profile of this machine, and records of its own."""

    def __init__(self, facts: dict[str, Any], base: BaseImage, env: dict[str, str], folder: Path) -> None:
        sites = folder / "ours/site_profiles"
        sites.mkdir(parents=True)
        (sites / "here.yaml").write_text(json.dumps(site_profile(facts, base)))
        self._tool = Tool({**env, "HPCGEN_RECORDS": str(folder / "records")})
        self._words = [sys.executable, "-m", "hpcgen", "--collection", str(folder / "ours")]

    def __call__(self, project: Path, *words: str) -> str:
        """What a command says in the folder of a project."""
        return self._tool.run([*self._words, *words], cwd=project).stdout


@pytest.fixture
def hpcgen(
    machine_facts: dict[str, Any], plain_base_image: BaseImage, testbed_env: dict[str, str], tmp_path: Path
) -> Here:
    return Here(machine_facts, plain_base_image, testbed_env, tmp_path)


@pytest.mark.slow
def test_a_project_is_built_and_run_as_init_says(hpcgen: Here, tmp_path: Path) -> None:
    """Nothing is added to what init writes but which MPI it is: that of wheels, which need no hour."""
    project, image = tmp_path / "ring", tmp_path / "image"
    shutil.copytree(PROJECT, project)
    hpcgen(project, "init")
    mpi = ["--set", "mpi.provider=mpich", "--set", "mpich.obtain=wheels"]
    hpcgen(project, "build", "--site", "here", *mpi, "--engine", "ch-image", "-o", str(image))
    assert "ring of 2, sum of the ranks 1, of first" in hpcgen(project, "run", str(image), "--ranks-per-node", "2")
    remove(image)


COMPILED = {
    "setup.py": {"setup.py": SETUP, "fast/__init__.py": "", "fast/kernels.pyx": KERNELS},
    "CMake": {
        "pyproject.toml": PYPROJECT.format("scikit_build_core.build", '"scikit-build-core", "pybind11"'),
        "CMakeLists.txt": CMAKE,
        "kernels.cpp": PYBIND,
        "src/fast/__init__.py": "",
    },
    "Meson": {
        "pyproject.toml": PYPROJECT.format("mesonpy", '"meson-python", "pybind11"'),
        "meson.build": MESON,
        "kernels.cpp": PYBIND,
        "fast/__init__.py": "",
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("files", COMPILED.values(), ids=COMPILED)
def test_modules_that_a_project_compiles_are_there(hpcgen: Here, tmp_path: Path, files: dict[str, str]) -> None:
    project, image = tmp_path / "fast", tmp_path / "image"
    for name, text in {**files, "main.py": MAIN}.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    hpcgen(project, "init")
    hpcgen(project, "build", "--site", "here", "--engine", "ch-image", "-o", str(image))
    assert "total 5.0" in hpcgen(project, "run", str(image))
    remove(image)
