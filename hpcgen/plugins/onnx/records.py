"""What `hpcgen onnx` is asked for, and what became of it.

First come trained models of an ensemble, their inputs, test data and tolerances. Then comes what the programs inside
an image say, and the report of all. The second half but for :class:`ConversionReport` and its parts is written by a
program that runs foreign code, so it is read as a stranger's: bounded, typed, and never a path.
"""

from typing import Annotated, Literal

import msgspec

from hpcgen.core.model.fields import (
    Count,
    Name,
    Record,
    Reference,
    Sha256,
    Text,
    Version,
    VersionRange,
    WholeNumber,
    matching,
)

Origin = Literal["pytorch", "torch-export", "tensorflow", "keras", "sklearn", "onnx"]
"""What a model is: a PyTorch module, a program of ``torch.export``, a SavedModel, a file of Keras, a pickle, ONNX."""

DType = Literal["float16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool", "string"]
Provider = Literal["cpu", "openvino", "cuda", "tensorrt", "migraphx"]
VariantName = Literal[
    "ort-basic",
    "ort-extended",
    "ort-all",
    "transformer",
    "fp16",
    "int8-dynamic",
    "int8-static",
    "openvino",
    "openvino-bf16",
    "tvm",
    "tvm-tuned",
]
"""What is made of a converted model.

``ort-…``: ONNX Runtime's graph levels, saved; ``transformer``: its optimiser for attention; ``fp16``; 8-bit
quantisation, ``static`` with calibration data; OpenVINO in single precision and in bfloat16; TVM, ``tuned`` by
MetaSchedule.
"""

TensorName = Annotated[
    str, matching(r"^[A-Za-z_][A-Za-z0-9_.:/-]{0,99}$(?!\n)", "the name of an input or output", "image")
]
AxisName = Annotated[str, matching(r"^[a-z][a-z0-9_]{0,31}$(?!\n)", "the name of an axis", "batch")]
Dimension = Annotated[
    str,
    matching(
        r"^([1-9][0-9]{0,9}|[a-z][a-z0-9_]{0,31})$(?!\n)", "a length of at least 1, or the name of an axis", "224"
    ),
]
GivenPath = Annotated[
    str,
    matching(
        r"^(?!/)(?!.*(^|/)\.\.(/|$))[A-Za-z0-9._+@%,= /-]+$(?!\n)",
        "a path below the file's own folder, with no .. in it",
        "weights/alexnet.pt",
    ),
]
Factory = Annotated[
    str,
    matching(
        r"^(?!/)(?!.*(^|/)\.\.(/|$))[A-Za-z0-9._+/-]+\.py:[A-Za-z_][A-Za-z0-9_]*$(?!\n)",
        "FILE.py:FUNCTION, a file below the ensemble's own folder and a function in it that returns the model",
        "models.py:alexnet",
    ),
]
OutputChoice = Annotated[
    str,
    matching(
        r"^([0-9]{1,3}|[A-Za-z_][A-Za-z0-9_.:/-]{0,99})$(?!\n)",
        "the name of an output of the original, or its number from 0 on",
        "logits",
    ),
]
Share = Annotated[float, msgspec.Meta(ge=0, le=1, description="a share: from 0 to 1")]
NotNegative = Annotated[float, msgspec.Meta(ge=0, description="a number of at least 0")]


class Tolerance(Record, frozen=True):
    """When two values count as equal: ``|a - b| <= absolute + relative * |b|``, b being the original's.

    ``share``: of the elements of an output that may lie beyond.
    """

    absolute: NotNegative = 1e-5
    relative: NotNegative = 1e-4
    share: Share = 0.0


class EnsembleInput(Record, frozen=True):
    """One input. ``shape``: lengths, and names of axes whose length may change.

    ``low``, ``high``: between which random values lie where no data are given; of integers ``high`` is excluded. Texts
    are those that a fitted estimator knows.
    """

    shape: list[Dimension]
    dtype: DType = "float32"
    low: float = 0.0
    high: float = 1.0

    @property
    def dimensions(self) -> list[int | str]:
        """The shape with its lengths as numbers."""
        return [int(each) if each.isdecimal() else each for each in self.shape]


class EnsembleOutput(Tolerance, frozen=True):
    """One output, with its tolerance. ``take``: which of the original's it is: its name there, or its number from 0 on.

    Where an output has neither this nor a name of the original's own, the outputs are all, in their order.
    """

    take: OutputChoice | None = None


class EnsembleModel(Record, frozen=True, rename={"from_": "from"}):
    """One trained model.

    ``from``: what it is. ``factory``: returns the module or model, called with ``arguments``. ``file``: with a factory
    the weights (state dict, or weights of Keras), else the model itself. ``version``: of the framework that it is from;
    an image with another is refused. ``inputs`` in the order in which the model takes them, or by the names of its
    parameters. ``outputs``: those that are converted, by which names the ONNX model calls them, each with a tolerance
    of its own or that of the model; all where it says none. ``axes``: length of the named axes in what it is traced
    with; it is compared at others too. ``data``: files of test data, ``.npz`` with an array for each input or ``.npy``
    for a model of one; without any, seeded random values. ``batches``: lengths of the axis ``batch`` that are tried.
    ``stochastic``: outputs differ from run to run, so that their distributions are compared. ``opset``: of the ONNX
    model; by default 20, or the newest that the target runs. ``signature`` of a SavedModel. ``calibration``: files of
    data for ``int8-static``. ``converters``: a Python file that registers further ones; it runs where the model runs.
    """

    from_: Origin
    inputs: dict[TensorName, EnsembleInput]
    outputs: dict[TensorName, EnsembleOutput | None] = {}
    tolerance: Tolerance = Tolerance()
    factory: Factory | None = None
    arguments: dict[Name, str | int | float | bool] = {}
    file: GivenPath | None = None
    version: VersionRange = ""
    axes: dict[AxisName, Count] = {}
    data: list[GivenPath] = []
    calibration: list[GivenPath] = []
    batches: list[Count] = []
    stochastic: bool = False
    opset: Count | None = None
    signature: Text = "serving_default"
    converters: GivenPath | None = None


class EnsembleTarget(Record, frozen=True):
    """Where the converted models are to run: a site and its partition, or a provider of ONNX Runtime alone."""

    site: Reference | None = None
    partition: Name | None = None
    provider: Provider | None = None


class Ensemble(Record, frozen=True):
    """An ensemble file. ``optimise``: what else is made of each model, and the tolerance of that, or the model's.

    ``seed`` of all random data. ``include``: more files or folders that factories read or import.
    """

    name: Name
    models: dict[Name, EnsembleModel]
    title: Text = ""
    target: EnsembleTarget = EnsembleTarget()
    optimise: dict[VariantName, Tolerance | None] = {}
    include: list[GivenPath] = []
    seed: Count = 7


# what became of models that were converted

Number = float | Literal["nan", "inf", "-inf"]
"""JSON has no word for these three."""

Seconds = Annotated[float, msgspec.Meta(gt=0, description="seconds, more than 0")]
Exporter = Literal[
    "torch dynamo",
    "torch trace",
    "tf2onnx from_function",
    "tf2onnx SavedModel",
    "keras export",
    "skl2onnx",
    "skl2onnx double",
    "onnxmltools",
    "as it is",
]


class Attempt(Record, frozen=True):
    """One exporter that was tried; ``failed``: why it gave no model, "" if it did."""

    exporter: Exporter
    failed: Text = ""


class OutputDifference(Record, frozen=True):
    """One output of one set of inputs, original against converted.

    ``data``: the file, or ``random, batch N``. ``at``: index of the element with the largest excess over the tolerance,
    where the original has ``original`` and the converted model ``converted``. ``beyond``: share of elements beyond the
    tolerance. ``tied``: labels that differ where the scores that decide them are within the tolerance of each other,
    which count as equal. ``wrong``: what makes a comparison impossible, as another shape. Of stochastic models
    ``distance`` is the largest distance of the two distribution functions (Kolmogorov and Smirnov), and ``limit`` what
    chance explains.
    ``shapes``: that they differ, by axes of length one alone, which changes no element and is allowed.
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
    tied: WholeNumber = 0
    distance: float | None = None
    limit: float | None = None
    wrong: Text = ""
    shapes: Text = ""
    passed: bool = True


class TriedLengths(Record, frozen=True):
    """What one set of inputs has shown, over all outputs. ``axes``: how long each named axis was.

    ``refused``: why the original itself does not compute there, so that nothing was compared.
    """

    data: Text
    axes: dict[AxisName, Count] = {}
    refused: Text = ""
    largest_absolute: Number = 0.0
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

    ``versions`` of what converted it. ``tried``: at which lengths of its axes it was compared. ``fixed``: axes that
    have one length alone in the ONNX model, as it was not proven for others. ``findings``: what the user should know,
    as control flow that tracing has fixed.
    ``failed``: why there is no valid model; then what is known so far is there.
    """

    model: Name
    origin: Origin
    versions: dict[Text, Version] = {}
    attempts: list[Attempt] = []
    file: OnnxFile | None = None
    tried: list[TriedLengths] = []
    fixed: dict[AxisName, Count] = {}
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
    tried: list[TriedLengths] = []
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

    ``foreign``: hpcgen did not build that image: ``image`` is its sha256 then, "" where it could not be read whole, and
    ``blocks`` are its Python and the packages that were looked for. ``opset``: the newest that the target's runtime
    takes, ``runtime`` its version. ``conversion``: the number of this file's format.
    """

    ensemble: Name
    models: dict[Name, ReportedModel]
    given: list[HashedFile]
    hpcgen: Version
    image: Text = ""
    foreign: bool = False
    blocks: dict[Name, Version] = {}
    site: Text = ""
    partition: Text = ""
    provider: Provider = "cpu"
    runtime: Version | None = None
    opset: Count | None = None
    command: Text = ""
    conversion: Count = 1
