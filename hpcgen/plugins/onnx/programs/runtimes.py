"""What runs a converted model: ONNX Runtime, OpenVINO, TVM; each opened with the precision and provider said outright.

A provider that is asked for and does not compute is an error: ONNX Runtime would go on with the CPU and say so in a
warning alone. The first two are opened as the program over files does it, whose module hpcgen puts beside this one.
"""

import importlib
from contextlib import contextmanager

from . import onnx_sessions
from .common import Cannot
from .onnx_sessions import last_line, options_of

__all__ = ["last_line", "open_runtime", "options_of", "placed"]


def open_runtime(runtime, path, threads, provider="cpu", feeds=None, variant=""):
    """A model, ready to run.

    runtime: ``onnxruntime``, ``openvino`` or ``tvm``.
    path: of ``model.onnx``, or of OpenVINO's ``model.xml``.
    provider: of ONNX Runtime.
    feeds: inputs by name, for whose shapes TVM compiles.
    variant: ``openvino-bf16`` computes in bfloat16, ``tvm-tuned`` takes the schedules in the folder of that name.
    Cannot: the model, the provider or the precision is not to be had.
    """
    if runtime == "tvm":
        return importlib.import_module(".tvm_variant", __package__).Tvm(path, threads, feeds, variant)
    with _as_said_here():
        if runtime == "onnxruntime":
            return onnx_sessions.OrtModel(path, provider or "cpu", threads, watched=False)
        if runtime == "openvino":
            return onnx_sessions.OpenvinoModel(path, threads, "bf16" if variant == "openvino-bf16" else "f32")
    raise Cannot(f"there is no runtime {runtime}", "name onnxruntime, openvino or tvm")


def placed(path, threads, provider, feeds):
    """How many nodes each provider really computed, by ONNX Runtime's own profile of one run.

    Cannot: the provider that was asked for computed none.
    """
    with _as_said_here():
        model = onnx_sessions.OrtModel(path, provider, threads, watched=True)
        model.run(feeds)
        return model.nodes


@contextmanager
def _as_said_here():
    try:
        yield
    except onnx_sessions.Cannot as failure:
        image = "take an image for this partition: hpcgen onnx serve-kit"
        raise Cannot(str(failure), image if failure.status == onnx_sessions.FELL_BACK else "") from failure
