"""CMakeLists.txt, Makefiles and apt.txt, read as text."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.errors import InputError, Problems
from hpcgen.readers.apt_txt import read_apt
from hpcgen.readers.cmake import read_cmake
from hpcgen.readers.folder import ProjectFolder, project_tree
from hpcgen.readers.makefile import read_makefile


def written(folder: Path, files: dict[str, str]) -> ProjectFolder:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return ProjectFolder(folder)


def test_cmake_says_what_it_makes_and_asks_for(tmp_path: Path) -> None:
    text = """\
cmake_minimum_required ( VERSION 3.25 )
# find_package(OpenSSL)
PROJECT(x LANGUAGES CXX Fortran)
find_package(
    MPI REQUIRED)
find_package(FFTW3)
add_executable(a $<1:a.cpp>)
add_executable(b ALIAS a)
add_subdirectory(lib)
add_subdirectory(../outside)
add_subdirectory(.)
"""
    folder = written(tmp_path / "p", {"CMakeLists.txt": text, "lib/CMakeLists.txt": "add_executable(c c.cpp)\n"})
    written(tmp_path, {"outside/CMakeLists.txt": "add_executable(d d.cpp)"})
    with pytest.raises(InputError, match="leads out of the folder"):
        read_cmake(folder)
    written(tmp_path / "p", {"CMakeLists.txt": text.replace("add_subdirectory(../outside)\n", "")})
    found = read_cmake(ProjectFolder(tmp_path / "p"))
    assert [each.path for each in found.programs] == ["build/a", "build/lib/c"]
    assert found.mpi is not None and str(found.mpi.where) == "CMakeLists.txt:4:1"
    assert found.fortran is not None and found.minimum is not None and found.minimum.text == "3.25"
    assert [each.name for each in found.libraries] == ["FFTW3"]


@pytest.mark.parametrize(
    ("text", "mpi", "programs", "weak"),
    [
        ("CC = mpicc\na: a.c\n\t$(CC) -o $@ $<\n", "mpicc", ["a"], {}),
        ("CXX ?= mpicxx\nall: b\nb:\n\t$(CXX) x.o -o b\n", "mpicxx", ["b"], {"CXX": "mpicxx"}),
        ("EXE=run\n$(EXE): x.o\n\tmpif90 -o $(EXE) x.o\n%.o: %.f90\n\tmpif90 -c -o $@ $<\n", "mpif90", ["run"], {}),
        ("test:\n\tpytest\n# mpicc\n", None, [], {}),
        ("all: two\none: a.c\n\tcc -o one a.c\ntwo: b.c\n\tcc -o two b.c\n", None, ["two", "one"], {}),
        ("A = $(A)\n$(A): x\n\tcc -o $(A) x\n", None, [], {}),
    ],
)
def test_makefiles(tmp_path: Path, text: str, mpi: str | None, programs: list[str], weak: dict[str, str]) -> None:
    found = read_makefile(written(tmp_path, {"Makefile": text}), "Makefile")
    assert (found.mpi.text if found.mpi else None) == mpi
    assert [each.path for each in found.programs] == programs
    assert {name: each.text for name, each in found.weak.items()} == weak


def test_apt_txt_keeps_what_is_right_and_tells_the_rest(tmp_path: Path) -> None:
    problems = Problems()
    folder = written(tmp_path, {"apt.txt": "# tools\ngit  make\n\ngit # again\nx=1 -y\nnumactl"})
    assert [each.text for each in read_apt(folder, "apt.txt", problems)] == ["git", "make", "numactl"]
    assert [str(each.where).rpartition("/")[2] for each in problems] == ["apt.txt:5:1", "apt.txt:5:5"]


def test_the_tree_is_not_left_and_environments_are_not_entered(tmp_path: Path) -> None:
    written(
        tmp_path / "p",
        {"a.py": "", "venv/pyvenv.cfg": "", "venv/x.py": "", "s/.h/x": "", "s/y": "12", "b/CMakeCache.txt": ""},
    )
    (tmp_path / "p/out").symlink_to(tmp_path)
    (tmp_path / "p/s/loop").symlink_to(tmp_path / "p")
    tree = project_tree(tmp_path / "p")
    assert sorted(each.path for each in tree.files) == ["a.py", "s/y"]
    assert {each.name: each.kind for each in tree.tops if each.kind} == {
        "b": "cmake",
        "out": "link",
        "venv": "environment",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CMakeLists.txt", "project(x LANGUAGES CXX CUDA)\n"),
        ("CMakeLists.txt", "find_package(CUDAToolkit 12 REQUIRED)\n"),
        ("Makefile", "a: a.cu\n\tnvcc -o a a.cu\n"),
    ],
)
def test_code_for_gpus_is_seen(tmp_path: Path, name: str, text: str) -> None:
    folder = written(tmp_path, {name: text})
    found = read_cmake(folder) if name == "CMakeLists.txt" else read_makefile(folder, name)
    assert found.gpus is not None and found.libraries == []
