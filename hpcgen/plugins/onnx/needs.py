"""What the programs need of the image that they run in, and the one message on what it lacks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hpcgen.core.errors import MissingToolError
from hpcgen.plugins.onnx.records import Ensemble, Origin
from hpcgen.running.python_inside import FoundPython, lacking

ALWAYS = ("numpy", "onnx", "onnxruntime")
"""What every program needs."""

BETTER = {"onnxscript": "models of PyTorch are traced alone, which proves less than PyTorch's exporter on torch.export"}
"""What an image may lack, and what does not work then."""

_FRAMEWORKS: dict[Origin, tuple[str, ...]] = {
    "pytorch": ("torch",),
    "torch-export": ("torch",),
    "tensorflow": ("tensorflow", "tf2onnx"),
    "keras": ("tensorflow", "keras", "tf2onnx"),
    "sklearn": ("sklearn", "skl2onnx"),
    "onnx": (),
}
_OLDEST = (3, 9)
"""Python: the programs use str.removeprefix."""

_PACKAGES = {"sklearn": "scikit-learn"}
"""What the package index calls a module that has another name."""


def modules_for(ensemble: Ensemble, names: Iterable[str]) -> list[str]:
    """The modules by which these models are converted, or measured in their frameworks."""
    origins = {ensemble.models[name].from_ for name in names}
    found = [module for origin in sorted(origins) for module in _FRAMEWORKS[origin]]
    return list(dict.fromkeys([*ALWAYS, *found]))


def refuse_lacking(python: FoundPython, needs: Sequence[str], image: str) -> None:
    """MissingToolError with all that an image lacks, and how it gets that."""
    if tuple(int(each) for each in python.version.split(".")[:2]) < _OLDEST:
        raise MissingToolError(
            f"{image} has Python {python.version}, which is too old for the programs",
            expected=f"Python {'.'.join(map(str, _OLDEST))} or later",
            remedy="name an image with a newer one; `hpcgen onnx convert` without --image builds one",
        )
    if missing := lacking(python, needs):
        packages = " ".join(_PACKAGES.get(each, each) for each in missing)
        raise MissingToolError(
            f"{image} lacks what is needed: {', '.join(missing)} (it has {python})",
            remedy=f"add them where it is built: {python.program} -m pip install {packages}; "
            "or leave out --image where one converts: then one is built for the models",
        )
