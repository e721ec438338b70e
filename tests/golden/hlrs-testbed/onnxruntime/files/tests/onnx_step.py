"""A small ONNX model that is really run, to prove that ONNX Runtime computes and how fast.

    onnx_step.py [PROVIDER]

The model, two layers with weights from a fixed seed, is written here byte by byte, because the package onnx is not
in the image. Its result is compared with NumPy's. The provider is the one named in the file "provider" beside this one
unless it is given. Threads are OMP_NUM_THREADS, or ONNX Runtime's own choice.
Exit status 1: the provider is not there, was not used, or the result is another.

The bytes follow onnx/onnx.proto3 of github.com/onnx/onnx: IR version 7, operators of opset 13.
"""

import os
import struct
import sys
import time
from pathlib import Path

# Single precision means single precision: from Ampere on NVIDIA's libraries would take TF32, with 10 bits.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")

import numpy as np
import onnxruntime as ort

BATCH, WIDE, NARROW = 64, 256, 10
SECONDS = 2.0
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


def provider_of_the_image():
    """The name in the file beside this one."""
    return Path(__file__).resolve().with_name("provider").read_text().strip()


def main():
    """The exit status."""
    provider = sys.argv[1] if len(sys.argv) > 1 else provider_of_the_image()
    options = ort.SessionOptions()
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
    print("onnxruntime", ort.__version__)
    print("providers", " ".join(ort.get_available_providers()))
    print("threads", options.intra_op_num_threads or "chosen by ONNX Runtime")
    if provider not in ort.get_available_providers():
        sys.stderr.write(f"there is no {provider}\n")
        return 1
    random = np.random.RandomState(7)
    parts = [random.rand(*shape).astype("f4") - 0.5 for shape in ((WIDE, WIDE), (WIDE,), (WIDE, NARROW))]
    x = random.rand(BATCH, WIDE).astype("f4")
    session = ort.InferenceSession(model(*parts), options, providers=[provider])
    if session.get_providers()[0] != provider:
        sys.stderr.write(f"{provider} was asked for, {session.get_providers()[0]} is used\n")
        return 1
    (found,) = session.run(["y"], {"x": x})
    first, bias, second = (part.astype("f8") for part in parts)
    wanted = np.maximum(x.astype("f8").dot(first) + bias, 0.0).dot(second)
    difference = float(np.abs(found - wanted).max() / np.abs(wanted).max())
    print(f"largest relative difference {difference:.1e}")
    count, start = 0, time.time()
    while time.time() < start + SECONDS:
        session.run(["y"], {"x": x})
        count += 1
    print(f"inferences per second {count * BATCH / (time.time() - start):.0f}")
    if not difference < 1e-5:
        sys.stderr.write("the result is not the one that NumPy has\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
