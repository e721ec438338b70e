"""A small network that is really trained with CNTK, to prove that it computes, and how fast.

    cntk_step.py

Exit status 1: a product of matrices is not NumPy's, the loss did not fall as it should, or classes are not told apart.
"""

import sys
import time

import cntk
import numpy as np

SIZE, CLASSES, BATCH, STEPS = 12, 4, 64, 120


def images(random, count):
    """Noise with a bright square in one of the corners, which is the class; classes as one of four."""
    classes = random.randint(0, CLASSES, count)
    found = random.rand(count, SIZE, SIZE).astype("f4")
    for number in range(count):
        row, column = divmod(int(classes[number]), 2)
        found[number, row * 8 : row * 8 + 4, column * 8 : column * 8 + 4] += 1.0
    return found.reshape(count, SIZE * SIZE), np.eye(CLASSES, dtype="f4")[classes]


def product_error(random):
    """Largest relative difference of a product of matrices from NumPy's."""
    first, second = random.rand(48, 64).astype("f4"), random.rand(64, 32).astype("f4")
    found = cntk.times(cntk.constant(first), cntk.constant(second)).eval()
    wanted = first.astype("f8").dot(second.astype("f8"))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def train(random):
    """Losses, the last share of right answers, images per second."""
    x, y = cntk.input_variable(SIZE * SIZE), cntk.input_variable(CLASSES)
    answers = cntk.layers.Dense(CLASSES)(cntk.layers.Dense(32, activation=cntk.relu)(x))
    loss, wrong = cntk.cross_entropy_with_softmax(answers, y), cntk.classification_error(answers, y)
    rate = cntk.learning_parameter_schedule(0.1, minibatch_size=BATCH)
    trainer = cntk.Trainer(answers, (loss, wrong), [cntk.sgd(answers.parameters, rate)])
    losses, shares, begin = [], [], 0.0
    for number in range(STEPS):
        data, classes = images(random, BATCH)
        trainer.train_minibatch({x: data, y: classes})
        losses.append(float(trainer.previous_minibatch_loss_average))
        shares.append(1.0 - float(trainer.previous_minibatch_evaluation_average))
        if number == 9:
            begin = time.time()
    return losses, float(np.mean(shares[-10:])), (STEPS - 10) * BATCH / (time.time() - begin)


def main():
    """The exit status."""
    cntk.device.try_set_default_device(cntk.device.cpu())
    cntk.cntk_py.set_fixed_random_seed(7)
    random = np.random.RandomState(7)
    error = product_error(random)
    losses, share, speed = train(random)
    print("cntk", cntk.__version__, "on", cntk.device.use_default_device())
    print(f"largest relative difference {error:.1e}")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, right answers {100 * share:.0f} %")
    print(f"images per second {speed:.0f}")
    wrong = [] if error < 1e-5 else ["the product of matrices is not NumPy's"]
    if not losses[-1] < losses[0] / 2 or not share > 0.9:
        wrong.append("the network learned nothing")
    for line in wrong:
        sys.stderr.write(line + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
