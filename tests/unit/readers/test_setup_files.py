"""setup.py and setup.cfg, read without running anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.core.model.project import PackageFile
from hpcgen.readers.folder import PartlyReadError, ProjectFolder
from hpcgen.readers.python_files import read_packages
from hpcgen.readers.setup_cfg import read_setup_cfg_table
from hpcgen.readers.setup_py import read_setup_table

SETUP = """\
import os
from setuptools import setup
raise SystemExit("run")
with open("requirements/base.txt") as file:
    base = file.read().splitlines()
_version = "1.2"
plain = ["numpy>=1", f"jax>={_version}"]
def listed(path):
    return [line for line in open(path)]
def computed():
    return os.environ["X"].split()
setup(
    name="Pkg",
    description="What it is",
    python_requires=">=3.9",
    install_requires=plain + base + ["tqdm"] + listed("more.txt") + computed(),
    extras_require={"fast": ["numba"], "own": ["x @ file:///srv/x"]},
    entry_points={"console_scripts": ["train = pkg.train:main"]},
)
"""


def packages(folder: Path, files: dict[str, str], name: str) -> PackageFile:
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text, "utf-8")
    return read_packages(folder, name)


def test_setup_py_is_read_without_being_run(tmp_path: Path) -> None:
    files = {"setup.py": SETUP, "requirements/base.txt": "scipy\n", "more.txt": "h5py==3.11\n"}
    found = packages(tmp_path, files, "setup.py")
    assert [(each.asked, each.origin) for each in found.requirements] == [
        ("numpy>=1", "setup.py:7"),
        ("jax>=1.2", "setup.py:7"),
        ("tqdm", "setup.py:16"),
        ("scipy", "requirements/base.txt:1"),
        ("h5py==3.11", "more.txt:1"),
    ]
    assert found.requires_python == ">=3.9" and [each.name for each in found.groups["fast"]] == ["numba"]
    assert any("computed() is computed" in each.text.replace("'", "") for each in found.notes)
    assert any("left out of the extra own" in each.text for each in found.notes)
    assert sorted(found.read) == ["more.txt", "requirements/base.txt", "setup.py"]
    table = read_setup_table(ProjectFolder(tmp_path), "setup.py")
    assert table.name is not None and table.name.text == "Pkg" and table.scripts["train"].text == "pkg.train:main"


def test_setup_py_that_is_wrong_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    text = "setup(install_requires=['torch @ https://example.org/torch-2.0-cp310-cp310-linux_x86_64.whl', 'numpy'])\n"
    with pytest.raises(PartlyReadError) as error:
        packages(tmp_path, {"setup.py": text}, "setup.py")
    assert [each.name for each in error.value.file.requirements] == ["numpy"]
    assert [each.text for each in error.value.file.refused] == ["torch"]
    with pytest.raises(InputError, match="not valid Python"):
        packages(tmp_path, {"setup.py": "setup(\n"}, "setup.py")


def test_setup_cfg(tmp_path: Path) -> None:
    text = """\
[metadata]
name = pkg
[options]
python_requires = >=3.8
install_requires =
    torch>=2
    # for pictures:
    matplotlib  # here
[options.extras_require]
dev = pytest
[options.entry_points]
console_scripts =
    train = pkg.train:main
"""
    found = packages(tmp_path, {"setup.cfg": text}, "setup.cfg")
    assert [(each.asked, each.origin) for each in found.requirements] == [
        ("torch>=2", "setup.cfg:6"),
        ("matplotlib", "setup.cfg:8"),
    ]
    assert found.group_names == ["dev"] and found.requires_python == ">=3.8"
    assert read_setup_cfg_table(ProjectFolder(tmp_path), "setup.cfg").scripts["train"].text == "pkg.train:main"
    listed = {"setup.cfg": "[options]\ninstall_requires = file: a.txt, b.txt\n", "a.txt": "x\n", "b.txt": "y\n"}
    assert [each.name for each in packages(tmp_path, listed, "setup.cfg").requirements] == ["x", "y"]
    with pytest.raises(InputError, match="not an INI file of sections"):
        packages(tmp_path, {"setup.cfg": "what\n"}, "setup.cfg")


def test_the_project_itself_in_a_list_is_what_its_setup_asks_for(tmp_path: Path) -> None:
    files = {
        "requirements.txt": "-e .[fast]\n",
        "pyproject.toml": "[build-system]\nrequires = []\n",
        "setup.py": "setup(install_requires=['scipy'], extras_require={'fast': ['numba']})\n",
    }
    assert [each.name for each in packages(tmp_path, files, "requirements.txt").requirements] == ["scipy", "numba"]
