"""An ensemble converted, model by model: each step in a process of its own, each claim of a program judged here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from hpcgen.core.errors import JobFailedError, Problem
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble
from hpcgen.plugins.onnx.records import (
    Converted,
    ConvertedVariant,
    EnsembleInput,
    EnsembleModel,
    HashedFile,
    Number,
    OnnxFile,
    OutputDifference,
    ReportedModel,
    Timing,
    Tolerance,
    TriedLengths,
    VariantName,
)
from hpcgen.plugins.onnx.results import Workshop
from hpcgen.plugins.onnx.start import Ended, Runner, run_steps
from hpcgen.plugins.onnx.target import OnnxTarget
from hpcgen.plugins.onnx.work import ModelWork, remove_any

T = TypeVar("T")
TIMEOUT_S = 3600.0
_BEYOND = "`tolerance` of the model takes a wider one where that is enough; else leave this variant out"
RUNTIMES: dict[str, str] = {"openvino": "openvino", "openvino-bf16": "openvino", "tvm": "tvm", "tvm-tuned": "tvm"}
"""What runs a variant; ONNX Runtime all others."""


class How(msgspec.Struct, frozen=True):
    """How an ensemble is converted: ``timeout_s`` for each step, ``rounds`` of times, 0 for none; ``tell`` the user."""

    target: OnnxTarget
    timeout_s: float = TIMEOUT_S
    rounds: int = 5
    tell: Callable[[str], None] = lambda text: None
    doing: Callable[[str], None] = lambda text: None


class Done(msgspec.Struct):
    """One model when all its steps are done: what the report has of it, what was given, and what is wrong with it."""

    work: ModelWork
    model: ReportedModel
    given: list[HashedFile]
    problems: list[Problem] = []


def convert_model(loaded: LoadedEnsemble, name: str, shop: Workshop, runner: Runner, how: How) -> Done:
    """Convert a model of an ensemble, and make and measure what else is asked for.

    OutputError: something cannot be written, as on a full disk. PolicyError: no step can be started.
    """
    work = shop.model(name)
    given = work.make(loaded)
    return _Steps(loaded, work, runner, how).all(given)


def job_of(loaded: LoadedEnsemble, target: OnnxTarget, threads: int, rounds: int) -> dict[str, Any]:
    """What the programs are asked, as plain data with every default written out."""
    opset = {"opset": target.opset, "ml_opset": target.ml_opset, "ir": target.ir}
    return {
        "ensemble": spelled(loaded.ensemble),
        **opset,
        "provider": target.provider,
        "runtime": target.runtime,
        "threads": threads,
        "rounds": rounds,
    }


def job_of_times(job: dict[str, Any], model: ReportedModel) -> dict[str, Any]:
    """The job of measuring a model: what is asked of all programs, and the variants that are valid."""
    valid = [each for each in model.variants if not each.failed and all(one.passed for one in each.differences)]
    return {**job, "variants": [each.variant for each in valid]}


def spelled(value: Any) -> Any:
    """A record as plain data by the names of its file, with all fields that have their defaults."""
    if isinstance(value, msgspec.Struct):
        fields = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        plain = {name: spelled(getattr(value, field)) for name, field in fields}
        return plain | {"shape": value.dimensions} if isinstance(value, EnsembleInput) else plain
    if isinstance(value, dict):
        return {key: spelled(each) for key, each in value.items()}
    if isinstance(value, list):
        return [spelled(each) for each in value]
    return value


class _Steps:
    """The steps of one model."""

    def __init__(self, loaded: LoadedEnsemble, work: ModelWork, runner: Runner, how: How) -> None:
        self.loaded, self.work, self.runner, self.how = loaded, work, runner, how
        self.name = work.model
        self.asked: EnsembleModel = loaded.ensemble.models[self.name]
        self.job = job_of(loaded, how.target, runner.threads, how.rounds)
        self.left = ["convert", *loaded.ensemble.optimise, *(["time"] if how.rounds else [])]
        self.begun: list[str] = []
        self.ended = Ended(None, [], 0.0)

    def all(self, given: list[HashedFile]) -> Done:
        """Convert, make the variants, measure."""
        measured = ["measuring"] if self.how.rounds else []
        doing = [f"converting from {self.asked.from_}", *self.loaded.ensemble.optimise, *measured]
        self.how.doing(f"{self.name}: {', '.join(doing)}")
        converted = self.convert()
        model = ReportedModel(converted=converted, stochastic=self.asked.stochastic)
        done = Done(self.work, model, given, self._wrong(self.name, converted))
        if done.problems:
            return done
        self.how.tell(self._said(converted))
        for line in tried_lines(converted.tried):
            self.how.tell(f"{self.name}: {line}")
        for variant, own in self.loaded.ensemble.optimise.items():
            said = self.variant(variant)
            differences = judged(self.asked, said.differences, own)
            said = replace(said, differences=differences, tried=with_verdicts(said.tried, differences))
            model.variants.append(said)
            self._tell_variant(said, done)
        if self.how.rounds and not done.problems:
            model.timings.extend(self.times(model))
        try:
            done.model = replace(model, files=self.work.files())
        except JobFailedError as failure:
            done.problems += failure.problems
        return done

    def _said(self, converted: Converted) -> str:
        by = next((each.exporter for each in converted.attempts if not each.failed), "")
        for each in converted.attempts:
            if each.failed and each.exporter != by:
                self.how.tell(f"warning: {self.name}: {by} was used, not {each.exporter}: {each.failed}")
        for axis, length in converted.fixed.items():
            self.how.tell(f"warning: {self.name}: the ONNX model takes the length {length} of the axis {axis} alone")
        file = converted.file
        what = f"opset {file.opset}, {file.nodes} nodes, " if file is not None else ""
        way = f" by {by}" if by else ""
        return f"{self.name}: converted{way}: {what}largest difference {largest(converted.differences)}"

    def _tell_variant(self, said: ConvertedVariant, done: Done) -> None:
        """One that cannot be made is told; one that computes something else is a failed validation."""
        name = f"{self.name}: {said.variant}"
        if said.failed:
            # Half of a variant is no part of the result.
            remove_any(self.work.result / said.variant)
            self.how.tell(f"warning: {name} was not made: {said.failed}" + (f" → {said.remedy}" if said.remedy else ""))
            return
        done.problems += self._wrong(name, said)
        if all(each.passed for each in said.differences):
            self.how.tell(f"{name}: largest difference {largest(said.differences)}")

    def _wrong(self, name: str, said: Converted | ConvertedVariant) -> list[Problem]:
        """What is wrong with a model or a variant, for people."""
        shapes = {f"the output {each.output} has the {each.shapes}" for each in said.differences if each.shapes}
        for finding in [*said.findings, *sorted(shapes)]:
            self.how.tell(f"note: {name}: {finding}")
        if said.failed:
            return [Problem(said.failed.removeprefix(f"{self.name}: "), name, remedy=said.remedy)]
        # Of each output the first: others are in the report.
        first = {each.output: each for each in reversed(said.differences) if not each.passed}
        return [Problem(failure_text(each), name, remedy=_BEYOND) for each in reversed(first.values())]

    def convert(self) -> Converted:
        """The first step."""
        said = self._run("convert", Converted)
        if isinstance(said, str):
            return Converted(model=self.name, origin=self.asked.from_, failed=said)
        if said.model != self.name or said.origin != self.asked.from_:
            return Converted(model=self.name, origin=self.asked.from_, failed="the program speaks of another model")
        differences = judged(self.asked, said.differences)
        said = replace(said, differences=differences, tried=with_verdicts(said.tried, differences))
        return replace(said, failed=said.failed or self._problem(said))

    def variant(self, variant: VariantName) -> ConvertedVariant:
        """A variant of the converted model."""
        runtime: Any = RUNTIMES.get(variant, "onnxruntime")
        said = self._run(variant, ConvertedVariant)
        if isinstance(said, str):
            return ConvertedVariant(model=self.name, variant=variant, runtime=runtime, failed=said)
        if said.model != self.name or said.variant != variant:
            failed = "the program speaks of another variant"
            return ConvertedVariant(model=self.name, variant=variant, runtime=runtime, failed=failed)
        return replace(said, failed=said.failed or self._problem(said, variant))

    def times(self, model: ReportedModel) -> list[Timing]:
        """Latencies of the original, the converted model and its variants; without any where that fails."""
        self.job = job_of_times(self.job, model)
        said = self._run("time", list[Timing])
        if isinstance(said, str):
            self.how.tell(f"warning: {self.name} was not measured: {said}")
            return []
        return [each for each in said if each.model == self.name]

    def _problem(self, said: Converted | ConvertedVariant, folder: str = "") -> str:
        try:
            return problem_of(said, self.asked, self.work, folder)
        except JobFailedError as failure:
            return failure.problems[0].message

    def _run(self, step: str, type_: type[T]) -> T | str:
        """What a step says, as the record, or why it says nothing.

        All steps that are left are begun together, as it is the start of a framework that takes time. One that gives no
        answer then, because the process ended before, is begun again by itself and those after it.
        """
        try:
            said = self.work.said(step, type_) if step in self.begun else None
            if said is None:
                self.begun = self.left[self.left.index(step) :]
                self.ended = run_steps(self.runner, self.work, self.begun, self.job, self.how.timeout_s)
                said = self.work.said(step, type_)
        except JobFailedError as failure:
            return failure.problems[0].on_one_line
        if said is None:
            return f"{self.ended.why(self.how.timeout_s)} (full output: {self.work.log_name(step)})"
        return said


# Whether what a program says of a model holds: its files are there, and its differences are within the tolerances.
#
# The program ran the model's own code, so what it says is held against what was asked and what lies there.


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
    # A variant's own tolerance, that of the output, or the model's.
    return each.beyond <= (own or model.outputs.get(each.output) or model.tolerance).share


def problem_of(said: Converted | ConvertedVariant, model: EnsembleModel, work: ModelWork, folder: str = "") -> str:
    """Why what is said cannot be true; "" if it can. ``folder``: of the files, below that of the model."""
    if said.failed:
        return ""
    if said.file is None:
        # What OpenVINO and TVM load is no ONNX file.
        if not isinstance(said, ConvertedVariant) or said.runtime == "onnxruntime":
            return "the program names no file"
    elif missing := _missing(said.file, work, folder):
        return f"the program names {missing!a}, but there is no such model file"
    compared = {each.output for each in said.differences}
    if not compared:
        return "no comparison with the original was made"
    if lacking := sorted(set(model.outputs) - compared):
        return f"the output {lacking[0]} was not compared with the original's"
    if not isinstance(said, Converted):
        return ""
    named = {each for put in model.inputs.values() for each in put.dimensions if isinstance(each, str)}
    unvaried = sorted(each for each in named - set(said.fixed) if len(_lengths(said.tried, each)) < 2)
    return f"no other length of the axis {unvaried[0]} was tried" if unvaried else ""


def _lengths(tried: Sequence[TriedLengths], axis: str) -> list[int]:
    """The lengths of an axis at which it was compared."""
    return sorted({each.axes[axis] for each in tried if axis in each.axes and not each.refused})


def with_verdicts(tried: Sequence[TriedLengths], differences: Sequence[OutputDifference]) -> list[TriedLengths]:
    """What was tried, with what the differences say of each; what was not compared has no place here."""
    found = []
    for each in tried:
        own = [one for one in differences if one.data == each.data]
        if own:
            passed = all(one.passed for one in own)
            found.append(replace(each, largest_absolute=most(own), passed=passed))
        elif each.refused:
            found.append(each)
    return found


def tried_lines(tried: Sequence[TriedLengths]) -> list[str]:
    """Which lengths of the axes were compared, and at which the original itself refuses, for people."""
    axes = list(dict.fromkeys(axis for each in tried for axis in each.axes))
    if not axes:
        return []
    lengths = "; ".join(f"{axis} {', '.join(map(str, _lengths(tried, axis)))}" for axis in axes)
    refused = []
    for axis in axes:
        none = {each.axes[axis] for each in tried if axis in each.axes and each.refused} - {*_lengths(tried, axis)}
        refused += [f"{axis} {', '.join(map(str, sorted(none)))}"] if none else []
    more = f" (the original itself does not run at {'; '.join(refused)})" if refused else ""
    return [f"compared at {lengths}{more}"]


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
        f"{where}: {difference.beyond:.2%} of {difference.elements} values exceed the tolerance; the worst{at} is "
        f"{number(difference.converted)} and should be {number(difference.original)}"
    )


def largest(differences: Sequence[OutputDifference]) -> str:
    """The largest absolute difference, for people."""
    found = most(differences)
    return "not a number" if isinstance(found, str) else f"{found:.2g}"


def most(differences: Sequence[OutputDifference]) -> Number:
    """The largest absolute difference."""
    found = [each.largest_absolute for each in differences]
    words = [each for each in found if isinstance(each, str)]
    return words[0] if words else max((float(each) for each in found), default=0.0)


def number(value: float | str) -> str:
    """A value for people."""
    return value if isinstance(value, str) else f"{value:.6g}"
