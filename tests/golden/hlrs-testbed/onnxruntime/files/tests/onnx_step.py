"""A small ONNX model that is really run, to prove that ONNX Runtime computes and how fast.

    onnx_step.py [PROVIDER]

The model is that of onnx_model.py beside this file. Its result is compared with NumPy's. The provider is the one named
in the file "provider" beside this one unless it is given. Threads are OMP_NUM_THREADS, or ONNX Runtime's own choice.
Exit status 1: the provider is not there, was not used, or the result is another.
"""

import os
import sys
import time
from pathlib import Path

# Single precision means single precision: from Ampere on NVIDIA's libraries would take TF32, with 10 bits.
os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")

import onnxruntime as ort
from onnx_model import BATCH, difference, example

SECONDS = 2.0


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
    model, x, wanted = example()
    session = ort.InferenceSession(model, options, providers=[provider])
    if session.get_providers()[0] != provider:
        sys.stderr.write(f"{provider} was asked for, {session.get_providers()[0]} is used\n")
        return 1
    (found,) = session.run(["y"], {"x": x})
    largest = difference(found, wanted)
    count, start = 0, time.time()
    while time.time() < start + SECONDS:
        session.run(["y"], {"x": x})
        count += 1
    print(f"inferences per second {count * BATCH / (time.time() - start):.0f}")
    if not largest < 1e-5:
        sys.stderr.write("the result is not the one that NumPy has\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
