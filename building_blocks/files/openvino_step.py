"""A small ONNX model that OpenVINO really runs, to prove that it computes and how fast.

    openvino_step.py [DEVICE]

The device is what the image was made for, CPU or GPU, unless it is given. The result is compared with NumPy's in single
precision: on CPUs with bfloat16 OpenVINO would take that by itself, with three digits. A CPU's threads are
OMP_NUM_THREADS, or OpenVINO's own choice.
Exit status 1: the device is not there, or the result is another.
"""

import os
import sys
import time
from pathlib import Path

import openvino
from onnx_model import BATCH, difference, example

SECONDS = 2.0


def main():
    """The exit status."""
    device = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_name("device").read_text().strip()
    core = openvino.Core()
    print("openvino", openvino.__version__)
    print("devices", *core.available_devices)
    # Of several GPUs each has a number, and the name alone means the first.
    if device not in [name.partition(".")[0] for name in core.available_devices] + core.available_devices:
        sys.stderr.write(f"there is no {device}\n")
        return 1
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    if device == "CPU" and os.environ.get("OMP_NUM_THREADS"):
        settings["INFERENCE_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"]
    model, x, wanted = example()
    compiled = core.compile_model(core.read_model(model=model), device, settings)
    print("computes on", *compiled.get_property("EXECUTION_DEVICES"))
    largest = difference(compiled(x)[0], wanted)
    count, start = 0, time.time()
    while time.time() < start + SECONDS:
        compiled(x)
        count += 1
    print(f"inferences per second {count * BATCH / (time.time() - start):.0f}")
    if not largest < (1e-5 if device == "CPU" else 1e-3):
        sys.stderr.write("the result is not the one that NumPy has\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
