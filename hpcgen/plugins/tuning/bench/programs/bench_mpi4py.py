"""Sums over all ranks with mpi4py."""

from bench_common import Cannot, begin, imported, main, timed

ASKED = begin()
mpi4py, np = imported("mpi4py"), imported("numpy")
MPI = imported("mpi4py.MPI")


def run(asked):
    if asked["compiler"] not in ("", "none"):
        raise Cannot("MPI has no compiler {}".format(asked["compiler"]), "name another compiler, or none")
    if asked["precision"] not in ("fp32", "fp64"):
        raise Cannot("sums are in fp32 or fp64 here, not in {}".format(asked["precision"]), "name another precision")
    world = MPI.COMM_WORLD
    if world.size != asked["ranks"]:
        raise RuntimeError(f"{world.size} ranks met, not {asked['ranks']}")
    data = np.zeros(asked["size"], {"fp32": "float32", "fp64": "float64"}[asked["precision"]])
    summed = np.empty_like(data)

    def together(numbers):
        return world.allreduce(max(numbers), op=MPI.MAX)

    found = timed(lambda: world.Allreduce(data, summed), asked["seconds"], together)
    return dict(found, rate=1e-9 * data.nbytes / found["step_seconds"], version=mpi4py.__version__)


main(run, ASKED)
