"""Models of Keras; ``keras.yaml`` says what goes in."""

from __future__ import annotations

import functools

import keras
from keras import layers


def seeded(factory):
    """Layers draw the seed of their weights when they are made."""

    @functools.wraps(factory)
    def made():
        keras.utils.set_random_seed(1)
        return factory()

    return made


def model(inputs, outputs):
    return keras.Model(inputs, outputs)


def sequence(shape, *parts, dtype="float32"):
    return keras.Sequential([layers.Input(shape, dtype=dtype), *parts])


@seeded
def gelu():
    """The exact function and its approximation by tanh."""
    return sequence(
        (6,),
        layers.Dense(8, activation="gelu"),
        layers.Dense(8, activation=lambda x: keras.activations.gelu(x, approximate=True)),
        layers.Dense(3, activation="softmax"),
    )


@seeded
def activations():
    """The others, side by side."""
    x = layers.Input((5,))
    names = (
        "silu",
        "selu",
        "mish",
        "softplus",
        "softsign",
        "hard_sigmoid",
        "elu",
        "relu6",
        "log_softmax",
        "leaky_relu",
    )
    return model(x, layers.Concatenate()([layers.Dense(3, activation=each)(x) for each in names]))


@seeded
def images():
    return sequence(
        (16, 16, 3),
        layers.Rescaling(1 / 255),
        layers.Conv2D(6, 3, padding="same", strides=2),
        layers.BatchNormalization(),
        layers.ReLU(),
        layers.SeparableConv2D(8, 3),
        layers.GlobalAveragePooling2D(),
        layers.Dense(4),
    )


@seeded
def upsampled():
    return sequence(
        (None, None, 2),
        layers.Conv2D(3, 3, padding="same"),
        layers.UpSampling2D(2, interpolation="bilinear"),
        layers.Conv2DTranspose(2, 3, strides=2, padding="same"),
    )


@seeded
def lstm():
    return sequence((None, 4), layers.Bidirectional(layers.LSTM(5, return_sequences=True)), layers.LSTM(3))


@seeded
def gru():
    return sequence((None, 4), layers.GRU(6, reset_after=True), layers.Dense(2))


@seeded
def masked_words():
    """Zero is no word: it is left out of what the recurrent layer sees."""
    return sequence((None,), layers.Embedding(30, 6, mask_zero=True), layers.LSTM(5), layers.Dense(2), dtype="int32")


@seeded
def attention():
    x = layers.Input((None, 12))
    y = layers.MultiHeadAttention(3, 4)(x, x, use_causal_mask=True)
    return model(x, layers.LayerNormalization()(x + y))


@seeded
def two_inputs():
    left, right = layers.Input((4,), name="left"), layers.Input((6,), name="right")
    both = layers.Concatenate()([layers.Dense(3, activation="tanh")(left), layers.Dense(3)(right)])
    return model([left, right], [layers.Dense(1, name="score")(both), layers.Dense(2, activation="softmax")(both)])


@seeded
def dict_output():
    x = layers.Input((5,))
    hidden = layers.Dense(6, activation="relu")(x)
    return model(x, {"spread": layers.Dense(2, activation="softplus")(hidden), "mean": layers.Dense(2)(hidden)})


@seeded
def normalised():
    made = sequence((5,), layers.Normalization(mean=2.0, variance=3.0), layers.GroupNormalization(5), layers.Dense(2))
    return made


@seeded
def double():
    return sequence(
        (4,), layers.Dense(6, activation="sigmoid", dtype="float64"), layers.Dense(2, dtype="float64"), dtype="float64"
    )


@seeded
def in_time():
    return sequence(
        (None, 6, 6, 1), layers.TimeDistributed(layers.Conv2D(2, 3)), layers.TimeDistributed(layers.Flatten())
    )


@seeded
def causal_convolution():
    return sequence((None, 3), layers.Conv1D(4, 3, padding="causal", dilation_rate=2), layers.MaxPooling1D(2))


class Own(keras.Model):
    """A class of its own, with a loop over a number of steps that does not change."""

    def __init__(self):
        super().__init__()
        self.step = layers.Dense(5, activation="tanh")

    def call(self, x):
        for _ in range(3):
            x = x + self.step(x)
        return x


@seeded
def own_class():
    made = Own()
    made.build((None, 5))
    return made


@seeded
def convolutional_lstm():
    return sequence((None, 6, 6, 1), layers.ConvLSTM2D(2, 3))
