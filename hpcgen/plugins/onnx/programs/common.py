"""What the programs of ``hpcgen onnx`` have in common: what is asked, mistakes, and what is said.

They run in the work folder of one model, with the Python and the packages of an image: ``job.json`` is what is asked,
``given/`` what the user gave, ``MODEL/`` what becomes of it, and one JSON file in ``said/`` the result of each step.
"""

import errno
import importlib
import json
import math
import os
import random
import re
import shutil
from pathlib import Path

JOB, GIVEN, SAID = Path("job.json"), Path("given"), Path("said")
LONGEST = 2000
EXTERNAL_ABOVE = 1_800_000_000
"""Bytes of weights from which they lie in a file of their own: a file of protobuf holds 2 GiB at most."""
RUNS = 100
"""How often a stochastic model is run for its distributions."""


class Cannot(Exception):
    """Why a step gives no valid result, and what to do."""

    def __init__(self, message, remedy=""):
        super().__init__(message)
        self.message, self.remedy = message, remedy


class Input:
    """One input of a model, as the ensemble file declares it."""

    def __init__(self, name, given):
        self.name, self.declared, self.shape = name, list(given["shape"]), list(given["shape"])
        self.dtype = given.get("dtype", "float32")
        self.low, self.high = given.get("low", 0.0), given.get("high", 1.0)
        self.texts = []  # of a string: for each column a function that draws one, as the original knows it

    def lengths(self, axes):
        """Its shape where the named axes have these lengths."""
        return [axes[each] if isinstance(each, str) else each for each in self.shape]

    def __str__(self):
        return f"{self.dtype} [{', '.join(map(str, self.shape))}]"


class Model:
    """One model of the ensemble file, with what it leaves out filled in."""

    def __init__(self, name, given):
        self.name, self.origin = name, given["from"]
        self.inputs = [Input(each, said) for each, said in given["inputs"].items()]
        self.outputs = dict(given.get("outputs") or {})
        self.own = given.get("tolerance") or {}
        self.factory, self.file = given.get("factory"), given.get("file")
        self.arguments, self.version = given.get("arguments") or {}, given.get("version") or ""
        self.converters = given.get("converters")
        self.data, self.calibration = given.get("data") or [], given.get("calibration") or []
        self.batches, self.stochastic = given.get("batches") or [], bool(given.get("stochastic"))
        self.opset, self.signature = given.get("opset"), given.get("signature") or "serving_default"
        named = {each for put in self.inputs for each in put.shape if isinstance(each, str)}
        self.axes = {each: (given.get("axes") or {}).get(each, 2) for each in sorted(named)}
        self.fixed, self.reasons = {}, []
        self.folder = Path(name)
        self.original = None  # once it is loaded
        self.gaps = False  # whether it takes NaN for values that are missing

    @property
    def names(self):
        """Names of the outputs, [] where the ensemble file says none."""
        return list(self.outputs)

    def fix(self, axes, *why):
        """Let these axes, and no others, have their lengths here alone; ``reasons`` says why, until none is fixed."""
        names = ", ".join(f"{each} stays {self.axes[each]}" for each in sorted(set(axes) - set(self.fixed)))
        self.reasons = [*self.reasons, *(f"{names}: {each}" for each in why)] if axes else []
        self.fixed = {each: self.axes[each] for each in sorted(axes)}
        for put in self.inputs:
            put.shape = [self.fixed.get(each, each) for each in put.declared]

    def lengths_in(self, feeds):
        """How long each axis is in these inputs."""
        pairs = ((put.declared, feeds[put.name].shape) for put in self.inputs)
        found = {axis: length for pair in pairs for axis, length in zip(*pair)}  # noqa: B905 (Python 3.9)
        return {axis: int(found[axis]) for axis in self.axes if axis in found}

    def takes(self, feeds):
        """Whether the axes that are fixed are so in these inputs."""
        lengths = self.lengths_in(feeds)
        return all(lengths[axis] == length for axis, length in self.fixed.items())

    def tolerance(self, output):
        """Of one output: absolute, relative, share."""
        given = dict(self.own, **(self.outputs.get(output) or {}))
        return {
            "absolute": given.get("absolute", 1e-5),
            "relative": given.get("relative", 1e-4),
            "share": given.get("share", 0.0),
        }

    def wrong(self, message, remedy=""):
        """What cannot be done, with the model's name."""
        return Cannot(f"{self.name}: {message}", remedy)


NO_MEMORY = (
    "can't allocate memory",
    "Failed to allocate memory",
    "bad allocation",
    "bad_alloc",
    "Cannot allocate memory",
)
"""How PyTorch, ONNX Runtime, C++ and Linux say that there is no memory left."""


def causes(failure):
    """A failure, and those that led to it."""
    chain, each = [], failure
    while each is not None and each not in chain:
        chain.append(each)
        each = each.__cause__ or each.__context__
    return chain


def lacks_memory(failure):
    """Whether it is of a lack of memory."""
    return any(
        isinstance(each, MemoryError) or any(word in str(each) for word in NO_MEMORY) for each in causes(failure)
    )


def reason(failure, model, asked):
    """Of any failure: what is wrong, and what to do."""
    if lacks_memory(failure):
        most = asked.get("memory_bytes")
        limit = f" than the {most / 1e9:.1f} GB that it may take (--memory)" if most else ""
        return (
            f"{model}: it needs more memory{limit or ' than there is'}",
            "use smaller data and batches, or a machine with more memory; a file from elsewhere may be made to fill it",
        )
    if isinstance(failure, Cannot):
        return failure.message, failure.remedy
    full = os.strerror(errno.ENOSPC)
    if any(getattr(each, "errno", None) == errno.ENOSPC or full in str(each) for each in causes(failure)):
        return f"{model}: the disk is full: {failure}", f"free space on the disk of the folder that -o names; {space()}"
    return f"{model}: {type(failure).__name__}: {failure}", "the log of this step has the whole report"


def space():
    """How much room the work folder has."""
    return f"{shutil.disk_usage('.').free / 1e6:.0f} MB are free there now"


def job():
    """What is asked, as the host wrote it."""
    return json.loads(JOB.read_text(encoding="utf-8"))


def model_record(asked, name):
    """The :class:`Model` of that name."""
    return Model(name, asked["ensemble"]["models"][name])


def seed_of(asked):
    """Where random numbers begin."""
    return int(asked["ensemble"].get("seed", 7))


def seed_all(asked):
    """Begin the random numbers of Python and NumPy; each framework's own begin where it is imported."""
    import numpy as np

    random.seed(seed_of(asked))
    np.random.seed(seed_of(asked))


def threads_of(asked):
    """Threads that a computation takes."""
    return int(asked.get("threads") or len(os.sched_getaffinity(0)))


def text(said):
    """Of any text one line without control characters, shortened."""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+", " ", str(said)).split())
    line = line.encode("utf-8", "replace").decode()
    return line if len(line) <= LONGEST else line[: LONGEST - 2] + " …"


def lengths_text(axes):
    """Lengths of axes for people."""
    return ", ".join(f"{axis} {length}" for axis, length in axes.items())


def number(value):
    """A number as JSON can say it."""
    value = float(value)
    if math.isnan(value):
        return "nan"
    return value if math.isfinite(value) else ("inf" if value > 0 else "-inf")


def said(name, record):
    """Write what a step says: whole, or not at all."""
    SAID.mkdir(exist_ok=True)
    partial = SAID / f".{name}.partial"
    partial.write_text(json.dumps(record, sort_keys=True, allow_nan=False) + "\n", encoding="utf-8")
    partial.replace(SAID / f"{name}.json")


def heard(name):
    """What another step has said, None if nothing."""
    try:
        return json.loads((SAID / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def imported(module, what):
    """A module of the image; ``what`` needs it."""
    try:
        return importlib.import_module(module)
    except ImportError as failure:
        raise Cannot(
            f"{what} needs the Python package {module.split('.')[0]}, which cannot be imported: {failure}",
            "name an image that has it, or leave --image out so that one is built",
        ) from failure


def version_of(*modules):
    """Versions of the packages by name."""
    return {each.__name__: str(each.__version__) for each in modules}


def fits(version, wanted):
    """Whether a version lies in a range as ``>=2.3,<2.16``; one number alone is the beginning of a version."""
    from packaging.specifiers import SpecifierSet

    parts = [each.strip() for each in wanted.split(",") if each.strip()]
    whole = [each if each[0] in "<>=!~" else f"=={each.removesuffix('.*')}.*" for each in parts]
    return SpecifierSet(",".join(whole)).contains(version.split("+")[0], prereleases=True)


def need_version(model, framework, version):
    """Refuse a framework whose version the ensemble file excludes."""
    if model.version and not fits(version, model.version):
        raise model.wrong(
            f"it is from {framework} {model.version}, and here is {framework} {version}",
            f"name an image with {framework} {model.version}, leave --image out so that one is built, "
            "or correct version in the ensemble file",
        )
