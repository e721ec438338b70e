"""An abstract profile, which its children complete: what stands for the facts that it need not say."""

from __future__ import annotations

from typing import Any

from hpcgen.backends.engines import ENGINES
from hpcgen.backends.hardware.mpi_abi import abi_of
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.inheritance import Merged
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import InputError, Problem

STAND_IN = "what children say"
"""Name of the document that says what an abstract profile leaves open; no mistake in it is told."""


def completed(document: Document) -> Document:
    """An abstract profile over facts that fit all that it says, so that it can be checked as a whole one is."""
    return Merged(document, InMemory(_open_facts(document.data), STAND_IN))


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
