"""Paths and modules that a profile names: are they on the machine?"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from hpcgen.core.config.provenance import Fact
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.doctor.report import Severity


class FactKind(msgspec.Struct, frozen=True):
    """A kind of fact that names paths or modules.

    Parameters
    ----------
    path: as a regular expression.
    severity: how grave it is if one is gone. means: what follows.
    """

    path: str
    severity: Severity
    means: str


class Presence(msgspec.Struct, frozen=True):
    """What became of one such fact.

    Parameters
    ----------
    gone: what is not there. unknown: why nothing can be said of it; "" where it was looked for.
    found: how many of its paths are there.
    """

    fact: Fact
    kind: FactKind
    gone: tuple[str, ...]
    unknown: str
    found: int = 0


_MPI = "the host's MPI does not replace the image's"
PATHS = (
    FactKind(r"mpi\.root", "error", _MPI),
    FactKind(r"mpi\.libraries", "error", _MPI),
    FactKind(r"mpi\.binds", "error", "a missing path cannot be bound, so the container does not start"),
    FactKind(r"(partitions\..+\.)?fabric\.devices", "error", "ranks fall back to a slower network, or do not start"),
    FactKind(r"(partitions\..+\.)?fabric\.libraries", "error", "the image has no libraries of its own for this fabric"),
    FactKind(r"containers\.image_directory", "error", "jobs look for their images there"),
    FactKind(r"network\.ca_certificates", "error", "builds copy the certificate into the image first"),
    FactKind(r"file_systems\.[^.]+\.path", "warning", "users are directed to that file system"),
)
MODULES = FactKind(
    r"(mpi|scheduler|containers\.engines\.[^.]+)\.modules", "warning", "the job script loads this module"
)
_NODE_ONLY = re.compile(r"(partitions\..+\.)?fabric\.devices")


def look(machine: Machine, facts: Iterable[Fact], login: bool = False) -> list[Presence]:
    """Look for everything that the facts of a profile name.

    Parameters
    ----------
    login: it is a login node, which has no need of the compute nodes' devices.
    """
    found = []
    for fact in facts:
        if login and _NODE_ONLY.fullmatch(fact.path):
            found.append(Presence(fact, _kind(fact) or MODULES, (), "this is a login node"))
        elif kind := _kind(fact):
            paths = _paths(fact.value)
            gone = tuple(path for path in paths if not machine.exists(path))
            unknown = "" if machine.is_live or not gone else f"the captured tree has no {', '.join(gone)}"
            found.append(Presence(fact, kind, gone, unknown, len(paths) - len(gone)))
        elif re.fullmatch(MODULES.path, fact.path):
            found.append(_modules(machine, fact))
    return found


def _kind(fact: Fact) -> FactKind | None:
    return next((kind for kind in PATHS if re.fullmatch(kind.path, fact.path)), None)


def _paths(value: Any) -> list[str]:
    """The paths of a fact; of a bind its source."""
    items = value if isinstance(value, list) else [value]
    paths = [item.get("source") if isinstance(item, dict) else item for item in items]
    return [path for path in paths if isinstance(path, str)]


def _modules(machine: Machine, fact: Fact) -> Presence:
    answer = machine.output("module-avail")
    if answer.text is None:
        return Presence(fact, MODULES, (), answer.why or "modules cannot be listed")
    known = {line.strip().removesuffix("(default)").removesuffix("/") for line in answer.text.split("\n")}
    gone = [name for name in _paths(fact.value) if not any(f"{each}/".startswith(f"{name}/") for each in known)]
    return Presence(fact, MODULES, tuple(gone), "")
