"""A few data-parallel training steps with Horovod, to prove an image works.

Start it with one process per rank.  Every rank prints one line

    rank R of N size N loss L0 -> L1 weights W

and exits with 1 if the loss did not fall, if the ranks ended with different
weights, or if there are not as many ranks as HVD_EXPECTED_SIZE says.  The last
matters: a launcher that does not match the MPI in the image starts N separate
jobs of size 1, and each of them succeeds.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import horovod.tensorflow as hvd
import tensorflow as tf

STEPS = 20


def main() -> int:
    """Train a linear model on rank-dependent data and report."""
    hvd.init()
    rank, size = hvd.rank(), hvd.size()
    tf.random.set_seed(1000 + rank)  # ranks start apart: the broadcast has to work

    weights = tf.Variable(tf.random.normal([4, 1]))
    inputs = tf.random.normal([64, 4])
    targets = inputs @ tf.constant([[1.0], [-2.0], [3.0], [0.5]])
    hvd.broadcast_variables([weights], root_rank=0)

    losses = []
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(inputs @ weights - targets))
        tape = hvd.DistributedGradientTape(tape)
        (gradient,) = tape.gradient(loss, [weights])
        weights.assign_sub(0.1 * gradient)
        losses.append(float(loss))

    spread = hvd.allgather(tf.reshape(weights, [1, 4]), name="weights")
    same = bool(tf.reduce_all(tf.abs(spread - spread[:1]) < 1e-6))
    # One write per rank, so that lines of several ranks do not mix.
    sys.stdout.write(
        f"rank {rank} of {size} size {size} loss {losses[0]:.4f} -> {losses[-1]:.6f}"
        f" weights {'same' if same else 'DIFFER'}\n"
    )
    sys.stdout.flush()

    expected = int(os.environ.get("HVD_EXPECTED_SIZE", size))
    if size != expected:
        print(f"expected {expected} ranks, MPI made {size}", file=sys.stderr)
        return 1
    return 0 if same and losses[-1] < losses[0] else 1


if __name__ == "__main__":
    sys.exit(main())
