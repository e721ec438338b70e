"""Whether a file is a valid ONNX model that fits what was declared and the runtime of the target."""

import re
from functools import cache

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper, shape_inference

from . import onnxfile
from .common import Cannot, text, threads_of

DTYPES = {"float16": "FLOAT16", "float32": "FLOAT", "float64": "DOUBLE"}


def check(path, model, asked, limit):
    """Refuse a file that is no valid model; the loaded model without its weights.

    ``limit``: the newest opset that the target takes.
    """
    _check_whole(path, model)
    proto = onnxfile.load(path, model)
    check_weights(model, ((each.name, numpy_helper.to_array(each)) for each in _tensors(proto)), path.name)
    check_opset(model, proto, limit, asked)
    check_inputs(model, proto)
    return proto


def _check_whole(path, model):
    """ONNX's own checker, and the inference of all shapes."""
    # ONNX infers no types for some operators of machine learning, so that strictness would refuse valid models.
    strict = "ai.onnx.ml" not in onnxfile.used_domains(onnxfile.load(path, model, weights=False))
    inferred = path.with_name(".inferred.onnx")
    try:
        onnx.checker.check_model(str(path), full_check=strict)
        shape_inference.infer_shapes_path(str(path), str(inferred), check_type=strict, strict_mode=strict)
    except onnx.checker.ValidationError as failure:
        raise model.wrong(f"{path.name} is not a valid ONNX model: {failure}", "export it again") from failure
    except shape_inference.InferenceError as failure:
        raise model.wrong(
            f"shapes or types in {path.name} contradict each other: {failure}", "export it again"
        ) from failure
    finally:
        inferred.unlink(missing_ok=True)


def _tensors(proto):
    numbers = {getattr(TensorProto, each) for each in ("FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16")}
    for graph in onnxfile.graphs(proto):
        yield from (each for each in graph.initializer if each.data_type in numbers)


def check_weights(model, weights, where):
    """Refuse weights that are NaN or infinite.

    An infinite weight of one element is a constant, as attention masks have them.
    """
    for name, value in weights:
        value = np.asarray(value)
        if value.dtype.kind not in "fV" or value.size < 2:
            continue
        if value.dtype.kind == "V":
            value = value.astype(np.float32)
        wrong = np.isnan(value) if np.isinf(value).any() and _mask(value) else ~np.isfinite(value)
        if wrong.any():
            at = [int(each) for each in np.argwhere(wrong)[0]]
            raise model.wrong(
                f"the weight {name} of {where} has {int(wrong.sum())} of {value.size} values NaN or infinite, "
                f"the first at {at}",
                "take a checkpoint from before training diverged; every weight must be a number",
            )


def _mask(value):
    """Whether all that is in it is 0 or minus infinity, as in a mask of attention."""
    return bool(np.isin(value, (0.0, -np.inf)).all())


def check_opset(model, proto, limit, asked):
    """Refuse operators that are newer than the target's runtime, or than the one here."""
    found, here = onnxfile.opset(proto), newest_opset()
    wanted = asked.get("runtime") or "the target"
    for most, whose in (
        (limit, f"ONNX Runtime {wanted}" if asked.get("runtime") else wanted),
        (here, f"ONNX Runtime {onnxruntime.__version__} here"),
    ):
        if most and found > most:
            raise model.wrong(
                f"it has opset {found}, but {whose} accepts opset {most} at most",
                f"export it with opset {most} or older, or choose a target with a newer ONNX Runtime",
            )
    unknown = onnxfile.unknown_operators(proto)
    if unknown:
        raise model.wrong(
            f"no converter knows {', '.join(unknown)}: ONNX has no such operator",
            "write that part of the model with other operators",
        )


@cache
def newest_opset():
    """The newest opset that this ONNX Runtime loads: it is asked, as its releases say it nowhere else."""
    for version in range(onnx.defs.onnx_opset_version(), 6, -1):
        node = helper.make_node("Identity", ["x"], ["y"])
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
        graph = helper.make_graph([node], "g", ends[:1], ends[1:])
        proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)
        try:
            onnxruntime.InferenceSession(proto.SerializeToString(), quiet(), providers=["CPUExecutionProvider"])
        except Exception:
            continue
        return version
    raise Cannot("this ONNX Runtime loads no model at all", "build the image again")


def quiet(threads=1):
    """Options of a session that says errors only."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return options


def check_inputs(model, proto):
    """Refuse a model whose inputs are others than declared, or whose named axes became constants."""
    weights = {each.name for each in proto.graph.initializer}
    found = {each.name: each for each in proto.graph.input if each.name not in weights}
    declared = {each.name: each for each in model.inputs}
    if set(found) != set(declared):
        unused = [each for each in declared if each not in found]
        raise model.wrong(
            f"the ONNX model has the inputs {', '.join(found) or 'none'}, and the ensemble file says "
            f"{', '.join(declared)}" + (f": the model makes no use of {', '.join(unused)}" if unused else ""),
            "correct inputs in the ensemble file",
        )
    for name, put in declared.items():
        kind = found[name].type.tensor_type
        _check_type(model, put, kind.elem_type)
        _check_axes(model, put, kind.shape.dim)


def _check_type(model, put, kind):
    wanted = getattr(TensorProto, DTYPES.get(put.dtype, put.dtype.upper()))
    if kind != wanted:
        raise model.wrong(
            f"the input {put.name} of the ONNX model has the type {TensorProto.DataType.Name(kind).lower()}, "
            f"and the ensemble file says {put}",
            "correct dtype in the ensemble file",
        )


def _check_axes(model, put, dims):
    if len(dims) != len(put.shape):
        raise model.wrong(
            f"the input {put.name} of the ONNX model has {len(dims)} axes, and the ensemble file says {put}",
            "correct shape in the ensemble file",
        )
    for at, (wanted, dim) in enumerate(zip(put.shape, dims)):  # noqa: B905 (Python 3.9)
        fixed = dim.dim_value if dim.HasField("dim_value") else None
        if fixed is None or fixed == wanted:
            continue
        raise model.wrong(
            f"axis {at} of the input {put.name} is always {fixed} long in the ONNX model, "
            f"and the ensemble file says {put}",
            f"write {fixed} there, or keep that axis free in the model: take no shape as a number"
            if isinstance(wanted, str)
            else "correct shape in the ensemble file",
        )


def session(path, model, asked, optimised=True):
    """ONNX Runtime on the CPU with this file."""
    options = quiet(threads_of(asked))
    if not optimised:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as failure:
        lacking = re.search(r"Could not find an implementation for (\w+)\(", str(failure))
        if lacking:
            raise model.wrong(
                f"ONNX Runtime {onnxruntime.__version__} has no {lacking[1]} of this type on a CPU",
                "convert the model in single precision, as module.float() of PyTorch makes it",
            ) from failure
        raise model.wrong(
            f"ONNX Runtime {onnxruntime.__version__} does not load {path.name}: {text(failure)}",
            "export it with another opset, or write that part with other operators",
        ) from failure


def run_of(opened, names=None):
    """A function from inputs by name to outputs in their order."""
    return lambda feeds: opened.run(names, {each.name: feeds[each.name] for each in opened.get_inputs()})
