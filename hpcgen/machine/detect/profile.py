"""A site profile as text: of what was seen, each fact with its source, or as a skeleton to fill in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import msgspec
from msgspec import inspect as shapes

from hpcgen.core.config.diagnostics import wrong_value
from hpcgen.core.config.type_words import bare, only_optional
from hpcgen.core.errors import Problem, did_you_mean
from hpcgen.core.model.site import Site
from hpcgen.core.support.templates import Template
from hpcgen.machine.detect.detection import PARTITIONS
from hpcgen.machine.detect.seen import NODE, Seen
from hpcgen.machine.detect.yaml_text import comment, dump

PARTITION = "main"
"""The name of the node's partition in a new profile."""

_ORDER = (
    "system",
    "default_partition",
    "partitions",
    "containers",
    "scheduler",
    "network",
    "fabric",
    "mpi",
    "file_systems",
    "image",
)
_OF_NODES = ("cpu.target", "cpu.cores", "memory.total_gb")
_OF_GPUS = ("vendor", "model")
_REQUIRED = {
    "system": ("os",),
    "containers": ("preferred", "engines"),
    "scheduler": ("kind",),
    "mpi": ("flavour", "version", "abi", "root", "launcher"),
}
"""What a section must have. `mpi` is written as a comment without it; the others a profile must have as well."""


class NewProfile(msgspec.Struct, frozen=True):
    """A profile's text.

    ``open``: facts that could not be detected, by their path in the profile, with the reason. ``complete``: whether it
    has all that a profile must have.
    """

    text: str
    open: dict[str, str]
    complete: bool


LIVE = "the machine itself"
"""What was looked at, where that is not a file or a captured tree."""


def profile_of(seen: Seen, name: str, date: str, where: str = LIVE, options: str = "--detect") -> NewProfile:
    """Write a profile.

    date: of the day, such as 2026-11-20: that of what the machine itself shows. Files and a captured tree may be older
        by then, so of these it is only the day of reading.
    where: what was looked at, for the head of the file.
    options: of the command that writes it, for the head of the file.
    """
    data: dict[str, Any] = {}
    sources: dict[str, Any] = {}
    dated = {"as_of": date} | ({} if where == LIVE else {"dated_by": "reading"})
    still_open = {_in_profile(path): why for path, why in seen.unseen.items()}
    for fact in seen.facts.values():
        path = _in_profile(fact.path)
        # What a profile that is silent means is there for the doctor alone.
        if path.endswith(".squashfs") and fact.value == "gzip":
            continue
        if why := refusal(path.split("."), fact.value):
            still_open[path] = why
            continue
        _put(data, path.split("."), fact.value)
        sources[path] = {"from": fact.how, "checked": date, **dated, "verified": "yes"}
    _assume(data, sources, date, dated)
    lacking = _lacking(data)
    described = options != "--detect"
    if described:
        _open_required(data, lacking, still_open)
    mpi = data.pop("mpi", {}) if "mpi" in lacking else None
    if mpi is not None:
        sources = {path: source for path, source in sources.items() if path.split(".")[0] != "mpi"}
    for section in lacking:
        if section != "mpi":
            _put(data, section.split("."), {})
    text = comment(f"Written by `hpcgen site new {name} {options}` on {date}, from {where}.")
    text += comment("`hpcgen check` lists missing facts; `hpcgen site doctor` compares it with the machine later.")
    text += dump({"name": name, "title": f"{name}, as {'described' if described else 'detected'} on {date}"})
    for each in seen.contradictions:
        text += comment(f"contradiction: {each}")
    for section in _ORDER:
        text += _section(section, data, still_open)
        if section == "mpi" and mpi is not None:
            text += _commented_mpi(mpi, seen)
    text += "\n" + dump({"sources": sources})
    return NewProfile(text + _notes(seen), still_open, not set(lacking) - {"mpi"})


def _in_profile(path: str) -> str:
    head, _, rest = path.partition(".")
    return f"partitions.{PARTITION}.{rest}" if head == NODE else path


def _put(data: dict[str, Any], path: list[str], value: Any) -> None:
    for step in path[:-1]:
        data = data.setdefault(step, {})
    if isinstance(value, dict) and isinstance(data.get(path[-1]), dict):
        data[path[-1]].update(value)
    else:
        data[path[-1]] = value


def _get(data: Any, path: str) -> Any:
    for step in path.split("."):
        data = data.get(step) if isinstance(data, dict) else None
    return data


def _assume(data: dict[str, Any], sources: dict[str, Any], date: str, dated: dict[str, str]) -> None:
    """What a profile must say and no machine can show; ``dated``: of which day what was seen is."""
    kinds = list(data.get(PARTITIONS, {})) or [PARTITION]
    if data.get("default_partition") not in kinds:
        data["default_partition"] = PARTITION if PARTITION in kinds else kinds[0]
        sources["default_partition"] = {
            "from": "the one kind of node that was examined",
            "checked": date,
            **dated,
            "verified": "yes",
        }
        if len(kinds) > 1:
            assumed = {"from": "the first kind of node; the usual one is unknown", "verified": "no"}
            sources["default_partition"] |= assumed
    batch = _get(data, "scheduler.kind") not in (None, "none")
    _put(data, ["network", "internet"], {"login": True, "compute": not batch, "build": True})
    sources["network.internet"] = {
        "from": "assumed, because detection does not use the network",
        "checked": date,
        "verified": "no",
        "note": "compute nodes of a batch system are assumed to have no access; correct this if they have",
    }
    if _get(data, "scheduler.kind") == "none":
        data["scheduler"]["account"] = "none"
        sources["scheduler.account"] = {"from": "no batch system", "checked": date, **dated, "verified": "yes"}


def _required(data: dict[str, Any]) -> dict[str, tuple[str, ...]]:
    """Facts that a profile must have, by section, the partitions that are there included."""
    required = dict(_REQUIRED)
    for name in data.get(PARTITIONS, {}) or [PARTITION]:
        required[f"{PARTITIONS}.{name}"] = _OF_NODES
        if _get(data, f"{PARTITIONS}.{name}.gpu") is not None:
            required[f"{PARTITIONS}.{name}.gpu"] = _OF_GPUS
    return required


def _open_required(data: dict[str, Any], lacking: list[str], still_open: dict[str, str]) -> None:
    """What must be known and nobody spoke of."""
    for section in lacking:
        for field in _required(data)[section]:
            path = f"{section}.{field}"
            above = any(path.startswith(f"{each}.") for each in still_open)
            if not above and _get(data, path) is None:
                still_open.setdefault(path, "not found in the files that were read")


def _lacking(data: dict[str, Any]) -> list[str]:
    """Sections that lack what they must have."""
    found = []
    for section, fields in _required(data).items():
        there = _get(data, section)
        if there is None and section == "mpi":
            continue
        if there is None or any(_get(there, field) is None for field in fields):
            found.append(section)
    return found


def _section(section: str, data: dict[str, Any], still_open: dict[str, str]) -> str:
    text = "\n" + dump({section: data[section]}) if section in data else ""
    for path, why in still_open.items():
        if path.split(".")[0] == section:
            text += ("" if text else "\n") + comment(f"open: {path}: {why}")
    return text


def _commented_mpi(mpi: dict[str, Any], seen: Seen) -> str:
    must = ", ".join(_REQUIRED["mpi"])
    lines = dump({"mpi": mpi}).splitlines()
    text = comment(f"mpi is not complete: it must have {must}. Detected:")
    text += "".join(f"#   {line}\n" for line in lines)
    origins = {fact.how: None for path, fact in seen.facts.items() if path.startswith("mpi.")}
    return text + (comment(f"from {'; '.join(origins)}") if origins else "")


def _notes(seen: Seen) -> str:
    if not seen.notes:
        return ""
    return (
        "\n"
        + comment("Also detected, but not part of the profile:")
        + "".join(comment(f"- {note}") for note in seen.notes)
    )


# Whether a profile can hold a fact: the type of a field by its path.


def refusal(path: list[str], value: Any) -> str | None:
    """Why a profile cannot hold this value at this path; None if it can."""
    kind: Any = Site
    for step in path:
        kind = _below(kind, step)
        if kind is None:
            return "profiles have no such field"
    wrong = wrong_value(value, kind, ".".join(path))
    return f"a profile cannot hold {str(value)[:80]!r}: {wrong[0].message}" if wrong else None


def _below(kind: Any, step: str) -> Any:
    """The type of a field, or of a mapping's values if the key is right."""
    shape: Any = bare(shapes.type_info(kind))
    if isinstance(shape, shapes.UnionType):
        shape = bare(only_optional(shape) or shape)
    if isinstance(shape, shapes.StructType):
        return get_type_hints(shape.cls, include_extras=True).get(step)
    if isinstance(shape, shapes.DictType):
        keys, values = _arguments(kind)
        try:
            msgspec.convert(step, keys)
        except msgspec.ValidationError:
            return None
        return values
    return None


def _arguments(kind: Any) -> tuple[Any, Any]:
    """Key and value of a mapping's type, which may be one that can be absent."""
    if getattr(kind, "__origin__", None) is dict:
        keys, values = kind.__args__
        return keys, values
    for part in getattr(kind, "__args__", ()):
        if getattr(part, "__origin__", None) is dict:
            return _arguments(part)
    return str, Any


def unknown_fact(path: list[str], data: Mapping[str, Any]) -> Problem | None:
    """What is wrong with the path of a fact of a profile, which need not be given yet; None if nothing is.

    ``data``: the profile, its parents merged in; partitions, engines and file systems are called as there.
    """
    kind: Any = Site
    found: Any = data
    for number, step in enumerate(path):
        known = _steps(kind, found)
        kind, found = _below(kind, step), found.get(step) if isinstance(found, Mapping) else None
        if kind is None or (known is not None and step not in known):
            above = ".".join(path[:number]) or "the profile"
            return Problem(f"{above} has no {step!r}", remedy=did_you_mean(step, known or ()))
    return None


def _steps(kind: Any, found: Any) -> list[str] | None:
    """What may follow in a path; None where any name may, such as one of a variable."""
    shape: Any = bare(shapes.type_info(kind))
    if isinstance(shape, shapes.UnionType):
        shape = bare(only_optional(shape) or shape)
    if isinstance(shape, shapes.StructType):
        return [field.encode_name for field in shape.fields]
    if isinstance(shape, shapes.DictType) and not isinstance(bare(shape.value_type), shapes.StructType):
        return None
    return list(found) if isinstance(found, Mapping) else []


def skeleton(name: str) -> str:
    """The text of an empty profile with what belongs where: for an administrator who fills it in by hand."""
    return Template(Path(__file__).with_name("templates") / "profile.txt").fill(name=name)
