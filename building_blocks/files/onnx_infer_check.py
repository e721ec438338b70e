"""Run onnx_infer.py on the small model of onnx_model.py, twice: what it writes is what NumPy computes, and is kept.

    onnx_infer_check.py FOLDER-OF-ONNX_MODEL

Exit status 1: another result, or it was computed again; 76: the provider of the image does not compute here.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np


def main(folder):
    """The exit status."""
    sys.path.insert(0, folder)
    from onnx_infer import main as infer
    from onnx_model import difference, example

    model, x, wanted = example()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        (work / "models" / "small").mkdir(parents=True)
        (work / "models" / "small" / "model.onnx").write_bytes(model)
        np.savez(work / "x.npz", x=x)
        words = ["--models", f"{work}/models", "--output", f"{work}/out", "--report", f"{work}/report.json"]
        for there in (0, 1):
            if status := infer([*words, f"{work}/x.npz"]):
                return status
            said = json.loads((work / "report.json").read_text())
            if (said["there"], said["computed"]) != (there, 1 - there):
                sys.stderr.write(f"of one file {said['computed']} were computed and {said['there']} were there\n")
                return 1
        with np.load(work / "out" / "small" / "x.npz") as found:
            if not difference(found["y"], wanted) < 1e-5:
                sys.stderr.write("the result is not the one that NumPy has\n")
                return 1
    print("inference over files works")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
