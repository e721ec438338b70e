"""A converted model on one runtime and provider, which computes by that or not at all.

Part of onnx_infer.py, and of the programs of ``hpcgen onnx convert`` and ``bench``, which measure what is served.
"""

import importlib
import json
import tempfile
from pathlib import Path

import numpy as np

FELL_BACK = 76
PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
}
BELOW = {"tensorrt": ["cuda"]}
"""What computes the parts of a model that a provider does not take, before the CPU does."""

TYPES = {"float": "float32", "double": "float64", "string": "str"}
"""Names of ONNX Runtime that NumPy does not have."""


class Cannot(Exception):
    """Why it cannot go on, for a person; ``status``: with which it ends."""

    def __init__(self, message, status=2):
        super().__init__(message)
        self.status = status


class OrtModel:
    """A model in ONNX Runtime, which computes by the provider that was asked for, or not at all.

    ``watched``: the first run is profiled, and the provider has to have computed something. ``level``: of the
    optimiser, which a model that was saved as optimised does not need.
    """

    def __init__(self, path, provider, threads, watched=None, level="ORT_ENABLE_ALL"):
        onnxruntime = imported("onnxruntime")
        if provider not in PROVIDERS:
            raise Cannot(f"ONNX Runtime computes by {', '.join(PROVIDERS)} here, not by {provider}")
        wanted = [PROVIDERS[each] for each in (provider, *BELOW.get(provider, []))]
        there = onnxruntime.get_available_providers()
        if wanted[0] not in there:
            message = f"onnxruntime {onnxruntime.__version__} of this image has no {wanted[0]}, only {', '.join(there)}"
            raise Cannot(message, FELL_BACK if provider != "cpu" else 2)
        self.version, self.provider, self.nodes = onnxruntime.__version__, wanted[0], {}
        self.runtime = f"onnxruntime {self.version}"
        self.watched = provider != "cpu" if watched is None else watched
        self.folder = tempfile.TemporaryDirectory(prefix="onnx-infer-")
        more = {"enable_profiling": True, "profile_file_prefix": str(Path(self.folder.name, "first"))}
        options = options_of(onnxruntime, threads, level, **(more if self.watched else {}))
        try:
            self.session = onnxruntime.InferenceSession(str(path), options, providers=wanted)
        except Exception as failure:
            raise Cannot(f"{path}: {failure}") from failure
        self.session.disable_fallback()
        used = self.session.get_providers()
        if used[0] != wanted[0]:
            raise fell_back(wanted[0], f"ONNX Runtime took {used[0]} for {path}")
        self.inputs = [(each.name, each.shape, type_of(each.type)) for each in self.session.get_inputs()]
        self.outputs = [each.name for each in self.session.get_outputs()]

    def run(self, feeds):
        found = self.session.run(self.outputs, feeds)
        if self.watched:
            self.watched = False
            self._check()
        return found

    def _check(self):
        """After the first run: whether the provider computed anything."""
        self.nodes = nodes_by_provider(Path(self.session.end_profiling()))
        if not self.nodes.get(self.provider):
            raise fell_back(self.provider, f"all nodes of the model were computed by {', '.join(self.nodes) or 'none'}")


class OpenvinoModel:
    """A model in OpenVINO on the CPU, which would compute in bfloat16 by itself where the CPU has that."""

    def __init__(self, path, threads, precision="f32"):
        openvino = imported("openvino")
        core = openvino.Core()
        if precision == "bf16" and "BF16" not in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES"):
            raise Cannot("this CPU has no bfloat16 (avx512_bf16 or AMX), so OpenVINO would not compute in it")
        settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"}
        if threads:
            settings["INFERENCE_NUM_THREADS"] = threads
        try:
            model = core.read_model(str(path))
            self.compiled = core.compile_model(model, "CPU", settings)
        except Exception as failure:
            raise Cannot(f"{path}: {last_line(failure)}") from failure
        took = self.compiled.get_property("INFERENCE_PRECISION_HINT").to_string()
        if took != precision:
            raise Cannot(f"OpenVINO computes in {took}, not in {precision}")
        self.version, self.provider, self.nodes = openvino.__version__.split("-", 1)[0], "openvino", {}
        self.runtime = f"openvino {self.version}"
        self.inputs = [
            (name_of(each, "input"), shape_of(each), np.dtype(each.get_element_type().to_dtype()))
            for each in model.inputs
        ]
        self.outputs = [name_of(each, f"output{number}") for number, each in enumerate(model.outputs)]

    def run(self, feeds):
        found = self.compiled(feeds)
        return [found[number] for number in range(len(self.outputs))]


def options_of(onnxruntime, threads, level="ORT_ENABLE_ALL", **settings):
    """Options of a session, which says errors only: one model at a time, with so many threads, all CPUs' if 0."""
    # Nothing of a model or a job goes to anybody.
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    for name, value in settings.items():
        setattr(options, name, value)
    return options


def last_line(failure):
    """The end of what an exception says, where compilers have their reason."""
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    return lines[-1] if lines else type(failure).__name__


def imported(name):
    """A runtime, imported when a model needs it."""
    try:
        return importlib.import_module(name)
    except ImportError as failure:
        raise Cannot(f"{name} is not here ({failure}): use an image that has it, or pip install {name}") from failure


def fell_back(provider, why):
    """The error of a GPU that does not compute."""
    return Cannot(
        f"{provider} was asked for, and does not compute: {why}. The node may have no such GPU, its driver may be too "
        "old, or a library is missing; onnxruntime's own lines above say which. --provider cpu computes on the CPU.",
        FELL_BACK,
    )


def nodes_by_provider(profile):
    """How many nodes each provider computed, by ONNX Runtime's own profile."""
    found = {}
    for each in json.loads(profile.read_text()):
        if each.get("cat") == "Node" and str(each.get("name", "")).endswith("_kernel_time"):
            provider = each.get("args", {}).get("provider") or "unknown"
            found[provider] = found.get(provider, 0) + 1
    profile.unlink()
    return found


def type_of(text):
    """NumPy's type of ``tensor(float)``."""
    name = text.removeprefix("tensor(").removesuffix(")")
    try:
        return np.dtype(TYPES.get(name, name))
    except TypeError:
        raise Cannot(f"a model takes {text}, which no array of NumPy has") from None


def shape_of(port):
    return [each.get_length() if each.is_static else str(each) for each in port.get_partial_shape()]


def name_of(port, without):
    """The name that the model in ONNX has for an input or output: others are of nodes that OpenVINO took out."""
    names, own = port.get_names(), port.get_node().get_friendly_name().split("/sink_port_")[0]
    return own if own in names else min(names, default=without)


def model_file(folder, variant, provider):
    """The file of a model in its folder, or of a variant of it."""
    folder = folder / variant if variant else folder
    found = sorted(folder.glob("*.xml")) if provider == "openvino" else []
    found = found or sorted(folder.glob("*.onnx"))
    found = [each for each in found if each.stem == "model"] or found
    if len(found) != 1:
        there = sorted(each.name for each in folder.iterdir()) if folder.is_dir() else []
        raise Cannot(f"{folder} holds no one model for {provider}: {', '.join(there) or 'nothing'}")
    return found[0]


def open_model(path, provider, threads, precision="f32"):
    """The model, ready to run; ``precision``: in which OpenVINO computes."""
    if provider == "openvino":
        return OpenvinoModel(path, threads, precision)
    return OrtModel(path, provider, threads)
