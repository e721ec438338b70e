"""8-bit variants by ONNX Runtime's quantisation: weights alone (dynamic), or activations too, with calibration data."""

import importlib
import math
import tempfile
from contextlib import contextmanager
from pathlib import Path

from .common import Cannot, imported

MESSAGE_BYTES = 2**31 - 1
"""What one message of protobuf holds."""


def dynamic(source, target, external):
    """Weights in 8 bits; activations are quantised as the model runs. Returns findings."""
    quantization = imported("onnxruntime.quantization", "quantisation")
    with _explained(source):
        quantization.quantize_dynamic(
            str(source), str(target), weight_type=quantization.QuantType.QInt8, use_external_data_format=external
        )
    return _untouched(target)


def static(source, target, external, sets):
    """Weights and activations in 8 bits, their ranges from data. ``sets``: inputs by name, one after the other."""
    quantization = imported("onnxruntime.quantization", "quantisation")
    if not sets:
        raise Cannot("no calibration data", "name some under calibration or data")

    class Reader(quantization.CalibrationDataReader):
        def __init__(self):
            self.left = iter(sets)

        def get_next(self):
            return next(self.left, None)

    narrow = not _has_vnni()
    # Of a large model each tensor of the preparation can be a file of its own: none of them may stay beside the result.
    with _explained(source), tempfile.TemporaryDirectory(dir=target.parent) as folder:
        prepared = Path(folder) / "prepared.onnx"
        # Its own inference of symbolic shapes refuses many models; that of ONNX is enough for the ranges.
        quantization.quant_pre_process(
            str(source), str(prepared), skip_symbolic_shape=True, save_as_external_data=external
        )
        _flatten_biases(prepared)
        quantization.quantize_static(
            str(prepared),
            str(target),
            Reader(),
            quant_format=quantization.QuantFormat.QDQ,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            per_channel=True,
            reduce_range=narrow,
            use_external_data_format=external,
            # The standard ones have no kernel in ONNX Runtime 1.32 for the newest opset that it takes.
            extra_options={"UseQDQContribOps": True},
        )
    found = _untouched(target)
    if narrow:
        found.append("weights have 7 bits: products of 8 would overflow on this CPU, which has no VNNI")
    return [f"calibrated with {len(sets)} set{'s' if len(sets) > 1 else ''} of inputs", *found]


def _flatten_biases(prepared):
    """Give biases of one row one axis: the preparation leaves others, which ONNX Runtime 1.32 cannot quantise."""
    onnx = imported("onnx", "quantisation")
    proto = onnx.load(str(prepared), load_external_data=False)
    biases = [each.input[2] for each in proto.graph.node if each.op_type == "Gemm" and len(each.input) > 2]
    uses = [name for each in proto.graph.node for name in each.input]
    rows = [each for each in proto.graph.initializer if len(each.dims) == 2 and each.dims[0] == 1]
    changed = [each for each in rows if uses.count(each.name) == biases.count(each.name) > 0]
    for each in changed:
        del each.dims[:1]
    if changed:
        # What is in the graph of their shapes would be wrong now.
        del proto.graph.value_info[:]
        onnx.save_model(proto, str(prepared))


@contextmanager
def _explained(source):
    """In plain words that ONNX Runtime writes each weight as one message of protobuf, which ends at 2 GiB."""
    try:
        yield
    except Exception as failure:
        if type(failure).__name__ != "EncodeError" and "2GB" not in str(failure):
            raise
        name, size = largest_weight(source)
        held = "ONNX Runtime's quantisation writes one message of protobuf, which holds 2 GiB at most"
        told = f"its weight {name} has {size / 1e9:.1f} GB" if size > MESSAGE_BYTES else "its weights are too large"
        raise Cannot(
            f"it cannot be quantised: {told}, and {held}",
            "leave the 8-bit variants out for this model, or split that layer",
        ) from failure


def largest_weight(source):
    """The name and the bytes of a model's largest weight, which is not read for that."""
    onnx = imported("onnx", "quantisation")
    graphs = importlib.import_module(".onnxfile", __package__).graphs
    weights = [each for graph in graphs(onnx.load(str(source), load_external_data=False)) for each in graph.initializer]
    sizes = {
        each.name: math.prod(each.dims) * onnx.helper.tensor_dtype_to_np_dtype(each.data_type).itemsize
        for each in weights
    }
    return max(sizes.items(), key=lambda each: each[1], default=("", 0))


def _has_vnni():
    """Whether the CPU multiplies bytes without overflow (ONNX Runtime's documentation of quantisation, U8S8)."""
    try:
        words = set(Path("/proc/cpuinfo").read_text("utf-8", "replace").split())
    except OSError:
        return False
    return bool(words & {"avx512_vnni", "avx_vnni", "asimddp"})


def _untouched(target):
    """That nothing was quantised, as in a model without matrix products and convolutions."""
    onnx = imported("onnx", "quantisation")
    nodes = [node.op_type for node in onnx.load(str(target), load_external_data=False).graph.node]
    if any("Integer" in name or "Linear" in name or name.startswith("QL") for name in nodes):
        return []
    return ["no part of this model can be computed in 8 bits: it is unchanged"]
