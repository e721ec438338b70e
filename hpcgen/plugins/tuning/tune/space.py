"""What a search varies: settings by name, each with the values beside the default's, and which image is started."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hpcgen.backends.hardware.microarchitecture import family
from hpcgen.core.errors import HpcgenError, InputError, Problem, Problems
from hpcgen.core.model.image_facts import KMP_RUNTIMES
from hpcgen.core.model.site import Partition
from hpcgen.plugins.tuning.bench.running import (
    BenchCase,
    BenchOutcome,
    framework_for,
    image_variables,
    job_of,
    layout_of,
)
from hpcgen.plugins.tuning.bench.variants import HUGE_PAGES, KEEPING, Variant, variant_of
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload
from hpcgen.plugins.tuning.measurements.records import Kind

DEFAULT = ""
"""The value of a setting that is as the job has it."""

IMAGE = "image"
"""The setting that names another image, such as one whose programs were compiled with other flags."""

Settings = dict[str, str]
"""Values by name, as ``--vary`` writes them; ``layout`` is RANKSxTHREADS. What is as the job has it is left out."""

_OPENMP = ("pytorch", "numpy")
_LEARNT = ("pytorch", "tensorflow")
_NETWORKS: tuple[Kind, ...] = ("training", "inference")


class Axis(msgspec.Struct, frozen=True):
    """One setting that is varied unless the user says otherwise.

    name: as in ``--vary``.
    frameworks, kinds: for which; all kinds without any.
    architecture: of the CPUs for which it means something; "" for all.
    readers: by which of these libraries it is read, as the programs tell them; by any program without.
    own: it may mean something to a user's own program, too: to :data:`ANY`, or where the image has this block.
    """

    name: str
    values: tuple[str, ...]
    frameworks: tuple[str, ...]
    kinds: tuple[Kind, ...] = ()
    architecture: str = ""
    readers: tuple[str, ...] = ()
    own: str = ""


_KEEP = "glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=17179869184"
"""Memory that is freed stays with the process: without it, each step's large tensors are mapped and cleared anew."""

_HUGE = HUGE_PAGES["GLIBC_TUNABLES"]
_MALLOC = "env.GLIBC_TUNABLES"
_FFT, _LAST, _FREEZING = "env.HPCGEN_FFT_WORKERS", "env.HPCGEN_CHANNELS_LAST", "env.TORCHINDUCTOR_FREEZING"
ANY = "any"
"""In an axis: any program of a user's may read it."""

_SWITCHES = "hpcgen_settings"
"""The block whose module reads HPCGEN_… in a user's own program; hpcgen's programs read these by themselves."""

_ANY_OPENMP = ("libgomp", *KMP_RUNTIMES)

AXES = (
    Axis("compiler", ("openvino", "onnxruntime"), ("pytorch",), ("inference",)),
    Axis("compiler", ("torch.compile",), ("pytorch",), _NETWORKS),
    Axis("compiler", ("xla",), ("tensorflow",), _NETWORKS),
    Axis("allocator", ("tcmalloc", "jemalloc"), (*_LEARNT, "jax", "numpy")),
    Axis("memory", ("plain",), (*_LEARNT, "jax", "numpy"), readers=("glibc",), own=ANY),
    Axis(_MALLOC, (_KEEP,), (*_LEARNT, "jax", "numpy"), readers=("glibc",), own=ANY),
    Axis(_MALLOC, (_HUGE, f"{_HUGE}:{_KEEP}"), (*_LEARNT, "jax", "numpy"), readers=("glibc-hugetlb",), own=ANY),
    Axis(_FFT, ("all",), ("numpy",), readers=("scipy.fft",), own=_SWITCHES),
    Axis(_LAST, ("1",), ("pytorch",), _NETWORKS, readers=("channels_last",), own=_SWITCHES),
    Axis(_FREEZING, ("1",), ("pytorch",), ("inference",)),
    Axis("interop", ("1", "2"), _LEARNT, _NETWORKS),
    Axis("env.OMP_PROC_BIND", ("close", "spread"), _OPENMP, readers=_ANY_OPENMP, own=ANY),
    Axis("env.OMP_PLACES", ("cores", "threads"), _OPENMP, readers=_ANY_OPENMP, own=ANY),
    Axis("env.OMP_WAIT_POLICY", ("active", "passive"), _OPENMP, readers=("libgomp",), own=ANY),
    Axis("env.KMP_BLOCKTIME", ("0", "1"), _LEARNT, _NETWORKS, readers=KMP_RUNTIMES, own=ANY),
    Axis("env.KMP_AFFINITY", ("granularity=fine,compact,1,0",), _LEARNT, _NETWORKS, readers=KMP_RUNTIMES, own=ANY),
    Axis("env.TF_ENABLE_ONEDNN_OPTS", ("0", "1"), ("tensorflow",), _NETWORKS, "x86_64", own=ANY),
    Axis("env.ONEDNN_MAX_CPU_ISA", ("AVX2", "AVX512_CORE"), _LEARNT, _NETWORKS, "x86_64", own=ANY),
)
"""Axes of one name add up; what gained most where it was measured comes first.

Precision and batch are not among them: they change what is computed, not only how.

Source of the variables: the OpenMP specification; Intel's Optimization Guide for TensorFlow (KMP_…); oneDNN's
"CPU dispatcher control"; TensorFlow's notes on oneDNN; the manual of the GNU C library, "Memory Allocation Tunables".
"""

_ENGINES: dict[str, tuple[str, ...]] = {
    "onnxruntime": ("env.OMP_", "env.KMP_", "env.ONEDNN_", "interop=1", _LAST),
    "openvino": ("env.OMP_", "env.KMP_", "interop=", _LAST),
}
"""With what the settings begin that an engine does not read: both have threads and a layout of their own.

One thread between operations is what ONNX Runtime has anyway.
Source: what the wheels of onnxruntime 1.32.0 (neither OpenMP nor oneDNN) and openvino 2026.4.1 (TBB) are linked with;
onnxruntime.ai, "Thread management".
"""

FIRST = (IMAGE, "compiler", _FREEZING, _FFT, "allocator", "memory", _MALLOC, _LAST)
"""Whose values are tried with nothing else changed before a sampler chooses: they have the largest effects."""

_BESIDE = {_FREEZING: {"compiler": "torch.compile"}}
"""Settings that are read only beside another."""


def idle(readers: Sequence[str] | None) -> set[tuple[str, str]]:
    """Names and values that nothing reads in an image.

    ``readers``: what its programs have told; None where that is not known.
    """
    if readers is None:
        return set()
    unread = (each for each in AXES if each.readers and not set(each.readers) & set(readers))
    return {(axis.name, value) for axis in unread for value in axis.values}


def effective(settings: Mapping[str, str], unread: set[tuple[str, str]]) -> Settings:
    """Without the settings that change nothing: nobody reads them, another allocator does not, or others win."""
    without: tuple[str, ...] = ()
    if settings.get("allocator", "malloc") != "malloc":
        without = ("memory", _MALLOC)
    elif _KEEP in settings.get(_MALLOC, ""):
        without = ("memory",)  # these thresholds count, whatever the variables say that memory=plain takes away
    without += tuple(name for name, needed in _BESIDE.items() if not needed.items() <= settings.items())
    idle_there = _ENGINES.get(settings.get("compiler", ""), ())
    return {
        name: value
        for name, value in settings.items()
        if (name, value) not in unread and name not in without and not f"{name}={value}".startswith(idle_there)
    }


class Space(msgspec.Struct, frozen=True):
    """All that a search may choose: values by name, :data:`DEFAULT` first."""

    axes: dict[str, list[str]]

    @property
    def size(self) -> int:
        """How many combinations there are."""
        return math.prod(map(len, self.axes.values()))

    def combinations(self) -> Iterator[Settings]:
        """All of them, the default first."""
        for values in itertools.product(*self.axes.values()):
            yield chosen(dict(zip(self.axes, values, strict=True)))

    def whole(self, settings: Settings) -> dict[str, str]:
        """With the names that are left out."""
        return {name: settings.get(name, DEFAULT) for name in self.axes}


def alone(space: Space) -> Iterator[Settings]:
    """What is tried with nothing else changed but what it needs beside it."""
    for name in FIRST:
        needed = _BESIDE.get(name, {})
        if all(value in space.axes.get(other, []) for other, value in needed.items()):
            yield from ({**needed, name: value} for value in space.axes.get(name, [])[1:])


def chosen(whole: Mapping[str, str]) -> Settings:
    """Without the settings that are as the job has them."""
    return {name: value for name, value in whole.items() if value != DEFAULT}


def cell_of(
    case: BenchCase, workload: BenchWorkload, settings: Settings, others: Sequence[BenchCase] = ()
) -> BenchOutcome:
    """What is measured with some settings: the image, or the one of the ``others`` that they name.

    InputError: for values that there cannot be.
    """
    variant = variant_of({name: value for name, value in settings.items() if name != IMAGE})
    named = {each.image: each for each in others}
    started = named[settings[IMAGE]] if IMAGE in settings else case
    return BenchOutcome(started, workload, variant, variant.framework or framework_for(workload, started))


def space_for(
    case: BenchCase,
    workload: BenchWorkload,
    vary: Sequence[str] = (),
    layouts: Sequence[str] = (),
    others: Sequence[BenchCase] = (),
) -> Space:
    """The table's axes for an image and a workload, changed by what the user says.

    vary: ``NAME=VALUE,VALUE``: these values beside the default's; ``NAME=`` leaves the setting as the job has it.
    layouts: RANKSxTHREADS, in place of those that fill the node's cores.
    others: images that are tried in its place.
    InputError: with all that is wrong.
    """
    cell = cell_of(case, workload, {})
    axes = {name: list(values) for name, values in _usual(cell).items()}
    problems = Problems()
    said = _said(vary, problems)
    if layouts and "threads" in said:
        problems.add("threads varies twice", "--vary", "either --layout or --vary threads=…")
    problems.raise_as(InputError)
    if layouts:
        axes["layout"] = list(layouts)
    elif "threads" in said:
        axes.pop("layout", None)
    axes |= said
    for name, values in axes.items():
        with problems.caught():
            for value in values:
                variant_of({name: value})
    problems.raise_as(InputError)
    images = [each.image for each in (case, *others)]
    if twice := [name for at, name in enumerate(images) if name in images[:at]]:
        raise InputError(Problem(f"two images are called {twice[0]}", remedy="name each once, and by different names"))
    same = _same_as_default(cell)
    kept = {
        name: [value for value in dict.fromkeys(values) if (name, value) not in same] for name, values in axes.items()
    }
    axes = {IMAGE: images[1:], **kept}
    return Space({name: [DEFAULT, *values] for name, values in axes.items() if values})


def _said(vary: Sequence[str], problems: Problems) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for each in vary:
        name, equals, values = each.partition("=")
        if not name or not equals:
            problems.add(f"{each!r} does not say how to vary", "--vary", "NAME=VALUE,VALUE, such as threads=1,2")
        elif name in found:
            problems.add(f"{name} varies twice", "--vary", "one list of values", "put them into one: NAME=VALUE,VALUE")
        else:
            found[name] = values.split(",") if values else []
    return found


def _usual(cell: BenchOutcome) -> dict[str, list[str]]:
    """The table's values for a framework and a workload, layouts first."""
    plan = cell.case.job.plan
    node = plan.site.partitions[plan.partition]
    axes = {"layout": [each for each in layouts_of(node) if _possible(cell, each)]}
    own, read = cell.workload.own is not None, {ANY, *(block.name for block in plan.blocks)}
    framework = cell.framework or ("numpy" if own else "")
    for axis in AXES:
        if own and axis.own not in read:
            continue
        fits = framework in axis.frameworks and (own or not axis.kinds or cell.workload.record.kind in axis.kinds)
        if fits and axis.architecture in ("", family(node.cpu.target)):
            axes.setdefault(axis.name, []).extend(axis.values)
    if _MALLOC in axes:
        known = image_variables(cell.case)
        axes[_MALLOC] = [each for each in axes[_MALLOC] if not _kept_anyway(each, known)]
    return axes


def _kept_anyway(tunables: str, known: Mapping[str, str]) -> bool:
    """Whether an image does the same without these tunables, or with fewer of them: it keeps freed memory by itself.

    Where it sets tunables of its own, those that only keep memory do without its huge pages.
    """
    keeps = any(name in known for name in KEEPING)
    return keeps and _KEEP in tunables and (tunables != _KEEP or _MALLOC.removeprefix("env.") not in known)


def layouts_of(node: Partition) -> list[str]:
    """Ranks that share all cores of a node evenly, and one rank on a half and a quarter of them.

    None of a node with GPUs, whose number decides how many ranks there are.
    """
    if node.gpu is not None:
        return []
    cores = node.cpu.for_jobs
    shared = [f"{ranks}x{cores // ranks}" for ranks in range(1, cores + 1) if cores % ranks == 0]
    return [*shared, *(f"1x{cores // part}" for part in (2, 4) if cores // part)]


def _possible(cell: BenchOutcome, layout: str) -> bool:
    """Whether a layout can be started, as far as that is known before: some programs are of one rank."""
    variant = variant_of({"layout": layout})
    if cell.workload.own is not None and variant.ranks != cell.case.job.plan.job.ranks_per_node:
        return False  # it may be written for so many
    one_rank = cell.framework in ("numpy", "tensorflow")
    if variant.ranks is None or variant.ranks < cell.workload.ranks or (one_rank and variant.ranks > 1):
        return False
    try:
        job_of(BenchOutcome(cell.case, cell.workload, variant, cell.framework), 1.0)
    except HpcgenError:
        return False
    return True


def _same_as_default(cell: BenchOutcome) -> set[tuple[str, str]]:
    """Values that say what is so without them."""
    ranks, threads = layout_of(cell)
    record, known = cell.workload.record, image_variables(cell.case)
    same = {
        "layout": f"{ranks}x{threads}",
        "threads": str(threads),
        "framework": cell.framework,
        "compiler": "none",
        "batch": str(record.batch),
        "precision": record.precision,
        "memory": "measured",
        _MALLOC: known.get(_MALLOC.removeprefix("env."), DEFAULT),
    }
    nothing_kept = [] if any(name in known for name in KEEPING) else [("memory", "plain")]
    return {*same.items(), *nothing_kept}


def image_words(default: BenchOutcome, other: BenchOutcome) -> list[str]:
    """The setting that names another image than the default's; none where both are of one."""
    return [f"{IMAGE}={other.case.image}"] if other.case.image != default.case.image else []


def text_of(settings: Settings) -> str:
    """For people: ``layout=2x4 compiler=xla``."""
    return " ".join(f"{name}={value}" for name, value in settings.items()) or str(Variant())
