"""Estimators of scikit-learn, fitted on data of their own; ``sklearn.yaml`` says what goes in."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn import (
    calibration,
    cluster,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    gaussian_process,
    impute,
    isotonic,
    kernel_approximation,
    kernel_ridge,
    linear_model,
    mixture,
    model_selection,
    multiclass,
    multioutput,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    svm,
    tree,
)

warnings.simplefilter("ignore")
WIDTH = 6


def rows(count=240, seed=0, quarters=True):
    """Numbers between -2 and 2, of which many are equal."""
    found = np.random.RandomState(seed).uniform(-2, 2, (count, WIDTH))
    return (np.round(found * 4) / 4 if quarters else found).astype("f4")


def classes(x, count):
    return np.digitize(x[:, 0] + x[:, 1] * x[:, 2], np.linspace(-1.5, 1.5, count + 1)[1:-1])


def amounts(x):
    return np.sin(x[:, 0]) + x[:, 1] * x[:, 2]


def classified(estimator, count=3, quarters=True):
    x = rows(quarters=quarters)
    return estimator.fit(x, classes(x, count))


def regressed(estimator, quarters=True):
    x = rows(quarters=quarters)
    return estimator.fit(x, amounts(x))


# Trees.


def decision_tree():
    return classified(tree.DecisionTreeClassifier(max_depth=5, random_state=0))


def random_forest():
    return classified(ensemble.RandomForestClassifier(12, max_depth=6, random_state=0))


def forest_of_amounts():
    return regressed(ensemble.RandomForestRegressor(12, max_depth=6, random_state=0), quarters=False)


def extra_trees_of_two():
    x = rows()
    return ensemble.ExtraTreesRegressor(8, random_state=0).fit(x, np.stack([amounts(x), x[:, 3]], 1))


def forest_of_two_labels():
    x = rows()
    labels = np.stack([classes(x, 2), x[:, 3] > 0], 1).astype(int)
    return ensemble.RandomForestClassifier(8, max_depth=5, random_state=0).fit(x, labels)


def gradient_boosting():
    return classified(ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0))


def gradient_boosting_of_two():
    return classified(ensemble.GradientBoostingClassifier(n_estimators=15, random_state=0), 2)


def boosted_amounts():
    return regressed(ensemble.GradientBoostingRegressor(n_estimators=15, random_state=0))


def _holes(x):
    return np.where(np.random.RandomState(5).rand(*x.shape) < 0.1, np.nan, x).astype("f4")


def histogram_boosting():
    x = rows()
    return ensemble.HistGradientBoostingClassifier(max_iter=15, random_state=0).fit(_holes(x), classes(x, 3))


def histogram_boosting_of_two():
    return classified(ensemble.HistGradientBoostingClassifier(max_iter=15, random_state=0), 2)


def histogram_amounts():
    x = rows(quarters=False)
    return ensemble.HistGradientBoostingRegressor(max_iter=15, random_state=0).fit(_holes(x), amounts(x))


def histogram_counts():
    """The logarithm as its link, and a category."""
    x = rows()
    x[:, 5] = np.abs(np.round(x[:, 5]))
    fitted = ensemble.HistGradientBoostingRegressor(
        max_iter=15, loss="poisson", categorical_features=[5], random_state=0
    )
    return fitted.fit(x, np.exp(amounts(x)))


def ada_boost():
    return classified(ensemble.AdaBoostClassifier(n_estimators=8, random_state=0))


def bagging():
    return classified(ensemble.BaggingClassifier(n_estimators=6, max_features=4, random_state=0))


def isolation_forest():
    return ensemble.IsolationForest(n_estimators=20, contamination=0.1, random_state=0).fit(rows())


def local_outliers():
    return neighbors.LocalOutlierFactor(novelty=True).fit(rows())


# Support vectors.


def svc():
    return classified(svm.SVC(decision_function_shape="ovr"))


def svc_of_two():
    return classified(svm.SVC(kernel="poly", degree=2), 2)


def svc_one_against_one():
    return classified(svm.SVC(decision_function_shape="ovo", kernel="linear"), 4)


def svc_with_breaks():
    return classified(svm.SVC(decision_function_shape="ovr", break_ties=True), 4)


def svr():
    return regressed(svm.SVR(C=2.0))


def nu_svc():
    return classified(svm.NuSVC(nu=0.3, kernel="sigmoid", gamma=0.02))


def linear_svc():
    return classified(svm.LinearSVC(random_state=0))


def one_class():
    return svm.OneClassSVM(nu=0.2).fit(rows())


# Several estimators as one.


def _several():
    return [
        ("line", linear_model.LogisticRegression()),
        ("tree", tree.DecisionTreeClassifier(max_depth=4, random_state=0)),
        ("bayes", naive_bayes.GaussianNB()),
    ]


def _several_amounts():
    return [("line", linear_model.Ridge()), ("tree", tree.DecisionTreeRegressor(max_depth=4, random_state=0))]


def voting_hard():
    """Three votes among four classes: a tie is as good as certain."""
    return classified(ensemble.VotingClassifier(_several(), voting="hard"), 4)


def voting_soft():
    return classified(ensemble.VotingClassifier(_several(), voting="soft", weights=[2, 1, 1]))


def voting_amounts():
    return regressed(ensemble.VotingRegressor(_several_amounts()))


def stacking():
    return classified(ensemble.StackingClassifier(_several(), cv=3, passthrough=True))


def stacking_amounts():
    return regressed(ensemble.StackingRegressor(_several_amounts(), cv=3))


def one_against_rest():
    return classified(multiclass.OneVsRestClassifier(linear_model.LogisticRegression()), 4)


def one_against_one():
    return classified(multiclass.OneVsOneClassifier(svm.LinearSVC(random_state=0)), 4)


def many_outputs():
    x = rows()
    return multioutput.MultiOutputRegressor(linear_model.Ridge()).fit(x, np.stack([amounts(x), x[:, 1]], 1))


def calibrated():
    return classified(calibration.CalibratedClassifierCV(svm.LinearSVC(random_state=0), cv=3))


def searched():
    search = model_selection.GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1]}, cv=2)
    return classified(search)


def transformed_target():
    inner = compose.TransformedTargetRegressor(linear_model.Ridge(), func=np.log1p, inverse_func=np.expm1)
    x = rows()
    return inner.fit(x, np.exp(amounts(x)))


# Gaussian processes, neighbours, lines and others.


def gaussian_process_amounts():
    kernel = gaussian_process.kernels.RBF(1.5) + gaussian_process.kernels.WhiteKernel(0.1)
    x = rows(60).astype("f8")
    return gaussian_process.GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(x, amounts(x))


def gaussian_process_classes():
    x = rows(60)
    return gaussian_process.GaussianProcessClassifier(optimizer=None).fit(x, classes(x, 2))


def gaussian_process_three_classes():
    x = rows(60)
    return gaussian_process.GaussianProcessClassifier(optimizer=None).fit(x, classes(x, 3))


def neighbours():
    return classified(neighbors.KNeighborsClassifier(4), quarters=False)


def neighbours_by_distance():
    return regressed(neighbors.KNeighborsRegressor(3, weights="distance", metric="manhattan"), quarters=False)


def within_radius():
    return regressed(neighbors.RadiusNeighborsRegressor(2.5), quarters=False)


def logistic():
    return classified(linear_model.LogisticRegression())


def stochastic_descent():
    return classified(linear_model.SGDClassifier(loss="modified_huber", random_state=0))


def perceptron():
    return classified(linear_model.Perceptron(random_state=0))


def lasso():
    return regressed(linear_model.Lasso(0.01))


def poisson():
    x = rows()
    return linear_model.PoissonRegressor().fit(x, np.exp(amounts(x)))


def linear_discriminants():
    return classified(discriminant_analysis.LinearDiscriminantAnalysis())


def quadratic_discriminants():
    return classified(discriminant_analysis.QuadraticDiscriminantAnalysis())


def bayes():
    return classified(naive_bayes.GaussianNB())


def bayes_of_counts():
    x = np.abs(rows())
    return naive_bayes.MultinomialNB().fit(x, classes(x - 1, 3))


def perceptrons():
    return classified(neural_network.MLPClassifier((12, 6), max_iter=80, random_state=0))


def k_means():
    return cluster.KMeans(4, n_init=2, random_state=0).fit(rows())


def mixture_of_normals():
    return mixture.GaussianMixture(3, random_state=0).fit(rows(quarters=False))


def kernel_ridge_regression():
    return regressed(kernel_ridge.KernelRidge(kernel="rbf", gamma=0.2))


def partial_least_squares():
    return regressed(cross_decomposition.PLSRegression(2))


def isotonic_regression():
    x = rows()[:, :1]
    return isotonic.IsotonicRegression(out_of_bounds="clip").fit(x, np.tanh(x[:, 0]))


# Transformers.


def principal_components():
    return decomposition.PCA(3, whiten=True).fit(rows(quarters=False))


def kernel_components():
    return decomposition.KernelPCA(3, kernel="rbf", gamma=0.2).fit(rows(80, quarters=False))


def standardised():
    return preprocessing.StandardScaler().fit(rows())


def robustly_scaled():
    return preprocessing.RobustScaler().fit(rows())


def normalised():
    return preprocessing.Normalizer("l2").fit(rows())


def of_quantiles():
    return preprocessing.QuantileTransformer(n_quantiles=20, output_distribution="normal").fit(rows(quarters=False))


def powers():
    return preprocessing.PowerTransformer().fit(rows(quarters=False))


def products():
    return preprocessing.PolynomialFeatures(3, interaction_only=True).fit(rows())


def binned():
    return preprocessing.KBinsDiscretizer(4, encode="onehot-dense", strategy="uniform").fit(rows(quarters=False))


def splines():
    return preprocessing.SplineTransformer(4).fit(rows(quarters=False))


def fourier_features():
    return kernel_approximation.RBFSampler(n_components=5, random_state=0).fit(rows())


def imputed():
    return impute.SimpleImputer(strategy="median", add_indicator=True).fit(_holes(rows()))


def imputed_by_neighbours():
    return impute.KNNImputer(n_neighbors=2).fit(_holes(rows(80)))


def whole_categories():
    x = np.random.RandomState(0).randint(0, 5, (100, 3))
    return preprocessing.OneHotEncoder(handle_unknown="ignore").fit(x)


# Pipelines.


def chain():
    steps = [preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LogisticRegression()]
    return classified(pipeline.make_pipeline(*steps), quarters=False)


def selected_and_boosted():
    steps = [feature_selection.SelectKBest(k=3), ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0)]
    return classified(pipeline.make_pipeline(*steps))


def own_function():
    steps = [preprocessing.FunctionTransformer(np.log1p), linear_model.Ridge()]
    x = np.abs(rows())
    return pipeline.make_pipeline(*steps).fit(x, amounts(x))


def columns():
    parts = [
        ("scaled", preprocessing.StandardScaler(), [0, 1]),
        ("binned", preprocessing.KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), [2, 3]),
    ]
    steps = [compose.ColumnTransformer(parts, remainder="passthrough"), linear_model.LogisticRegression()]
    return classified(pipeline.make_pipeline(*steps), quarters=False)


def union():
    parts = [("pca", decomposition.PCA(2)), ("scaled", preprocessing.MinMaxScaler())]
    return regressed(pipeline.make_pipeline(pipeline.FeatureUnion(parts), linear_model.Ridge()), quarters=False)


def voting_in_a_chain():
    voting = ensemble.VotingClassifier(_several(), voting="soft")
    return classified(pipeline.make_pipeline(preprocessing.StandardScaler(), voting), quarters=False)


def labels_of_text():
    x = rows()
    return linear_model.LogisticRegression().fit(x, np.array(["low", "middle", "high"])[classes(x, 3)])


def small_differences_of_great_numbers():
    """A small difference of great numbers, which single precision does not have."""
    x = rows().astype("f8") + 1e7
    return pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge()).fit(x, amounts(x - 1e7))
