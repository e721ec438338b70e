"""Random points in a square, those of each rank from another seed: how many are in the circle?"""

import numpy
from mpi4py import MPI

POINTS = 4_000_000

ranks = MPI.COMM_WORLD
x, y = numpy.random.default_rng(ranks.rank).random((2, POINTS))
inside = ranks.allreduce(int((x * x + y * y <= 1).sum()))
if ranks.rank == 0:
    print(f"pi is about {4 * inside / (ranks.size * POINTS):.3f}, by {ranks.size} ranks")
