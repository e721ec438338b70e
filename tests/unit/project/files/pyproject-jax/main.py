import jax
from mpi4py import MPI

print(MPI.COMM_WORLD.rank, jax.devices())
