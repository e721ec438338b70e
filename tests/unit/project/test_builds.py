"""Projects that have to be compiled: what their stacks say, and what plans repeat."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.project.draft import Draft
from hpcgen.project.making import draft_of
from tests.conftest import Command

CMAKE = """\
cmake_minimum_required(VERSION 3.16)
project(grid CXX)
option(GRID_MPI "Ranks" OFF)
if(GRID_MPI)
  find_package(MPI REQUIRED)
endif()
find_package(PETSc REQUIRED)
find_package(SLEPc REQUIRED)
find_package(FFTW3 REQUIRED)
find_package(Boost REQUIRED COMPONENTS filesystem mpi)
find_package(Kokkos 3.0 REQUIRED)
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
    assert "packages: [libfftw3-dev]" in text and "dnf: [fftw-devel]" in text
    assert "boost: {options: {libraries: [filesystem]}}" in text
    done = hpcgen("plan", "--site", "supermuc", "--stack", "p/hpcgen.yaml")
    assert done.returncode == 0 and "stack p asks for kokkos" in done.stdout and "asks for petsc" in done.stdout
    said = next(each for each in done.stderr.splitlines() if "CMakeLists.txt:8:" in each)
    assert "warning" in said and "SLEPc" in said


def test_submodules_that_are_missing_are_told(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "p/deps/there").mkdir(parents=True)
    (tmp_path / "p/deps/there/x").write_text("")
    (tmp_path / "p/Makefile").write_text("a: a.o\n\tcc -Ideps/gone -o a a.o\n")
    names = ("deps/there", "deps/gone", "assets/packaging")
    modules = "".join(f'[submodule "{name}"]\n  path = {name}\n' for name in names)
    (tmp_path / "p/.gitmodules").write_text(modules)
    text = hpcgen("init", "p", "--dry-run").stdout
    assert ".gitmodules:4: submodules that are not here: deps/gone: " in text


MAKE = "test_flow: main.cpp\n\tmpicxx -o test_flow main.cpp\n"


def made(folder: Path, files: dict[str, str], asked: str = "") -> Draft:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    return draft_of(folder, Catalog(), asked)


@pytest.mark.parametrize(
    "files",
    [
        {
            "plot/plot2d.py": "import matplotlib\nif __name__ == '__main__':\n    1\n",
            "README.md": "`python plot/plot2d.py`\n",
        },
        {"movie.sh": "python3 frames.py\n", "frames.py": "import matplotlib\nprint(1)\n"},
        {"runtests.sh": "mpirun -n 2 ./test_flow --short\n"},
    ],
)
def test_what_is_compiled_comes_before_tools_and_tests_beside_it(tmp_path: Path, files: dict[str, str]) -> None:
    draft = made(tmp_path, {"Makefile": MAKE, "main.cpp": "", **files})
    assert draft.data["run"]["command"] == ["/app/test_flow"]


def test_a_tool_in_python_is_not_the_program_of_what_cannot_be_compiled_yet(tmp_path: Path) -> None:
    tool = "import sys\nif __name__ == '__main__':\n    print(sys.argv)\n"
    draft = made(tmp_path, {"CMakeLists.txt": "project(a CXX)\ninclude(gone/lists.cmake)\n", "tools/diff.py": tool})
    assert "command" not in draft.data["run"] and "python" not in draft.blocks


def test_a_line_of_code_in_a_readme_starts_the_program(tmp_path: Path) -> None:
    text = "`mpirun -np ranks test_flow nx ny`\n\nfor example\n\n`mpirun -np 16 ./test_flow 20 30`\n\nand `so on`.\n"
    draft = made(tmp_path, {"Makefile": MAKE, "main.cpp": "", "README.md": text})
    assert draft.data["run"]["command"] == ["/app/test_flow", "20", "30"]
    assert [each.words for each in draft.options] == [("--ranks-per-node", "16")]


def test_the_only_input_of_a_name_is_the_one_that_a_readme_means(tmp_path: Path) -> None:
    text = "```\nmpirun -np 4 ./test_flow -i ../input/in.lj box.nml out.nml\n```\n"
    inputs = {"input/in.lj": "", "cases/box/box.nml": "", "cases/box/reference/old/box.nml": ""}
    draft = made(tmp_path, {"Makefile": MAKE, "main.cpp": "", "README.md": text, **inputs})
    assert draft.data["run"]["command"][1:] == ["-i", "/app/input/in.lj", "/app/cases/box/box.nml", "out.nml"]


def test_sizes_of_a_scaling_study_are_jobs_of_their_own(tmp_path: Path) -> None:
    study = "mpirun -np 1 ../test_flow -i 1\nmpirun -np 8 ../test_flow -i 8\n"
    draft = made(tmp_path, {"Makefile": MAKE, "main.cpp": "", "runs/scaling.sh": study})
    assert draft.data["run"]["command"] == ["/app/test_flow", "-i", "1"]
    assert any("submit it there" in each.text for each in draft.remarks)
    assert draft_of(tmp_path, Catalog(), "2").data["run"]["command"] == ["/app/test_flow", "-i", "8"]


@pytest.mark.parametrize(
    ("makefile", "words"),
    [("CXX = CC\n", "CXX=mpicxx"), ("CXX = g++ -O3\n", "'CXX=mpicxx -O3'"), ("CXX = mpic++\n", "")],
)
def test_compilers_have_the_mpi_that_only_sources_ask_for(tmp_path: Path, makefile: str, words: str) -> None:
    rule = "flow: main.o\n\t$(CXX) -o flow main.o\n"
    draft = made(tmp_path, {"Makefile": makefile + rule, "main.cpp": "#include <mpi.h>\n"})
    assert draft.data["build"]["commands"] == [f'make -j "$(nproc)" {words}'.strip()] and "mpi" in draft.blocks


def test_a_plain_readme_starts_the_program_whose_name_it_writes_small(tmp_path: Path) -> None:
    text = (
        "Flow\n====\n\nE.g.:\nmpiexec -n 2 bin/./flow -f karate.bin\nmpiexec -n 2 bin/./flow -n 100\nmpirun is needed\n"
    )
    draft = made(tmp_path, {"Makefile": "Flow: a.o\n\tmpicxx -o Flow a.o\n", "README": text})
    assert draft.data["run"]["command"] == ["/app/Flow", "-n", "100"]


def test_fortran_has_its_own_netcdf(tmp_path: Path) -> None:
    text = "project(a Fortran)\nfind_package(NetCDF REQUIRED)\nadd_executable(a a.f90)\n"
    draft = made(tmp_path / "f", {"CMakeLists.txt": text})
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libnetcdf-dev", "libnetcdff-dev"]
    draft = made(tmp_path / "c", {"CMakeLists.txt": text.replace("a Fortran", "a C")})
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libnetcdf-dev"]


@pytest.mark.parametrize(
    ("asked", "blocks", "packages"),
    [
        ("HDF5 REQUIRED", {"hdf5": {}}, []),
        ("MPI REQUIRED)\nfind_package(HDF5 REQUIRED COMPONENTS CXX", {}, ["libhdf5-dev"]),
        ("netCDF REQUIRED)\nfind_package(CGNS REQUIRED", {}, ["libnetcdf-dev", "libcgns-dev"]),
        ("NetCDF REQUIRED)\nfind_package(PnetCDF REQUIRED", {"netcdf": {}, "pnetcdf": {}}, []),
        ("FFTW3 REQUIRED", {}, ["libfftw3-dev"]),
        ("FFTW3 REQUIRED COMPONENTS MPI DOUBLE", {"fftw": {}}, []),
        ("ADIOS2 REQUIRED)\nfind_package(SCALAPACK REQUIRED", {"adios2": {}, "scalapack": {}}, []),
        ("HDF5", {}, ["libhdf5-dev"]),
        ("HDF5)\nfind_package(netCDF REQUIRED", {"hdf5": {}, "netcdf": {}}, []),
        ("PnetCDF", {}, []),
    ],
)
def test_libraries_of_a_program_over_mpi_are_over_the_images(
    tmp_path: Path, asked: str, blocks: dict[str, object], packages: list[str]
) -> None:
    text = f"project(a C)\nfind_package(MPI REQUIRED)\nfind_package({asked})\nadd_executable(a a.c)\n"
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert {name: said for name, said in draft.blocks.items() if name not in ("mpi", "os_packages")} == blocks
    assert draft.blocks.get("os_packages", {"options": {"packages": []}})["options"]["packages"] == packages
    assert not draft.data.get("open")


def test_the_fortran_interface_of_a_library_over_mpi(tmp_path: Path) -> None:
    text = "project(a Fortran)\nfind_package(MPI)\nfind_package(NetCDF REQUIRED)\nadd_executable(a a.f90)\n"
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert draft.blocks["netcdf"] == draft.blocks["gnu"] == {"options": {"fortran": True}}
    assert "os_packages" not in draft.blocks


def test_modules_of_pkg_config_bring_it_for_the_build(tmp_path: Path) -> None:
    text = "project(a C)\nfind_package(PkgConfig)\npkg_check_modules(P REQUIRED PETSc)\nadd_executable(a a.c)\n"
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert "petsc" in draft.blocks and "pkg-config" in draft.blocks["os_packages"]["options"]["build_only"]


def test_what_is_only_there_over_mpi_brings_mpi(tmp_path: Path) -> None:
    text = "project(a C)\nfind_package(PETSc REQUIRED)\nadd_executable(a a.c)\n"
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert {"mpi", "petsc"} <= set(draft.blocks) and draft.data["build"]["mpi"] is True


def test_a_readme_beside_the_build_and_ranks_that_do_not_come_out_even(tmp_path: Path) -> None:
    files = {"ref/Makefile": MAKE, "ref/main.cpp": "", "ref/README": "mpirun -np 27 -N 7 test_flow --nx 3\n"}
    draft = made(tmp_path, files)
    assert draft.data["run"]["command"] == ["/app/ref/test_flow", "--nx", "3"]
    assert [each.words for each in draft.options] == [("--ranks-per-node", "27")]


def test_a_program_of_make_for_gpus_has_a_compiler_for_them(tmp_path: Path) -> None:
    rules = "flow: heat.o\n\tmpicxx -o flow heat.o -lcudart\n%.o: %.cu\n\tnvcc -c $<\n"
    draft = made(tmp_path, {"Makefile": rules, "heat.cu": ""})
    assert draft.blocks["cuda"] == {"options": {"obtain": "archive"}} and "gpus_per_node" not in draft.data["run"]


def test_a_package_that_a_module_of_the_project_downloads_is_not_missing(tmp_path: Path) -> None:
    text = "project(a C)\nfind_package(grid-lib REQUIRED)\nfind_package(YamlCpp REQUIRED)\nadd_executable(a a.c)\n"
    module = 'set(_url "https://example.org/grid-lib")\nfind_or_fetch(grid-lib ${_url})\n'
    draft = made(tmp_path, {"CMakeLists.txt": text, "cmake/modules/Findgrid-lib.cmake": module})
    assert "open" not in draft.data and any("Findgrid-lib.cmake downloads it" in each.text for each in draft.remarks)
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libyaml-cpp-dev"]


def test_hidden_files_that_the_build_names_are_copied(tmp_path: Path) -> None:
    rules = "DEPS := src/.order.awk\nV = $(shell cat .version .env .missing)\n"
    files = {"src/.order.awk": "", ".version": "1", ".env": "A=1", ".other": "", "main.cpp": ""}
    draft = made(tmp_path, {"Makefile": f"{MAKE}{rules}", **files})
    assert draft.data["copy"][0]["ignore"][0] == ".[!ov]*"
    draft = made(tmp_path, {"Makefile": MAKE})
    assert draft.data["copy"][0]["ignore"][0] == ".*"


def test_what_only_draws_pictures_of_results_brings_no_packages(tmp_path: Path) -> None:
    files = {"Makefile": MAKE, "main.cpp": "", "utils/plot.py": "import matplotlib\nimport unheard_of\nprint(1)\n"}
    draft = made(tmp_path, files)
    assert list(draft.blocks) == ["mpi"] and not draft.remarks
    (tmp_path / "requirements.txt").write_text("numpy\n")
    assert draft_of(tmp_path, Catalog()).blocks["python_packages"]["options"]["requirements"] == ["matplotlib"]


def test_a_target_that_the_readme_makes_first(tmp_path: Path) -> None:
    rules = f"{MAKE}libs:\n\t$(MAKE) -C deps\nclean:\n\trm *.o\n"
    draft = made(tmp_path, {"Makefile": rules, "main.cpp": "", "README.md": "Compile by `make libs && make`.\n"})
    assert draft.data["build"]["commands"] == ["make libs", 'make -j "$(nproc)"']
    draft = made(tmp_path, {"README.md": "Again: `make clean && make`, `make libs && make check`.\n"})
    assert draft.data["build"]["commands"] == ['make -j "$(nproc)"']


def test_configure_goes_on_without_a_library_but_the_program_computes_less(tmp_path: Path) -> None:
    checks = "".join(f"AC_CHECK_LIB([{name}], [f], [yes=1], [yes=0])\n" for name in ("gsl", "curl", "fftw3"))
    draft = made(tmp_path, {"configure.ac": f"AC_INIT([bay])\n{checks}", "Makefile.am": "bin_PROGRAMS = bay\n"})
    assert draft.blocks["os_packages"]["options"]["packages"][3:] == ["libgsl-dev", "libfftw3-dev"]
    assert draft.blocks["os_packages"]["options"]["build_only"] == ["autoconf", "automake", "libtool"]


def test_what_compiles_stays_out_of_the_image_but_where_jobs_start_it(tmp_path: Path) -> None:
    files = {"Cargo.toml": '[package]\nname = "waves"\nversion = "0.1.0"\n', "src/main.rs": "fn main() {}\n"}
    draft = made(tmp_path, files)
    assert draft.blocks["os_packages"]["options"]["build_only"] == ["cargo", "rustc", "rust"]
    (tmp_path / "apt.txt").write_text("cargo\n")
    assert draft_of(tmp_path, Catalog()).blocks["os_packages"]["options"]["build_only"] == ["rustc", "rust"]
    (tmp_path / "apt.txt").unlink()
    draft = made(tmp_path, {"job.sh": "#!/bin/bash\n#SBATCH --nodes=1\nsrun rustc --version\n"})
    assert draft.blocks["os_packages"]["options"]["build_only"] == ["cargo"]


SYSTEM = "#if defined(__linux__)\n#include <sys/sysctl.h>\n#endif\n"


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("\n#include <sys/sysctl.h>\n", 2),
        ("#ifdef __APPLE__\n#include <mach.h>\n#else\n# include <sys/sysctl.h>\n#endif\n", 4),
        ("#ifndef FLOW_H\n#define FLOW_H\n#include <sys/sysctl.h>\n#endif\n", 3),
        (SYSTEM, 2),
        (SYSTEM.replace("__linux__", "__APPLE__"), None),
        (SYSTEM.replace("__linux__", "HAVE_SYSCTL"), None),
        ("#if defined(A) || defined(B)\n#elif __linux__\n#include <sys/sysctl.h>\n#endif\n", None),
        ("#ifdef __linux__\n#elif X\n#include <sys/sysctl.h>\n#endif\n", None),
        ('#include "sys/sysctl.h"\n', None),
    ],
)
def test_a_header_that_no_image_has_is_said(tmp_path: Path, source: str, line: int | None) -> None:
    draft = made(tmp_path, {"Makefile": MAKE, "main.cpp": "", "src/memory.c": source, "tests/t.c": SYSTEM})
    said = [each for each in draft.data.get("open", []) if "glibc 2.32 dropped it" in each]
    assert [each.split(": ")[0] for each in said] == ([] if line is None else [f"src/memory.c:{line}"])


FLOW_F = "program flow\n  include 'mpif.h'\nend\n"
FLOW_CMAKE = "project(flow Fortran)\nfind_package(MPI REQUIRED)\nadd_executable(flow flow.f90)\n"


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"Makefile": "F = mpif90\nflow:\n\t$(F) -o flow flow.f90\n"}, "'F=mpif90 -std=legacy'"),
        ({"Makefile": "FC = mpif90\nflow:\n\t${LD} -o flow flow.f90\nLD = ${FC}\n"}, "'FC=mpif90 -std=legacy'"),
        ({"CMakeLists.txt": FLOW_CMAKE}, '-DCMAKE_Fortran_FLAGS="$FFLAGS -std=legacy"'),
        (
            {"configure.ac": "AC_INIT([flow],[1])\nAC_PROG_FC\nACX_MPI\n", "Makefile.am": "bin_PROGRAMS = flow\n"},
            'FCFLAGS="$FCFLAGS -std=legacy" FFLAGS="$FFLAGS -std=legacy"',
        ),
    ],
)
def test_fortran_that_includes_mpif_has_calls_of_several_types(
    tmp_path: Path, files: dict[str, str], words: str
) -> None:
    draft = made(tmp_path, {**files, "flow.f90": FLOW_F})
    assert words in "\n".join(draft.data["build"]["commands"])
    (tmp_path / "flow.f90").write_text(FLOW_F.replace("include 'mpif.h'", "use mpi"))
    assert "legacy" not in str(draft_of(tmp_path, Catalog()).data)


@pytest.mark.parametrize(
    "files",
    [
        {"Makefile": "flow:\n\tmpif90 -o flow flow.f90\n"},
        {"Makefile": "F = mpif90\nifeq ($(F),mpif90)\nO = -O2\nendif\nflow:\n\t$(F) $O -o flow flow.f90\n"},
        {"CMakeLists.txt": f'{FLOW_CMAKE}set(CMAKE_Fortran_FLAGS "-O3")\n'},
    ],
)
def test_options_that_a_build_does_not_take_are_said(tmp_path: Path, files: dict[str, str]) -> None:
    draft = made(tmp_path, {**files, "flow.f90": FLOW_F})
    assert "legacy" not in str(draft.data["build"])
    assert any("needs -std=legacy" in each.text and str(each.where) == "flow.f90:2:1" for each in draft.remarks)


LIMIT = "double a = std::numeric_limits<double>::max();\n"


@pytest.mark.parametrize(
    ("source", "header", "place"),
    [
        (f"#include <vector>\n{LIMIT}", "", "flow.cpp:2"),
        ('#include "flow.h"\n', LIMIT, "src/flow.h:1"),
        (f"#ifdef X\n#include <random>\n#endif\n{LIMIT}", "", "flow.cpp:4"),
        (f"#ifdef X\n#include <limits>\n#endif\n{LIMIT}", "", ""),
        (f'#include "flow.h"\n{LIMIT}', "#include <limits>\n", ""),
        (f"#include <yaml.h>\n{LIMIT}", "", ""),
        (f"#include <random>\n{LIMIT}", "", ""),
        (f"// {LIMIT}", "", ""),
    ],
)
def test_a_header_of_cxx_that_no_other_brings_is_an_option(
    tmp_path: Path, source: str, header: str, place: str
) -> None:
    cmake = "project(flow CXX)\nadd_executable(flow flow.cpp)\n"
    draft = made(tmp_path, {"CMakeLists.txt": cmake, "flow.cpp": source, "src/flow.h": header})
    assert ('-DCMAKE_CXX_FLAGS="$CXXFLAGS -include limits"' in draft.data["build"]["commands"][0]) == bool(place)
    assert [str(each.where) for each in draft.guesses if each.value == "-include limits"] == [
        f"{place}:1" for _ in range(bool(place))
    ]
    (tmp_path / "CMakeLists.txt").write_text(f"{cmake}set(CMAKE_CXX_FLAGS -O3)\n")
    said = draft_of(tmp_path, Catalog()).data.get("open", [])
    assert [each for each in said if "needs -include limits" in each and each.startswith(place)] == said
    assert len(said) == bool(place)


def test_cmake_that_does_not_say_where_mpis_headers_are_has_its_compilers(tmp_path: Path) -> None:
    """It looks for no MPI, or links its libraries alone, as HPCG does, which is meant for mpicxx."""
    cmake = "project(wave C)\nadd_executable(wave wave.c)\n"
    draft = made(tmp_path, {"CMakeLists.txt": cmake, "wave.c": "#include <mpi.h>\n"})
    assert "-DCMAKE_C_COMPILER=mpicc -DCMAKE_CXX_COMPILER=mpicxx" in draft.data["build"]["commands"][0]
    for used, by in (("${MPI_C_LIBRARIES}", True), ("MPI::MPI_C", False)):
        text = f"{cmake}find_package(MPI REQUIRED)\ntarget_link_libraries(wave {used})\n"
        (tmp_path / "CMakeLists.txt").write_text(text)
        assert ("mpicc" in str(draft_of(tmp_path, Catalog()).data["build"])) == by
    (tmp_path / "CMakeLists.txt").write_text(f"{text}include_directories(${{MPI_C_INCLUDE_PATH}})\n")
    assert "mpicc" not in str(draft_of(tmp_path, Catalog()).data["build"])


def test_targets_that_are_one_for_each_machine(tmp_path: Path) -> None:
    makefile = """P = wave
EXE = $(P)_$@
help:
\t@echo 'make openmpi or make cray'
cray:
\tcp Makefile.$@ Obj_$@/Makefile
openmpi:
\t@cp -p Makefile.$@ Obj_$@/Makefile
\t@cd Obj_$@; \\
\t$(MAKE) "EXE = ../$(EXE)" ../$(EXE)
"""
    files = {
        "mpi/Makefile": "CC = mpicc\ninclude $(X)/none\ninclude gone.mk\nwave:\n\t$(CC) -o wave wave.c\n",
        "ref/Makefile": makefile,
        "ref/Makefile.openmpi": "CC = mpiicc\n$(EXE): $(OBJ)\n\t$(CC) -o $(EXE) $(OBJ)\n",
    }
    draft = made(tmp_path, files)
    assert draft.data["build"] == {
        "commands": ['make -C ref openmpi -j "$(nproc)" CC=mpicc'],
        "mpi": True,
    }
    assert draft.data["run"]["command"] == ["/app/ref/wave_openmpi"]
    (tmp_path / "Makefile").write_text(makefile.replace("openmpi:", "sunny:"))
    assert "name that for GNU's compilers" in str(draft_of(tmp_path, Catalog()).data.get("open"))


GPUS = """#CXX = /opt/far/mpicxx
#CPPFLAGS = -DMPI

CXX = /opt/near/mpicxx
CPPFLAGS = -DMPI -x hip --offload-arch=gfx90a

# GCC
#OPT = -O2
#
#CXX = mpicxx
#CPPFLAGS = $(OPT) -DMPI

wave: wave.o
\t$(CXX) $(CPPFLAGS) -o wave wave.o
"""


def test_a_configuration_in_comments_for_cpus(tmp_path: Path) -> None:
    draft = made(tmp_path, {"Makefile": GPUS})
    assert draft.data["build"]["commands"] == ["make -j \"$(nproc)\" CXX=mpicxx 'CPPFLAGS=-O2 -DMPI'"]
    (tmp_path / "Makefile").write_text(GPUS.replace("#CXX = mpicxx", "#CXX = mpixlC"))
    assert ["Makefile:5: -DMPI -x hip" in each for each in draft_of(tmp_path, Catalog()).data["open"]] == [True]


def test_integers_of_fixed_width_without_their_header(tmp_path: Path) -> None:
    files = {"Makefile": "CXX = g++\nflow: flow.o\n\t$(CXX) -o flow flow.o\n"}
    draft = made(tmp_path, {**files, "flow.cpp": "#include <string>\nuint64_t a;\n"})
    assert draft.data["build"]["commands"] == ["make -j \"$(nproc)\" 'CXX=g++ -include cstdint'"]


def test_the_sites_mpi_has_fortran_where_a_source_calls_it(hpcgen: Command, tmp_path: Path) -> None:
    source = "program wave\n#ifdef PARALLEL\n  use mpi_f08\n#endif\nend\n"
    cmake = "project(wave Fortran)\nfind_package(MPI REQUIRED)\nadd_executable(wave wave.F90)\n"
    draft = made(tmp_path, {"CMakeLists.txt": cmake, "wave.F90": source})
    assert draft.blocks["mpi"] == {"options": {"fortran": True}} and draft.blocks["gnu"] == draft.blocks["mpi"]
    assert hpcgen("init").returncode == 0
    why = hpcgen("explain", "--site", "workstation", "--set", "mpi.provider=openmpi", "openmpi.fortran").stdout
    assert "true" in why.lower() and "hpcgen.yaml" in why
    # Intel MPI has them anyhow, and no such option.
    assert hpcgen("plan", "--site", "supermuc", "--set", "mpi.provider=intel_mpi").returncode == 0
    (tmp_path / "wave.F90").write_text("program wave\n! use mpi\nend\n")
    assert draft_of(tmp_path, Catalog()).blocks["mpi"] == {}


def test_an_option_that_no_provider_has_is_refused(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "name: a\ntitle: a\nblocks: {mpi: {options: {fortrn: true}}}\nrun: {command: [a]}\n"
    )
    done = hpcgen("plan", "--site", "supermuc", "--stack", "a.yaml")
    assert done.returncode != 0 and "fortran" in done.stderr and "a.yaml:3:" in done.stderr


def test_a_function_that_gives_up_requires_what_it_looks_for(tmp_path: Path) -> None:
    """Its error is behind a return that is come by once a library is found."""
    text = (
        "project(ice C)\nfind_package(MPI REQUIRED)\n"
        "function(find_library_of PREFIX)\n  foreach(X IN ITEMS ${ARGN})\n    pkg_search_module(${PREFIX} ${X})\n"
        "    if (${${PREFIX}_FOUND})\n      return()\n    endif()\n  endforeach()\n"
        '  message(FATAL_ERROR "Failed to find any of ${ARGN}")\nendfunction()\n'
        "find_library_of(PETSC PETSc>=3.7.0)\nfind_library_of(GSL gsl>=1.15)\n"
        "add_executable(ice ice.c)\ntarget_link_libraries(ice MPI::MPI_C)\n"
    )
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert "petsc" in draft.blocks and "open" not in draft.data
    assert draft.blocks["os_packages"]["options"]["packages"] == ["libgsl-dev"]


def test_a_tool_that_is_compiled_in_a_folder_of_a_python_project_is_beside_it(tmp_path: Path) -> None:
    cmake = "project(deploy CXX)\nfind_package(Torch REQUIRED)\nadd_executable(deploy deploy.cpp)\n"
    setup = "setup(name='detect', install_requires=['torch'])\n"
    draft = made(tmp_path, {"tools/deploy/CMakeLists.txt": cmake, "setup.py": setup, "train.py": "import torch\n"})
    assert "build" not in draft.data and "open" not in draft.data
    assert draft.data["run"]["command"] == ["python3", "/app/train.py"]
    assert any("tools/deploy/CMakeLists.txt is beside the Python project" in each.text for each in draft.remarks)


def test_of_several_configurations_that_of_gcc_is_taken(tmp_path: Path) -> None:
    rules = "include make.defs\nwave: wave.c\n\t$(MPICC) -o wave wave.c\n"
    compilers = {"armgcc": "armcc", "gcc": "mpicc", "gcc.old": "gcc", "intel": "mpiicc"}
    files = {f"make.defs.{name}": f"MPICC = {compiler}\n" for name, compiler in compilers.items()}
    draft = made(tmp_path, {"Makefile": rules, "wave.c": "#include <mpi.h>\n", **files})
    assert any("make.defs.gcc is taken for make.defs" in each.text for each in draft.remarks)


def test_an_hdf5_that_is_over_mpi_if_the_build_is(tmp_path: Path) -> None:
    """As parthenon says it: by variables, and with an error of its own where the library is not found."""
    text = (
        "project(mesh CXX)\nset(ENABLE_MPI OFF)\nif (NOT MESH_DISABLE_MPI)\n  find_package(MPI COMPONENTS CXX)\n"
        "  set(ENABLE_MPI ON)\nendif()\nset(HDF5_PREFER_PARALLEL ${ENABLE_MPI})\nfind_package(HDF5 COMPONENTS C)\n"
        'find_package(Kokkos)\nif (NOT Kokkos_FOUND)\n  message(FATAL_ERROR "no Kokkos")\nendif()\n'
        "include(FortranCInterface)\nif (NOT FortranCInterface_VERIFIED_C)\n"
        '  message(FATAL_ERROR "no interface")\nendif()\nadd_executable(mesh mesh.cpp)\n'
    )
    draft = made(tmp_path, {"CMakeLists.txt": text})
    assert {"mpi", "hdf5", "kokkos"} <= draft.blocks.keys() and "open" not in draft.data
    assert "os_packages" not in draft.blocks


def test_a_module_of_the_project_is_read_for_what_it_looks_for(tmp_path: Path) -> None:
    """As dftbplus wraps BLAS; its return() ends the module, and an empty second word is none."""
    text = (
        "project(bands C)\nlist(APPEND CMAKE_MODULE_PATH ${PROJECT_SOURCE_DIR}/cmake)\nfind_package(MPI REQUIRED)\n"
        "find_package(CustomBlas REQUIRED)\nfind_package(CustomPack REQUIRED)\ninclude(Early)\n"
        "find_package(OldPaths REQUIRED)\nfind_package(AnyOf REQUIRED)\n"
        'add_subdirectory(app "")\n'
    )
    modules = {
        "cmake/FindCustomBlas.cmake": "if(TARGET BLAS::BLAS)\n  return()\nendif()\nfind_package(BLAS)\n",
        "cmake/FindCustomPack.cmake": "find_package(SCALAPACK)\n",
        "cmake/FindOldPaths.cmake": 'if(NOT WORKS)\n  message(FATAL_ERROR "does not work")\nendif()\n',
        "cmake/FindAnyOf.cmake": "find_package(OddA REQUIRED)\nfind_package(OddB REQUIRED)\n",
        "cmake/Early.cmake": "if(NOT USE_CACHE)\n  return()\nendif()\nfind_program(CCACHE ccache)\n",
        "app/CMakeLists.txt": "add_executable(bands bands.c)\n",
    }
    draft = made(tmp_path, {"CMakeLists.txt": text, **modules})
    assert "open" not in draft.data and "scalapack" in draft.blocks
    assert any("blas" in name for name in draft.blocks["os_packages"]["options"]["packages"])


def test_fortran_bindings_are_seen_in_the_source_that_is_called_after_mpi(tmp_path: Path) -> None:
    many = {f"src/a{number}.F90": "end\n" for number in range(420)}
    text = "project(wave Fortran)\nfind_package(MPI REQUIRED)\nadd_executable(wave src/a0.F90)\n"
    draft = made(tmp_path, {"CMakeLists.txt": text, **many, "src/mpiwrap.F90": "use mpi_f08\nend\n"})
    assert draft.data["blocks"]["mpi"] == {"options": {"fortran": True}}
