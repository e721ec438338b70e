"""A small ONNX model with weights from a fixed seed, and what NumPy says of it, to prove that something computes.

The model is written here byte by byte, because the package onnx is not in every image.

The bytes follow onnx/onnx.proto3 of github.com/onnx/onnx: IR version 7, operators of opset 13.
"""

import struct

import numpy as np

BATCH, WIDE, NARROW = 64, 256, 10
FLOAT = 1  # TensorProto.DataType


def number(value):
    """A protobuf varint."""
    out = b""
    while value > 0x7F:
        out += struct.pack("B", value & 0x7F | 0x80)
        value >>= 7
    return out + struct.pack("B", value)


def field(tag, value):
    """One protobuf field: a whole number, or text or bytes with their length before them."""
    if isinstance(value, int):
        return number(tag << 3) + number(value)
    data = value.encode() if isinstance(value, str) else value
    return number(tag << 3 | 2) + number(len(data)) + data


def node(kind, inputs, output):
    """NodeProto."""
    return b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, kind)


def weights(name, array):
    """TensorProto with the numbers as they lie in memory."""
    dims = b"".join(field(1, size) for size in array.shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, array.astype("<f4").tobytes())


def tensor(name, *shape):
    """ValueInfoProto of a float tensor."""
    dims = b"".join(field(1, field(1, size)) for size in shape)
    return field(1, name) + field(2, field(1, field(1, FLOAT) + field(2, dims)))


def model(first, bias, second):
    """ModelProto of relu(x * first + bias) * second."""
    graph = [
        field(1, node("MatMul", ["x", "first"], "a")),
        field(1, node("Add", ["a", "bias"], "b")),
        field(1, node("Relu", ["b"], "c")),
        field(1, node("MatMul", ["c", "second"], "y")),
        field(2, "step"),
        field(5, weights("first", first)),
        field(5, weights("bias", bias)),
        field(5, weights("second", second)),
        field(11, tensor("x", BATCH, WIDE)),
        field(12, tensor("y", BATCH, NARROW)),
    ]
    return field(1, 7) + field(7, b"".join(graph)) + field(8, field(2, 13))


def example():
    """The model's bytes, an input, and the output that NumPy computes in double precision."""
    random = np.random.RandomState(7)
    parts = [random.rand(*shape).astype("f4") - 0.5 for shape in ((WIDE, WIDE), (WIDE,), (WIDE, NARROW))]
    x = random.rand(BATCH, WIDE).astype("f4")
    first, bias, second = (part.astype("f8") for part in parts)
    return model(*parts), x, np.maximum(x.astype("f8").dot(first) + bias, 0.0).dot(second)


def difference(found, wanted):
    """The largest relative difference, as it is printed."""
    largest = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    print(f"largest relative difference {largest:.1e}")
    return largest
