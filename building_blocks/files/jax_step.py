"""A step of JAX that is really computed, by one process or by all ranks of a job together, and checked.

    jax_step.py [PLATFORM [RANKS]]

Each rank trains the same small model on its own part of the data, with gradients summed over all ranks, and the
result is compared with NumPy's on all data. Ranks find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
which ranks.py makes of what launched them; with RANKS it starts so many processes of its own on this machine. The
platform (cpu, gpu) is the one in the file "platform" beside this one unless it is given.
Exit status 1: the platform is not there, or the result is another; 3: the job has another number of ranks than
HPCGEN_RANKS says, because some launchers silently start that many jobs of one rank.
"""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

STEPS, RATE, ROWS, WIDE = 20, 0.05, 64, 32


def start(platform):
    """Join the other ranks; this rank and how many there are."""
    import jax

    rank, size = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if platform == "cpu":
        jax.config.update("jax_platforms", "cpu")
    # Single precision means single precision: GPUs would take TF32 for products of matrices.
    jax.config.update("jax_default_matmul_precision", "highest")
    if size > 1:
        if platform == "cpu":
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(where, num_processes=size, process_id=rank)
    return rank, size


def data(rank):
    """The rows of one rank."""
    random = np.random.RandomState(100 + rank)
    x = random.rand(ROWS, WIDE).astype("f4")
    return x, x.dot(np.linspace(-1, 1, WIDE).astype("f4"))


def wanted(size):
    """What NumPy computes on the data of all ranks, in double precision."""
    parts = [data(rank) for rank in range(size)]
    x, y = (np.concatenate([part[which] for part in parts]).astype("f8") for which in (0, 1))
    weights = np.zeros(WIDE)
    for _ in range(STEPS):
        weights -= RATE * x.T.dot(x.dot(weights) - y) / len(y)
    return weights


def train(rank, size):
    """The weights after all steps, and seconds for each."""
    import jax
    import jax.numpy as jnp
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    # One device of each rank, however many it sees.
    devices = [next(d for d in jax.devices() if d.process_index == each) for each in range(size)]
    mesh = Mesh(np.array(devices), ("ranks",))
    split, whole = NamedSharding(mesh, PartitionSpec("ranks")), NamedSharding(mesh, PartitionSpec())
    x, y = (jax.make_array_from_process_local_data(split, each) for each in data(rank))

    def loss(weights, x, y):
        return 0.5 * jnp.mean((x.dot(weights) - y) ** 2)

    step = jax.jit(lambda weights, x, y: weights - RATE * jax.grad(loss)(weights, x, y), out_shardings=whole)
    weights = step(jax.make_array_from_process_local_data(whole, np.zeros(WIDE, "f4")), x, y)
    weights.block_until_ready()
    begin = time.time()
    for _ in range(STEPS - 1):
        weights = step(weights, x, y)
    return np.asarray(weights.addressable_data(0)), (time.time() - begin) / (STEPS - 1)


def start_ranks(platform, size):
    """Start the ranks on this machine; the worst of their exit statuses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "HPCGEN_RANKS": str(size)}
    command = [sys.executable, __file__, platform]
    ranks = [
        subprocess.Popen(command, env={**os.environ, **common, "RANK": str(rank)}, stdin=subprocess.DEVNULL)
        for rank in range(size)
    ]
    return max(abs(each.wait()) for each in ranks)


def main():
    """The exit status."""
    if len(sys.argv) > 2:
        return start_ranks(sys.argv[1], int(sys.argv[2]))
    import jax

    platform = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().with_name("platform").read_text().strip()
    rank, size = start(platform)
    asked = int(os.environ.get("HPCGEN_RANKS", "0"))
    if asked and asked != size:
        sys.stderr.write(f"{size} ranks, not {asked}: the launcher does not fit, or started that many jobs\n")
        return 3
    found = jax.devices()[0].platform
    if found != platform:
        sys.stderr.write(f"{platform} was asked for, JAX computes on {found}\n")
        return 1
    weights, seconds = train(rank, size)
    right = wanted(size)
    largest = float(np.abs(weights - right).max() / np.abs(right).max())
    said = [f"jax {jax.__version__} rank {rank} of {size} on {jax.local_devices()[0].device_kind}"]
    if rank == 0:
        said.append(f"largest relative difference {largest:.1e}")
        said.append(f"{1000 * seconds:.2f} ms for each step over {size} rank{'s' if size > 1 else ''}")
    # In one piece, between those of the other ranks.
    os.write(1, "".join(f"{line}\n" for line in said).encode())
    if not largest < 1e-4:
        sys.stderr.write("the result is not the one that NumPy has\n")
        return 1
    if size > 1:
        jax.distributed.shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
