"""Networks as data: the layers that every framework's program builds, with their parameters and operations.

Shapes are those of one sample, channels last. Operations are those of convolutions and matrix products, a
multiplication and an addition counted as two; activations, normalisation and pooling are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import msgspec

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
