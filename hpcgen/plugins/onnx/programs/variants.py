"""What else is made of a converted model: each variant written below the model's folder, then compared.

Each is a step of its own: one that cannot be made says why, and does not keep the others from being made. Whether the
differences are too large is told with each of them.
"""

import importlib
import shutil
from pathlib import Path

import numpy as np

from . import ties
from .common import EXTERNAL_ABOVE, RUNS, Cannot, imported, seed_of, text, threads_of
from .data import read_data
from .reference import Reference, differences
from .runtimes import open_runtime, options_of
from .trials import told

RUNTIME = {"openvino": "openvino", "openvino-bf16": "openvino", "tvm": "tvm", "tvm-tuned": "tvm"}
"""What runs a variant, if not ONNX Runtime."""

FILES = {"onnxruntime": "model.onnx", "openvino": "model.xml"}
"""What a variant is loaded from; TVM compiles the converted model itself."""

LEVELS = {"ort-basic": "ORT_ENABLE_BASIC", "ort-extended": "ORT_ENABLE_EXTENDED", "ort-all": "ORT_ENABLE_ALL"}
TRIALS = 64


class Made:
    """One variant as it is being made: where from and where to, and what to tell of it."""

    def __init__(self, asked, model, variant, findings):
        self.asked, self.model, self.variant, self.findings = asked, model, variant, findings
        self.source = model.folder / "model.onnx"
        self.folder = model.folder / variant
        self.target = self.folder / "model.onnx"
        self.threads = threads_of(asked)
        bytes_in_all = sum(path.stat().st_size for path in model.folder.glob("model.*") if path.is_file())
        self.external = bytes_in_all > int(asked.get("external_above") or EXTERNAL_ABOVE)
        self.kept = Reference.load(model.folder)


def begun(model, variant):
    """The record before anything is known."""
    runtime = RUNTIME.get(variant, "onnxruntime")
    return {"model": model.name, "variant": variant, "runtime": runtime, "differences": [], "findings": []}


def work(asked, model, record, variant):
    """Make a variant and compare it with what the original computed."""
    made = Made(asked, model, variant, record["findings"])
    shutil.rmtree(made.folder, ignore_errors=True)
    made.folder.mkdir()
    try:
        MAKERS[variant](made)
        if made.target.parent == made.folder and made.target.suffix == ".onnx":
            record["file"] = importlib.import_module(".onnxfile", __package__).describe(made.target)
        record["differences"] = validated(made)
        made.findings += ties.told(record["differences"])
        record["tried"] = told(model, made.kept)
    except Exception:
        shutil.rmtree(made.folder, ignore_errors=True)
        raise
    if not any(made.folder.iterdir()):
        made.folder.rmdir()
    record["findings"] = [text(each) for each in made.findings]


def validated(made):
    """The differences on all inputs of the conversion, within the variant's own tolerance."""
    tolerance = made.asked["ensemble"].get("optimise", {}).get(made.variant)
    feeds = made.kept.sets[0][1]
    kind = RUNTIME.get(made.variant, "onnxruntime")
    runtime = open_runtime(kind, made.target, made.threads, feeds=feeds, variant=made.variant)

    def run(feeds):
        try:
            return [np.asarray(each) for each in runtime.run(feeds)]
        except (Cannot, MemoryError, OSError):
            raise
        except Exception as failure:
            where = ", ".join(f"{axis} {length}" for axis, length in made.model.lengths_in(feeds).items())
            raise made.model.wrong(
                f"it does not run{where and f' at {where}'}: {text(failure)}",
                f"leave {made.variant} out for this model",
            ) from failure

    return differences(made.model, made.kept, run, int(made.asked.get("runs") or RUNS), tolerance)


def ort_level(made):
    """ONNX Runtime's graph optimisations, saved."""
    ort = imported("onnxruntime", made.variant)
    ort.set_default_logger_severity(3)
    options = options_of(ort, made.threads, LEVELS[made.variant], optimized_model_filepath=str(made.target))
    if made.external:
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "model.onnx.data")
        options.add_session_config_entry("session.optimized_model_external_initializers_min_size_in_bytes", "1024")
    ort.InferenceSession(str(made.source), options, providers=["CPUExecutionProvider"])
    if made.variant == "ort-all":
        made.findings.append("its layout is that of this machine's CPU: make it again on another kind")


def transformer(made):
    """ONNX Runtime's optimiser for models with attention."""
    optimizer = imported("onnxruntime.transformers.optimizer", made.variant)
    # Heads and hidden size are read from the graph when they are 0.
    found = optimizer.optimize_model(
        str(made.source), model_type="bert", num_heads=0, hidden_size=0, opt_level=0, use_gpu=False
    )
    counts = {name: count for name, count in found.get_fused_operator_statistics().items() if count}
    if not counts:
        raise made.model.wrong(
            "ONNX Runtime's optimiser for transformers finds nothing in it that it could fuse",
            f"leave {made.variant} out for this model",
        )
    made.findings.append("fused: " + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    found.topological_sort()
    _write(made, found.model)


def fp16(made):
    """Weights and computation in half precision; inputs and outputs stay as they are."""
    onnx = imported("onnx", made.variant)
    convert = imported("onnxruntime.transformers.float16", made.variant).convert_float_to_float16
    # Inference of shapes writes the model down whole, which ends at 2 GB.
    model = convert(onnx.load(str(made.source)), keep_io_types=True, disable_shape_infer=made.external)
    _write(made, model)
    made.findings.append("made for GPUs: on CPUs ONNX Runtime mostly computes in single precision, between casts")


def _write(made, model):
    importlib.import_module(".onnxfile", __package__).save(model, made.target, made.asked)


def int8_dynamic(made):
    """Weights in 8 bits."""
    quantise = importlib.import_module(".quantise", __package__)
    made.findings += quantise.dynamic(made.source, made.target, made.external)


def int8_static(made):
    """Weights and activations in 8 bits."""
    quantise = importlib.import_module(".quantise", __package__)
    made.findings += quantise.static(made.source, made.target, made.external, calibration_sets(made))


def calibration_sets(made):
    """Inputs to calibrate with: those given for it, else the test data, else random values."""
    model = made.model
    files = model.calibration or model.data
    if files:
        return [read_data(path, model) for path in files]
    made.findings.append("calibrated with random values, since the ensemble file names no data: expect it to be worse")
    return [feeds for _, feeds, *_ in made.kept.sets]


def openvino(made):
    """OpenVINO's format; the precision is said when it is loaded."""
    made.target = importlib.import_module(".openvino_variant", __package__).save(made.source, made.folder)
    if made.variant == "openvino-bf16":
        made.findings.append("computes in bfloat16, with three digits: INFERENCE_PRECISION_HINT=bf16 when it is loaded")


def tvm(made):
    """Nothing to write: TVM compiles the converted model when it is loaded."""
    made.target = made.source
    made.findings.append("compiled when it is loaded, for the shapes of the inputs")


def tvm_tuned(made):
    """Schedules that MetaSchedule finds for the shapes of the first inputs."""
    made.target = made.source
    tune = importlib.import_module(".tvm_tuning", __package__).tune
    trials = int(made.asked.get("tvm_trials") or TRIALS)
    feeds = made.kept.sets[0][1]
    made.findings += tune(made.source, made.folder, made.threads, feeds, trials, seed_of(made.asked))


MAKERS = {
    **dict.fromkeys(LEVELS, ort_level),
    "transformer": transformer,
    "fp16": fp16,
    "int8-dynamic": int8_dynamic,
    "int8-static": int8_static,
    "openvino": openvino,
    "openvino-bf16": openvino,
    "tvm": tvm,
    "tvm-tuned": tvm_tuned,
}


def loaded_from(model, variant):
    """The path that :func:`runtimes.open_runtime` is given for a variant, "" for the converted model itself."""
    file = FILES.get(RUNTIME.get(variant, "onnxruntime")) if variant else None
    return Path(model.folder, variant, file) if file else model.folder / "model.onnx"
