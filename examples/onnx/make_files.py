"""Write the examples' models to files, as a training would leave them: make_files.py [WHAT ...], in this folder.

WHAT: pytorch (state dicts, a whole module, a program of torch.export, TorchScript), keras (a file of Keras, weights, a
SavedModel), sklearn (pickles), onnx; all unless some are given. Each needs its framework: run it inside the image.
"""

import pathlib
import sys

import numpy as np

FILES = pathlib.Path("files")


def of_pytorch():
    """State dicts of all, a whole module, a program of torch.export."""
    import models
    import torch

    for name in ("alexnet", "squeezenet", "bert", "candle"):
        torch.save(getattr(models, name)().state_dict(), FILES / f"{name}.pt")
    module = models.squeezenet()
    torch.save(module, FILES / "squeezenet-module.pt")
    given = (torch.rand(2, 3, 224, 224),)
    batch = torch.export.Dim("batch", min=1, max=1024)
    torch.export.save(torch.export.export(module, given, dynamic_shapes=({0: batch},)), FILES / "squeezenet.pt2")
    torch.jit.trace(module, given).save(str(FILES / "squeezenet-script.pt"))


def of_keras():
    """A file, weights, and a SavedModel."""
    import keras_models

    candle = keras_models.candle()
    candle.save(FILES / "candle.keras")
    candle.export(str(FILES / "candle-saved"), verbose=False)
    keras_models.alexnet().save_weights(FILES / "alexnet.weights.h5")


def of_sklearn():
    """A gradient boosting and a pipeline, fitted to seeded data, and a set of test data."""
    import joblib
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    source = np.random.default_rng(7)
    x = source.random((600, 8)).astype("float32")
    boosted = GradientBoostingRegressor(n_estimators=60, random_state=7).fit(x, x[:, 0] + x[:, 1] * x[:, 2])
    joblib.dump(boosted, FILES / "boosting.joblib")
    pipeline = make_pipeline(StandardScaler(), PolynomialFeatures(2), LogisticRegression(max_iter=5000))
    joblib.dump(pipeline.fit(x, (x[:, 0] + x[:, 1] > 1).astype(int)), FILES / "pipeline.pkl")
    np.savez(FILES / "table.npz", x=source.random((50, 8)).astype("float32"))


def of_onnx():
    """A model that is ONNX already."""
    import torch
    from models import candle

    given = (torch.rand(2, 942), torch.rand(2, 4392))
    torch.onnx.export(
        candle(),
        given,
        str(FILES / "candle.onnx"),
        dynamo=False,
        opset_version=18,
        input_names=["genes", "drug"],
        output_names=["growth"],
        dynamic_axes={"genes": {0: "batch"}, "drug": {0: "batch"}},
    )


def main():
    """Write what is asked for."""
    FILES.mkdir(exist_ok=True)
    for each in sys.argv[1:] or ("pytorch", "keras", "sklearn", "onnx"):
        globals()[f"of_{each}"]()
    print(*sorted(each.name for each in FILES.iterdir()))


if __name__ == "__main__":
    main()
