"""What the build systems of HPC codes say of their programs, their MPI and their libraries."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpcgen.core.model.own_project import BuildFile
from hpcgen.readers.build_files import read_build
from hpcgen.readers.folder import ProjectFolder, project_tree


def built(folder: Path, files: dict[str, str]) -> BuildFile:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    found = read_build(project_tree(folder), lambda reader, path: reader(ProjectFolder(folder), path))
    assert found is not None
    return found


def paths(found: BuildFile) -> list[str]:
    return [each.path for each in found.programs]


def cmake(folder: Path, text: str, **more: str) -> BuildFile:
    files = {name.replace("__", "/"): inner for name, inner in more.items()}
    return built(
        folder, {"CMakeLists.txt": f"project(wave CXX)\n{text}", **{f"{k}/CMakeLists.txt": v for k, v in files.items()}}
    )


# CMake


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('option(WAVE_MPI "Ranks" OFF)\nif(WAVE_MPI)\nfind_package(MPI REQUIRED)\nendif()', ["-DWAVE_MPI=ON"]),
        ('option(PAR "Build with MPI")\nif(PAR)\nfind_package(MPI)\nendif()', ["-DPAR=ON"]),
        ('set(USE_MPI OFF CACHE BOOL "MPI")\nif(NOT USE_MPI)\nelse()\nfind_package(MPI)\nendif()', ["-DUSE_MPI=ON"]),
        ("if(ENABLE_MPI)\nfind_package(MPI)\nendif()", ["-DENABLE_MPI=ON"]),
        ('find_package(MPI)\noption(WITH_MPI "MPI" NO)', ["-DWITH_MPI=ON"]),
        ('option(USE_MPI "MPI" ON)\nif(USE_MPI)\nfind_package(MPI)\nendif()', []),
        ('find_package(MPI)\noption(MPI_TESTS "Tests with MPI" OFF)\noption(NO_MPI "Without MPI" OFF)', []),
        ('find_package(MPI)\noption(GPU_AWARE_MPI "MPI with GPUs" OFF)', []),
        (
            'find_package(MPI)\noption(USE_OMP "Threads" OFF)\nif(USE_OMP)\nfind_package(OpenMP)\nendif()',
            ["-DUSE_OMP=ON"],
        ),
        (
            'find_package(MPI)\noption(USE_OMP "Threads" OFF)\noption(USE_PTHREADS "Threads" ON)\nif(USE_OMP)\n'
            "find_package(OpenMP)\nendif()\nif((USE_PTHREADS) AND (USE_OMP))\nmessage(FATAL_ERROR one)\nendif()",
            [],
        ),
    ],
)
def test_options_that_mpi_needs_are_turned_on(tmp_path: Path, text: str, words: list[str]) -> None:
    found = cmake(tmp_path, f"{text}\nadd_executable(wave a.cpp)\n")
    assert found.mpi is not None and [each.word for each in found.options] == words and found.stops == []


def test_a_program_without_mpi_gets_no_option(tmp_path: Path) -> None:
    found = cmake(tmp_path, 'option(USE_OPENMP "OpenMP" OFF)\nadd_executable(wave a.cpp)\n')
    assert found.mpi is None and found.options == []


@pytest.mark.parametrize(
    ("text", "program"),
    [
        ("set(NAME go)\nadd_executable(${NAME} a.cpp)", "build/go"),
        ("set(CORES A B)\nlist(GET CORES 0 CORE)\nif(${CORE} STREQUAL A)\nadd_executable(a a.c)\nendif()", "build/a"),
        ("add_executable(${PROJECT_NAME} a.cpp)", "build/wave"),
        ("hip_add_executable(hot a.cpp)", "build/hot"),
        ("blt_add_executable(NAME cold SOURCES a.cpp)", "build/cold"),
        ("foreach(each one two)\nadd_executable(${each} a.cpp)\nendforeach()", "build/one"),
        ("macro(program name)\nadd_executable(${name} a.cpp)\nendmacro()\nprogram(made)", "build/made"),
        ("set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_SOURCE_DIR}/bin)\nadd_executable(a a.cpp)", "bin/a"),
        ("set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)\nadd_executable(a a.cpp)", "build/bin/a"),
        ("add_executable(a a.cpp)\nset_target_properties(a PROPERTIES OUTPUT_NAME wave.x)", "build/wave.x"),
        ("add_executable(other a.cpp)\nadd_executable(wave a.cpp)", "build/wave"),
        ("add_executable(a a.cpp)\nadd_executable(b b.cpp)\ninstall(TARGETS b)", "build/b"),
        ("add_executable(test_x a.cpp)\nadd_executable(x b.cpp)", "build/x"),
        ("if(WIN32)\nadd_executable(a a.cpp)\nelse()\nadd_executable(b b.cpp)\nendif()", "build/b"),
        ("if(DEEP)\nadd_executable(a a.cpp)\nendif()\nadd_executable(b b.cpp)", "build/b"),
        (
            "add_executable(a a.cpp)\nadd_executable(b b.cpp)\nfind_package(MPI)\n"
            "target_link_libraries(b PRIVATE MPI::MPI_CXX)",
            "build/b",
        ),
    ],
)
def test_the_program_of_the_project_comes_first(tmp_path: Path, text: str, program: str) -> None:
    assert paths(cmake(tmp_path, f"{text}\n"))[0] == program


def test_tests_and_other_peoples_code_are_not_the_program(tmp_path: Path) -> None:
    text = "add_subdirectory(tests)\nadd_subdirectory(vendor)\nadd_subdirectory(src)\n"
    inner = "add_executable({0} a.cpp)\nfind_package({0} REQUIRED)\n"
    found = cmake(tmp_path, text, tests=inner.format("GTest"), vendor=inner.format("x"), src=inner.format("solver"))
    assert paths(found) == ["build/src/solver"]
    assert [each.name for each in found.libraries if each.required] == ["solver"]


def test_a_library_behind_an_option_that_is_off_is_not_looked_for(tmp_path: Path) -> None:
    text = (
        "option(USE_A OFF)\nif(USE_A)\nfind_package(A REQUIRED)\nendif()\nfind_package(B REQUIRED)\nfind_package(C)\n"
    )
    found = cmake(tmp_path, text)
    assert [(each.name, each.required) for each in found.libraries] == [("B", True), ("C", False)]


@pytest.mark.parametrize(
    ("text", "stops"),
    [
        ('if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/deps/x")\nmessage(FATAL_ERROR "Get deps")\nendif()', "Get deps"),
        ("if(NOT DEFINED X_ROOT)\nreturn()\nendif()", "ends here"),
        ('if(NOT DEFINED MODEL)\nmessage(FATAL_ERROR "none")\nendif()', "'none'; -DMODEL=… behind `cmake -B build`"),
        ("include(${CMAKE_SOURCE_DIR}/deps/all.cmake)", "deps/all.cmake, which is not here"),
    ],
)
def test_what_keeps_cmake_from_building_is_told(tmp_path: Path, text: str, stops: str) -> None:
    assert stops in cmake(tmp_path, f"{text}\n").stops[0].text


@pytest.mark.parametrize(
    "text",
    [
        "find_program(CPP cpp)\nif(NOT CPP)\nSTOP\nendif()",
        "include(CheckSymbolExists)\ncheck_symbol_exists(a b.h HAS_A)\nif(NOT HAS_A)\nSTOP\nendif()",
        "foreach(p a.f90 b.f90)\nget_filename_component(name ${p} NAME_WE)\n"
        'CHECK_Fortran_SOURCE_COMPILES("${s}" "${name}" SRC_EXT f90)\nif(NOT ${name})\nSTOP\nendif()\nendforeach()',
        "list(GET UNKNOWN 0 FIRST)\nif(NOT FIRST)\nSTOP\nendif()",
        "try_compile(WORKS d s.c OUTPUT_VARIABLE SAID)\nif(NOT WORKS)\nSTOP\nendif()",
        "execute_process(COMMAND a RESULT_VARIABLE FAILED)\nif(NOT FAILED)\nSTOP\nendif()",
        'function(f)\ncmake_parse_arguments(PARSE_ARGV 1 ARG "" NAME "")\nif(NOT ARG_NAME)\nSTOP\nendif()\n'
        "endfunction()\nf(x NAME y)",
        "find_package(MPI REQUIRED Fortran)\nif(NOT MPI_Fortran_HAVE_F90_MODULE OR NOT MPI_IO)\nSTOP\nendif()",
    ],
)
def test_what_cmake_finds_on_the_machine_keeps_nothing_from_building(tmp_path: Path, text: str) -> None:
    assert cmake(tmp_path, text.replace("STOP", "message(FATAL_ERROR no)")).stops == []


def test_a_library_is_told_as_its_line_has_it(tmp_path: Path) -> None:
    found = cmake(tmp_path, "find_package(a REQUIRED PATHS ${CMAKE_SOURCE_DIR}/a)\n")
    assert found.libraries[0].asked == "find_package(a REQUIRED PATHS ${CMAKE_SOURCE_DIR}/a)"


def test_options_that_are_no_way_to_mpi_or_threads_stay_off(tmp_path: Path) -> None:
    text = "option(USE_LEGACY_OPENMP OFF)\noption(MPI_INPLACE OFF)\noption(USE_MPI OFF)\nif(USE_MPI)\n"
    text += "find_package(MPI REQUIRED)\nendif()\nif(USE_LEGACY_OPENMP)\nfind_package(OpenMP REQUIRED)\nendif()\n"
    assert [each.word for each in cmake(tmp_path, text).options] == ["-DUSE_MPI=ON"]


def test_the_program_called_like_the_project_comes_before_one_that_links_mpi_itself(tmp_path: Path) -> None:
    text = "find_package(MPI)\nadd_executable(modes m.c)\ntarget_link_libraries(modes MPI::MPI_C)\n"
    text += "add_executable(wave+ f.c)\ntarget_link_libraries(wave+ own)\n"
    assert [each.name for each in cmake(tmp_path, text).programs] == ["wave+", "modes"]


def test_what_is_there_once_mpi_is_found(tmp_path: Path) -> None:
    condition = "if(NOT MPI_Fortran_COMPILER OR NOT MPI_CXX_FOUND)"
    text = f"find_package(MPI REQUIRED)\n{condition}\nmessage(SEND_ERROR x)\nendif()\nadd_executable(a a.cpp)"
    assert cmake(tmp_path, text).stops == []


def test_downloads_of_a_build_are_told(tmp_path: Path) -> None:
    text = "FetchContent_Declare(a URL x)\nFetchContent_MakeAvailable(a)\nExternalProject_Add(b)\n"
    assert len(cmake(tmp_path, text).fetches) == 2
    assert cmake(tmp_path, "FetchContent_Declare(a URL x)\n").fetches == []


@pytest.mark.parametrize(
    ("text", "block"),
    [
        ("enable_language(CUDA)", "cuda"),
        ("find_package(hip REQUIRED)", "rocm"),
        ("find_package(CUDAToolkit)", ""),
    ],
)
def test_compilers_for_gpus_that_a_build_cannot_do_without(tmp_path: Path, text: str, block: str) -> None:
    found = cmake(tmp_path, f"{text}\nadd_executable(a a.cu)\n")
    assert found.gpus is not None and found.gpu_block == block


def test_an_option_for_gpus_is_named_and_stays_off(tmp_path: Path) -> None:
    text = 'option(USE_CUDA "GPUs" OFF)\nif(USE_CUDA)\nenable_language(CUDA)\nendif()\nadd_executable(a a.cpp)\n'
    found = cmake(tmp_path, text)
    assert found.gpus is None and found.gpu_option is not None and found.gpu_option.word == "-DUSE_CUDA=ON"


def test_hdf5_over_mpi_is_seen(tmp_path: Path) -> None:
    text = "set(HDF5_PREFER_PARALLEL TRUE)\nfind_package(HDF5 REQUIRED)\n"
    assert cmake(tmp_path, text).parallel_hdf5 is not None


# make


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CXX = g++\n#CXX = mpicxx\nUSE_MPI =\n#USE_MPI = -DWITH_MPI\n", {"CXX": "mpicxx", "USE_MPI": "-DWITH_MPI"}),
        ("CXX = mpig++ -DUSE_MPI=1\n", {"CXX": "mpicxx -DUSE_MPI=1"}),
        ("CC = mpiicc\nFC = mpiifort\n", {"CC": "mpicc", "FC": "mpifort"}),
        ("CC = mpicc\nMPI = no\n", {"MPI": "yes"}),
        ("CC = /usr/local/bin/gcc\n", {"CC": "gcc"}),
        ("CXX = CC\n", {"CXX": "g++"}),
        ("F_INTEL = -xHost\nF_GNU = -O3\nF = $(F_$(COMPILER)) -g\n", {"COMPILER": "GNU"}),
        ("#OPT = -O2\nOPT = -fast -fno-alias\n#OPT = -fastsse\n", {"OPT": "-O2"}),
        ("#F = $(UNSET)\nF = -O3 -ipo -qopenmp -xHost -assume byterecl -r8\n", {"F": "-O3 -fopenmp -fdefault-real-8"}),
        ("F = -O3 -march=native -fopenmp -I. -Mdir -fpic\n", {}),
        ("F_INTEL = -fast\nG = -fast\nG += -g\nifeq ($(shell uname),x)\nH = -fast\nendif\n", {}),
        ("COMPILER = INTEL\nF_GNU = -O3\nF = $(F_$(COMPILER))\n", {}),
        ("F_INTEL = -O3\nF = $(F_$(COMPILER))\n", {}),
        ("CC = mpicc\n", {}),
        ("A = 1\nifeq ($(A),1)\nCC = mpicc\nelse\nCC = mpiicc\nendif\n", {}),
    ],
)
def test_variables_of_make_that_an_image_needs_otherwise(tmp_path: Path, text: str, words: dict[str, str]) -> None:
    found = built(tmp_path, {"Makefile": f"{text}a: a.o\n\t$(CC) -o a a.o\n"})
    assert {name: each.text for name, each in found.weak.items()} == words


def test_makefiles_below_and_configurations_that_are_copied(tmp_path: Path) -> None:
    files = {
        "Makefile": "all:\n\tcd src && $(MAKE)\n",
        "src/Makefile": "include make.inc\nall: ../bin/go\n../bin/go: a.o\n\t$(FC) -o $@ a.o $(LIBS)\n",
        "src/make.inc.intel": "FC = mpiifort\n",
        "src/make.inc.gnu": "FC = mpif90\nLIBS = -llapack -lfftw3 -lm\n",
    }
    found = built(tmp_path, files)
    assert paths(found) == ["bin/go"] and found.mpi is not None and found.fortran is not None
    assert [each.text for each in found.before] == ["(cd src && cp make.inc.gnu make.inc)"]
    assert [each.name for each in found.libraries] == ["lapack", "fftw3"]
    assert "make.inc.intel" in found.remarks[0].text


@pytest.mark.parametrize(
    ("rules", "block"),
    [
        ("flow: main.o heat.o\n\t$(CC) -o $@ main.o heat.o\n%.o: %.cu\n\tnvcc -c $<\n", "cuda"),
        ("flow: heat.o\n\thipcc -o $@ heat.o\nheat.o: heat.cu\n\thipcc -c $<\n", "rocm"),
        ("flow: main.o\n\t$(CC) -o $@ main.o\ngpu: heat.o\n\tnvcc -o $@ heat.o\n", ""),
    ],
)
def test_the_compiler_for_gpus_that_the_first_target_needs(tmp_path: Path, rules: str, block: str) -> None:
    found = built(tmp_path, {"Makefile": rules, "heat.cu": "", "main.c": ""})
    assert found.gpus is not None and found.gpu_block == block


def test_what_a_rule_writes_by_an_ending_alone_is_no_program(tmp_path: Path) -> None:
    assert paths(built(tmp_path, {"Makefile": "all: a\ndepend:\n\tmakedepend -o .f a.F\na: a.o\n\tcc -o a a.o\n"})) == [
        "a"
    ]


def test_a_configuration_that_folders_below_include_is_copied_once(tmp_path: Path) -> None:
    inner = "include ../make.inc\n{0}: {0}.o\n\t$(F90) -o {0} {0}.o -lineinfo\n"
    files = {
        "build/platforms/make.inc.gfortran": "F90 = mpif90\n",
        "build/platforms/make.inc.ifort": "F90 = mpiifort\n",
    }
    files |= {f"build/{name}/Makefile": inner.format(name) for name in ("smp", "mpi")}
    files["Makefile"] = "all:\n\tcd build/smp; $(MAKE)\n\tcd build/mpi; $(MAKE)\n"
    found = built(tmp_path, files)
    assert [each.text for each in found.before] == ["(cd build/smp && cp ../platforms/make.inc.gfortran ../make.inc)"]
    assert found.stops == [] and found.libraries == [] and found.mpi is not None


def test_code_for_the_cpu_of_the_machine_that_builds_is_told_once(tmp_path: Path) -> None:
    found = built(tmp_path, {"Makefile": "F = -O3 -march=native\nC = -mcpu=native\na: a.o\n\tcc $(F) -o a a.o\n"})
    assert [(each.text[:13], each.where.line) for each in found.remarks] == [("-march=native", 1)]


LOOP = "all:\n\t@for d in ${DIRS}; \\\n\tdo echo $$d; (cd $$d; make); done\ntags:\n\tfind . -name x.c -or -name y.c\n"


@pytest.mark.parametrize(
    "rule",
    [f"DIRS = lib \\\n run\n{LOOP}", "all:\n\tfor d in lib run; do $(MAKE) -C $$d; done\n"],
)
def test_make_in_each_folder_of_a_loop(tmp_path: Path, rule: str) -> None:
    files = {
        "Makefile": rule,
        "lib/Makefile": "include ../make.inc\nall: libgrid.a\nlibgrid.a: a.o\n\tar rc $@ a.o\n",
        "run/Makefile": "flow: flow.o\n\t${CC} -o flow flow.o -L../ext -lgrid -lext -lfftw3\n",
        "make.inc": "CC = mpicc\n",
    }
    found = built(tmp_path, files)
    assert paths(found) == ["run/flow"] and found.mpi is not None
    # What the project makes itself is not looked for, and what lies in a folder of its own may be there.
    assert [(each.name, each.required) for each in found.libraries] == [("ext", False), ("fftw3", False)]


def test_an_included_file_that_a_rule_makes(tmp_path: Path) -> None:
    rules = "%.mk: defaults/%-default.mk\n\tcp $< $@\n./own.mk:\n\ttouch $@\n"
    text = f"TOP = .\ninclude $(TOP)/libs.mk\ninclude own.mk other.mk\nall: a\na: a.o\n\t$(FC) -o a a.o\n{rules}"
    found = built(tmp_path, {"Makefile": text, "defaults/libs-default.mk": "FC = mpifort\nLIBS = -lfftw3\n"})
    assert [each.text for each in found.stops] == ["other.mk is included and not here: it has to be written"]
    assert found.fortran is not None and [each.name for each in found.libraries] == ["fftw3"]


def test_a_folder_below_is_built_where_the_project_has_no_file_of_its_own(tmp_path: Path) -> None:
    rule = "CC = mpicc\nsolve: solve.o other.o\n"
    found = built(tmp_path, {"src-mpi/Makefile.vanilla": rule, "src-serial/Makefile": "solve: solve.o\n", "README": ""})
    assert (found.folder, paths(found)) == ("src-mpi", ["src-mpi/solve"])
    assert [each.text for each in found.before] == ["cp Makefile.vanilla Makefile"]
    assert "src-serial" in found.remarks[-1].text


# autotools, Meson, Cargo

CONFIGURE = """\
AC_INIT([bay], [1.0])
AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi], [Ranks @<:@default=no@:>@])], [], [with_mpi=no])
AC_PROG_FC
case "$host" in
  linux*) ;;
esac
AC_CHECK_LIB([gsl], [f])
AS_IF([test "$x" = yes], [AC_CHECK_LIB([other], [f])])
dnl AC_CHECK_LIB([commented], [f])
PKG_CHECK_MODULES([F], [fftw3 >= 3.1])
"""


def test_configure_and_its_makefiles(tmp_path: Path) -> None:
    files = {
        "configure.ac": CONFIGURE,
        "Makefile.am": "SUBDIRS = src tests\n",
        "src/Makefile.am": "bin_PROGRAMS = bay\nnoinst_PROGRAMS = helper\n",
        "tests/Makefile.am": "noinst_PROGRAMS = t\n",
    }
    found = built(tmp_path, files)
    assert paths(found) == ["$PREFIX/bin/bay", "src/helper"]
    assert [each.word for each in found.options] == ["--with-mpi"] and found.mpi is not None
    assert [(each.name, each.required) for each in found.libraries] == [
        ("gsl", True),
        ("other", False),
        ("fftw3", True),
    ]
    assert [each.text for each in found.before] == ["autoreconf -i"] and "pkg-config" in found.tools
    (tmp_path / "configure").write_text("")
    assert built(tmp_path, {}).before == []


def test_macros_of_configure_without_arguments_and_lines_behind_comments(tmp_path: Path) -> None:
    libraries = "AX_LIB_HDF5\nif x; then\n  AX_PATH_GSL(2.0)\nfi\n"
    text = f"AC_INIT([bay], [1.0])\ndnl one\n\n# two\nif test (\n\nAC_PROG_FC\n{libraries}"
    programs = "bin_PROGRAMS = bay bay_mpi\n"
    found = built(tmp_path, {"configure.ac": text, "Makefile.am": programs})
    assert found.fortran is not None and found.fortran.where.line == 7
    assert [(each.name, each.required) for each in found.libraries] == [("HDF5", True), ("GSL", False)]
    assert paths(found) == ["$PREFIX/bin/bay_mpi", "$PREFIX/bin/bay"]


def test_meson(tmp_path: Path) -> None:
    files = {
        "meson.build": "project('drop', 'cpp', 'fortran')\nmpi = dependency('mpi', required: get_option('mpi'))\n"
        "h = dependency('hdf5')\nz = dependency('z3', required: get_option('extra'))\nsubdir('src')\n",
        "src/meson.build": "executable('helper', 'h.cpp')\nexecutable(meson.project_name(), 'a.cpp', install: true)\n",
        "meson_options.txt": "option('mpi', type: 'boolean', value: false, description: 'Ranks')\n"
        "option('extra', type: 'feature', value: 'disabled')\n",
        "subprojects/a.wrap": "",
    }
    found = built(tmp_path, files)
    assert paths(found) == ["build/src/drop", "build/src/helper"]
    assert [each.word for each in found.options] == ["-Dmpi=true"] and found.fortran is not None
    assert [each.name for each in found.libraries] == ["hdf5"] and [each.text for each in found.fetches] == ["a.wrap"]


def test_cargo(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[workspace]\nmembers = ["run", "lib"]\n',
        "run/Cargo.toml": '[package]\nname = "run"\n[dependencies]\nmpi = {version = "1", optional = true}\n',
        "run/src/main.rs": "",
        "lib/Cargo.toml": '[package]\nname = "lib"\n',
    }
    found = built(tmp_path, files)
    assert paths(found) == ["target/release/run"] and found.mpi is not None
    assert [each.word for each in found.options] == ["--features=mpi"] and found.fetches
    alone = built(tmp_path / "alone", {"Cargo.toml": '[package]\nname = "alone"\n', "src/main.rs": ""})
    assert paths(alone) == ["target/release/alone"] and not alone.fetches
    manifest = '[package]\nname = "v"\n[dependencies]\nrand = "0.8"\n'
    held = built(tmp_path / "v", {"Cargo.toml": manifest, "src/main.rs": "", "vendor/rand/Cargo.toml": ""})
    assert not held.fetches and '--config=source.vendor.directory="vendor"' in [each.word for each in held.options]


def test_members_of_a_workspace_are_compiled_and_what_needs_mpi_comes_first(tmp_path: Path) -> None:
    files = {
        "Cargo.toml": '[package]\nname = "game"\n[workspace]\nmembers = ["table"]\n',
        "src/main.rs": "",
        "table/Cargo.toml": '[package]\nname = "table"\n[dependencies]\nmpi = "0.8"\n',
        "table/src/main.rs": "",
    }
    found = built(tmp_path, files)
    assert paths(found) == ["target/release/table", "target/release/game"]
    assert [each.word for each in found.options] == ["--workspace"]


def test_no_file_outside_of_the_project_is_read(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/Cargo.toml").write_text('[package]\nname = "out"\n')
    manifest = '[workspace]\nmembers = ["../out", "/etc", "**"]\n[package]\nname = "in"\n[[bin]]\nname = "../../x"\n'
    assert paths(built(tmp_path / "p", {"Cargo.toml": manifest, "src/main.rs": ""})) == ["target/release/in"]
    found = built(tmp_path / "q", {"Makefile": "include ../out/make.inc\na: a.o\n\tcc -o a a.o\n"})
    assert found.before == [] and paths(found) == ["a"]


def test_long_comments_are_left_out(tmp_path: Path) -> None:
    text = "#[[ add_executable(a a.cpp)\n]]\nadd_executable(b b.cpp)\n#[==[ ]]\nadd_executable(c c.cpp)\n"
    assert paths(cmake(tmp_path, text + "#[[" * 1000)) == ["build/b"]
