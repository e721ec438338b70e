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


@pytest.mark.slow
def test_modules_that_setup_py_compiles_are_there(hpcgen: Here, tmp_path: Path) -> None:
    project, image = tmp_path / "fast", tmp_path / "image"
    (project / "fast").mkdir(parents=True)
    for name, text in {"setup.py": SETUP, "fast/__init__.py": "", "fast/kernels.pyx": KERNELS, "main.py": MAIN}.items():
        (project / name).write_text(text)
    hpcgen(project, "init")
    hpcgen(project, "build", "--site", "here", "--engine", "ch-image", "-o", str(image))
    assert "total 5.0" in hpcgen(project, "run", str(image))
    remove(image)
