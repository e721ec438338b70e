"""A small convolutional network that is really trained with MXNet, to prove that it computes, and how fast.

    mxnet_step.py

The device is the one named in the file "device" beside this one, cpu or gpu.
Exit status 1: a convolution has another result than NumPy's, the loss did not fall as it should, classes are not
told apart, there is no such device, or oneDNN (MKL-DNN), which the packages for x86_64 have, is not on.
"""

import platform
import sys
import time
from pathlib import Path

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

SIZE, CLASSES, BATCH, STEPS = 12, 4, 64, 80


def images(random, count):
    """Noise with a bright square in one of the corners, which is the class."""
    classes = random.randint(0, CLASSES, count)
    found = random.rand(count, 1, SIZE, SIZE).astype("f4")
    for number in range(count):
        row, column = divmod(int(classes[number]), 2)
        found[number, 0, row * 8 : row * 8 + 4, column * 8 : column * 8 + 4] += 1.0
    return found, classes.astype("f4")


def convolution_error(random, device):
    """Largest relative difference of a 3 x 3 convolution without padding from NumPy's."""
    data, kernel = random.rand(2, 3, SIZE, SIZE).astype("f4"), random.rand(8, 3, 3, 3).astype("f4") - 0.5
    arguments = [mx.nd.array(each, ctx=device) for each in (data, kernel)]
    found = mx.nd.Convolution(*arguments, no_bias=True, kernel=(3, 3), num_filter=8).asnumpy()
    wanted = np.zeros((2, 8, SIZE - 2, SIZE - 2))
    for row in range(3):
        for column in range(3):
            part = data[:, :, row : row + SIZE - 2, column : column + SIZE - 2].astype("f8")
            wanted += np.einsum("nchw,oc->nohw", part, kernel[:, :, row, column].astype("f8"))
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def network(device):
    """Convolution, pooling, and a layer of classes."""
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(8, 3, activation="relu"), gluon.nn.MaxPool2D(), gluon.nn.Dense(CLASSES))
    net.initialize(mx.init.Xavier(), ctx=device)
    net.hybridize()
    return net


def train(random, device):
    """Losses, the last share of right answers, images per second."""
    net, criterion = network(device), gluon.loss.SoftmaxCrossEntropyLoss()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
    losses, shares, begin = [], [], 0.0
    for number in range(STEPS):
        data, classes = (mx.nd.array(each, ctx=device) for each in images(random, BATCH))
        with autograd.record():
            answers = net(data)
            loss = criterion(answers, classes)
        loss.backward()
        trainer.step(BATCH)
        losses.append(float(loss.mean().asscalar()))
        shares.append(float((answers.argmax(axis=1) == classes).mean().asscalar()))
        if number == 9:
            begin = time.time()
    return losses, float(np.mean(shares[-10:])), (STEPS - 10) * BATCH / (time.time() - begin)


def main():
    """The exit status."""
    device = Path(__file__).resolve().with_name("device").read_text().strip()
    context = mx.gpu(0) if device == "gpu" else mx.cpu()
    random = np.random.RandomState(7)
    mx.random.seed(7)
    error = convolution_error(random, context)
    losses, share, speed = train(random, context)
    onednn = mx.runtime.Features().is_enabled("MKLDNN")
    print("mxnet", mx.__version__, "on", device, "with" if onednn else "without", "oneDNN")
    print(f"largest relative difference {error:.1e}")
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, right answers {100 * share:.0f} %")
    print(f"images per second {speed:.0f}")
    wrong = []
    # NVIDIA's libraries take TF32 for convolutions, with 10 bits.
    if not error < (1e-5 if device == "cpu" else 2e-3):
        wrong.append("the convolution is not NumPy's")
    if not losses[-1] < losses[0] / 2 or not share > 0.9:
        wrong.append("the network learned nothing")
    if platform.machine() == "x86_64" and not onednn:
        wrong.append("oneDNN is not on")
    for line in wrong:
        sys.stderr.write(line + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
