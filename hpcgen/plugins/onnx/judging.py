"""Whether what a program says of a model holds: its files are there, and its differences are within the tolerances.

The program ran the model's own code, so what it says is held against what was asked and what lies there.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hpcgen.core.model.conversion import Converted, ConvertedVariant, OnnxFile, OutputDifference
from hpcgen.core.model.ensemble import EnsembleModel, Tolerance
from hpcgen.plugins.onnx.work import ModelWork


def tolerance_of(model: EnsembleModel, output: str, own: Tolerance | None = None) -> Tolerance:
    """The tolerance of an output: a variant's own, that of the output, or the model's."""
    return own or model.outputs.get(output) or model.tolerance


def judged(
    model: EnsembleModel, differences: Sequence[OutputDifference], own: Tolerance | None = None
) -> list[OutputDifference]:
    """The differences with what the tolerances say of them."""
    return [replace(each, passed=each.passed and _within(model, each, own)) for each in differences]


def _within(model: EnsembleModel, each: OutputDifference, own: Tolerance | None) -> bool:
    if each.wrong:
        return False
    if model.stochastic:
        return each.distance is not None and each.limit is not None and each.distance <= each.limit
    return each.beyond <= tolerance_of(model, each.output, own).share


def problem_of(said: Converted | ConvertedVariant, model: EnsembleModel, work: ModelWork, folder: str = "") -> str:
    """Why what is said cannot be true; "" if it can.

    Parameters
    ----------
    folder: of the files, below that of the model.
    """
    if said.failed:
        return ""
    if said.file is None:
        # What OpenVINO and TVM load is no ONNX file.
        if not isinstance(said, ConvertedVariant) or said.runtime == "onnxruntime":
            return "the program names no file"
    elif missing := _missing(said.file, work, folder):
        return f"the program names {missing!a}, and there is no such file of a model"
    compared = {each.output for each in said.differences}
    if not compared:
        return "nothing was compared with the original"
    lacking = sorted(set(model.outputs) - compared)
    return f"the output {lacking[0]} was not compared with the original's" if lacking else ""


def _missing(file: OnnxFile, work: ModelWork, folder: str) -> str:
    there = {str(path.relative_to(work.result)) for path in work.paths()}
    names = [f"{folder}/{name}" if folder else name for name in (file.name, *file.external)]
    return next((name for name in names if name not in there), "")


def failure_text(difference: OutputDifference) -> str:
    """Why an output does not pass, for people."""
    where = f"{difference.output} ({difference.data})"
    if difference.wrong:
        return f"{where}: {difference.wrong}"
    if difference.distance is not None:
        return f"{where}: the distributions differ by {difference.distance:.3g}, chance explains {difference.limit:.3g}"
    at = f" at [{', '.join(map(str, difference.at))}]" if difference.at else ""
    return (
        f"{where}: {difference.beyond:.2%} of {difference.elements} values lie beyond the tolerance; the worst{at} is "
        f"{number(difference.converted)} and should be {number(difference.original)}"
    )


def largest(differences: Sequence[OutputDifference]) -> str:
    """The largest absolute difference, for people."""
    found = [each.largest_absolute for each in differences]
    if any(isinstance(each, str) for each in found):
        return "not a number"
    return f"{max((each for each in found if isinstance(each, float | int)), default=0.0):.2g}"


def number(value: float | str) -> str:
    """A value for people."""
    return value if isinstance(value, str) else f"{value:.6g}"
