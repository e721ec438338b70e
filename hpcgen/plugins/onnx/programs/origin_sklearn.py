"""Models of scikit-learn in a file of pickle or joblib. Reading one runs what it says: only in the container."""

import pickle
import re
import warnings

import joblib
import numpy as np
import skl2onnx
import sklearn
from skl2onnx.common import data_types
from sklearn.exceptions import InconsistentVersionWarning

from .common import GIVEN, need_version, text, version_of
from .factory import made, place_of

TYPES = {
    "float32": "FloatTensorType",
    "float64": "DoubleTensorType",
    "int64": "Int64TensorType",
    "int32": "Int32TensorType",
    "bool": "BooleanTensorType",
}
ML = 3
"""Version of ONNX's operators for machine learning; all runtimes of the last years take it."""


class Original:
    """A fitted estimator."""

    def __init__(self, model, asked, record):
        self.model = model
        record["versions"] = version_of(sklearn, skl2onnx)
        need_version(model, "scikit-learn", sklearn.__version__)
        self.fitted = made(model) if model.factory else self._file()
        if not hasattr(self.fitted, "predict") and not hasattr(self.fitted, "transform"):
            raise model.wrong(
                f"{model.file or model.factory} holds {type(self.fitted).__name__}, and not a fitted estimator",
                "write the estimator itself with joblib.dump",
            )
        self.methods = self._methods()
        self.names = model.names or [each for each, _ in self.methods]

    def _file(self):
        file = self.model.file
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", InconsistentVersionWarning)
                loaded = joblib.load(GIVEN / file)
        except (AttributeError, ModuleNotFoundError) as failure:
            raise self.model.wrong(
                f"{file} has a missing requirement: {failure}",
                "name the file that defines it in include, or the version of scikit-learn that wrote it in version",
            ) from failure
        except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError) as failure:
            raise self.model.wrong(
                f"{file} is no file of pickle or joblib, or was cut short: {type(failure).__name__}: {text(failure)}",
                "copy the file again, or write it again with joblib.dump",
            ) from failure
        except Exception as failure:
            raise self.model.wrong(
                f"reading {file} runs the code in it, which fails: {type(failure).__name__}: {text(failure)}",
                "look at where the file is from: it is more than data, and runs only inside the container",
            ) from failure
        for each in caught:
            if isinstance(each.message, InconsistentVersionWarning):
                said = each.message
                raise self.model.wrong(
                    f"{file} was written by scikit-learn {said.original_sklearn_version}, "
                    f"and here is scikit-learn {said.current_sklearn_version}",
                    f'write version: "{said.original_sklearn_version}" in the ensemble file, so that an image with it '
                    "is built, or write the file again with this version",
                )
        return loaded

    def _methods(self):
        """Names and functions that give what a converted estimator gives, in its order."""
        fitted = self.fitted
        if hasattr(fitted, "predict_proba"):
            return [("label", fitted.predict), ("probabilities", fitted.predict_proba)]
        if hasattr(fitted, "predict"):
            kind = getattr(fitted, "_estimator_type", "") or _kind(fitted)
            if kind == "classifier":
                return [("label", fitted.predict), ("scores", fitted.decision_function)]
            if kind == "clusterer" and hasattr(fitted, "transform"):
                return [("label", fitted.predict), ("scores", fitted.transform)]
            if kind == "outlier_detector":
                return [("label", fitted.predict), ("scores", fitted.decision_function)]
            return [("variable", fitted.predict)]
        return [("variable", fitted.transform)]

    def run(self, feeds):
        """Outputs in their order; of a regression a column, as ONNX gives it."""
        given = self._table(feeds)
        made = [np.asarray(_dense(function(given))) for _, function in self.methods]
        return [
            each.reshape(-1, 1) if name in ("variable", "scores") and each.ndim == 1 else each
            for (name, _), each in zip(self.methods, made)  # noqa: B905 (Python 3.9)
        ]

    def _table(self, feeds):
        arrays = [feeds[each.name] for each in self.model.inputs]
        if len(arrays) == 1:
            return arrays[0]
        if not hasattr(self.fitted, "feature_names_in_"):
            return np.concatenate(arrays, axis=1)
        from .common import imported

        pandas = imported("pandas", "an estimator that takes columns by name")
        return pandas.DataFrame({name: np.asarray(each).reshape(-1) for name, each in feeds.items()})

    def weights(self):
        """Name and value of each fitted array of numbers."""
        steps = getattr(self.fitted, "steps", None) or [("", self.fitted)]
        for step, part in steps:
            for name, value in sorted(vars(part).items() if hasattr(part, "__dict__") else ()):
                if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
                    yield f"{step}.{name}".lstrip("."), value

    def random_parts(self):
        """Nothing that can be told."""
        return []

    def exporters(self):
        """The one there is."""
        return [("skl2onnx", self._convert)]

    def _convert(self, path, opset, feeds, names):
        declared = []
        for put in self.model.inputs:
            if put.dtype not in TYPES:
                raise self.model.wrong(f"skl2onnx takes no {put.dtype}", f"use one of {', '.join(TYPES)}")
            shape = [None if isinstance(each, str) else each for each in put.shape]
            declared.append((put.name, getattr(data_types, TYPES[put.dtype])(shape)))
        newest = min(opset, skl2onnx.__max_supported_opset__)
        options = {}
        last = self.fitted.steps[-1][1] if hasattr(self.fitted, "steps") else self.fitted
        if hasattr(last, "predict_proba"):
            # Classes are a list of mappings otherwise.
            options = {id(last): {"zipmap": False}}
        proto = skl2onnx.convert_sklearn(
            self.fitted,
            self.model.name,
            initial_types=declared,
            options=options,
            target_opset={"": newest, "ai.onnx.ml": ML},
        )
        return proto, []

    def explained(self, failure):
        """A failure of the converter; an estimator without one by its name."""
        said = str(failure)
        if "shape calculator" in said or "converter" in type(failure).__name__.lower():
            kind = (re.findall(r"<class '([\w.]+)'>", said) or [said])[0]
            return self.model.wrong(
                f"no converter to ONNX knows the estimator {kind.rpartition('.')[2]}",
                "replace it by one that skl2onnx knows, or do that step outside the model",
            )
        return self.model.wrong(f"{type(failure).__name__}{place_of(failure)}: {text(said)}")


def _kind(fitted):
    from sklearn.utils import get_tags

    return get_tags(fitted).estimator_type or ""


def _dense(result):
    return result.toarray() if hasattr(result, "toarray") else result
