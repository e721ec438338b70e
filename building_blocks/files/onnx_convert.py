"""A small model of each framework, converted to ONNX, checked, and compared: framework against ONNX Runtime.

    onnx_convert.py [FRAMEWORK ...]

The frameworks are those in the file "frameworks" beside this one unless they are given: sklearn, keras, pytorch.
Keras goes through a function of TensorFlow, because tf2onnx takes no model of Keras 3; the names of inputs and outputs
and the opset are said outright, so that every ONNX Runtime of the last years takes the model.
Exit status 1: a model is no valid ONNX, or its result is another.
"""

import os
import sys
import tempfile
from pathlib import Path

# What is compared is the model, not TensorFlow's own rounding of it.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import numpy as np
import onnx
import onnxruntime as ort

OPSET = 18
SKLEARN_OPSET = {"": OPSET, "ai.onnx.ml": 3}


def of_sklearn(random):
    """A pipeline that scales and classifies: the model, an input, and the probabilities that scikit-learn computes."""
    from skl2onnx import to_onnx
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    x = random.rand(400, 8).astype("f4")
    y = (x[:, 0] + x[:, 1] * x[:, 2] > 0.8).astype(int)
    features = make_union(StandardScaler(), PolynomialFeatures(2))
    linear = make_pipeline(features, LogisticRegression(max_iter=2000)).fit(x, y)
    forest = RandomForestClassifier(20, max_depth=6, random_state=0).fit(x, y)
    for model in (forest, linear):
        # Classes are a list of mappings otherwise.
        options = {id(model if model is forest else model[-1]): {"zipmap": False}}
        converted = to_onnx(model, x[:1], target_opset=SKLEARN_OPSET, options=options)
        yield type(model).__name__, converted, x, model.predict_proba(x), "probabilities"


def of_keras(random):
    """A small convolutional network: the model, an input, and what Keras computes."""
    import keras
    import tensorflow as tf
    import tf2onnx

    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.layers.Input((16, 16, 3)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.BatchNormalization(),
            keras.layers.GlobalAveragePooling2D(),
            keras.layers.Dense(5, activation="softmax"),
        ]
    )
    x = random.rand(4, 16, 16, 3).astype("f4")
    given = [tf.TensorSpec((None, 16, 16, 3), tf.float32, name="x")]
    function = tf.function(lambda x: {"y": model(x, training=False)}, input_signature=given)
    converted, _ = tf2onnx.convert.from_function(function, input_signature=given, opset=OPSET)
    yield "Sequential", converted, x, model(x, training=False).numpy(), None


def of_pytorch(random):
    """A small convolutional network: the model, an input, and what PyTorch computes."""
    import torch

    torch.manual_seed(7)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3),
        torch.nn.ReLU(),
        torch.nn.BatchNorm2d(8),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 5),
    ).eval()
    x = torch.from_numpy(random.rand(4, 3, 16, 16).astype("f4"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        torch.onnx.export(model, (x,), str(path), input_names=["x"], output_names=["y"], opset_version=OPSET)
        converted = onnx.load(str(path))
    with torch.no_grad():
        yield "Sequential", converted, x.numpy(), model(x).numpy(), None


FRAMEWORKS = {"sklearn": of_sklearn, "keras": of_keras, "pytorch": of_pytorch}


def compare(name, converted, x, wanted, output):
    """Whether ONNX Runtime computes what the framework does; printed."""
    onnx.checker.check_model(converted, full_check=True)
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
    session = ort.InferenceSession(converted.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (found,) = session.run([output or session.get_outputs()[0].name], {session.get_inputs()[0].name: x})
    largest = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    opset = next(each.version for each in converted.opset_import if each.domain == "")
    print(f"{name}: opset {opset}, largest relative difference {largest:.1e}")
    return largest < 1e-5


def main():
    """The exit status."""
    asked = sys.argv[1:] or Path(__file__).resolve().with_name("frameworks").read_text().split()
    print("onnx", onnx.__version__, "onnxruntime", ort.__version__)
    wrong = []
    for framework in asked:
        for kind, *rest in FRAMEWORKS[framework](np.random.RandomState(7)):
            name = f"{framework} {kind}"
            if not compare(name, *rest):
                wrong.append(name)
    if wrong:
        sys.stderr.write(f"ONNX Runtime computes something else: {', '.join(wrong)}\n")
        return 1
    print("converted", *asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())
