"""What became of models that were converted to ONNX: what the programs inside an image say, and the report of all.

All of it but :class:`ConversionReport` and its parts is written by a program that runs foreign code, so it is read as a
stranger's: bounded, typed, and never a path.
"""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.ensemble import Origin, Provider, TensorName, VariantName
from hpcgen.core.model.fields import Count, Name, Record, Sha256, Text, Version, WholeNumber

Number = float | Literal["nan", "inf", "-inf"]
"""JSON has no word for these three."""

Seconds = Annotated[float, msgspec.Meta(gt=0, description="seconds, more than 0")]
Step = Literal["convert", "variant", "time", "run"]
Exporter = Literal[
    "torch dynamo", "torch trace", "tf2onnx from_function", "tf2onnx SavedModel", "keras export", "skl2onnx", "as it is"
]


class Attempt(Record, frozen=True):
    """One exporter that was tried; ``failed``: why it gave no model, "" if it did."""

    exporter: Exporter
    failed: Text = ""


class OutputDifference(Record, frozen=True):
    """One output of one set of inputs, original against converted.

    ``data``: the file, or ``random, batch N``. ``at``: index of the element with the largest excess over the tolerance,
    where the original has ``original`` and the converted model ``converted``. ``beyond``: share of elements beyond the
    tolerance. ``wrong``: what makes a comparison impossible, as another shape. Of stochastic models ``distance`` is the
    largest distance of the two distribution functions (Kolmogorov and Smirnov), and ``limit`` what chance explains.
    """

    output: TensorName
    data: Text
    elements: WholeNumber
    largest_absolute: Number = 0.0
    largest_relative: Number = 0.0
    at: list[WholeNumber] = []
    original: Number = 0.0
    converted: Number = 0.0
    beyond: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    distance: float | None = None
    limit: float | None = None
    wrong: Text = ""
    passed: bool = True


class OnnxFile(Record, frozen=True):
    """A model's file below the folder of its model. ``external``: its weights lie in files of their own beside it."""

    name: Text
    opset: Count
    nodes: WholeNumber
    parameters: WholeNumber
    external: list[Text] = []
    domains: dict[Text, Count] = {}


class Converted(Record, frozen=True):
    """What the step ``convert`` says of one model.

    ``versions`` of what converted it. ``findings``: what the user should know, as control flow that tracing has fixed.
    ``failed``: why there is no valid model; then what is known so far is there.
    """

    model: Name
    origin: Origin
    versions: dict[Text, Version] = {}
    attempts: list[Attempt] = []
    file: OnnxFile | None = None
    differences: list[OutputDifference] = []
    findings: list[Text] = []
    failed: Text = ""
    remedy: Text = ""


class ConvertedVariant(Record, frozen=True):
    """What the step ``variant`` says of one variant of a model; ``runtime``: what runs it."""

    model: Name
    variant: VariantName
    runtime: Literal["onnxruntime", "openvino", "tvm"]
    file: OnnxFile | None = None
    differences: list[OutputDifference] = []
    findings: list[Text] = []
    failed: Text = ""
    remedy: Text = ""


class Timing(Record, frozen=True):
    """One runtime, or variant, of a model at one batch: seconds of one call, one figure a round, in their order.

    ``runtime``: ``framework``, ``onnxruntime``, ``openvino`` or ``tvm``; ``variant``: "" for the converted model.
    ``provider``: what ONNX Runtime really computed with. ``failed``: why there are no figures.
    """

    model: Name
    runtime: Literal["framework", "onnxruntime", "openvino", "tvm"]
    batch: Count
    variant: VariantName | Literal[""] = ""
    provider: Text = ""
    version: Version | None = None
    seconds: list[Seconds] = []
    first: float = 0.0
    failed: Text = ""


class HashedFile(Record, frozen=True):
    """A file that was given, by its path in the ensemble's folder, or one of the result, by its path there."""

    path: Text
    sha256: Sha256
    bytes: WholeNumber


class ReportedModel(Record, frozen=True):
    """One model in the report: how it was converted, what differs, what else was made of it, how fast each is."""

    converted: Converted
    files: list[HashedFile] = []
    variants: list[ConvertedVariant] = []
    timings: list[Timing] = []
    stochastic: bool = False

    @property
    def passed(self) -> bool:
        """Whether it was converted and computes the same."""
        return not self.converted.failed and all(each.passed for each in self.converted.differences)


class ConversionReport(Record, frozen=True):
    """``report.json``. ``image``: the plan hash of the image that converted, "" in the current environment.

    ``opset``: the newest that the target's runtime takes, ``runtime`` its version. ``conversion``: the number of this
    file's format.
    """

    ensemble: Name
    models: dict[Name, ReportedModel]
    given: list[HashedFile]
    hpcgen: Version
    image: Text = ""
    blocks: dict[Name, Version] = {}
    site: Text = ""
    partition: Text = ""
    provider: Provider = "cpu"
    runtime: Version | None = None
    opset: Count | None = None
    command: Text = ""
    conversion: Count = 1
