"""What may vary from run to run, as data: ``--vary NAME=VALUE,VALUE`` and ``--layout RANKSxTHREADS``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import msgspec

from hpcgen.core.config.type_words import type_text
from hpcgen.core.errors import InputError, Problems, did_you_mean
from hpcgen.core.model.fields import Count, EnvName, Record, Text
from hpcgen.core.support.quoting import plain
from hpcgen.plugins.tuning.bench.workloads import FRAMEWORKS
from hpcgen.plugins.tuning.measurements.records import Precision

COMPILERS = ("none", "xla", "torch.compile", "onnxruntime", "openvino")
ALLOCATORS = ("malloc", "jemalloc", "tcmalloc", "mimalloc")
_MEMORY = ("measured", "plain")
KEEPING = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_")
"""The variables of the block kept_memory, which ``memory=plain`` takes away."""

HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "THP_MEM_ALLOC_ENABLE": "1"}
"""Those of the block huge_pages, which it takes away as well."""

_LAYOUT = re.compile(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})")
_NOT_SO = {"LD_PRELOAD": "--vary allocator=malloc,jemalloc", "OMP_NUM_THREADS": "--vary threads=1,2"}


def of_memory(known: Mapping[str, str]) -> dict[str, str]:
    """Of an image's variables those by which it keeps memory, and in huge pages; none unless it keeps it."""
    if not any(name in known for name in KEEPING):
        return {}
    return {name: value for name, value in known.items() if name in KEEPING or HUGE_PAGES.get(name) == value}


class Variant(Record, frozen=True):
    """One way to run a workload; what is None or empty is as the job and the workload have it.

    ``ranks`` on the node, ``threads`` of each; ``interop``: threads between operations. ``compiler``: of graphs, or
    the engine that infers in the framework's place. ``memory``: as a stack says it, ``plain`` without what keeps freed
    memory in the process. ``environment``: variables of the job.
    """

    ranks: Count | None = None
    threads: Count | None = None
    interop: Count | None = None
    framework: Text = ""
    compiler: Text = ""
    allocator: Text = ""
    memory: Text = ""
    batch: Count | None = None
    precision: Precision | None = None
    environment: dict[EnvName, Text] = {}

    @property
    def words(self) -> list[str]:
        """What is asked, as on the command line."""
        layout = self.ranks is not None
        found = [f"layout={self.ranks}x{self.threads}"] if layout else []
        for name in KNOBS:
            value = getattr(self, name)
            if value and not (layout and name == "threads"):
                found.append(f"{name}={value}")
        return [*found, *(f"env.{name}={value}" for name, value in self.environment.items())]

    def __str__(self) -> str:
        return " ".join(self.words) or "as the job is"


KNOBS: dict[str, Any] = {
    "threads": Count,
    "interop": Count,
    "framework": FRAMEWORKS,
    "compiler": COMPILERS,
    "allocator": ALLOCATORS,
    "memory": _MEMORY,
    "batch": Count,
    "precision": Precision,
}
"""What varies by ``NAME=``, and what its values are: a type or the words."""


def parse_variants(vary: Sequence[str] = (), layouts: Sequence[str] = ()) -> list[Variant]:
    """Every combination; the first of each is in the first variant, with which the others are compared.

    InputError: with all that is wrong.
    """
    problems = Problems()
    axes: list[list[dict[str, Any]]] = []
    if layouts:
        axes.append([_layout(each, problems) for each in layouts])
    names: set[str] = set()
    for each in vary:
        name, equals, values = each.partition("=")
        if not equals or not values:
            problems.add(f"{each!r} does not say how to vary", "--vary", "NAME=VALUE,VALUE, such as threads=1,2")
        elif name in names or (layouts and name == "threads"):
            problems.add(f"{name} varies twice", "--vary", "one list of values", "put them into one: NAME=VALUE,VALUE")
        else:
            axes.append(_axis(name, values.split(","), problems))
        names.add(name)
    problems.raise_as(InputError)
    found = [_joined(parts) for parts in product(*axes)]
    return [variant for at, variant in enumerate(found) if variant not in found[:at]]


def variant_of(settings: Mapping[str, str]) -> Variant:
    """One variant, by what ``--vary`` calls its settings; ``layout`` is RANKSxTHREADS.

    InputError: with all that is wrong.
    """
    problems = Problems()
    parts = [
        _layout(value, problems) if name == "layout" else _axis(name, [value], problems)
        for name, value in settings.items()
    ]
    problems.raise_as(InputError)
    return _joined([part if isinstance(part, dict) else part[0] for part in parts])


def _joined(parts: Sequence[dict[str, Any]]) -> Variant:
    fields: dict[str, Any] = {}
    for part in parts:
        environment = {**fields.get("environment", {}), **part.get("environment", {})}
        fields = {**fields, **part, "environment": environment}
    return Variant(**fields)


def _layout(text: str, problems: Problems) -> dict[str, Any]:
    found = _LAYOUT.fullmatch(text)
    if found is None:
        problems.add(f"{text!r} is not a layout", "--layout", "ranks on the node x threads of each, such as 2x8")
        return {}
    return {"ranks": int(found[1]), "threads": int(found[2])}


def _axis(name: str, values: Sequence[str], problems: Problems) -> list[dict[str, Any]]:
    if name.startswith("env."):
        return [_variable(name.removeprefix("env."), value, problems) for value in values]
    if name not in KNOBS:
        remedy = did_you_mean(name, [*KNOBS, "env.NAME"])
        problems.add(f"no setting is called {name!r}", "--vary", remedy=remedy)
        return []
    return [_value(name, value, problems) for value in values]


def _value(name: str, value: str, problems: Problems) -> dict[str, Any]:
    known = KNOBS[name]
    if isinstance(known, tuple):
        if value not in known:
            problems.add(f"{name} cannot be {value!r}", "--vary", remedy=did_you_mean(value, list(known)))
        return {name: value}
    try:
        return {name: msgspec.convert(value, known, strict=False)}
    except msgspec.ValidationError:
        problems.add(f"{name} cannot be {value!r}", "--vary", type_text(known))
        return {}


def _variable(name: str, value: str, problems: Problems) -> dict[str, Any]:
    if name in _NOT_SO:
        problems.add(f"{name} is set by the job", "--vary", remedy=_NOT_SO[name])
    try:
        msgspec.convert(name, EnvName)
    except msgspec.ValidationError:
        problems.add(f"{name!r} is not {type_text(EnvName)}", "--vary", "env.NAME=VALUE,VALUE")
    with problems.caught(lambda: "--vary"):
        plain(value, f"the value of {name}")
    return {"environment": {name: value}}
