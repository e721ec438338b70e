"""What `hpcgen check` asks of blocks, abstract profiles and release tables beyond their form."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from hpcgen.backends.engines import ENGINES
from hpcgen.backends.hardware.mpi_abi import abi_of
from hpcgen.blocks.base import Block
from hpcgen.blocks.guarded import NOT_YIELDED
from hpcgen.blocks.requirements import in_range, version_range
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.inheritance import Merged
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import HpcgenError, InputError, Position, Problem, Problems, did_you_mean, nearest
from hpcgen.core.model.fields import Record
from hpcgen.core.model.site import Site

# What can be said of a block's source and class without a plan.


def source_problems(path: Path, shown: str) -> Iterator[Problem]:
    """Steps that are made and not yielded, also those of a method that yields them."""
    tree = ast.parse(path.read_text("utf-8"))
    yielding = {
        each.name
        for each in ast.walk(tree)
        if isinstance(each, ast.FunctionDef)
        and any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in ast.walk(each))
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            place, called = Position(shown, node.lineno, node.col_offset + 1), _called(node.value)
            if called in ("run", "Run"):
                yield Problem(f"this step {NOT_YIELDED}", place, remedy="write yield before it")
            elif called in yielding:
                message = f"the steps of {called}() are never yielded, so they never run"
                yield Problem(message, place, remedy="write yield from before it")


def _called(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def class_problems(catalog: Catalog, block: type[Block], shown: str) -> Iterator[Problem]:
    """Methods that no block has, and needs that nothing provides."""
    known = [name for name in vars(Block) if not name.startswith("_")]
    for name, value in vars(block).items():
        function = getattr(value, "__func__", value)
        code = getattr(function, "__code__", None)
        inherited = any(name in vars(base) for base in block.__mro__[1:])
        if code is not None and not name.startswith("_") and not inherited and (meant := nearest(name, known)):
            message = f"a block has no method {name}(): nothing calls it"
            remedy = f"{meant} begin the name of a method of your own with _"
            yield Problem(message, Position(shown, code.co_firstlineno, 1), remedy=remedy)
    if not (block.__doc__ or "").strip() or block.__doc__ == Block.__doc__:
        yield Problem(f"{block.__name__} has no docstring", shown, "the software, and Source: with its home page")
    if not catalog.release_documents(block.name):
        yield Problem(f"{block.name} has no release table", shown, f"building_blocks/{block.name}.yaml")
    names = [*catalog.names("block"), *catalog.virtuals]
    for need in block.needs:
        if need.name not in names:
            yield Problem(f"it needs {need.name!r}, which is not a block", shown, remedy=did_you_mean(need.name, names))
        try:
            version_range(need.versions or ">=0")
        except HpcgenError as error:
            yield from (problem.at(f"{shown}: need({need.name!r})") for problem in error.problems)
    for virtual in block.provides:
        if block.name not in catalog.virtuals.get(virtual, ()):
            message = f"it provides {virtual}, and virtuals.yaml does not list it"
            yield Problem(message, shown, remedy=f"add {block.name} to {virtual} in building_blocks/virtuals.yaml")


# An abstract profile, which its children complete: what stands for the facts that it need not say.

STAND_IN = "what children say"
"""Name of the document that says what an abstract profile leaves open; no mistake in it is told."""


def completed(document: Document) -> Document:
    """An abstract profile over facts that fit all that it says, so that it can be checked as a whole one is."""
    return Merged(document, InMemory(_open_facts(document.data), STAND_IN))


def right_part(document: Document, kind: type[Record], problems: Problems) -> Document:
    """The document, or what is right of one with mistakes, over stand-ins for what is missing.

    The other checks go on with it; mistakes are added to ``problems``.

    InputError: the mistakes that are known; too little is right to find more.
    """
    with problems.caught():
        convert(document, kind)
        return document
    from hpcgen.core.config.diagnostics import without_mistakes

    right = without_mistakes(document, kind)
    # Stand-ins would hide what a name refers to: they are for a document that is not whole without them.
    over = completed(right) if kind is Site else Merged(right, InMemory(_STACK, STAND_IN))
    for rest in (right, over):
        with suppress(InputError):
            convert(rest, kind)
            return rest
    raise InputError(problems)


_STACK = {"name": "unnamed", "title": "-", "blocks": {}, "run": {}}


def own_problems(error: InputError) -> list[Problem]:
    """Those of the profile itself."""
    return [problem for problem in error.problems if getattr(problem.where, "file", "") != STAND_IN]


def _open_facts(data: dict[str, Any]) -> dict[str, Any]:
    """Every required fact, at least where the profile says something of the same record."""
    partitions, layouts = _mapping(data, "partitions"), data.get("layouts")
    names = [*partitions, data.get("default_partition")]
    names += [each.get("partition") for each in layouts if isinstance(each, dict)] if isinstance(layouts, list) else []
    known = list(dict.fromkeys(name for name in names if isinstance(name, str))) or ["main"]
    containers, engines = _mapping(data, "containers"), ENGINES.names()
    stated = [each for each in (containers.get("preferred"), *_mapping(containers, "engines")) if each in engines]
    preferred = (stated or engines)[0]
    facts: dict[str, Any] = {
        "title": "-",
        "system": {"os": "linux"},
        "partitions": {name: _partition(_mapping(partitions, name)) for name in known},
        "default_partition": known[0],
        "containers": {"preferred": preferred, "engines": {preferred: {}}},
        "scheduler": {"kind": "none"},
        "network": {"internet": {"login": False, "compute": False}},
        "file_systems": {name: {"kind": "other"} for name in _mapping(data, "file_systems")},
    }
    if "fabric" in data:
        facts["fabric"] = {"kind": "none"}
    if "mpi" in data:
        mpi = _mapping(data, "mpi")
        flavour = mpi.get("flavour", "openmpi" if mpi.get("abi") == "openmpi" else "mpich")
        # As if it were the newest, which has what others may lack.
        facts["mpi"] = {"flavour": flavour, "version": "9999", "abi": abi_of(flavour), "launcher": "mpiexec"}
    return facts


def _partition(said: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {"cpu": {"target": "x86_64", "cores": 1}, "memory": {"total_gb": 1e6}}
    if "gpu" in said:
        facts["gpu"] = {"vendor": "nvidia" if "capability" in _mapping(said, "gpu") else "amd", "model": "-"}
    if "fabric" in said:
        facts["fabric"] = {"kind": "none"}
    return facts


def _mapping(data: dict[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return value if isinstance(value, dict) else {}


# Keys and ranges of release tables with which nobody gets what they mean.

_RELEASE = "the number of a release, such as 2.15.1, or of a pre-release, such as 2.16.0rc1"


def key_problems(keys: Iterable[str], elsewhere: Iterable[str]) -> Iterator[tuple[str, Problem]]:
    """Keys of a table that are not versions of releases, each with its problem, which has no place yet.

    ``elsewhere``: keys of other tables of the same block, whose rows add up with these.
    """
    parsed = {text: _parsed(text) for text in keys}
    taken = {found: text for text in reversed([*elsewhere]) if (found := _parsed(text)) is not None}
    for text, found in parsed.items():
        wrong = _wrong(text, found)
        same = text if found is None else taken.setdefault(found, text)
        if wrong is None and same != text:
            message = f"{text!r} is the same version as {same!r}, which has a row: no range can tell them apart"
            wrong = message, f"drop one row, or call it {same!r}"
        if wrong is not None:
            yield text, Problem(wrong[0], expected=_RELEASE, remedy=wrong[1])


def _parsed(text: str) -> Version | None:
    try:
        return Version(text) if text[:1].isdigit() and text == text.strip() else None
    except InvalidVersion:
        return None


def _wrong(text: str, found: Version | None) -> tuple[str, str] | None:
    """What is wrong with a key, and what to do."""
    if found is None:
        return f"{text!r} is not a version", "call the row by the number under which it was released"
    base = _text(found.release)
    if found.epoch:
        wrong = f"{text!r} has an epoch: it is newer than all that have none, and ranges such as <={base} leave it out"
        return wrong, f"call it {text.partition('!')[2]}"
    if found.local:
        public = text.partition("+")[0]
        wrong = f"{text!r} is a build of {public}, and ranges do not tell builds of a release apart"
        return wrong, f"call it {public}; `accepts`, `on` and `only` say which systems a build is for"
    if found.is_postrelease:
        public = found.public.partition(".post")[0]
        wrong = f"{text!r} is a post-release: ranges such as =={public} and <={public} leave it out"
        return wrong, f"call it {public}, which is the release that it corrects"
    if re.search(r"\d[abc]$", text, re.IGNORECASE):
        wrong = f"{text!r} is the pre-release {found}, which comes before {base}"
        return wrong, f"call it {found} if that is meant; a patch level is a number, such as {base}.1"
    return None


def is_empty(versions: str) -> bool:
    """Whether no version can match a range that parses, such as ``>=3,<2``; False if a bound is no release."""
    bounds = [_parsed(each.version.removesuffix(".*")) for each in version_range(versions)]
    releases = [each for each in bounds if each is not None and re.fullmatch(r"[\d.]+((a|b|rc)\d+)?", str(each))]
    if len(releases) < len(bounds):
        return False
    places = max((len(each.release) for each in releases), default=0)
    tried = {"0"}
    for each in releases:
        # Where anything lies in a range, a bound does or what comes next to one: above 1.2 (1.2.0.1), above 1.2.*
        # (1.3), above 1.2rc1, below 1.2a1.
        last, (kind, number) = each.release[-1], each.pre or ("a", 0)
        above = [*each.release, *[0] * (places - len(each.release)), 1]
        beside = [*each.release[:-1], last + 1]
        base = each.base_version
        tried |= {str(each), _text(above), _text(beside), f"{base}{kind}{number + 1}", f"{base}.dev0"}
    return not any(in_range(each, versions) for each in tried)


def _text(release: Iterable[int]) -> str:
    return ".".join(map(str, release))
