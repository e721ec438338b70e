"""What runs a converted model: ONNX Runtime, OpenVINO, TVM; each opened with the precision and provider said outright.

A provider that is asked for and does not compute is an error: ONNX Runtime would go on with the CPU and say so in a
warning alone.
"""

import importlib
import json
import tempfile
from pathlib import Path

import numpy as np

from .common import Cannot, imported

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
"""ONNX Runtime's own name of each provider."""

BESIDE = {"tensorrt": ["CUDAExecutionProvider"]}
"""What computes the nodes that a provider cannot, before the CPU does."""


def open_runtime(runtime, path, threads, provider="cpu", feeds=None, variant=""):
    """A model, ready to run.

    Parameters
    ----------
    runtime: ``onnxruntime``, ``openvino`` or ``tvm``.
    path: of ``model.onnx``, or of OpenVINO's ``model.xml``.
    provider: of ONNX Runtime.
    feeds: inputs by name, for whose shapes TVM compiles.
    variant: ``openvino-bf16`` computes in bfloat16, ``tvm-tuned`` takes the schedules in the folder of that name.

    Raises
    ------
    Cannot: the model, the provider or the precision is not to be had.
    """
    if runtime == "onnxruntime":
        return OnnxRuntime(path, threads, provider)
    if runtime == "openvino":
        return OpenVino(path, threads, "bf16" if variant == "openvino-bf16" else "f32")
    if runtime == "tvm":
        return importlib.import_module(".tvm_variant", __package__).Tvm(path, threads, feeds, variant)
    raise Cannot(f"there is no runtime {runtime}")


class OnnxRuntime:
    """A session of ONNX Runtime.

    Parameters
    ----------
    level: of its optimiser, all of it without one; a model that was saved as optimised needs none.
    """

    def __init__(self, path, threads, provider="cpu", level="ORT_ENABLE_ALL", **settings):
        self.ort = imported("onnxruntime", "this runtime")
        self.ort.set_default_logger_severity(3)
        self.version = self.ort.__version__
        wanted = PROVIDERS[provider]
        known = self.ort.get_available_providers()
        if wanted not in known:
            raise Cannot(
                f"this ONNX Runtime has no {wanted}: it has {', '.join(known)}",
                "take an image for this partition: hpcgen onnx serve-kit",
            )
        self.options = options_of(self.ort, threads, level, **settings)
        names = [wanted, *(name for name in BESIDE.get(provider, []) if name in known), "CPUExecutionProvider"]
        try:
            self.session = self.ort.InferenceSession(str(path), self.options, providers=list(dict.fromkeys(names)))
        except Exception as failure:
            raise Cannot(f"ONNX Runtime {self.version} cannot load the model: {failure}") from failure
        self.provider = wanted
        if wanted not in self.session.get_providers():
            raise Cannot(
                f"{wanted} could not be started, so ONNX Runtime would compute on the CPU",
                "look at the node's driver and at the libraries of the provider: hpcgen test IMAGE",
            )
        self.outputs = [each.name for each in self.session.get_outputs()]

    def run(self, feeds):
        """The outputs, in the model's order."""
        return self.session.run(self.outputs, feeds)


def options_of(ort, threads, level="ORT_ENABLE_ALL", **settings):
    """Options of a session: one model at a time, with so many threads."""
    # Nothing of a model goes to anybody.
    ort.disable_telemetry_events()
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def placed(path, threads, provider, feeds):
    """How many nodes each provider really computed, by ONNX Runtime's own profile of one run.

    Raises
    ------
    Cannot: the provider that was asked for computed none.
    """
    with tempfile.TemporaryDirectory() as folder:
        prefix = str(Path(folder, "profile"))
        runtime = OnnxRuntime(path, threads, provider, enable_profiling=True, profile_file_prefix=prefix)
        runtime.run(feeds)
        events = json.loads(Path(runtime.session.end_profiling()).read_text("utf-8"))
    nodes = {}
    for event in events:
        by = event.get("args", {}).get("provider")
        if by and event.get("name", "").endswith("_kernel_time"):
            nodes.setdefault(by, set()).add(event["name"])
    if runtime.provider not in nodes:
        raise Cannot(f"{runtime.provider} computed none of the model's nodes: ONNX Runtime gave all of them to the CPU")
    return {name: len(found) for name, found in sorted(nodes.items())}


class OpenVino:
    """A model compiled by OpenVINO for the CPU, in a precision that is said: else it takes bfloat16 where it can."""

    def __init__(self, path, threads, precision="f32"):
        openvino = imported("openvino", "this runtime")
        self.version = openvino.__version__.split("-", 1)[0]
        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise Cannot("this CPU has no bfloat16 (avx512_bf16 or AMX), so OpenVINO would not compute in it")
        settings = {
            "INFERENCE_PRECISION_HINT": precision,
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }
        try:
            self.model = core.read_model(str(path))
            self.compiled = core.compile_model(self.model, "CPU", settings)
        except Exception as failure:
            raise Cannot(f"OpenVINO {self.version} cannot load the model: {last_line(failure)}") from failure
        took = self.compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if took != {"f32": "f32", "bf16": "bf16"}[precision]:
            raise Cannot(f"OpenVINO computes in {took}, not in {precision}")
        self.provider = "CPU"

    def run(self, feeds):
        """The outputs, in the model's order."""
        found = self.compiled(feeds)
        return [np.asarray(found[place]) for place in range(len(self.compiled.outputs))]


def last_line(failure):
    """The end of what an exception says, where compilers have their reason."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[-1] if lines else type(failure).__name__
