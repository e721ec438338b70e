"""What builds call a library, and what brings it into an image.

Names of Debian and Ubuntu: package lists of Debian 12, 2026-11-28, dependencies included: whatever draws in the Open
MPI of the distribution is to be brought. Names for dnf and zypper: of FFTW, METIS, NetCDF for
Fortran and yaml-cpp by spec files that build with them, 2026-11-28; the others are from memory, not verified.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class LibraryRow(NamedTuple):
    """A library by the names that builds have for it, in any case of their letters.

    ``apt``, ``dnf``, ``zypper``: packages with its headers; an empty one is the same as Debian's. ``block``: brings
    it in their place; ``over_mpi``: the block that does so over the image's MPI, where the build uses MPI or the
    distribution has none. ``bring``: what the user has to do, where neither does. ``none``: nothing has to be there.
    """

    names: str
    apt: str = ""
    dnf: str = ""
    zypper: str = ""
    block: str = ""
    bring: str = ""
    over_mpi: str = ""
    none: bool = False


_OWN_MPI = "the distribution's is linked with the distribution's own Open MPI, which is not the image's: "
_COMPILE = "compile it in `build` before the program, from a `git` or an archive"

ROWS = (
    # What compilers, CMake itself and the C library have.
    LibraryRow(
        "Threads OpenMP openmp PkgConfig pkg-config CMakePackageConfigHelpers Git CTest Perl threads", none=True
    ),
    LibraryRow("Doxygen LATEX Sphinx CLANG_FORMAT ClangFormat ClangTidy Cppcheck ccache Valgrind Gnuplot", none=True),
    LibraryRow("Python Python3 PythonInterp PythonLibs python3 Cython NumPy", block="python"),
    LibraryRow("pybind11", "pybind11-dev", "pybind11-devel", "pybind11-devel"),
    LibraryRow("CUDA CUDAToolkit cudart cublas cufft cusparse cusolver curand nvToolsExt", block="cuda"),
    LibraryRow("hip HIP hipblas rocblas hipfft rocfft hipsparse rocsparse hipcub rocprim rocthrust", block="rocm"),
    LibraryRow("NCCL nccl", block="nccl"),
    LibraryRow("RCCL rccl", block="rccl"),
    LibraryRow("MKL mkl mkl_rt mkl-sdl mkl-dynamic-lp64-seq mkl_core mkl_intel_lp64 mkl_sequential", block="mkl"),
    LibraryRow("OpenBLAS openblas BLAS blas cblas CBLAS", "libopenblas-dev", "openblas-devel", "openblas-devel"),
    LibraryRow("NUMA Numa numa libnuma", "libnuma-dev", "numactl-devel", "libnuma-devel"),
    LibraryRow("hwloc", "libhwloc-dev", "hwloc-devel", "hwloc-devel"),
    # Numbers.
    LibraryRow("LAPACK lapack LAPACKE lapacke", "liblapack-dev liblapacke-dev", "lapack-devel", "lapack-devel"),
    LibraryRow(
        "FFTW3 FFTW fftw3 fftw fftw3f fftw3_omp fftw3_threads FFTW3F", "libfftw3-dev", "fftw-devel", "fftw3-devel"
    ),
    LibraryRow("fftw3_mpi fftw3-mpi FFTW3_MPI fftw3f_mpi", over_mpi="fftw"),
    LibraryRow("GSL gsl gslcblas", "libgsl-dev", "gsl-devel", "gsl-devel"),
    LibraryRow("Eigen3 Eigen eigen3", "libeigen3-dev", "eigen3-devel", "eigen3-devel"),
    LibraryRow("Armadillo armadillo", "libarmadillo-dev", "armadillo-devel", "armadillo-devel"),
    LibraryRow("METIS Metis metis", "libmetis-dev", "metis-devel", "metis-devel"),
    LibraryRow("SuperLU superlu SUPERLU", "libsuperlu-dev", "SuperLU-devel", "superlu-devel"),
    LibraryRow(
        "SuiteSparse CHOLMOD UMFPACK umfpack cholmod amd klu",
        "libsuitesparse-dev",
        "suitesparse-devel",
        "suitesparse-devel",
    ),
    LibraryRow("arpack ARPACK arpack-ng arpackng", "libarpack2-dev", "arpack-devel", "arpack-ng-devel"),
    LibraryRow("muparser muParser", "libmuparser-dev"),
    LibraryRow("GMP gmp", "libgmp-dev", "gmp-devel", "gmp-devel"),
    LibraryRow("MPFR mpfr", "libmpfr-dev", "mpfr-devel", "mpfr-devel"),
    LibraryRow("TBB tbb", "libtbb-dev", "tbb-devel", "tbb-devel"),
    LibraryRow("libxc xc Libxc xcf03 xcf90", "libxc-dev", "libxc-devel", "libxc-devel"),
    LibraryRow("Random123", "librandom123-dev", "Random123-devel"),
    LibraryRow("SCALAPACK ScaLAPACK scalapack", over_mpi="scalapack"),
    LibraryRow("PETSc PETSC petsc Petsc", over_mpi="petsc"),
    LibraryRow("SLEPc slepc SLEPC", bring=f"SLEPc: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("Trilinos Tpetra Zoltan Zoltan2", bring=f"Trilinos: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("HYPRE hypre Hypre", block="hypre"),
    LibraryRow("ParMETIS Parmetis parmetis", bring=f"ParMETIS: only under its own licence; {_COMPILE}"),
    LibraryRow("SCOTCH Scotch scotch PTSCOTCH ptscotch", bring=f"SCOTCH: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("SuperLU_DIST superlu_dist SUPERLU_DIST", bring=f"SuperLU_DIST: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("MUMPS mumps dmumps zmumps", bring=f"MUMPS: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("SUNDIALS sundials sundials_cvode", bring=f"SUNDIALS: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("ELPA elpa", bring=f"ELPA: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("p4est P4EST t8code", bring=f"p4est: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("deal.II dealii", bring=f"deal.II: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("MFEM mfem", block="mfem"),
    LibraryRow("Kokkos kokkos", block="kokkos"),
    LibraryRow("KokkosKernels Cabana", bring=f"it is compiled for one processor and GPU, as Kokkos is; {_COMPILE}"),
    LibraryRow(
        "RAJA Umpire umpire camp chai BLT AMReX amrex caliper Caliper", bring=f"no package of it is known; {_COMPILE}"
    ),
    LibraryRow("OpenCL", "ocl-icd-opencl-dev", "ocl-icd-devel", "ocl-icd-devel"),
    # Data.
    LibraryRow(
        "HDF5 hdf5 hdf5_hl hdf5_fortran hdf5_hl_fortran", "libhdf5-dev", "hdf5-devel", "hdf5-devel", over_mpi="hdf5"
    ),
    LibraryRow("hdf5_cpp", "libhdf5-dev", "hdf5-devel", "hdf5-devel"),
    LibraryRow(
        "NetCDF netCDF NETCDF netcdf netCDF-C", "libnetcdf-dev", "netcdf-devel", "netcdf-devel", over_mpi="netcdf"
    ),
    LibraryRow(
        "netcdff netcdf-fortran NetCDF-Fortran netCDF-Fortran NETCDF_FORTRAN",
        "libnetcdff-dev",
        "netcdf-fortran-devel",
        "netcdf-fortran-devel",
        over_mpi="netcdf",
    ),
    LibraryRow(
        "netcdf-cxx4 netcdf_c++4 netcdf-cxx NetCDF-CXX netCDFCxx",
        "libnetcdf-c++4-dev",
        "netcdf-cxx4-devel",
        "netcdf-cxx4-devel",
    ),
    LibraryRow("PnetCDF PNETCDF pnetcdf", over_mpi="pnetcdf"),
    LibraryRow("ADIOS2 adios2 ADIOS adios", bring=f"ADIOS2 without MPI: {_COMPILE}", over_mpi="adios2"),
    LibraryRow("Silo silo siloh5 SILO", bring=f"Silo: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("VTK vtk", bring=f"VTK: {_OWN_MPI}{_COMPILE}"),
    LibraryRow("CGNS cgns", "libcgns-dev", "cgnslib-devel", "cgns-devel"),
    LibraryRow("cfitsio CFITSIO CFitsio", "libcfitsio-dev", "cfitsio-devel", "cfitsio-devel"),
    LibraryRow("udunits udunits2 UDUNITS", "libudunits2-dev", "udunits2-devel", "udunits2-devel"),
    LibraryRow("eccodes ecCodes", "libeccodes-dev", "eccodes-devel", "eccodes-devel"),
    LibraryRow("yaml-cpp YAML-CPP", "libyaml-cpp-dev", "yaml-cpp-devel", "yaml-cpp-devel"),
    LibraryRow("nlohmann_json", "nlohmann-json3-dev", "json-devel", "nlohmann_json-devel"),
    LibraryRow("pugixml", "libpugixml-dev", "pugixml-devel", "pugixml-devel"),
    LibraryRow("tinyxml2 TinyXML2", "libtinyxml2-dev", "tinyxml2-devel", "tinyxml2-devel"),
    LibraryRow("LibXml2 xml2 libxml-2.0", "libxml2-dev", "libxml2-devel", "libxml2-devel"),
    LibraryRow("SQLite3 sqlite3", "libsqlite3-dev", "sqlite-devel", "sqlite3-devel"),
    LibraryRow("EXPAT expat", "libexpat1-dev", "expat-devel", "libexpat-devel"),
    # Small things.
    LibraryRow("fmt", "libfmt-dev", "fmt-devel", "fmt-devel"),
    LibraryRow("spdlog", "libspdlog-dev", "spdlog-devel", "spdlog-devel"),
    LibraryRow("xtensor xtl", "libxtensor-dev", "xtensor-devel", "xtensor-devel"),
    LibraryRow("GTest gtest googletest gmock", "libgtest-dev libgmock-dev", "gtest-devel gmock-devel", "gtest gmock"),
    LibraryRow("Catch2 catch2", "catch2", "catch-devel", "Catch2-devel"),
    LibraryRow("cereal", "libcereal-dev", "cereal-devel", "cereal-devel"),
    LibraryRow("CLI11", "libcli11-dev", "cli11-devel", "cli11-devel"),
    LibraryRow("cxxopts", "libcxxopts-dev", "cxxopts-devel", "cxxopts-devel"),
    LibraryRow("ZLIB zlib z", "zlib1g-dev", "zlib-devel", "zlib-devel"),
    LibraryRow("BZip2 bz2 bzip2", "libbz2-dev", "bzip2-devel", "libbz2-devel"),
    LibraryRow("LibLZMA lzma liblzma", "liblzma-dev", "xz-devel", "xz-devel"),
    LibraryRow("zstd libzstd Zstd", "libzstd-dev", "libzstd-devel", "libzstd-devel"),
    LibraryRow("LZ4 lz4 liblz4", "liblz4-dev", "lz4-devel", "liblz4-devel"),
    LibraryRow("CURL curl libcurl", "libcurl4-openssl-dev", "libcurl-devel", "libcurl-devel"),
    LibraryRow("OpenSSL ssl crypto openssl libcrypto", "libssl-dev", "openssl-devel", "libopenssl-devel"),
    LibraryRow("PNG png libpng", "libpng-dev", "libpng-devel", "libpng16-devel"),
    LibraryRow("JPEG jpeg", "libjpeg-dev", "libjpeg-turbo-devel", "libjpeg8-devel"),
    LibraryRow("readline Readline", "libreadline-dev", "readline-devel", "readline-devel"),
    LibraryRow("Curses ncurses", "libncurses-dev", "ncurses-devel", "ncurses-devel"),
    LibraryRow("uuid UUID", "uuid-dev", "libuuid-devel", "libuuid-devel"),
    LibraryRow("aio libaio", "libaio-dev", "libaio-devel", "libaio-devel"),
    LibraryRow("papi PAPI", "libpapi-dev", "papi-devel", "papi-devel"),
    LibraryRow("hmsbeagle hmsbeagle-1", "libhmsbeagle-dev"),
    LibraryRow(
        "X11 OpenGL GLUT GLEW glfw3 ImageMagick SDL2 Qt5 Qt6", bring="it shows windows or pictures; leave it out"
    ),
)


DRAWS_MPI = re.compile(
    r"lib[\w.+-]*-(openmpi|mpich|mpi|parallel)(-[\w.+-]+)?|libp(netcdf|etsc|tscotch)[\w.+-]*-dev|"
    r"lib(scalapack|hypre|slepc|mumps|p4est|adios|elpa|sundials|boost-all|vtk\d?|trilinos|dolfin|superlu-dist)[\w.+-]*-dev|"
    r"(hdf5|netcdf[\w+-]*|fftw|boost|scalapack|petsc|hypre)-(openmpi|mpich)(-[\w.+-]+)?|python3-(mpi4py|petsc4py|dolfin\w*)"
)
"""Packages that draw in the distribution's own MPI. Source: package lists of Debian 12; names for dnf from memory."""


def block_for(package: str) -> str:
    """The block that brings over the image's MPI what such a package has over its own; empty without one."""
    blocks = ("hdf5", "pnetcdf", "netcdf", "fftw", "petsc", "boost", "scalapack", "hypre", "adios2")
    # "pnetcdf" has "netcdf" in it; Debian's packages of ADIOS2 are libadios-dev and libadios2-….
    return next((block for block in blocks if block.rstrip("2") in package), "")


OVER_SERIAL_HDF5 = ("libcgns-dev", "libnetcdf-c++4-dev")
"""Packages over the distribution's serial HDF5: a program that has one cannot have another HDF5 beside it."""

TOOLS = (
    LibraryRow("pkg-config", "pkg-config", "pkgconf-pkg-config", "pkg-config"),
    LibraryRow("ninja-build", "ninja-build", "ninja-build", "ninja"),
    LibraryRow("rustc", "rustc", "rust", "rust"),
    LibraryRow("libclang-dev", "libclang-dev", "clang-devel", "clang-devel"),
)
"""Tools of builds, by Debian's names, that others have under another."""

BOOST_HEADERS = ("libboost-dev", "boost-devel", "boost-devel")
"""Of Boost without the parts that are compiled. libboost-all-dev draws in the distribution's Open MPI."""
BOOST_PARTS = [
    "atomic",
    "chrono",
    "container",
    "context",
    "contract",
    "coroutine",
    "date_time",
    "exception",
    "fiber",
    "filesystem",
    "graph",
    "iostreams",
    "locale",
    "log",
    "math",
    "nowide",
    "program_options",
    "python",
    "random",
    "regex",
    "serialization",
    "stacktrace",
    "system",
    "test",
    "thread",
    "timer",
    "wave",
]
"""Parts of Boost that have a package libboost-PART-dev."""
