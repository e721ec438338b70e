"""The networks of the standard workloads, with the shapes and sizes of what they are called after."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import msgspec

# Networks as data: the layers that every framework's program builds, with their parameters and operations.
#
# Shapes are those of one sample, channels last. Operations are those of convolutions and matrix products, a
# multiplication and an addition counted as two; activations, normalisation and pooling are left out.
Shape = tuple[int, ...]


class Layer(msgspec.Struct, frozen=True, kw_only=True, tag_field="layer", tag=str.lower):
    """Base of all layers; what has no weights and keeps the shape needs nothing else."""

    def shape(self, given: Shape) -> Shape:
        """The shape of its result."""
        return given

    def parameters(self, given: Shape) -> int:
        """Weights that are trained."""
        return 0

    def flop(self, given: Shape) -> int:
        """Operations for one sample, forward."""
        return 0


class Conv(Layer, frozen=True):
    """A convolution in as many dimensions as its input has; ``same``: padded by half of its odd kernel."""

    filters: int
    kernel: int
    stride: int = 1
    same: bool = True
    bias: bool = True

    def shape(self, given: Shape) -> Shape:
        return (*_strided(given[:-1], self.kernel, self.stride, self.same), self.filters)

    def _weights(self, given: Shape) -> int:
        return int(self.kernel ** (len(given) - 1)) * given[-1] * self.filters

    def parameters(self, given: Shape) -> int:
        return self._weights(given) + self.bias * self.filters

    def flop(self, given: Shape) -> int:
        return 2 * self._weights(given) * prod(self.shape(given)[:-1])


class MaxPool(Layer, frozen=True):
    """The largest of each window."""

    size: int
    stride: int
    same: bool = False

    def shape(self, given: Shape) -> Shape:
        return (*_strided(given[:-1], self.size, self.stride, self.same), given[-1])


class GlobalPool(Layer, frozen=True):
    """The mean over all places."""

    def shape(self, given: Shape) -> Shape:
        return given[-1:]


class Upsample(Layer, frozen=True):
    """Each place ``factor`` times in every direction."""

    factor: int

    def shape(self, given: Shape) -> Shape:
        return (*(n * self.factor for n in given[:-1]), given[-1])


class Dense(Layer, frozen=True):
    """A matrix product over the last axis, and a bias."""

    units: int

    def shape(self, given: Shape) -> Shape:
        return (*given[:-1], self.units)

    def parameters(self, given: Shape) -> int:
        return (given[-1] + 1) * self.units

    def flop(self, given: Shape) -> int:
        return 2 * prod(given) * self.units


class Activation(Layer, frozen=True):
    """A function of each number; ``softmax`` is in the loss and in no network."""

    kind: Literal["relu", "leaky_relu", "gelu", "tanh", "softplus"]


class Dropout(Layer, frozen=True):
    """In training, a part of the numbers is left out."""

    rate: float


class BatchNorm(Layer, frozen=True):
    """Each channel normalised over a batch."""

    def parameters(self, given: Shape) -> int:
        return 2 * given[-1]


class LayerNorm(Layer, frozen=True):
    """Each vector normalised."""

    def parameters(self, given: Shape) -> int:
        return 2 * given[-1]


class Flatten(Layer, frozen=True):
    """All numbers of a sample in a row."""

    def shape(self, given: Shape) -> Shape:
        return (prod(given),)


class Reshape(Layer, frozen=True):
    """The numbers of a row in another shape."""

    to: Shape

    def shape(self, given: Shape) -> Shape:
        return self.to


class First(Layer, frozen=True):
    """The first vector of a sequence."""

    def shape(self, given: Shape) -> Shape:
        return given[1:]


class Embedding(Layer, frozen=True):
    """Words as vectors, with their places and the type of each."""

    words: int
    width: int
    places: int
    types: int = 2

    def shape(self, given: Shape) -> Shape:
        return (*given, self.width)

    def parameters(self, given: Shape) -> int:
        return (self.words + self.places + self.types) * self.width


class Attention(Layer, frozen=True):
    """Every vector of a sequence looks at all of them: queries, keys, values and an output, each with a bias."""

    heads: int

    def parameters(self, given: Shape) -> int:
        width = given[-1]
        return 4 * (width + 1) * width

    def flop(self, given: Shape) -> int:
        length, width = given
        return 8 * length * width * width + 4 * length * length * width


class Lstm(Layer, frozen=True):
    """A recurrent layer over a sequence of vectors: what it says after the last, or after each (``whole``)."""

    units: int
    whole: bool = True

    def shape(self, given: Shape) -> Shape:
        return (given[0], self.units) if self.whole else (self.units,)

    def parameters(self, given: Shape) -> int:
        # Two biases, as PyTorch has them.
        return 4 * (given[-1] + self.units + 2) * self.units

    def flop(self, given: Shape) -> int:
        return 8 * given[0] * (given[-1] + self.units) * self.units


class Residual(Layer, frozen=True):
    """The sum of two paths; an empty shortcut is the input itself."""

    main: tuple[AnyLayer, ...]
    shortcut: tuple[AnyLayer, ...] = ()

    def shape(self, given: Shape) -> Shape:
        return count(self.main, given).shape

    def parameters(self, given: Shape) -> int:
        return count(self.main, given).parameters + count(self.shortcut, given).parameters

    def flop(self, given: Shape) -> int:
        return count(self.main, given).flop + count(self.shortcut, given).flop


AnyLayer = (
    Conv
    | MaxPool
    | GlobalPool
    | Upsample
    | Dense
    | Activation
    | Dropout
    | BatchNorm
    | LayerNorm
    | Flatten
    | Reshape
    | First
    | Embedding
    | Attention
    | Lstm
    | Residual
)


class Counted(msgspec.Struct, frozen=True):
    """What layers one after the other make of a sample, and what they cost."""

    shape: Shape
    parameters: int
    flop: int


def count(layers: Sequence[Layer], given: Shape) -> Counted:
    """Follow a sample through the layers."""
    parameters = flop = 0
    for layer in layers:
        parameters += layer.parameters(given)
        flop += layer.flop(given)
        given = layer.shape(given)
    return Counted(given, parameters, flop)


def _strided(places: Sequence[int], size: int, stride: int, same: bool) -> list[int]:
    return [(n - (1 if same else size)) // stride + 1 for n in places]


Layers = tuple[AnyLayer, ...]
RELU = Activation(kind="relu")
LEAKY = Activation(kind="leaky_relu")


class NeuralNetwork(msgspec.Struct, frozen=True):
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


def mnist_cnn() -> NeuralNetwork:
    """Two convolutions and two dense layers with 1,199,882 parameters: the example mnist_cnn that Keras came with."""
    return NeuralNetwork(
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


def alexnet() -> NeuralNetwork:
    """AlexNet on one GPU's worth of filters, 61,100,840 parameters.  Source: arXiv 1404.5997, and torchvision's alexnet

    The first convolution is padded by half of its kernel, and so has 56x56 places instead of 55x55.
    """
    pool, hidden = MaxPool(size=3, stride=2), (Dropout(rate=0.5), Dense(units=4096), RELU)
    return NeuralNetwork(
        (224, 224, 3),
        (
            *(Conv(filters=64, kernel=11, stride=4), RELU, pool),
            *(Conv(filters=192, kernel=5), RELU, pool),
            *(Conv(filters=384, kernel=3), RELU),
            *(Conv(filters=256, kernel=3), RELU),
            *(Conv(filters=256, kernel=3), RELU, pool),
            Flatten(),
            *hidden,
            *hidden,
            Dense(units=1000),
        ),
        1000,
    )


def mlp() -> NeuralNetwork:
    """CANDLE's P1B2 with its 29,540,618 parameters.  Source: ECP-CANDLE/Benchmarks, Pilot1/P1B2/README.md"""
    hidden: list[AnyLayer] = []
    for units in (1024, 512, 256):
        hidden += [Dense(units=units), RELU]
    return NeuralNetwork((28204,), (*hidden, Dense(units=10)), 10)


def resnet50(size: int) -> NeuralNetwork:
    """ResNet-50 with 25,557,032 parameters, the stride in the 3x3 convolutions as in torchvision."""
    layers: list[AnyLayer] = [*_normed(64, 7, 2), RELU, MaxPool(size=3, stride=2, same=True)]
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            width = 64 * 2**stage
            main = (*_normed(width, 1, 1), RELU, *_normed(width, 3, stride), RELU, *_normed(4 * width, 1, 1))
            layers += [Residual(main=main, shortcut=() if block else _normed(4 * width, 1, stride)), RELU]
    return NeuralNetwork((size, size, 3), (*layers, GlobalPool(), Dense(units=1000)), 1000)


def resnet18(size: int) -> NeuralNetwork:
    """ResNet-18 with 11,689,512 parameters, as in torchvision."""
    layers: list[AnyLayer] = [*_normed(64, 7, 2), RELU, MaxPool(size=3, stride=2, same=True)]
    for number in range(8):
        width, stride = 64 * 2 ** (number // 2), 2 if number in (2, 4, 6) else 1
        main = (*_normed(width, 3, stride), RELU, *_normed(width, 3, 1))
        layers += [Residual(main=main, shortcut=_normed(width, 1, stride) if stride == 2 else ()), RELU]
    return NeuralNetwork((size, size, 3), (*layers, GlobalPool(), Dense(units=1000)), 1000)


def _normed(filters: int, kernel: int, stride: int) -> Layers:
    return (Conv(filters=filters, kernel=kernel, stride=stride, bias=False), BatchNorm())


def bert(length: int, layers: int, width: int) -> NeuralNetwork:
    """An encoder of BERT's shape, uncased, with its pooler: BERT-base has 109,482,240 parameters, small 28,763,648.

    Source of the sizes: github.com/google-research/bert, README.md
    """
    words = 30522
    made: list[AnyLayer] = [Embedding(words=words, width=width, places=512), LayerNorm()]
    for _ in range(layers):
        wide = (Dense(units=4 * width), Activation(kind="gelu"), Dense(units=width))
        made += [Residual(main=(Attention(heads=width // 64),)), LayerNorm(), Residual(main=wide), LayerNorm()]
    return NeuralNetwork((length,), (*made, First(), Dense(units=width), Activation(kind="tanh")), width, words=words)


def lstm() -> NeuralNetwork:
    """Two recurrent layers of 200 over 35 of 10,000 words, of the size of PyTorch's example word_language_model."""
    words, width = 10000, 200
    recurrent = (Lstm(units=width), Lstm(units=width, whole=False))
    layers = (Embedding(words=words, width=width, places=35), *recurrent, Dense(units=10))
    return NeuralNetwork((35,), layers, 10, words=words)


def gan3d() -> NeuralNetwork:
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
    return NeuralNetwork((25, 25, 25, 1), judge, 1, generator=maker, noise=33)
