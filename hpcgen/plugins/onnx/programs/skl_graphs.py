"""From a fitted estimator to ONNX by skl2onnx, with what its release lacks mended or refused by name."""

import json
from contextlib import contextmanager

import numpy as np
import onnxruntime
import skl2onnx
from onnx import TensorProto, helper, numpy_helper
from skl2onnx._parse import build_sklearn_parsers_map
from skl2onnx._supported_operators import sklearn_operator_name_map
from skl2onnx.common import _registration, data_types, tree_ensemble
from skl2onnx.operator_converters import random_forest

from . import checks

TYPES = {
    "float32": "FloatTensorType",
    "float64": "DoubleTensorType",
    "int64": "Int64TensorType",
    "int32": "Int32TensorType",
    "bool": "BooleanTensorType",
    "string": "StringTensorType",
}
DEFAULT_WORD = r"(?u)\b\w\w+\b"
WORD = r"[\p{L}\p{N}_][\p{L}\p{N}_]+"
"""The same words for ONNX Runtime, whose expressions know letters beyond ASCII by their class alone.

Source: https://github.com/google/re2/wiki/Syntax. skl2onnx by itself takes words of ASCII, and lower case by the rules
of a locale en_US, which few images have; every system has C.UTF-8.
"""
ML = 3
"""Version of ONNX's operators for machine learning; all runtimes of the last years take it."""


def converted(fitted, name, columns, opset, double):
    """The ONNX model of an estimator.

    ``columns``: name, :class:`~programs.common.Input` of each input, in their order. ``double``: compute in double
    precision inside; inputs and outputs of single precision stay as they are.
    """
    with votes_alone(fitted):
        proto = skl2onnx.convert_sklearn(
            fitted,
            name,
            initial_types=declared(columns, double),
            options=options_of(fitted),
            target_opset={"": min(opset, skl2onnx.__max_supported_opset__), "ai.onnx.ml": ML},
        )
    solve_by_inverse(proto)
    if double:
        in_double(proto, {column for column, put in columns if put.dtype == "float32"})
    return proto


def declared(columns, double=False, kinds=data_types):
    """Names and types of the inputs, as the converters take them; ``kinds``: the module with the types."""
    found = []
    for column, put in columns:
        kind = TYPES["float64" if double and put.dtype == "float32" else put.dtype]
        shape = [None if isinstance(each, str) else each for each in put.shape]
        found.append((column, getattr(kinds, kind)(shape)))
    return found


def chain(fitted):
    """An estimator, and inside of it those whose outputs are its own: the last of a pipeline, the best of a search."""
    yield fitted
    inner = fitted.steps[-1][1] if hasattr(fitted, "steps") else getattr(fitted, "best_estimator_", None)
    if inner is not None:
        yield from chain(inner)


def options_of(fitted):
    """Classes as one array, and where there are no probabilities the scores of ``decision_function``."""
    wanted = {"zipmap": False, "raw_scores": not hasattr(fitted, "predict_proba")}
    options = {}
    for each in chain(fitted):
        if hasattr(each, "steps") or not hasattr(each, "classes_"):
            continue  # A pipeline hands its options to all of its steps.
        found = _registration._converter_pool.get(sklearn_operator_name_map.get(type(each)))
        allowed = (found.get_allowed_options() if found is not None else None) or {}
        options[id(each)] = {name: value for name, value in wanted.items() if name in allowed}
    for each in parts_of(fitted):
        if hasattr(each, "token_pattern"):
            words = {"tokenexp": WORD} if each.token_pattern == DEFAULT_WORD and each.analyzer == "word" else {}
            options[id(each)] = {"keep_empty_string": True, "locale": "C.UTF-8", **words}
    return {key: each for key, each in options.items() if each}


@contextmanager
def votes_alone(fitted):
    """A vote as skl2onnx takes it: its weights in an array, its shares as they are, on which no prediction depends."""
    voting = [each for each in parts_of(fitted) if type(each).__name__.startswith("Voting")]
    given = [dict(vars(each)) for each in voting]
    for each in voting:
        if getattr(each, "flatten_transform", False):
            each.flatten_transform = False
        if each.weights is not None:
            each.weights = np.asarray(each.weights)
    try:
        yield
    finally:
        for each, before in zip(voting, given):  # noqa: B905 (Python 3.9)
            vars(each).update(before)


def without_converter(fitted):
    """Names of the estimators in it that no converter is registered for."""
    known = {*sklearn_operator_name_map, *build_sklearn_parsers_map()}
    return sorted({type(each).__name__ for each in parts_of(fitted) if type(each) not in known})


def unknown_part(fitted):
    """What of an estimator skl2onnx is known to convert wrongly or not at all, "" if nothing.

    Each was seen with skl2onnx 1.20.0 and onnxmltools 1.16.0, by comparison.
    """
    for part in parts_of(fitted):
        kind = type(part).__name__
        for wrong, said in UNKNOWN:
            if wrong(kind, part):
                return said.format(kind)
    return ""


def _of(kind, start, part=None, **wanted):
    return kind.startswith(start) and all(getattr(part, name, None) == value for name, value in wanted.items())


def _classes(part):
    found = getattr(part, "classes_", ())
    return [len(each) for each in found] if isinstance(found, list) else len(found)


def _by_category(kind, part):
    if kind.startswith("LGBM"):
        return '"decision_type": "=="' in json.dumps(part.booster_.dump_model())
    return kind.startswith("HistGradientBoosting") and bool(np.any(getattr(part, "is_categorical_", None)))


UNKNOWN = [
    (_by_category, "the splits by category of {}"),
    (lambda kind, part: _of(kind, "GaussianProcessC") and _classes(part) > 2, "{} of more than two classes"),
    (lambda kind, part: _of(kind, "SGDC", part, loss="modified_huber") and _classes(part) > 2, "{} of modified_huber"),
    (lambda kind, part: getattr(part, "analyzer", "word") != "word", "{} of anything but words (analyzer)"),
    (lambda kind, part: getattr(part, "sublinear_tf", False), "sublinear_tf of {}"),
    (
        lambda kind, part: getattr(part, "stop_words", None) and getattr(part, "ngram_range", (1, 1))[1] > 1,
        "{} of several words with stop_words",
    ),
    (
        lambda kind, part: (
            _of(kind, "StackingC") and _classes(part) == 2 and {*part.stack_method_} != {"predict_proba"}
        ),
        "{} of two classes with estimators that give no probabilities",
    ),
    (
        lambda kind, part: isinstance(_classes(part), list) and len({*_classes(part)}) > 1,
        "{} that predicts several labels of different numbers of classes",
    ),
    (lambda kind, part: getattr(part, "break_ties", False) and _classes(part) > 2, "break_ties of {}"),
    (lambda kind, part: _of(kind, "RadiusNeighbors"), "{}, where a sample may have no neighbour"),
    (
        lambda kind, part: _of(kind, "KNeighbors", part, weights="distance") and part.effective_metric_ != "euclidean",
        "{} weighted by a distance that is not the euclidean one",
    ),
    (lambda kind, part: _of(kind, "PLS"), "{}"),
    (lambda kind, part: _of(kind, "KNNImputer"), "{}, where a sample may share no column with any other"),
    (
        # In single precision a share ends at 1 where the score that scikit-learn compares does not.
        lambda kind, part: _of(kind, "OneVsRest") and _classes(part) > 2 and hasattr(part, "predict_proba"),
        "{} of estimators with probabilities",
    ),
    (lambda kind, part: _of(kind, "SimpleImputer", part, add_indicator=True), "add_indicator of {}"),
    (lambda kind, part: _of(kind, "XGB", part, booster="gblinear"), "{} of linear functions (gblinear)"),
    (lambda kind, part: _of(kind, "XGBRFC") and _classes(part) > 2, "{} of more than two classes"),
    (lambda kind, part: _of(kind, "LGBM", part, boosting_type="rf"), "{} of averaged trees (boosting_type rf)"),
]
"""What is recognised by the name of an estimator and the estimator, and what it is called."""


def parts_of(fitted):
    """An estimator and all that are fitted inside of it."""
    found, left = [], [fitted]
    while left:
        each = left.pop()
        if isinstance(each, (list, tuple)):
            left += each
        elif isinstance(each, dict):
            left += each.values()
        elif hasattr(each, "get_params") and not isinstance(each, type):
            found.append(each)
            inner = ("steps", "transformers_", "transformer_list", "estimators_", "final_estimator_", "best_estimator_")
            left += [getattr(each, name) for name in inner if not _is_forest(each) and hasattr(each, name)]
    return found


def _is_forest(part):
    """Whether its estimators are trees of its own, which are many and all alike."""
    return type(part).__module__.startswith(("sklearn.ensemble._forest", "sklearn.ensemble._gb"))


# What is mended.


def solve_by_inverse(proto):
    """Without the operator Solve, which skl2onnx writes for Gaussian processes and no ONNX Runtime has.

    Its matrix is a constant, the Cholesky factor of a matrix with eigenvalues of at least 1.
    """
    constants = {each.name: each for each in proto.graph.initializer}
    for node in proto.graph.node:
        if node.op_type == "Solve" and node.domain == "com.microsoft" and node.input[0] in constants:
            factor = numpy_helper.to_array(constants[node.input[0]])
            inverse = np.linalg.inv(factor.astype(np.float64)).astype(factor.dtype)
            name = f"{node.input[0]}__inverse"
            proto.graph.initializer.append(numpy_helper.from_array(inverse, name))
            node.CopyFrom(helper.make_node("MatMul", [name, node.input[1]], list(node.output), node.name))


def in_double(proto, inputs):
    """Inputs and outputs in single precision around a graph that computes in double precision."""
    graph = proto.graph
    first, last = [], []
    for put in graph.input:
        if put.name in inputs:
            inner = f"{put.name}__double"
            _renamed(graph, put.name, inner)
            put.type.tensor_type.elem_type = TensorProto.FLOAT
            first.append(helper.make_node("Cast", [put.name], [inner], f"{inner}__cast", to=TensorProto.DOUBLE))
    for put in graph.output:
        if put.type.tensor_type.elem_type == TensorProto.DOUBLE:
            inner = f"{put.name}__double"
            _renamed(graph, put.name, inner)
            put.type.tensor_type.elem_type = TensorProto.FLOAT
            last.append(helper.make_node("Cast", [inner], [put.name], f"{inner}__cast", to=TensorProto.FLOAT))
    nodes = [*first, *(each for node in graph.node for each in _with_kernel(node)), *last]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]


def _with_kernel(node):
    """A node in double precision; of the error function ONNX Runtime has single precision alone."""
    if node.op_type != "Erf":
        return [node]
    put, made = node.input[0], node.output[0]
    return [
        helper.make_node("Cast", [put], [f"{made}__put"], f"{made}__put_cast", to=TensorProto.FLOAT),
        helper.make_node("Erf", [f"{made}__put"], [f"{made}__single"], node.name),
        helper.make_node("Cast", [f"{made}__single"], [made], f"{made}__cast", to=TensorProto.DOUBLE),
    ]


def _renamed(graph, now, then):
    for node in graph.node:
        node.input[:] = [then if each == now else each for each in node.input]
        node.output[:] = [then if each == now else each for each in node.output]


def only(proto, count):
    """Without outputs beyond the first ones, as the probabilities of a hard vote."""
    del proto.graph.output[count:]


def shaped(proto, names, feeds, expected):
    """Outputs in the shapes of scikit-learn: a row of labels, and of two classes the score of the second alone.

    ``names``: of the inputs, in their order. ``expected``: what the original gives for these feeds.
    """
    given = [each.name for each in proto.graph.input]
    opened = onnxruntime.InferenceSession(proto.SerializeToString(), checks.quiet(), providers=["CPUExecutionProvider"])
    found = opened.run(None, {now: feeds[name] for now, name in zip(given, names)})  # noqa: B905 (Python 3.9)
    for at, (one, other) in enumerate(zip(found, expected)):  # noqa: B905 (Python 3.9)
        shape = np.shape(one)
        if len(shape) == 2 and shape[1] == 1 and other.ndim == 1:
            _after(proto, at, [None], "Reshape", np.array([-1], np.int64))
        elif len(shape) == 2 and shape[1] == 2 and other.shape[1:] == (1,):
            # One is the negative of the other.
            _after(proto, at, [None, 1], "Gather", np.array([1], np.int64), axis=1)


def _after(proto, at, shape, operator, constant, **attributes):
    """One more operator before an output, which has this shape then."""
    graph, put = proto.graph, proto.graph.output[at]
    inner = f"{put.name}__{operator.lower()}"
    _renamed(graph, put.name, inner)
    graph.initializer.append(numpy_helper.from_array(constant, f"{inner}__by"))
    graph.node.append(helper.make_node(operator, [inner, f"{inner}__by"], [put.name], f"{inner}__node", **attributes))
    kind = put.type.tensor_type
    kind.ClearField("shape")
    for length in shape:
        kind.shape.dim.add(**({} if length is None else {"dim_value": length}))


# Two mistakes of skl2onnx 1.20 in histogram-based trees: numbers of NumPy, which the newest onnx takes for no
# attribute, and thresholds rounded to the nearest number of single precision, which may be above a value in between.

_add_node, _add_histogram_tree = (
    tree_ensemble.add_node,
    tree_ensemble.add_tree_to_attribute_pairs_hist_gradient_boosting,
)


def _plain_node(*given, **named):
    _add_node(*[_plain(each) for each in given], **{name: _plain(each) for name, each in named.items()})


def _plain(value):
    return int(value) if isinstance(value, (np.integer, np.bool_, bool)) else value


def _rounded_down(*given, dtype, **named):
    """``given``: the arguments before the one that says whether thresholds are rounded as scikit-learn compares."""
    _add_histogram_tree(*given[:7], dtype == np.float32, dtype=dtype, **named)


tree_ensemble.add_node = _plain_node
random_forest.add_tree_to_attribute_pairs_hist_gradient_boosting = _rounded_down
