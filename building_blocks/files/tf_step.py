"""A small convolutional network that is really trained with TensorFlow, to prove that it computes, and how fast.

    tf_step.py [MODULE ...]

Serves every TensorFlow from 1.4 on, by graphs and sessions. MODULEs are imported after TensorFlow, such as
ngraph_bridge. The device is the one named in the file "device" beside this one, cpu or gpu. Where TF_XLA_FLAGS asks
for XLA, what XLA compiles is written to a temporary folder, and there must be something.
Exit status 1: a convolution has another result than NumPy's, the loss did not fall as it should, classes are not
told apart, there is no such device, or XLA compiled nothing.
"""

import importlib
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZE, CLASSES, BATCH, STEPS = 12, 4, 64, 80


def prepare_xla():
    """A folder for what XLA compiles, where it is asked for; before TensorFlow is loaded, which reads this once."""
    if "tf_xla_auto_jit" not in os.environ.get("TF_XLA_FLAGS", ""):
        return None
    folder = tempfile.mkdtemp(prefix="xla-")
    os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " --xla_dump_to=" + folder).strip()
    return Path(folder)


def images(random, count):
    """Noise with a bright square in one of the corners, which is the class."""
    classes = random.randint(0, CLASSES, count)
    found = random.rand(count, SIZE, SIZE, 1).astype("f4")
    for number in range(count):
        row, column = divmod(int(classes[number]), 2)
        found[number, row * 8 : row * 8 + 4, column * 8 : column * 8 + 4] += 1.0
    return found, classes


def convolved(image, kernel):
    """The 3 x 3 convolution of one image, without padding, as NumPy has it."""
    out = np.zeros((SIZE - 2, SIZE - 2, kernel.shape[-1]))
    for row in range(3):
        for column in range(3):
            part = image[row : row + SIZE - 2, column : column + SIZE - 2, :].astype("f8")
            out += part.dot(kernel[row, column].astype("f8"))
    return out


def network(tf, v1, random):
    """Placeholders, loss, share of right answers, training step, and a convolution with its kernel."""
    x = v1.placeholder("float32", [BATCH, SIZE, SIZE, 1])
    y = v1.placeholder("int64", [BATCH])
    kernel = (random.rand(3, 3, 1, 8).astype("f4") - 0.5) / 2
    hidden = (SIZE - 2) ** 2 // 4 * 8
    first = tf.Variable(kernel)
    second = tf.Variable(random.rand(hidden, CLASSES).astype("f4") * 0.02 - 0.01)
    bias = tf.Variable(np.zeros(CLASSES, "f4"))
    convolution = tf.nn.conv2d(x, first, strides=[1, 1, 1, 1], padding="VALID")
    pooled = v1.nn.max_pool(tf.nn.relu(convolution), [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
    logits = tf.matmul(tf.reshape(pooled, [BATCH, hidden]), second) + bias
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
    right = tf.reduce_mean(tf.cast(tf.equal(v1.argmax(logits, 1), y), "float32"))
    step = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
    return x, y, loss, right, step, convolution, kernel


def train(tf, v1, device):
    """Largest relative error of the convolution, losses, the last share of right answers, images per second."""
    random = np.random.RandomState(7)
    with tf.Graph().as_default(), v1.device(f"/{device}:0"):
        x, y, loss, right, step, convolution, kernel = network(tf, v1, random)
        # Nothing moves to another device in silence.
        with v1.Session(config=v1.ConfigProto(allow_soft_placement=False)) as session:
            session.run(v1.global_variables_initializer())
            data = images(random, BATCH)
            found = session.run(convolution, {x: data[0], y: data[1]})[0]
            wanted = convolved(data[0][0], kernel)
            error = float(np.abs(found - wanted).max() / np.abs(wanted).max())
            losses, shares, begin = [], [], 0.0
            for number in range(STEPS):
                data = images(random, BATCH)
                one, share, _ = session.run([loss, right, step], {x: data[0], y: data[1]})
                losses.append(float(one))
                shares.append(float(share))
                if number == 9:
                    begin = time.time()
            return error, losses, float(np.mean(shares[-10:])), (STEPS - 10) * BATCH / (time.time() - begin)


def main():
    """The exit status."""
    device = Path(__file__).resolve().with_name("device").read_text().strip()
    dumped = prepare_xla()
    import tensorflow as tf

    for name in sys.argv[1:]:
        importlib.import_module(name)
    v1 = tf.compat.v1 if hasattr(getattr(tf, "compat", None), "v1") else tf
    error, losses, share, speed = train(tf, v1, device)
    print("tensorflow", tf.__version__, "on", device)
    print(f"largest relative difference {error:.1e}")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, right answers {100 * share:.0f} %")
    print(f"images per second {speed:.0f}")
    wrong = []
    # NVIDIA's libraries take TF32 for convolutions, with 10 bits.
    if not error < (1e-5 if device == "cpu" else 2e-3):
        wrong.append("the convolution is not NumPy's")
    if not losses[-1] < losses[0] / 2 or not share > 0.9:
        wrong.append("the network learned nothing")
    if dumped is not None:
        compiled = len(list(dumped.iterdir()))
        print("files of what XLA compiled", compiled)
        if not compiled:
            wrong.append("XLA was asked for and compiled nothing")
    for line in wrong:
        sys.stderr.write(line + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
