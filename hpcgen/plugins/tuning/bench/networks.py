"""The networks of the standard workloads, with the shapes and sizes of what they are called after."""

from __future__ import annotations

import msgspec

from hpcgen.plugins.tuning.bench.layers import (
    Activation,
    AnyLayer,
    Attention,
    BatchNorm,
    Conv,
    Dense,
    Dropout,
    Embedding,
    First,
    Flatten,
    GlobalPool,
    LayerNorm,
    MaxPool,
    Reshape,
    Residual,
    Shape,
    Upsample,
    count,
)

Layers = tuple[AnyLayer, ...]
RELU = Activation(kind="relu")
LEAKY = Activation(kind="leaky_relu")


class Network(msgspec.Struct, frozen=True):
    """What is built: from samples of ``shape`` to ``classes`` numbers.

    ``words``: samples are rows of so many different words, not numbers. ``generator``: the network that makes samples
    from noise of ``noise`` numbers, where the first one judges them.
    """

    shape: Shape
    layers: Layers
    classes: int
    words: int = 0
    generator: Layers = ()
    noise: int = 0

    @property
    def parameters(self) -> int:
        """Weights that are trained, of both networks where there are two."""
        return count(self.layers, self.shape).parameters + count(self.generator, (self.noise,)).parameters

    @property
    def inference_flop(self) -> int:
        """Operations for one sample, forward."""
        return count(self.layers, self.shape).flop

    @property
    def training_flop(self) -> int:
        """Operations of a training step for one sample: backward counts as twice forward.

        With a generator: it makes a sample for the step of the judge, who is trained on that and a true one; then it
        makes another, which is judged, and the gradients go back through both, for the weights of its own alone.
        """
        judge, made = count(self.layers, self.shape).flop, count(self.generator, (self.noise,)).flop
        return 3 * judge if not self.generator else (made + 6 * judge) + (3 * made + 2 * judge)


def mnist_cnn() -> Network:
    """Two convolutions and two dense layers with 1,199,882 parameters: the example mnist_cnn that Keras came with."""
    return Network(
        (28, 28, 1),
        (
            Conv(filters=32, kernel=3, same=False),
            RELU,
            Conv(filters=64, kernel=3, same=False),
            RELU,
            MaxPool(size=2, stride=2),
            Dropout(rate=0.25),
            Flatten(),
            Dense(units=128),
            RELU,
            Dropout(rate=0.5),
            Dense(units=10),
        ),
        10,
    )


def mlp() -> Network:
    """CANDLE's P1B2 with its 29,540,618 parameters.  Source: ECP-CANDLE/Benchmarks, Pilot1/P1B2/README.md"""
    hidden: list[AnyLayer] = []
    for units in (1024, 512, 256):
        hidden += [Dense(units=units), RELU]
    return Network((28204,), (*hidden, Dense(units=10)), 10)


def resnet50(size: int) -> Network:
    """ResNet-50 with 25,557,032 parameters, the stride in the 3x3 convolutions as in torchvision."""
    layers: list[AnyLayer] = [*_normed(64, 7, 2), RELU, MaxPool(size=3, stride=2, same=True)]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            width = 64 * 2**stage
            main = (*_normed(width, 1, 1), RELU, *_normed(width, 3, stride), RELU, *_normed(4 * width, 1, 1))
            layers += [Residual(main=main, shortcut=() if block else _normed(4 * width, 1, stride)), RELU]
    return Network((size, size, 3), (*layers, GlobalPool(), Dense(units=1000)), 1000)


def _normed(filters: int, kernel: int, stride: int) -> Layers:
    return (Conv(filters=filters, kernel=kernel, stride=stride, bias=False), BatchNorm())


def bert_base(length: int) -> Network:
    """An encoder of the shape of BERT-base, uncased, with its pooler: 109,482,240 parameters."""
    width, words = 768, 30522
    layers: list[AnyLayer] = [Embedding(words=words, width=width, places=512), LayerNorm()]
    for _ in range(12):
        wide = (Dense(units=4 * width), Activation(kind="gelu"), Dense(units=width))
        layers += [Residual(main=(Attention(heads=12),)), LayerNorm(), Residual(main=wide), LayerNorm()]
    return Network((length,), (*layers, First(), Dense(units=width), Activation(kind="tanh")), width, words=words)


def gan3d() -> Network:
    """A small three-dimensional GAN on showers of 25x25x25 cells, like that of the stack 3dgan."""
    judge = (
        Conv(filters=8, kernel=5, stride=2),
        LEAKY,
        Conv(filters=16, kernel=3, stride=2),
        LEAKY,
        Flatten(),
        Dense(units=1),
    )
    maker = (
        Dense(units=1000),
        RELU,
        Reshape(to=(5, 5, 5, 8)),
        Upsample(factor=5),
        Conv(filters=8, kernel=3),
        LEAKY,
        Conv(filters=1, kernel=3),
        Activation(kind="softplus"),
    )
    return Network((25, 25, 25, 1), judge, 1, generator=maker, noise=33)
