"""pyproject.toml: PEP 621, dependency groups, and Poetry's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError
from hpcgen.core.model.project import PackageFile
from hpcgen.readers.pyproject import pep440
from hpcgen.readers.python_files import read_packages


def read(folder: Path, text: str) -> PackageFile:
    (folder / "pyproject.toml").write_text(text)
    return read_packages(folder, "pyproject.toml")


def said(found: PackageFile) -> dict[str, list[str]]:
    return {name: [each.line for each in group] for name, group in found.groups.items()}


def test_dependencies_have_their_lines(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[build-system]\nrequires = ["hatchling"]\n[project]\nname = "demo"\nrequires-python = ">=3.10"\n'
        'dependencies = [\n  "numpy>=1.26",\n  \'h5py; python_version<"3.13"\', # two\n]\n'
        '[project.optional-dependencies]\nplot = ["matplotlib"]\nall = ["demo[plot]", "rich"]\n'
        '[dependency-groups]\ntest = ["pytest"]\ndev = [{include-group = "test"}, "ruff"]\n',
    )
    assert [(each.line, each.origin) for each in found.requirements] == [
        ("numpy>=1.26", "pyproject.toml:7"),
        ('h5py ; python_version < "3.13"', "pyproject.toml:8"),
    ]
    assert said(found) == {
        "all": ["matplotlib", "rich"],
        "dev": ["pytest", "ruff"],
        "plot": ["matplotlib"],
        "test": ["pytest"],
    }
    assert (found.requires_python, str(found.python_where)) == (">=3.10", "pyproject.toml:5:1")


def test_tables_of_poetry_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        '[tool.poetry.dependencies]\npython = "^3.10"\nnumpy = "^1.26"\n'
        'pandas = {version = "~2.1", extras = ["sql"], python = ">=3.11"}\nmpi4py = {version = "*", optional = true}\n'
        '[tool.poetry.extras]\nmpi = ["mpi4py"]\n[tool.poetry.group.dev.dependencies]\npytest = "8.0"\n',
    )
    assert [(each.line, each.origin) for each in found.requirements] == [
        ("numpy<2,>=1.26", "pyproject.toml:3"),
        ('pandas[sql]<2.2,>=2.1 ; python_full_version >= "3.11"', "pyproject.toml:4"),
    ]
    assert said(found) == {"dev": ["pytest==8.0"], "mpi": ["mpi4py"]}
    assert found.requires_python == ">=3.10,<4"


@pytest.mark.parametrize(
    ("poetry", "pip"),
    [
        ("^1.2.3", ">=1.2.3,<2"),
        ("^0.2.3", ">=0.2.3,<0.3"),
        ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"),
        ("~1.2.3", ">=1.2.3,<1.3"),
        ("~1", ">=1,<2"),
        ("1.*", "==1.*"),
        (">= 1.2, < 3", ">=1.2,<3"),
        (">=1.2 <3", ">=1.2,<3"),
        ("*", ""),
        ("=1.5", "==1.5"),
        ("^2.0rc1", ">=2.0rc1,<3"),
    ],
)
def test_ranges_of_poetry(poetry: str, pip: str) -> None:
    assert pep440(poetry) == pip


def test_all_mistakes_are_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(
            tmp_path,
            '[project]\nrequires-python = "newest"\ndynamic = ["dependencies"]\ndependencies = [\n "numpy=>1",\n'
            ' "own @ file:///srv/own"]\n[dependency-groups]\na = [{include-group = "a"}]\n'
            '[tool.poetry.group.x.dependencies]\ny = {git = "https://example.org/y"}\nz = "1 || 2"\n',
        )
    places = [str(each.where).rpartition("/")[2] for each in caught.value.problems]
    assert sorted(places) == sorted(
        [
            "pyproject.toml:5:2",
            "pyproject.toml:6:2",
            "pyproject.toml:3:1",
            "pyproject.toml:8:1",
            "pyproject.toml:11:1",
            "pyproject.toml:2:1",
        ]
    )


@pytest.mark.parametrize(
    "text", ["[project\n", "a = " + "[" * 100_000, 'x = "', "dependencies = 3\n[project]\ndependencies = 3\n"]
)
def test_what_is_no_toml_or_of_the_wrong_type_is_said(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError, match=r"pyproject\.toml|nested"):
        read(tmp_path, text)


@pytest.mark.parametrize(
    "tables",
    [
        '[tool.setuptools.dynamic]\ndependencies = {file = "a.txt"}\noptional-dependencies.GPU = {file = ["b.txt"]}\n',
        '[tool.hatch.metadata.hooks.requirements_txt]\nfiles = ["a.txt"]\noptional-dependencies.GPU = ["b.txt"]\n',
    ],
)
def test_lists_of_a_backend_are_dependencies_and_extras(tmp_path: Path, tables: str) -> None:
    (tmp_path / "a.txt").write_text("numpy\n")
    (tmp_path / "b.txt").write_text("cupy-cuda12x\n")
    dynamic = 'dynamic = ["dependencies", "optional-dependencies"]'
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\n{dynamic}\n{tables}')
    found = read_packages(tmp_path, "pyproject.toml")
    assert [each.asked for each in found.requirements] == ["numpy"]
    assert {name: [each.asked for each in group] for name, group in found.groups.items()} == {"gpu": ["cupy-cuda12x"]}


def test_lists_that_setuptools_reads_are_the_dependencies(tmp_path: Path) -> None:
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps/base.txt").write_text("numpy>=1.26\n-r more.txt\n")
    (tmp_path / "deps/more.txt").write_text("h5py\n")
    table = '[tool.setuptools.dynamic]\ndependencies = {file = ["deps/base.txt"]}\n'
    (tmp_path / "pyproject.toml").write_text(f'[project]\nname = "x"\ndynamic = ["dependencies"]\n{table}')
    found = read_packages(tmp_path, "pyproject.toml")
    assert [(each.asked, each.origin) for each in found.requirements] == [
        ("numpy>=1.26", "deps/base.txt:1"),
        ("h5py", "deps/more.txt:1"),
    ]
    assert sorted(found.read) == ["deps/base.txt", "deps/more.txt", "pyproject.toml"]
