"""A small model that is really trained with Keras, to prove which Keras it is and that it learns.

    keras_step.py [MODULE]

MODULE is the Keras that is meant: keras, or tf_keras, which TensorFlow then has to show as its own.
Exit status 1: the loss did not fall as it should, or tf.keras is another.
"""

import importlib
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import tensorflow as tf

name = sys.argv[1] if len(sys.argv) > 1 else "keras"
keras = importlib.import_module(name)
random = np.random.RandomState(7)
model = keras.models.Sequential([keras.layers.Dense(16, activation="relu", input_shape=(4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
data = random.rand(256, 4).astype("f4")
wanted = data.dot(np.array([[1.0], [-2.0], [3.0], [0.5]], "f4"))
losses = model.fit(data, wanted, epochs=20, verbose=0).history["loss"]
print(name, keras.__version__, f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")
if not losses[-1] < losses[0] / 4:
    sys.exit("the model learned nothing")
if name == "tf_keras" and tf.keras.__version__ != keras.__version__:
    sys.exit(f"tf.keras is {tf.keras.__version__}")
