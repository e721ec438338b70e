"""Libraries over MPI: what compiles them, what a program of several ranks proves, and Fortran where it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Command

BLOCKS = ("adios2", "boost", "fftw", "hdf5", "netcdf", "petsc", "pnetcdf", "scalapack")


def rendered(hpcgen: Command, folder: Path, blocks: str, *words: str) -> tuple[str, str]:
    """The recipe and the self-test."""
    (folder / "hpcgen.yaml").write_text(f"name: a\ntitle: a\nblocks: {{{blocks}}}\nrun: {{command: [a]}}\n")
    done = hpcgen("render", "--format", "docker", "-o", "kit", *words)
    assert done.returncode == 0, done.stderr
    return (folder / "kit/Dockerfile").read_text("utf-8"), (folder / "kit/selftest.sh").read_text("utf-8")


def test_each_is_compiled_over_the_images_mpi_and_used_by_two_ranks(hpcgen: Command, tmp_path: Path) -> None:
    text, selftest = rendered(hpcgen, tmp_path, ", ".join(f"{name}: {{}}" for name in BLOCKS), "--site", "workstation")
    for name in BLOCKS:
        assert f"-o /opt/{name}/bin/{name}_ranks" in text
        assert f"mpiexec -n 2 /opt/{name}/bin/{name}_ranks /tmp" in selftest
        assert f"ldd /opt/{name}/bin/{name}_ranks" in selftest
    assert "-DHDF5_ENABLE_PARALLEL=ON" in text and "-DHDF5_ROOT=/opt/hdf5" in text
    assert text.count("--enable-single") == 1 and "using mpi : mpicxx ;" in text
    # netCDF is compiled after the HDF5 that it is over, and finds it.
    assert text.index("/opt/hdf5/bin/hdf5_ranks") < text.index("-DHDF5_ROOT")
    assert "CMAKE_PREFIX_PATH=" in text and "PKG_CONFIG_PATH=" in text


def test_between_nodes_they_use_the_folder_of_the_job(hpcgen: Command, tmp_path: Path) -> None:
    rendered(hpcgen, tmp_path, "hdf5: {}", "--site", "workstation")
    recipe = (tmp_path / "kit/recipe.json").read_text("utf-8")
    assert "/opt/hdf5/bin/hdf5_ranks ." in recipe and '"two"' in recipe


@pytest.mark.parametrize("name", ["hdf5", "netcdf", "petsc", "pnetcdf"])
def test_fortran_brings_that_of_compilers_and_mpi(hpcgen: Command, tmp_path: Path, name: str) -> None:
    words = ["--site", "workstation", "--set", f"{name}.fortran=true", "--set", "mpi.provider=mpich"]
    recipe, selftest = rendered(hpcgen, tmp_path, f"{name}: {{}}", *words)
    assert " gfortran" in recipe and "--enable-fortran" in recipe
    assert f"mpifort -O2 -I/opt/{name}/include -o /opt/{name}/bin/{name}_fortran mpi_ranks.f90" in recipe
    assert f"mpiexec -n 2 /opt/{name}/bin/{name}_fortran /tmp" in selftest


@pytest.mark.parametrize("name", ["mpich", "openmpi", "mvapich"])
def test_an_mpi_with_fortran_is_compiled_by_its_compiler(hpcgen: Command, tmp_path: Path, name: str) -> None:
    words = ["--site", "workstation", "--set", f"mpi.provider={name}"]
    recipe, _ = rendered(hpcgen, tmp_path, "mpi: {options: {fortran: true}}", *words)
    assert " gfortran" in recipe and "--enable-fortran" in recipe.replace("--enable-mpi-fortran", "--enable-fortran")
    done = hpcgen("plan", *words, "--set", "gnu.fortran=false")
    assert done.returncode != 0
    assert f"{name} is compiled with fortran, which gnu lacks" in done.stderr and "gnu.fortran=true" in done.stderr


def test_builds_know_the_folders_by_the_names_that_makefiles_have(hpcgen: Command, tmp_path: Path) -> None:
    build = "build: {commands: [make], mpi: true}\ncopy: [{from: ., to: /app}]"
    (tmp_path / "Makefile").write_text("a:\n")
    blocks = "netcdf: {}, pnetcdf: {}, fftw: {}, boost: {}"
    text = f"name: a\ntitle: a\nblocks: {{{blocks}}}\n{build}\nrun: {{command: [a]}}\n"
    (tmp_path / "hpcgen.yaml").write_text(text)
    done = hpcgen("render", "--site", "workstation", "--format", "docker", "-o", "kit")
    assert done.returncode == 0, done.stderr
    builder, final = (tmp_path / "kit/Dockerfile").read_text("utf-8").split("\nFROM ")[-2:]
    for known in ("NETCDF=/opt/netcdf", "HDF5_ROOT=/opt/hdf5", "PNETCDF=/opt/pnetcdf", "FFTW_ROOT=/opt/fftw"):
        assert known in builder and known not in final
