"""Libraries that CMake compiles: over which MPI, for which CPU, and that other builds find them."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import Command

STACK = "name: a\ntitle: a\nblocks: {mfem: {}, kokkos: {}}\nrun: {command: [a]}\n"


def test_they_are_compiled_over_the_images_mpi_and_found_by_later_builds(hpcgen: Command, tmp_path: Path) -> None:
    (tmp_path / "hpcgen.yaml").write_text(STACK)
    done = hpcgen("render", "--site", "workstation", "--format", "docker", "-o", "kit")
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "kit/Dockerfile").read_text("utf-8")
    assert "-DCMAKE_CXX_COMPILER=mpicxx" in text and "-DHYPRE_DIR=/opt/hypre" in text
    assert "cmake -S /tmp/hpcgen/hypre/src" in text or "/hypre/src -B" in text
    assert "CMAKE_PREFIX_PATH" in text and "/opt/mfem" in text and "Kokkos_ENABLE_OPENMP=ON" in text
    assert "libmetis-dev" in text and "-march=" in text
    selftest = (tmp_path / "kit/selftest.sh").read_text("utf-8")
    assert "ldd /opt/kokkos/lib/libkokkoscore.so" in selftest and "ldd /opt/hypre/lib/libHYPRE.so" in selftest
