"""A converted model on one runtime and provider, which computes by that or not at all: part of onnx_infer.py."""

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
    """A model in ONNX Runtime, which computes by the provider that was asked for, or not at all."""

    def __init__(self, path, provider, threads):
        onnxruntime = imported("onnxruntime")
        # Nothing of a job goes to anybody.
        onnxruntime.disable_telemetry_events()
        wanted = [PROVIDERS[each] for each in (provider, *BELOW.get(provider, []))]
        there = onnxruntime.get_available_providers()
        if wanted[0] not in there:
            message = f"onnxruntime {onnxruntime.__version__} of this image has no {wanted[0]}, only {', '.join(there)}"
            raise Cannot(message, FELL_BACK if provider != "cpu" else 2)
        self.runtime, self.provider, self.checked = f"onnxruntime {onnxruntime.__version__}", wanted[0], False
        self.folder = tempfile.TemporaryDirectory(prefix="onnx-infer-")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        if provider != "cpu":
            # Of the first run it says which provider computed each node.
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(self.folder.name, "first"))
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
        self.nodes = {}

    def run(self, feeds):
        found = self.session.run(self.outputs, feeds)
        if not self.checked:
            self.checked = True
            self._check()
        return found

    def _check(self):
        """After the first run: whether the provider computed anything."""
        if self.provider == PROVIDERS["cpu"]:
            return
        self.nodes = nodes_by_provider(Path(self.session.end_profiling()))
        if not self.nodes.get(self.provider):
            raise fell_back(self.provider, f"all nodes of the model were computed by {', '.join(self.nodes) or 'none'}")


class OpenvinoModel:
    """A model in OpenVINO on the CPU, which would compute in bfloat16 by itself where the CPU has that."""

    def __init__(self, path, threads, precision):
        openvino = imported("openvino")
        core = openvino.Core()
        settings = {"INFERENCE_PRECISION_HINT": precision, "PERFORMANCE_HINT": "LATENCY"}
        if threads:
            settings["INFERENCE_NUM_THREADS"] = threads
        try:
            model = core.read_model(path)
            self.compiled = core.compile_model(model, "CPU", settings)
        except Exception as failure:
            raise Cannot(f"{path}: {failure}") from failure
        self.runtime, self.provider, self.nodes = f"openvino {openvino.__version__}", "openvino", {}
        self.inputs = [
            (each.get_any_name(), shape_of(each), np.dtype(each.get_element_type().to_dtype())) for each in model.inputs
        ]
        self.outputs = [name_of(each, number) for number, each in enumerate(model.outputs)]

    def run(self, feeds):
        found = self.compiled(feeds)
        return [found[number] for number in range(len(self.outputs))]


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


def name_of(port, number):
    return port.get_any_name() if port.get_names() else f"output{number}"


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
