"""Train a small convolutional network on images of MNIST's shape with Horovod, and print images per second.

The images are random numbers from a seed (60000 of 28 × 28 bytes, 10 classes): the speed does not depend on what
they show, and nothing has to be downloaded. The batch of all ranks together stays the same, so that one rank with two
threads and two ranks with one do the same work. The time of many short blocks of steps is taken, and those count
during which other programs left the machine alone. Runs in an image of the stack tf-horovod, on one node.
"""

import argparse
import json
import os
import resource
import statistics
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

IMAGES = 60000
WARM_UP = 15


def data(rank, size, batch):
    """Endless batches of this rank's share."""
    numbers = np.random.default_rng(1998)
    pixels = numbers.integers(0, 256, (IMAGES, 28, 28, 1), dtype=np.uint8)[rank::size]
    classes = numbers.integers(0, 10, IMAGES, dtype=np.int64)[rank::size]
    pairs = tf.data.Dataset.from_tensor_slices((pixels, classes)).shuffle(4096, seed=rank).repeat().batch(batch)
    scaled = pairs.map(lambda image, label: (tf.cast(image, tf.float32) / 255.0, label))
    return iter(scaled.prefetch(2))


def network():
    """Two convolutions and two dense layers: 1.2 million weights."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu", input_shape=(28, 28, 1)),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dense(10),
        ]
    )


def main():
    """Train and let rank 0 print one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=128, help="images of one step, over all ranks")
    parser.add_argument("--blocks", type=int, default=12, help="times that are taken")
    parser.add_argument("--steps", type=int, default=15, help="steps of one block")
    parser.add_argument("--quiet", type=float, default=0.1, help="cores that others may use in a block that counts")
    given = parser.parse_args()

    hvd.init()
    tf.random.set_seed(1)
    batches = data(hvd.rank(), hvd.size(), given.batch // hvd.size())
    model = network()
    optimizer = tf.keras.optimizers.SGD(0.01)
    cost = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    @tf.function
    def step(images, labels):
        with tf.GradientTape() as tape:
            loss = cost(labels, model(images, training=True))
        gradients = hvd.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905 (not in Python 3.8)
        return loss

    for number in range(WARM_UP):
        loss = step(*next(batches))
        if number == 0:
            hvd.broadcast_variables(model.variables, root_rank=0)
    blocks = []
    for _ in range(given.blocks):
        before = moment(loss)
        for _ in range(given.steps):
            loss = step(*next(batches))
        seconds, mine, everyone = (after - then for after, then in zip(moment(loss), before))  # noqa: B905
        speed = given.batch * given.steps / seconds
        blocks.append({"images_per_second": speed, "busy": mine / seconds, "others": (everyone - mine) / seconds})
    if hvd.rank() == 0:
        quiet = [block for block in blocks if block["others"] < given.quiet]
        result = {
            "ranks": hvd.size(),
            "images_per_second": statistics.median(block["images_per_second"] for block in quiet) if quiet else None,
            # Cores that all ranks together have kept busy.
            "busy": statistics.median(block["busy"] for block in quiet) if quiet else None,
            "quiet_blocks": len(quiet),
            "allowed_cores": len(os.sched_getaffinity(0)),
            "threads": len(os.listdir("/proc/self/task")),
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", ""),
            "loss": float(loss),
            "blocks": blocks,
        }
        print(json.dumps(result), flush=True)


def moment(loss):
    """All ranks at one point: the time, the CPU seconds of all ranks, and those of the whole machine."""
    float(loss)
    used = resource.getrusage(resource.RUSAGE_SELF)
    mine = hvd.allreduce(tf.constant(used.ru_utime + used.ru_stime, tf.float64), op=hvd.Sum, name="cpu")
    with open("/proc/stat") as file:
        fields = [int(word) for word in file.readline().split()[1:9]]
    idle, waiting = fields[3:5]
    return time.perf_counter(), float(mine), (sum(fields) - idle - waiting) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
