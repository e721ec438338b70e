"""Packages that bring an MPI, and such that bring none: by package lists of 2026."""

from __future__ import annotations

BY_NAME = {
    "apt": [
        *("libhdf5-openmpi-dev", "libhdf5-mpich-dev", "libnetcdf-mpi-dev", "libpetsc-real-dev", "libfftw3-mpi-dev"),
        *("libboost-mpi-dev", "libscalapack-mpi-dev", "python3-mpi4py", "libopenmpi-dev", "libmpich-dev", "lammps"),
        *("libhypre-dev", "libpnetcdf-dev", "r-cran-rmpi"),
    ],
    "dnf": ["hdf5-openmpi-devel", "netcdf-mpich-devel", "petsc-openmpi", "openmpi-devel", "mpich", "boost-openmpi"],
    "zypper": ["hdf5-gnu-openmpi4-hpc", "libpetsc_3_18_5-gnu-openmpi4-hpc", "openmpi4-devel", "mpich-devel"],
    "conda": ["openmpi", "impi_rt", "hdf5=*=mpi_openmpi_*", "fftw 3.3.* mpi_openmpi_*"],
}
"""What a plan over MPICH's binary interface refuses by the name alone."""

INNOCENT = (
    *("libhdf5-dev", "libfftw3-dev", "libnetcdf-dev", "libnetcdff-dev", "libgsl-dev", "libmetis-dev", "libhwloc-dev"),
    *("libucx-dev", "libboost-dev", "libboost-serialization-dev", "python3-h5py", "gdal-bin", "ffmpeg", "libcgns-dev"),
    *("libarpack2-dev", "liblapack-dev", "mpich-doc", "openmpi-doc", "valgrind-mpi", "libpmix-dev", "slurm-client"),
    *("gmsh", "libsuitesparse-dev", "libtrilinos-kokkos-dev"),
)
"""Packages of Debian 12 that bring no MPI, by their dependencies."""
