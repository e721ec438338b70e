"""The binary interface of the MPI 5 standard, proven with the libraries themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, OTHERWISE_NAMED, STANDARD
from tests.conftest import ROOT

SOURCE = ROOT / "building_blocks" / "files" / "rank_test.c"
LIBRARY = MPI_LIBRARIES[STANDARD]


def installed(folder: Path, wheel: str) -> Path:
    """The files of a wheel, alone; the test is skipped where it cannot be had."""
    prefix = folder / wheel
    words = ["install", "--quiet", "--no-deps", "--ignore-installed", "--prefix", str(prefix), wheel]
    done = subprocess.run([sys.executable, "-m", "pip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"{wheel} cannot be had here: {done.stderr.strip().splitlines()[-1]}")
    return prefix


def compiled(mpi: Path, program: Path) -> Path:
    """The program of rank_test, linked with the standard's library of an MPI."""
    subprocess.run([mpi / "bin/mpicc_abi", "-O0", "-o", program, SOURCE], check=True)
    return program


def ranks(mpi: Path, program: Path) -> str:
    """What two ranks print that another MPI starts, by its own launcher and with its own library."""
    env = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": f"{mpi}/lib", "HPCGEN_RANKS": "2", "I_MPI_ROOT": str(mpi)}
    # Ranks of one node: Intel's libfabric need not be found.
    words = [str(mpi / "bin/mpiexec"), "-n", "2", str(program)]
    done = subprocess.run(words, env={**env, "I_MPI_FABRICS": "shm"}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wheel", "says"),
    [
        ("mpich==5.0.0.post1", "MPICH Version:      5.0.0"),
        ("mpich==5.0.1.post1", "MPICH Version:      5.0.1"),
        ("impi-rt==2021.18.0", "Intel(R) MPI Library 2021.18.0"),
    ],
)
def test_a_program_runs_over_another_mpi_than_it_was_linked_with(tmp_path: Path, wheel: str, says: str) -> None:
    linked = installed(tmp_path, "mpich==5.0.2")
    program = compiled(linked, tmp_path / "rank_test")
    other = installed(tmp_path, wheel)
    said = ranks(other, program)
    assert f"library {says}" in said
    for rank in (0, 1):
        assert f"rank {rank} of 2 on " in said
        assert f"rank {rank} maps {other}/lib/{LIBRARY}" in said
    assert str(linked) not in said


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERWISE_NAMED)
def test_the_first_releases_of_mpich_call_the_library_by_another_name(tmp_path: Path, version: str) -> None:
    folder = installed(tmp_path, f"mpich=={version}") / "lib"
    assert not (folder / LIBRARY).exists()
    assert (folder / "libmpi_abi.so.0").exists()
