"""A few training steps with Horovod, one process per rank, to prove that a job is one job.

Every rank trains the same small model on data of its own and prints one line

    rank R size N loss X

Exit status 1: the loss did not fall, or the ranks ended with different weights. 3: the job has another
number of ranks than HPCGEN_RANKS says, because some launchers silently start that many jobs of one rank.
"""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import horovod.tensorflow as hvd
import tensorflow as tf

STEPS = 20


def train():
    """First loss, last loss, and whether all ranks have the same weights in the end."""
    tf.random.set_seed(1000 + hvd.rank())  # the ranks start apart, so that the broadcast has work to do
    weights = tf.Variable(tf.random.normal([4, 1]))
    inputs = tf.random.normal([64, 4])
    targets = tf.matmul(inputs, [[1.0], [-2.0], [3.0], [0.5]])
    hvd.broadcast_variables([weights], root_rank=0)
    losses = []
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.matmul(inputs, weights) - targets))
        (gradient,) = hvd.DistributedGradientTape(tape).gradient(loss, [weights])
        weights.assign_sub(0.1 * gradient)
        losses.append(float(loss))
    everywhere = hvd.allgather(tf.reshape(weights, [1, 4]), name="weights")
    same = bool(tf.reduce_all(tf.abs(everywhere - everywhere[:1]) < 1e-5))
    return losses[0], losses[-1], same


def main():
    """The exit status."""
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))
    if wanted and hvd.size() != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {hvd.size()}\n")
        return 3
    first, last, same = train()
    # One write, so that the lines of several ranks do not mix.
    sys.stdout.write(f"rank {hvd.rank()} size {hvd.size()} loss {last:.6f}\n")
    sys.stdout.flush()
    if not same:
        sys.stderr.write(f"rank {hvd.rank()}: the weights differ between the ranks\n")
    return 0 if same and last < first else 1


if __name__ == "__main__":
    sys.exit(main())
