"""A small three-dimensional GAN on calorimeter showers, trained data-parallel with Horovod, one process per rank.

    gan3d_step.py [--data FILE] [--showers N] [--batch N] [--epochs N]

Without --data each rank makes showers of its own (make_showers.py) in a temporary HDF5 file, as many on each, so that
more ranks do more work in the same time: weak scaling. With it, the ranks read different showers of one file.
A generator makes showers from noise and an energy; a discriminator tells them from true ones and estimates their
energy. Each rank prints one line

    rank R size N showers per second X discriminator D generator G energy E

and rank 0 that of the whole job. Exit status 1: a loss is not finite, the estimate of the energy got no better, or the
ranks ended with different weights. 3: the job has another number of ranks than HPCGEN_RANKS says.
"""

import argparse
import os
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import h5py
import horovod.tensorflow as hvd
import make_showers
import numpy as np
import tensorflow as tf

LATENT, CELLS, SCALE, GEV = 32, make_showers.CELLS, 10.0, 500.0
layers = tf.keras.layers


def arguments():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", help="an HDF5 file with ECAL and target")
    parser.add_argument("--showers", type=int, default=64, help="of each rank and epoch")
    parser.add_argument("--batch", type=int, default=8, help="showers of each rank and step")
    parser.add_argument("--epochs", type=int, default=2)
    asked = parser.parse_args()
    if min(asked.showers, asked.batch, asked.epochs) < 1 or asked.showers < 2 * asked.batch:
        parser.error("at least two batches of showers, and one epoch")
    return asked


def generator():
    """Noise and an energy to a shower."""
    inputs = tf.keras.Input((LATENT + 1,))
    x = layers.Reshape((5, 5, 5, 8))(layers.Dense(1000, activation="relu")(inputs))
    x = layers.UpSampling3D(5)(x)
    x = layers.LeakyReLU()(layers.Conv3D(8, 3, padding="same")(x))
    return tf.keras.Model(inputs, layers.Conv3D(1, 3, padding="same", activation="softplus")(x))


def discriminator():
    """A shower to how true it seems, and to its energy."""
    inputs = tf.keras.Input((CELLS, CELLS, CELLS, 1))
    x = layers.LeakyReLU()(layers.Conv3D(8, 5, strides=2, padding="same")(inputs))
    x = layers.LeakyReLU()(layers.Conv3D(16, 3, strides=2, padding="same")(x))
    x = layers.Flatten()(layers.AveragePooling3D(2)(x))
    return tf.keras.Model(inputs, [layers.Dense(1)(x), layers.Dense(1)(x)])


class Training:
    """Two networks, their optimisers, and one step of each."""

    def __init__(self, batch):
        self.batch = batch
        self.makes, self.judges = generator(), discriminator()
        self.of_makes, self.of_judges = tf.keras.optimizers.RMSprop(1e-3), tf.keras.optimizers.RMSprop(1e-3)

    def variables(self):
        return [*self.makes.variables, *self.judges.variables]

    def noise(self, energy):
        """What the generator starts from, for showers of these energies."""
        return tf.concat([tf.random.normal([self.batch, LATENT]), energy], axis=1)

    def applied(self, tape, loss, network, optimiser):
        """The step that follows from the gradients of all ranks."""
        tape = hvd.DistributedGradientTape(tape)
        weights = network.trainable_variables
        gradients = tape.gradient(loss, weights)
        optimiser.apply_gradients([(gradient, weights[i]) for i, gradient in enumerate(gradients)])

    def step(self, true, energy):
        """Losses of the discriminator and the generator, and the error of the energy of true showers."""
        made = self.makes(self.noise(energy))
        with tf.GradientTape() as tape:
            (seems, guess), (seems_made, _) = self.judges(true), self.judges(made)
            off = tf.reduce_mean(tf.abs(guess - energy))
            judged = entropy(1.0, seems) + entropy(0.0, seems_made) + 4.0 * off
        self.applied(tape, judged, self.judges, self.of_judges)
        with tf.GradientTape() as tape:
            seems_made, guess = self.judges(self.makes(self.noise(energy)))
            fooled = entropy(1.0, seems_made) + tf.reduce_mean(tf.abs(guess - energy))
        self.applied(tape, fooled, self.makes, self.of_makes)
        return judged, fooled, off


def entropy(truth, seems):
    """The loss of a judgement, one number for what is the same for all showers of a batch."""
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(tf.fill(tf.shape(seems), truth), seems))


def batches(path, asked, own):
    """Cells and energies of one epoch after the other, of this rank's showers alone."""
    with h5py.File(path, "r") as file:
        count = len(file["ECAL"])
        first = 0 if own else hvd.rank() * asked.showers
        if count < first + asked.showers:
            raise SystemExit(f"{path} has {count} showers, {hvd.size()} ranks want {asked.showers} each")
        for _ in range(asked.epochs):
            for begin in range(first, first + asked.showers - asked.batch + 1, asked.batch):
                cells, target = (file[name][begin : begin + asked.batch] for name in ("ECAL", "target"))
                yield (cells[..., None] * SCALE).astype("f4"), (target[:, 1:2] / GEV).astype("f4")


def train(asked, path):
    """The losses of all steps, whether all ranks have the same weights, and showers per second of this rank."""
    tf.random.set_seed(1000 + hvd.rank())  # the ranks start apart, so that the broadcast has work to do
    training = Training(asked.batch)
    hvd.broadcast_variables(training.variables(), root_rank=0)
    step = tf.function(training.step)
    losses, begin = [], 0.0
    for number, (cells, energy) in enumerate(batches(path, asked, own=asked.data is None)):
        losses.append([float(loss) for loss in step(tf.constant(cells), tf.constant(energy))])
        if number == 0:
            begin = time.time()  # the first step traces and compiles
    speed = (len(losses) - 1) * asked.batch / (time.time() - begin)
    sums = tf.stack([tf.reduce_sum(tf.abs(variable)) for variable in training.variables()])
    everywhere = hvd.allgather(sums[None, :], name="weights")
    same = bool(tf.reduce_all(tf.abs(everywhere - everywhere[:1]) <= 1e-5 * tf.abs(everywhere[:1])))
    return np.array(losses), same, speed


def setup():
    """Horovod, the rank's GPU, and as many threads as the job gives a rank."""
    hvd.init()
    gpus = tf.config.list_physical_devices("GPU")
    if gpus:
        tf.config.set_visible_devices(gpus[hvd.local_rank() % len(gpus)], "GPU")
    tf.config.threading.set_intra_op_parallelism_threads(int(os.environ.get("OMP_NUM_THREADS") or 0))
    tf.config.threading.set_inter_op_parallelism_threads(1)


def main():
    """The exit status."""
    asked = arguments()
    setup()
    wanted = int(os.environ.get("HPCGEN_RANKS", "0"))
    if wanted and hvd.size() != wanted:
        sys.stderr.write(f"expected {wanted} ranks, this job has {hvd.size()}\n")
        return 3
    with tempfile.TemporaryDirectory(prefix="showers-") as folder:
        path = asked.data or f"{folder}/showers.h5"
        if not asked.data:
            make_showers.write(path, asked.showers, seed=hvd.rank() * 1000000)
        losses, same, speed = train(asked, path)
    last = losses[-4:].mean(axis=0)
    total = float(hvd.allreduce(tf.constant(speed), op=hvd.Sum, name="speed"))
    # One write, so that the lines of several ranks do not mix.
    told = "discriminator {:.4f} generator {:.4f} energy {:.4f}".format(*last)
    line = f"rank {hvd.rank()} size {hvd.size()} showers per second {speed:.2f} {told}\n"
    sys.stdout.write(line + (f"job ranks {hvd.size()} showers per second {total:.2f}\n" if hvd.rank() == 0 else ""))
    sys.stdout.flush()
    wrong = [] if same else ["the weights differ between the ranks"]
    if not np.isfinite(losses).all():
        wrong.append("a loss is not finite")
    elif not last[2] < losses[0][2]:
        wrong.append("the estimate of the energy got no better")
    for text in wrong:
        sys.stderr.write(f"rank {hvd.rank()}: {text}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
