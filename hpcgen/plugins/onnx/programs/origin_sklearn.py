"""Models of scikit-learn in a file of pickle or joblib. Reading one runs what it says: only in the container."""

import pickle
import warnings

import joblib
import numpy as np
import skl2onnx
import sklearn
from sklearn.exceptions import InconsistentVersionWarning

from . import boosting, skl_columns, skl_graphs
from .common import GIVEN, need_version, text, version_of
from .factory import made, place_of

EQUAL = (
    "it looks for neighbours: where some are equally far, scikit-learn and ONNX Runtime may each take others of them"
)
REGISTER = "register a converter in a file that converters names, or do that step outside the model"


class Original:
    """A fitted estimator."""

    def __init__(self, model, asked, record):
        self.model = model
        record["versions"] = version_of(sklearn, skl2onnx)
        need_version(model, "scikit-learn", sklearn.__version__)
        self.fitted = boosting.wrapped(made(model) if model.factory else self._file())
        if not hasattr(self.fitted, "predict") and not hasattr(self.fitted, "transform"):
            raise model.wrong(
                f"{model.file or model.factory} holds {type(self.fitted).__name__}, and not a fitted estimator",
                "write the estimator itself with joblib.dump",
            )
        boosting.register()
        self.columns = skl_columns.Columns(model, self.fitted)
        self.kind = getattr(self.fitted, "_estimator_type", "") or _kind(self.fitted)
        self.methods = self._methods()
        self.single = None  # the first model, in the precision of the inputs, where there is one
        self._refuse_unknown()
        parts = skl_graphs.parts_of(self.fitted)
        model.gaps = any(type(each).__name__.startswith(("SimpleImputer", "HistGradient")) for each in parts)
        if any(hasattr(each, "n_neighbors") for each in parts):
            record["findings"].append(EQUAL)
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
                f"name an image that has {failure.name} and onnxmltools with --image, or --here where they are"
                if getattr(failure, "name", "") in boosting.CONVERTERS
                else "name the file that defines it in include, or the version that scikit-learn had then in version",
            ) from failure
        except (pickle.UnpicklingError, EOFError, ValueError, KeyError, IndexError) as failure:
            raise self.model.wrong(
                f"{file} is not from pickle or joblib, or is truncated: {type(failure).__name__}: {text(failure)}",
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
        if not hasattr(fitted, "predict"):
            return [("variable", fitted.transform)]
        if hasattr(fitted, "predict_proba"):
            return [("label", fitted.predict), ("probabilities", fitted.predict_proba)]
        if self.kind in ("classifier", "outlier_detector"):
            scores = getattr(fitted, "decision_function", None)
            return [("label", fitted.predict), *([("scores", scores)] if scores else [])]
        if self.kind == "clusterer" and hasattr(fitted, "transform"):
            return [("label", fitted.predict), ("scores", fitted.transform)]
        return [("variable", fitted.predict)]

    @property
    def deciding(self):
        """A function that gives the scores from which the label is taken, for inputs; None where there is no such."""
        scores = getattr(self.fitted, "decision_function", None) or getattr(self.fitted, "predict_proba", None)
        one = self.kind in ("classifier", "outlier_detector") and not isinstance(
            getattr(self.fitted, "classes_", ()), list
        )
        return (lambda feeds: np.asarray(scores(self.columns.table(feeds)), np.float64)) if scores and one else None

    def run(self, feeds):
        """Outputs in their order; of a regression, and of scores, a column, as ONNX gives it."""
        given = self.columns.table(feeds)
        made = [_array(function(given)) for _, function in self.methods]
        return [
            each.reshape(-1, 1) if name in ("variable", "scores") and each.ndim == 1 else each
            for (name, _), each in zip(self.methods, made)  # noqa: B905 (Python 3.9)
        ]

    def weights(self):
        """Name and value of each fitted array of numbers."""
        steps = getattr(self.fitted, "steps", None) or [("", self.fitted)]
        for step, part in steps:
            for name, value in sorted(vars(part).items() if hasattr(part, "__dict__") else ()):
                if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
                    yield f"{step}.{name}".lstrip("."), value

    @property
    def remedy(self):
        """What to do where the converted model computes something else."""
        if any(type(each).__module__.startswith("sklearn.svm") for each in skl_graphs.parts_of(self.fitted)):
            return "ONNX Runtime computes support vectors in single precision: "
        return "declare float64 inputs, write the estimator without that part, or "

    def random_parts(self):
        """Nothing that can be told."""
        return []

    def _refuse_unknown(self):
        if isinstance(self.fitted, boosting.Boosted):
            return
        missing = skl_graphs.without_converter(self.fitted)
        if missing:
            raise self.model.wrong(f"no converter to ONNX knows the estimator {', '.join(missing)}", REGISTER)
        unknown = "" if self.model.converters else skl_graphs.unknown_part(self.fitted)
        if unknown:
            raise self.model.wrong(f"skl2onnx {skl2onnx.__version__} has no right converter for {unknown}", REGISTER)
        for put in self.model.inputs:
            if put.dtype not in skl_graphs.TYPES:
                raise self.model.wrong(f"skl2onnx takes no {put.dtype}", f"use one of {', '.join(skl_graphs.TYPES)}")

    def exporters(self):
        """In the precision of the inputs; then in double precision inside, as scikit-learn mostly computes."""
        if isinstance(self.fitted, boosting.Boosted):
            yield "onnxmltools", self._convert
            return
        yield "skl2onnx", self._convert
        if self.single is not None and any(each.dtype == "float32" for each in self.model.inputs):
            yield "skl2onnx double", self._in_double

    def _in_double(self, path, opset, feeds, names):
        return self._convert(path, opset, feeds, names, double=True)

    def _convert(self, path, opset, feeds, names, double=False):
        if isinstance(self.fitted, boosting.Boosted):
            proto = self.fitted.converted(self.columns.declared(), self.model.name, opset)
        else:
            proto = skl_graphs.converted(self.fitted, self.model.name, self.columns.declared(), opset, double)
        self.single = self.single or proto
        skl_graphs.only(proto, len(names))
        skl_graphs.shaped(proto, [put.name for put in self.model.inputs], feeds, self.run(feeds))
        return proto, []

    def explained(self, failure):
        """A failure of the converter in one line."""
        said = str(failure)
        first = text(said.partition("\n")[0].partition(" You may raise an issue")[0])
        where = place_of(failure)
        whose = f"its converter fails{where}" if where else f"skl2onnx {skl2onnx.__version__} cannot convert it"
        return self.model.wrong(f"{whose}: {first[:300] or type(failure).__name__}", REGISTER)


def _kind(fitted):
    from sklearn.utils import get_tags

    return get_tags(fitted).estimator_type or ""


def _array(result):
    """What a method gives as one array; of several labels, the shares of their classes behind each other, as ONNX."""
    result = result.toarray() if hasattr(result, "toarray") else result
    value = np.asarray(result)
    return value.astype(str) if value.dtype.kind == "O" else value
