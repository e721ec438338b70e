"""``hpcgen init`` in projects whose setup.py compiles modules."""

from __future__ import annotations

from pathlib import Path

from hpcgen.project.extensions import COMPILE
from tests.unit.project.test_containers import drafted, remarks

CYTHON = """\
from setuptools import Extension, setup
from Cython.Build import cythonize
import numpy
from tools import flags

paths = [numpy.get_include()]
kernels = Extension("fast.kernels", ["fast/kernels.pyx"], include_dirs=paths, extra_compile_args=flags())
setup(name="fast", install_requires=["numpy"], ext_modules=cythonize([kernels]))
"""
CUDA = """\
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CUDAExtension

modules = [CUDAExtension(name="attention_cuda", sources=["csrc/attention.cpp", "csrc/attention.cu"])]
setup(name="folding", install_requires=["torch"], ext_modules=modules, cmdclass={"build_ext": BuildExtension})
"""
MAIN = "import numpy\nimport fast.kernels\n\nif __name__ == '__main__':\n    print(fast.kernels.sum(numpy.ones(3)))\n"


def test_modules_are_compiled_in_the_place_of_their_files(tmp_path: Path) -> None:
    files = {"setup.py": CYTHON, "tools.py": "def flags():\n    return []\n", "main.py": MAIN, "fast/kernels.pyx": ""}
    draft = drafted(tmp_path, {**files, "Dockerfile": "FROM python:3.12\nRUN python3 setup.py install\n"})
    assert draft.data["build"] == {"commands": [COMPILE]}
    assert draft.blocks["python_packages"]["options"] == {
        "files": ["setup.py"],
        "requirements": ["cython", "setuptools"],
    }
    why = [each.why for each in draft.guesses if each.path == ("build", "commands")]
    assert why == ["setup.py compiles fast.kernels; here in the place of its files"]
    assert "setup.py install" not in remarks(draft)


def test_code_for_gpus_brings_its_compiler(tmp_path: Path) -> None:
    files = {"setup.py": CUDA, "train.py": "import torch\nimport attention_cuda\ntorch.ones(3).cuda()\n"}
    draft = drafted(tmp_path, files)
    assert draft.data["build"] == {"commands": [COMPILE]}
    assert draft.blocks["pytorch"] == {"options": {"extensions": True}} and "cuda" not in draft.blocks
    assert draft.blocks["python_packages"]["options"]["requirements"] == ["setuptools"]


def test_of_conda_they_are_compiled_with_what_its_list_has(tmp_path: Path) -> None:
    conda = "channels: [conda-forge]\ndependencies: [python=3.11, pytorch=2.5, setuptools]\n"
    files = {"environment.yml": conda, "setup.py": CUDA.replace('"torch"', ""), "train.py": "import torch\n"}
    draft = drafted(tmp_path, files)
    assert draft.blocks["conda_packages"] == {"options": {"files": ["environment.yml"]}}
    assert draft.data["build"] == {"commands": [COMPILE]}


def test_a_project_that_compiles_nothing_has_no_build(tmp_path: Path) -> None:
    plain = 'from setuptools import setup\nsetup(name="plain", install_requires=["numpy"])\n'
    assert "build" not in drafted(tmp_path, {"setup.py": plain, "main.py": "import numpy\n"}).data


def test_an_extension_by_another_name_is_seen(tmp_path: Path) -> None:
    """As detectron2 has it: which class it is depends on the machine."""
    text = (
        "import torch\nfrom setuptools import setup\n"
        "from torch.utils.cpp_extension import CppExtension, CUDAExtension\n"
        "def extensions():\n    extension = CppExtension\n    if torch.cuda.is_available():\n"
        "        extension = CUDAExtension\n    return [extension('detect._C', ['csrc/vision.cpp'])]\n"
        "setup(name='detect', install_requires=['torch'], ext_modules=extensions())\n"
    )
    draft = drafted(tmp_path, {"setup.py": text, "train.py": "import torch\n"})
    assert draft.data["build"] == {"commands": [COMPILE]}
    assert draft.blocks["pytorch"] == {"options": {"extensions": True}}


def test_a_setup_py_that_is_not_read_costs_nothing_where_another_list_is_taken(tmp_path: Path) -> None:
    files = {"setup.py": "print 'of Python 2'\n", "requirements.txt": "numpy\n", "main.py": "import numpy\n"}
    draft = drafted(tmp_path, files)
    assert "build" not in draft.data
    assert draft.blocks["python_packages"]["options"] == {"files": ["requirements.txt"]}
    assert not draft.problems


BACKEND = """\
[build-system]
requires = ["{requires}", "Old; python_version < '3'"]
build-backend = "{backend}"
[project]
name = "fold"
dependencies = ["numpy"]
"""


def test_what_a_backend_compiles_is_put_in_the_place_of_the_files(tmp_path: Path) -> None:
    text = BACKEND.format(requires="scikit_build_core>=0.10", backend="scikit_build_core.build")
    cmake = "project(fold CXX)\nfind_package(Boost REQUIRED)\nadd_library(core c.cpp)\n"
    files = {"pyproject.toml": text + "dynamic = ['version']\n[tool.setuptools_scm]\n", "CMakeLists.txt": cmake}
    draft = drafted(tmp_path, {**files, "src/fold/__init__.py": "", "main.py": "import fold.core, numpy\n"})
    install, place = draft.data["build"]["commands"]
    assert install.startswith("SETUPTOOLS_SCM_PRETEND_VERSION=0 python3 -m pip install --no-deps --no-build-isolation ")
    assert place == "cp -r build/installed/. src && rm -r build/installed"
    wanted = ["scikit-build-core>=0.10", "setuptools-scm"]
    assert draft.blocks["python_packages"]["options"] == {"files": ["pyproject.toml"], "requirements": wanted}
    assert "libboost-dev" in draft.blocks["os_packages"]["options"]["packages"]
    assert "init finds no program" not in remarks(draft)
    assert draft.data["run"]["environment"] == {"PYTHONPATH": "/app/src"}


def test_meson_needs_ninja_and_a_plain_backend_nothing(tmp_path: Path) -> None:
    files = {"fold/__init__.py": "", "main.py": "import numpy\n", "meson.build": "project('fold', 'cpp')\n"}
    text = BACKEND.format(requires="meson-python", backend="mesonpy")
    draft = drafted(tmp_path, {**files, "pyproject.toml": text})
    assert draft.data["build"]["commands"][1].startswith("cp -r build/installed/. . && ")
    assert draft.blocks["python_packages"]["options"]["requirements"] == ["meson-python", "ninja"]
    (tmp_path / "meson.build").unlink()
    plain = BACKEND.format(requires="hatchling", backend="hatchling.build")
    assert "build" not in drafted(tmp_path, {"pyproject.toml": plain}).data
