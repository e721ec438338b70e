"""The command of a workload's program: its whole text is a word of the launch line, so the image needs nothing more."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from hpcgen.core.errors import InputError, Problem
from hpcgen.core.model.fields import AbsolutePath, Count, Text, Version
from hpcgen.core.model.job import Job
from hpcgen.core.support.processes import NOT_HERE
from hpcgen.plugins.tuning.bench.variants import Variant
from hpcgen.plugins.tuning.bench.workloads import BenchWorkload
from hpcgen.plugins.tuning.measurements.records import Positive
from hpcgen.running.python_inside import FoundPython

MARK = "hpcgen-bench:"
"""What a line with a result begins with, as programs/bench_common.py writes it."""

RANKS_OF = {"pytorch": "/opt/pytorch/share/ranks.py", "jax": "/opt/jax/share/ranks.py"}
"""Starts a program as a rank of a job, where the framework's block puts that."""

_FOLDER = Path(__file__).with_name("programs")
_MODULE = """
def module(name, text):
    import linecache, sys, types
    file = name + ".py"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    made = sys.modules[name] = types.ModuleType(name)
    exec(compile(text, file, "exec"), made.__dict__)
"""


def command_of(framework: str, job: Job, request: str, python: FoundPython | None = None) -> list[str]:
    """What each rank starts.

    ``request``: what the program is to do, by :func:`asked`. ``python``: that starts it, where that may be another than
    ``python3``.
    """
    program = f"{NOT_HERE}; {bootstrap(framework)}"
    own = ["python3"] if python is None else python.start or [python.program]
    start = [*own, "-c", program, request]
    return ["python3", RANKS_OF[framework], *start] if framework in RANKS_OF and job.ranks > 1 else start


def asked(workload: BenchWorkload, variant: Variant, job: Job, seconds: float, cache: str = "") -> str:
    """What the program is to do, as JSON on one line of ASCII; ``cache``: where it keeps what it compiles."""
    record, network = workload.record, workload.network
    data: dict[str, Any] = {
        "workload": record.name,
        "kind": record.kind,
        "ranks": job.ranks,
        "threads": job.threads_per_rank,
        "interop": variant.interop or 0,
        "compiler": variant.compiler,
        "allocator": variant.allocator,
        "batch": variant.batch or record.batch or 0,
        "precision": variant.precision or record.precision,
        "environment": sorted(variant.environment),
        "seconds": seconds,
        "cache": cache,
        "size": workload.size,
        "layers": [],
        "generator": [],
    }
    if network is not None:
        data |= msgspec.to_builtins(network)
    return msgspec.json.encode(data).decode()


@cache
def bootstrap(framework: str) -> str:
    """One line of Python that makes modules of the texts and runs the framework's."""
    names = ("bench_common", f"bench_{framework}")
    return packed({name: (_FOLDER / f"{name}.py").read_text("utf-8") for name in names})


def packed(modules: Mapping[str, str], last: str = "") -> str:
    """One line of Python that makes modules of texts, in their order, and then does ``last``."""
    parts = [_MODULE, *(f"module({name!r}, {text!r})\n" for name, text in modules.items()), last]
    data = base64.b64encode(zlib.compress("".join(parts).encode(), 9)).decode()
    return f"import base64,zlib;exec(zlib.decompress(base64.b64decode('{data}')))"


Bytes = Annotated[int, msgspec.Meta(ge=1, le=2**50)]


class RankResult(msgspec.Struct, frozen=True):
    """What one rank measured, as far as an image is believed.

    ``cpu_seconds`` of the processors for a step; ``overhead`` in seconds of the first step alone; ``memory`` and
    ``device_memory``: the most bytes that the process has had at a time, and of a GPU its tensors; ``node``: what the
    machine calls itself; ``readers``: what of the process reads variables.
    """

    rate: Positive
    step_seconds: Positive
    steps: Count
    overhead: Annotated[float, msgspec.Meta(ge=0)]
    version: Version
    memory: Bytes
    node: Text
    parameters: Count | None = None
    device_memory: Bytes | None = None
    library: AbsolutePath | None = None
    readers: Annotated[list[Text], msgspec.Meta(max_length=20)] | None = None
    cpu_seconds: Annotated[float, msgspec.Meta(ge=0)] | None = None


class BenchRefusal(msgspec.Struct, frozen=True):
    """Why there is no result."""

    cannot: Text


def read_results(lines: list[str]) -> list[RankResult | BenchRefusal]:
    """What the ranks of a start said, in the order of their lines.

    InputError: a line has the mark, but is not what a program writes.
    """
    found: list[RankResult | BenchRefusal] = []
    for line in lines:
        if not line.startswith(MARK):
            continue
        text = line.removeprefix(MARK)
        try:
            data = msgspec.json.decode(text, type=dict[str, Any])
            found.append(msgspec.convert(data, BenchRefusal) if "cannot" in data else msgspec.convert(data, RankResult))
        except msgspec.MsgspecError as failure:
            raise InputError(
                Problem(
                    f"a line of the program is damaged: {failure}",
                    remedy="measure again; if it is so again, something in the image writes into its standard output",
                )
            ) from failure
    return found
