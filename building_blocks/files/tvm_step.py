"""A small ONNX model that TVM really compiles and runs, to prove that it does and how fast.

    tvm_step.py [TARGET]

The target is the one in the file "target" beside this one unless it is given: LLVM for the node's CPU. The model goes
through Relax, and its result is compared with NumPy's.
Exit status 1: the result is another.
"""

import sys
import time
from pathlib import Path

import onnx
import tvm
from onnx_model import BATCH, difference, example
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

SECONDS = 2.0


def target_of_the_image():
    """The words in the file beside this one."""
    return Path(__file__).resolve().with_name("target").read_text().strip()


def main():
    """The exit status."""
    words = sys.argv[1] if len(sys.argv) > 1 else target_of_the_image()
    print("tvm", tvm.__version__)
    print("target", words)
    data, x, wanted = example()
    module = from_onnx(onnx.load_from_string(data))
    start = time.time()
    with tvm.target.Target(words):
        module = relax.get_pipeline("zero")(module)
        compiled = tvm.compile(module, words)
    print(f"compiled in {time.time() - start:.1f} s")
    machine = relax.VirtualMachine(compiled, tvm.cpu())
    given = tvm.runtime.tensor(x)
    largest = difference(machine["main"](given).numpy(), wanted)
    count, start = 0, time.time()
    while time.time() < start + SECONDS:
        machine["main"](given)
        count += 1
    print(f"inferences per second {count * BATCH / (time.time() - start):.0f}")
    if not largest < 1e-5:
        sys.stderr.write("the result is not the one that NumPy has\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
