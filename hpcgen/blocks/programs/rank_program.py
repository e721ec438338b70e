"""rank_test for an image that hpcgen did not build: the same answers, by the image's Python and its MPI library.

Started as a program with the library's name (SONAME), its path, and its binary interface, ``mpich`` or ``openmpi``. It
prints what building_blocks/files/rank_test.c prints. The numbers are those of ``mpi.h`` of MPICH and Open MPI, which
the binary interfaces fix. Runs on every Python 3.
"""

import ctypes
import os
import sys
from typing import Any

_WANTED = ("/libmpi.so", "/libmpi_", "/libmpich.", "/libfabric.", "-fi.so", "/libpsm2.", "/libucp.")


def main(soname: str, path: str, interface: str) -> int:
    """Say which rank this is and what it has mapped; 2 if the ranks do not reach each other, 3 for a wrong number."""
    try:
        mpi = ctypes.CDLL(soname, ctypes.RTLD_GLOBAL)
    except OSError:
        mpi = ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
    handles: list[Any] = []
    if interface == "openmpi":
        names = ("ompi_mpi_comm_world", "ompi_mpi_long", "ompi_mpi_op_sum")
        handles = [ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name))) for name in names]
    else:
        handles = [ctypes.c_int(number) for number in (0x44000000, 0x4C000807, 0x58000003)]
    world, long, total = handles
    mpi.MPI_Init(None, None)
    rank, size, length = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    host, version = ctypes.create_string_buffer(4096), ctypes.create_string_buffer(16384)
    mpi.MPI_Get_processor_name(host, ctypes.byref(length))
    mine, found = ctypes.c_long(rank.value), ctypes.c_long(-1)
    mpi.MPI_Allreduce(ctypes.byref(mine), ctypes.byref(found), 1, long, total, world)
    lines = [f"rank {rank.value} of {size.value} on {host.value.decode()}"]
    last = ""
    with open("/proc/self/maps", errors="replace") as maps:
        for line in maps:
            start = line.find(" /")
            name = line[start + 1 :].rstrip("\n")
            if start >= 0 and name != last and any(each in name for each in _WANTED):
                lines.append(f"rank {rank.value} maps {name}")
                last = name
    mpi.MPI_Get_library_version(version, ctypes.byref(length))
    if rank.value == 0:
        lines.append("library {}".format(version.value.decode(errors="replace").partition("\n")[0]))
    sys.stdout.write("".join(each + "\n" for each in lines))
    sys.stdout.flush()
    wanted = os.environ.get("HPCGEN_RANKS", "")
    status = 0 if found.value == size.value * (size.value - 1) // 2 else 2
    if wanted.isdigit() and int(wanted) != size.value:
        sys.stderr.write(f"rank {rank.value}: {wanted} ranks were wanted, this job has {size.value}\n")
        status = 3
    mpi.MPI_Finalize()
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4]))
