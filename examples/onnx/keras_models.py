"""The same AlexNet and CANDLE's towers in Keras, with random weights of a seed."""

import keras
from keras import layers

SEED = 7


def alexnet(classes=1000):
    """AlexNet in the one-tower form, channels last: 61,100,840 parameters for 1000 classes."""
    keras.utils.set_random_seed(SEED)
    image = x = keras.Input((224, 224, 3), name="image")
    x = layers.Conv2D(64, 11, strides=4, activation="relu")(layers.ZeroPadding2D(2)(x))
    x = layers.MaxPooling2D(3, 2)(x)
    x = layers.Conv2D(192, 5, padding="same", activation="relu")(x)
    x = layers.MaxPooling2D(3, 2)(x)
    for filters in (384, 256, 256):
        x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
    x = layers.Flatten()(layers.MaxPooling2D(3, 2)(x))
    for _ in range(2):
        x = layers.Dense(4096, activation="relu")(layers.Dropout(0.5)(x))
    return keras.Model(image, layers.Dense(classes, name="logits")(x))


def candle(genes=942, drugs=4392, width=1000):
    """Two towers of dense layers, and a third on both."""
    keras.utils.set_random_seed(SEED)
    inputs = [keras.Input((genes,), name="genes"), keras.Input((drugs,), name="drug")]
    x = layers.Concatenate()([tower(each, width) for each in inputs])
    return keras.Model(inputs, layers.Dense(1, name="growth")(tower(x, width)))


def tower(x, width, depth=3):
    """Dense layers with dropout."""
    for _ in range(depth):
        x = layers.Dropout(0.1)(layers.Dense(width, activation="relu")(x))
    return x
