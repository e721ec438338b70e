"""Request files: which form one has, and what it says."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from hpcgen.backends.hardware.microarchitecture import family
from hpcgen.backends.schedulers import SCHEDULERS
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.type_words import shown
from hpcgen.core.config.yamlfile import Document, load, loads
from hpcgen.core.errors import InputError, Position, Problems, did_you_mean
from hpcgen.core.model.plan import Finding
from hpcgen.core.support.hashing import read_plain
from hpcgen.plugins.tuning.requests.modak import is_modak, translate
from hpcgen.plugins.tuning.requests.records import InfrastructureNode, OptimiseRequest
from hpcgen.plugins.tuning.requests.values import gigabytes, optimisation_of

_MAX_BYTES = 1024 * 1024

Dialect = Literal["hpcgen", "listing", "released", "example"]
"""hpcgen's own form; of MODAK the one printed in its paper, that of its release, and that of its longer examples."""


class ReadRequest(msgspec.Struct, frozen=True):
    """A request as it was read.

    ``findings``: what the file says and hpcgen cannot do, or reads in a way that the user should know. ``where``: the
    place in the file that says a field of the request, such as ``("limits", "nodes")``; of the nearest field above,
    where the file does not say it.
    """

    request: OptimiseRequest
    findings: list[Finding]
    dialect: Dialect
    where: Callable[[tuple[str, ...]], Position]


def read_request(path: Path) -> ReadRequest:
    """Read a request file. InputError: with every mistake of the file, each with file, line and column."""
    try:
        document = load(path)
    except InputError:
        text = ""
        with suppress(OSError, ValueError):
            text = read_plain(path, _MAX_BYTES).decode()
        if path.suffix != ".json" or not text.lstrip().startswith('"'):
            raise
        # One section of a file, as MODAK has some among its examples.
        read = request_from(loads("{" + text + "}", str(path)))
        message = f"{path.name} is only a part of a JSON file, and read as if it stood between braces"
        return replace(read, findings=[Finding(name="request", severity="note", message=message), *read.findings])
    return request_from(document)


def request_from(document: Document) -> ReadRequest:
    """The request of a document; as :func:`read_request`."""
    if not is_modak(document.data):
        request = checked(convert(document, OptimiseRequest), document.position)
        return ReadRequest(request, [], "hpcgen", document.position)
    translated, findings, released = translate(document)
    request = checked(convert(translated, OptimiseRequest), translated.position)
    listing = {"ai_training", "ai_inference", "hpc"} & set(optimisation_of(document.data))
    return ReadRequest(
        request,
        findings,
        "listing" if listing else "released" if released else "example",
        translated.position,
    )


def check_request(document: Document | None, path: Path, *_: object) -> None:
    """What ``hpcgen check`` asks of a request; a file of JSON is no document."""
    if document is None:
        read_request(path)
    else:
        request_from(document)


# What no single field of a request shows: fields that belong together or exclude each other, and version ranges.

Where = Callable[[tuple[str, ...]], Position]
_BARE = re.compile(r"\d+(\.\d+)*")
_LONGEST = 200


def version_range(text: str) -> str:
    """A range as the resolver reads it: ``2.1`` is ``==2.1.*``, which has 2.1 and 2.1.4, but not 2.11.

    InputError: it is neither a version nor a range.
    """
    text = text.strip()
    found = f"=={text}.*" if _BARE.fullmatch(text) else f"=={text}" if text[:1].isdigit() else text
    try:
        if len(text) > _LONGEST:
            raise InvalidSpecifier
        SpecifierSet(found)
    except InvalidSpecifier:
        expected = 'a range such as ">=2.3,<2.16", or a version such as 2.1, which stands for 2.1.*'
        raise InputError(f"{shown(text)} is not a version range", expected=expected) from None
    return found


def checked(request: OptimiseRequest, where: Where) -> OptimiseRequest:
    """The request with its version ranges written out.

    ``where``: the place of a field. InputError: with all that does not go together.
    """
    problems = Problems()
    version, mpi = request.version, request.mpi
    with problems.caught(lambda: where(("version",))):
        version = version_range(version)
    with problems.caught(lambda: where(("mpi", "version"))):
        mpi = replace(mpi, version=version_range(mpi.version))
    _what(request, where, problems)
    _target(request, where, problems)
    _limits(request, where, problems)
    problems.raise_as(InputError)
    return replace(request, version=version, mpi=mpi)


def _what(request: OptimiseRequest, where: Where, problems: Problems) -> None:
    if request.framework is not None and request.stack is not None:
        problems.add("both `framework` and `stack` are named", where(("stack",)), "one of the two", "remove one")
    if request.framework is None and request.stack is None:
        if request.kind in ("ai_training", "ai_inference"):
            expected = "the `framework`, or the `stack` that has it"
            problems.add("the program is not named", where(()), expected, "add `framework: …`")
        elif request.build is None and not request.run.command and request.mpi.library is None:
            expected = "a `stack`, the program (`run`, `build`), or the `mpi` that it needs"
            problems.add("the program is not named", where(()), expected, "add `stack: …`")
    if request.version and request.framework is None:
        remedy = "name the framework, or write the version into the stack"
        problems.add("`version` is that of a framework, and none is named", where(("version",)), remedy=remedy)
    if request.backend is not None and request.framework != "keras":
        problems.add("only Keras has a `backend`", where(("backend",)), "framework: keras", "remove it")
    use, compilers = request.compilers.use, request.compilers
    allowed = [use] if compilers.allow is None else compilers.allow
    if use is not None and (use in compilers.without or use not in allowed):
        remedy = f"take {use} out of `without`, and write it into `allow` where there is one"
        problems.add(f"{use} is to be used and may not be chosen", where(("compilers", "use")), remedy=remedy)
    if request.build is None and request.run.arguments and not request.run.command:
        problems.add("arguments without a command", where(("run", "arguments")), remedy="add `command: […]`")


def _target(request: OptimiseRequest, where: Where, problems: Problems) -> None:
    if request.site is not None and request.infrastructure is not None:
        remedy = "remove `infrastructure`, or name no site"
        problems.add("both `site` and `infrastructure` say where", where(("infrastructure",)), "one of the two", remedy)
    described = None if request.infrastructure is None else request.infrastructure.scheduler
    for path, name in ((("scheduler",), request.scheduler), (("infrastructure", "scheduler"), described)):
        if name is not None and name not in SCHEDULERS:
            remedy = did_you_mean(name, SCHEDULERS.names())
            problems.add(f"no batch system is called {name!r}", where(path), remedy=remedy)
    if request.infrastructure is None:
        return
    names = request.infrastructure.partitions
    default = [name for name, each in names.items() if each.default]
    place = where(("infrastructure", "partitions"))
    if not names:
        problems.add("`partitions` is empty", place, "at least one kind of node")
    elif len(default) > 1 or (len(names) > 1 and not default):
        remedy = "write `default: true` into one of them"
        problems.add(f"{len(default) or 'none'} of {len(names)} partitions is the default", place, "one", remedy)
    known = [name.replace("*", "main") for name in names]
    if known and request.partition is not None and request.partition not in known:
        remedy = did_you_mean(request.partition, known)
        problems.add(f"`infrastructure` has no partition {request.partition!r}", where(("partition",)), remedy=remedy)
    for name, each in names.items():
        _node(
            each.node, lambda *path, name=name: where(("infrastructure", "partitions", name, "node", *path)), problems
        )


def _node(node: InfrastructureNode, at: Callable[..., Position], problems: Problems) -> None:
    cpu = node.cpu
    with problems.caught(lambda: at("cpu", "arch")):
        if family(cpu.arch) not in ("x86_64", "aarch64"):
            problems.add(f"hpcgen has no images for {cpu.arch}", at("cpu", "arch"), "x86_64 or aarch64")
        with problems.caught(lambda: at("cpu", "microarch")):
            if cpu.microarch is not None and family(cpu.microarch) != family(cpu.arch):
                said = f"{cpu.microarch} is a CPU of {family(cpu.microarch)}, not of {cpu.arch}"
                problems.add(said, at("cpu", "microarch"), f"a CPU of {cpu.arch}")
    with problems.caught(lambda: at("memory")):
        gigabytes(node.memory)
    if (node.naccel is None) != (node.accel is None):
        lacking = "accel" if node.accel is None else "naccel"
        problems.add(f"`{lacking}` is missing in `node`", at(), "both `naccel` and `accel`", f"add `{lacking}: …`")


def _limits(request: OptimiseRequest, where: Where, problems: Problems) -> None:
    limits = request.limits
    if limits.walltime is not None and not re.search("[1-9]", limits.walltime):
        problems.add(f"{limits.walltime} is not a time for a job", where(("limits", "walltime")), "more than 0")
    if request.job.notify and request.job.email is None:
        problems.add("`notify` without the address to write to", where(("job", "notify")), "", "add `email: …`")
