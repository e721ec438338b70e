"""A system that a request describes, as a site profile: every fact that is said, none that is not."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hpcgen.backends.hardware.microarchitecture import family
from hpcgen.core.model.plan import Finding
from hpcgen.plugins.tuning.requests.records import Infrastructure, InfrastructureNode, OptimiseRequest
from hpcgen.plugins.tuning.requests.records import InfrastructurePartition as Described
from hpcgen.plugins.tuning.requests.values import gigabytes

SOURCE = "the request's infrastructure"
_REQUIRED = ("system.os", "containers", "scheduler", "network")
"""What a profile must say and a description cannot, or need not."""

_OPEN = ("mpi", "fabric", "system.glibc")
"""What decides on an image where it is known."""

_VENDORS = (
    (
        "nvidia",
        r"nvidia|tesla|quadro|geforce|gtx|rtx|titan|\b(gh|gb)200|\b[apvhblk](4|10|16|30|40|80|100|200|800)s?\b|\bt4\b",
    ),
    ("amd", r"amd|radeon|instinct|\bmi\d{2,3}[a-z]?\b|firepro"),
    ("intel", r"intel|ponte ?vecchio|\bpvc\b|\bmax ?1\d{3}\b|\barc\b|\bflex\b"),
)
"""Vendors by the names of their GPUs, as people write them."""


class DescribedSite(msgspec.Struct, frozen=True):
    """A profile as data. ``missing``: paths of what a profile must say besides."""

    profile: dict[str, Any]
    missing: list[str]
    findings: list[Finding]


def described_site(request: OptimiseRequest, date: str, extends: str | None = None) -> DescribedSite:
    """The profile of the system that a request describes in ``infrastructure``.

    ``date``: of today, such as 2026-11-20: when these facts were written down. ``extends``: a profile that says what
    the description does not, such as slurm-cpu. Its own partition `main` is left out.
    """
    system = request.infrastructure
    if system is None:
        raise ValueError("this request describes no system")
    notes: list[str] = []
    partitions = {_partition_name(name): _partition(name, each, notes) for name, each in system.partitions.items()}
    default = next((name for name, each in system.partitions.items() if each.default), next(iter(system.partitions)))
    architectures = {name: family(each.node.cpu.arch) for name, each in system.partitions.items()}
    if len(set(architectures.values())) > 1:
        notes.append(f"the partitions differ in architecture; the profile is for {architectures[default]}")
        partitions = {
            _partition_name(name): partitions[_partition_name(name)]
            for name, each in architectures.items()
            if each == architectures[default]
        }
    profile: dict[str, Any] = {
        "name": system.name,
        "title": system.description or f"{system.name}, as a request describes it",
        **({"extends": extends} if extends is not None else {}),
        "system": {"architecture": architectures[default]},
        "default_partition": _partition_name(default),
        "partitions": dict(partitions),
    }
    scheduler = system.scheduler or request.scheduler
    if scheduler is not None:
        profile["scheduler"] = {"kind": scheduler}
    if file_systems := _file_systems(system, notes):
        profile["file_systems"] = file_systems
    paths = ["system.architecture", "default_partition", *(f"partitions.{name}" for name in partitions)]
    paths += [path for path in ("scheduler.kind", "file_systems") if path.partition(".")[0] in profile]
    profile["sources"] = {path: {"from": SOURCE, "checked": date, "verified": "no"} for path in paths}
    missing = [path for path in _REQUIRED if path not in profile]
    if extends is not None and "main" not in partitions:
        profile["partitions"]["main"] = None
    return DescribedSite(profile, missing, _findings(system.name, missing, extends, notes))


def _partition_name(name: str) -> str:
    return "main" if name == "*" else name


def _partition(name: str, described: Described, notes: list[str]) -> dict[str, Any]:
    node = described.node
    cpu: dict[str, Any] = {
        "target": node.cpu.microarch or node.cpu.arch,
        "cores": node.ncpus * node.cpu.ncores,
        "sockets": node.ncpus,
        "threads_per_core": node.cpu.nthreads,
    }
    found: dict[str, Any] = {"nodes": described.nnodes, "cpu": cpu, "memory": {"total_gb": gigabytes(node.memory)}}
    if (gpu := _gpu(name, node, notes)) is not None:
        found["gpu"] = gpu
    return found


def _gpu(name: str, node: InfrastructureNode, notes: list[str]) -> dict[str, Any] | None:
    if node.accel is None:
        return None
    if node.accel.type != "gpu":
        notes.append(
            f"partition {name}: a profile has no {node.accel.type.upper()}s, so {node.accel.model} is left out"
        )
        return None
    vendor = next((each for each, words in _VENDORS if re.search(words, node.accel.model.lower())), None)
    if vendor is None:
        notes.append(f"partition {name}: the vendor of {node.accel.model} is unknown, so it is skipped")
        return None
    return {"vendor": vendor, "model": node.accel.model, "count": node.naccel}


def _file_systems(system: Infrastructure, notes: list[str]) -> dict[str, Any]:
    """Those that are folders of the nodes, by the last word of their path."""
    storage = dict(system.storage)
    for partition in system.partitions.values():
        storage |= {**partition.storage, **partition.node.storage}
    found: dict[str, Any] = {}
    for url, kind in storage.items():
        place = urlsplit(url)
        if place.scheme != "file" or place.netloc or not place.path.startswith("/"):
            notes.append(f"{url} is not a folder of the nodes, and left out")
            continue
        words = re.sub(r"[^a-z0-9._-]+", "-", place.path.lower()).strip("-._") or "root"
        found[words[:64]] = {"kind": "other", "path": place.path, "use": storage_words(kind)}
    return found


def storage_words(kind: str) -> str:
    """What a file system of a storage class is for, as the profile has it."""
    return f"storage class {kind}"


def _findings(name: str, missing: list[str], extends: str | None, notes: list[str]) -> list[Finding]:
    remedy = "`hpcgen site new NAME --detect` on the machine finds them"
    told = [Finding(name="described-site", severity="note", message=each) for each in notes]
    if missing and extends is None:
        message = f"the description of {name} lacks required facts of a profile: {', '.join(missing)}"
        told.append(Finding(name="described-site", severity="warning", message=message, remedy=remedy))
    elif missing:
        message = f"of {name} these are taken from {extends}: {', '.join(missing)}"
        told.append(Finding(name="described-site", severity="warning", message=message, remedy=remedy))
    message = f"of {name} nothing is known of {', '.join(_OPEN)}, so the image brings its own MPI without limits"
    return [*told, Finding(name="described-site", severity="note", message=message, remedy=remedy)]
