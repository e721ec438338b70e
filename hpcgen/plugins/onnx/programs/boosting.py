"""Gradient boosting of LightGBM and XGBoost: converters of onnxmltools for their estimators and boosters.

An estimator may stand alone or inside a pipeline of scikit-learn. A booster is the same without the names of its
classes, so it is given the methods of an estimator here.
"""

import importlib
import sys

import numpy as np

from .common import imported

ESTIMATORS = {
    "lightgbm": {"LGBMClassifier": True, "LGBMRegressor": False, "LGBMRanker": False},
    "xgboost": {
        "XGBClassifier": True,
        "XGBRFClassifier": True,
        "XGBRegressor": False,
        "XGBRFRegressor": False,
        "XGBRanker": False,
    },
}
"""Of each package the estimators that onnxmltools converts, and whether they classify."""

CONVERTERS = {
    "lightgbm": "onnxmltools.convert.lightgbm.operator_converters.LightGbm:convert_lightgbm",
    "xgboost": "onnxmltools.convert.xgboost.operator_converters.XGBoost:convert_xgboost",
}


def register():
    """Tell skl2onnx what converts the estimators of those packages that a model has imported, unless the user did."""
    from skl2onnx import update_registered_converter
    from skl2onnx._supported_operators import sklearn_operator_name_map
    from skl2onnx.common import shape_calculator as shapes

    for package, kinds in ESTIMATORS.items():
        there = sys.modules.get(package)
        if there is None:
            continue
        module, _, function = CONVERTERS[package].partition(":")
        convert = getattr(imported(module, f"a model of {package}"), function)
        for kind, classifies in kinds.items():
            if getattr(there, kind) in sklearn_operator_name_map:
                continue
            options = {"zipmap": [True, False, "columns"], "nocl": [True, False]} if classifies else {}
            if package == "lightgbm":
                options["split"] = None
            update_registered_converter(
                getattr(there, kind),
                f"{package}{kind}",
                shapes.calculate_linear_classifier_output_shapes
                if classifies
                else shapes.calculate_linear_regressor_output_shapes,
                convert,
                options=options,
            )


def wrapped(found):
    """A booster with the methods of an estimator; anything else as it is."""
    package = type(found).__module__.partition(".")[0]
    return Boosted(package, found) if package in CONVERTERS and type(found).__name__ == "Booster" else found


class Boosted:
    """A booster of LightGBM or XGBoost: its classes are numbered, as it knows nothing else of them."""

    def __init__(self, package, booster):
        self.package, self.booster = package, booster
        self.objective = self._objective()
        if self.objective.startswith(("binary", "multi")):
            self._estimator_type, self.predict_proba, self.predict = "classifier", self._shares, self._labels
        else:
            self._estimator_type, self.predict = "regressor", self._values

    def _objective(self):
        if self.package == "lightgbm":
            return self.booster.dump_model(num_iteration=1)["objective"]
        import json

        return json.loads(self.booster.save_config())["learner"]["objective"]["name"]

    def _values(self, given):
        if self.package == "xgboost":
            given = sys.modules["xgboost"].DMatrix(given, feature_names=self.booster.feature_names)
        return self.booster.predict(given)

    def _shares(self, given):
        values = self._values(given)
        return np.stack([1 - values, values], axis=1) if values.ndim == 1 else values

    def _labels(self, given):
        return np.argmax(self._shares(given), axis=1).astype(np.int64)

    def converted(self, columns, name, opset):
        """The booster as ONNX, by onnxmltools alone; ``columns``: name and input of each."""
        convert = imported("onnxmltools.convert", f"a model of {self.package}")
        types = importlib.import_module("onnxmltools.convert.common.data_types")
        inputs = importlib.import_module(".skl_graphs", __package__).declared(columns, kinds=types)
        opset = min(opset, importlib.import_module("onnxmltools.convert.common.onnx_ex").get_maximum_opset_supported())
        if self.package == "lightgbm":
            return convert.convert_lightgbm(self.booster, name, inputs, target_opset=opset, zipmap=False)
        return convert.convert_xgboost(self.booster, name, inputs, target_opset=opset)
