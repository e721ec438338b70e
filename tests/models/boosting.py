"""LightGBM and XGBoost by the interface of scikit-learn, on data with ties, gaps and categories."""

from __future__ import annotations

import numpy as np
from estimators import _holes, amounts, classes, rows
from sklearn import pipeline, preprocessing


def lightgbm_classes():
    from lightgbm import LGBMClassifier

    x = rows()
    return LGBMClassifier(n_estimators=12, num_leaves=7, verbose=-1).fit(x, classes(x, 3))


def lightgbm_two_classes():
    from lightgbm import LGBMClassifier

    x = rows()
    return LGBMClassifier(n_estimators=12, num_leaves=7, verbose=-1).fit(x, classes(x, 2))


def lightgbm_amounts():
    """Fitted on data with gaps."""
    from lightgbm import LGBMRegressor

    x = rows(quarters=False)
    return LGBMRegressor(n_estimators=12, num_leaves=7, verbose=-1).fit(_holes(x), amounts(x))


def lightgbm_categories():
    from lightgbm import LGBMRegressor

    x = rows()
    x[:, 5] = np.abs(np.round(x[:, 5] * 3))
    fitted = LGBMRegressor(n_estimators=12, num_leaves=7, verbose=-1, min_data_per_group=5)
    return fitted.fit(x, amounts(x) + (x[:, 5] == 3), categorical_feature=[5])


def lightgbm_counts():
    from lightgbm import LGBMRegressor

    x = rows()
    return LGBMRegressor(objective="poisson", n_estimators=12, num_leaves=7, verbose=-1).fit(x, np.exp(amounts(x)))


def lightgbm_in_a_chain():
    from lightgbm import LGBMClassifier

    x = rows()
    steps = [preprocessing.MinMaxScaler(), LGBMClassifier(n_estimators=8, num_leaves=7, verbose=-1)]
    return pipeline.make_pipeline(*steps).fit(x, classes(x, 3))


def lightgbm_forest():
    from lightgbm import LGBMClassifier

    x = rows()
    more = {"boosting_type": "rf", "bagging_freq": 1, "bagging_fraction": 0.7}
    return LGBMClassifier(n_estimators=8, num_leaves=7, verbose=-1, **more).fit(x, classes(x, 2))


def xgboost_classes():
    from xgboost import XGBClassifier

    x = rows()
    return XGBClassifier(n_estimators=10, max_depth=3).fit(x, classes(x, 3))


def xgboost_two_classes():
    from xgboost import XGBClassifier

    x = rows()
    return XGBClassifier(n_estimators=10, max_depth=3).fit(_holes(x), (amounts(x) > 1).astype(int))


def xgboost_amounts():
    from xgboost import XGBRegressor

    x = rows(quarters=False)
    return XGBRegressor(n_estimators=10, max_depth=3).fit(_holes(x), amounts(x) + 20)


def xgboost_counts():
    from xgboost import XGBRegressor

    x = rows()
    return XGBRegressor(n_estimators=10, max_depth=3, objective="count:poisson").fit(x, np.round(np.exp(amounts(x))))


def xgboost_forest():
    from xgboost import XGBRFClassifier

    x = rows()
    return XGBRFClassifier(n_estimators=8, max_depth=4).fit(x, classes(x, 3))


def xgboost_stopped_early():
    from xgboost import XGBRegressor

    x = rows(quarters=False)
    kept = {"eval_set": [(x[200:], amounts(x[200:]))], "verbose": False}
    return XGBRegressor(n_estimators=200, max_depth=4, early_stopping_rounds=2).fit(x[:200], amounts(x[:200]), **kept)


def xgboost_lines():
    from xgboost import XGBRegressor

    x = rows()
    return XGBRegressor(booster="gblinear", n_estimators=20).fit(x, amounts(x))
