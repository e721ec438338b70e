"""Projects that have to be compiled: what their stacks say, and what plans repeat."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(grid CXX)
option(GRID_MPI "Ranks" OFF)
if(GRID_MPI)
  find_package(MPI REQUIRED)
endif()
find_package(Kokkos REQUIRED)
find_package(FFTW3 REQUIRED)
find_package(Boost REQUIRED COMPONENTS filesystem mpi)
add_executable(grid grid.cpp)
"""


def test_a_stack_says_what_is_missing_and_plans_repeat_it(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p/CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "p/grid.cpp").write_text("int main() {}\n")
    (tmp_path / "p/away").symlink_to("nowhere")
    assert hpcgen("init", "p").returncode == 0
    text = (tmp_path / "p/hpcgen.yaml").read_text("utf-8")
    assert "cmake -B build -DCMAKE_BUILD_TYPE=Release -DGRID_MPI=ON" in text and "command: [/app/build/grid]" in text
    assert "packages: [libfftw3-dev, libboost-dev, libboost-filesystem-dev]" in text
    assert "dnf: [fftw-devel, boost-devel]" in text and "libboost-all-dev" not in text
    done = hpcgen("plan", "--site", "supermuc", "--stack", "p/hpcgen.yaml")
    assert done.returncode == 0
    for line, library in ((7, "Kokkos"), (9, "Boost.MPI")):
        said = next(each for each in done.stderr.splitlines() if f"CMakeLists.txt:{line}:" in each)
        assert "warning" in said and library in said


def test_submodules_that_are_missing_are_told(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "p/deps/there").mkdir(parents=True)
    (tmp_path / "p/deps/there/x").write_text("")
    (tmp_path / "p/Makefile").write_text("a: a.o\n\tcc -o a a.o\n")
    modules = "".join(f'[submodule "{name}"]\n  path = deps/{name}\n' for name in ("there", "gone"))
    (tmp_path / "p/.gitmodules").write_text(modules)
    text = hpcgen("init", "p", "--dry-run").stdout
    assert ".gitmodules:4: submodules that are not here: deps/gone" in text
