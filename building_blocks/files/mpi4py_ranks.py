"""Every rank adds up the numbers of all ranks over MPI, to prove that a job is one job, and says which MPI it uses.

Prints one line for each rank, and one with the library's name:

    rank R of N on HOST: the ranks add up to S
    library NAME

Exit status 2: the sum is wrong. 3: the job has another number of ranks than HPCGEN_RANKS says, because some launchers
silently start that many jobs of one rank.
"""

import os
import sys
from array import array

from mpi4py import MPI


def main():
    """The exit status."""
    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    wanted = int(os.environ.get("HPCGEN_RANKS") or size)
    if size != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {size}\n")
        return 3
    total = array("d", [0.0])
    world.Allreduce(array("d", [float(rank)]), total, op=MPI.SUM)
    # One write, so that the lines of several ranks do not mix.
    text = f"rank {rank} of {size} on {MPI.Get_processor_name()}: the ranks add up to {int(total[0])}\n"
    if rank == 0:
        library = MPI.Get_library_version().splitlines()[0].rstrip("\0")
        text += f"library {library}\n"
    sys.stdout.write(text)
    sys.stdout.flush()
    if world.allreduce(rank) != total[0] or total[0] != size * (size - 1) / 2:
        sys.stderr.write(f"rank {rank}: that is wrong\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
