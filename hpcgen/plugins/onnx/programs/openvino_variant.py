"""A model in OpenVINO's own format, in single precision: what it computes in is said when it is loaded."""

from .common import Cannot, imported
from .runtimes import last_line


def save(source, folder):
    """Write ``model.xml`` and ``model.bin``; returns the path of the first."""
    openvino = imported("openvino", "this variant")
    try:
        model = openvino.convert_model(str(source))
    except Exception as failure:
        raise Cannot(
            f"OpenVINO cannot convert the model: {last_line(failure)}",
            "leave the variants of OpenVINO out for this model",
        ) from failure
    path = folder / "model.xml"
    # Weights are kept as they are: it would store them in half precision.
    openvino.save_model(model, str(path), compress_to_fp16=False)
    return path
