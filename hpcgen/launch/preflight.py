"""What a job counts on, as checks on its nodes before the program starts; the shell is templates/preflight.sh.j2.

Every check rests on a fact of the plan: what the plan does not say is not looked for. What the profile itself calls
unverified warns and does not stop a job, unless the image or the launch line would fail for the same reason.
"""

from __future__ import annotations

import math
from typing import Any

from hpcgen.launch.libraries import mpi_folders, swapped_in
from hpcgen.launch.start import Start
from hpcgen.launch.words import Shell, line, quoted
from hpcgen.microarchitecture import features_of
from hpcgen.model.plan import Plan
from hpcgen.model.site import HostMpi, Site
from hpcgen.rank_test import DEBUG, MPI_FILE, PROVIDER_IS, RANK_PROGRAM, RANK_TEST
from hpcgen.selftest import DRIVER_FILE, GPU_DEVICES
from hpcgen.text import sh

PREFLIGHT = "preflight.sh"
"""Name of the kit's script that does nothing but the preflight."""

STATUS = 78
"""Exit status of a script whose preflight failed: EX_CONFIG of sysexits.h."""

NODE_LIMIT_S = 60
"""Seconds for one process on each node to start and look."""

RANK_LIMIT_S = 120
RANKS_PER_SECOND = 32
"""Seconds for the rank test, and how many ranks get one more."""

MPI_LIBRARIES = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}
"""The file by which programs find the library of an MPI: its SONAME.

mpich: wiki.mpich.org, MPICH ABI Compatibility Initiative: ``libmpi.so.12``, of Intel MPI, MVAPICH2 and Cray's too.
openmpi: VERSION of open-mpi/ompi, ``libmpi_so_version`` 40:… in 4.0 to 5.0.
"""

FAST = ("omni-path", "infiniband", "slingshot", "efa")
SLOW = ("tcp", "sockets", "udp", "net")
"""Fabrics with a provider of their own, and the providers over TCP that work everywhere and are slow."""

COMMON = "x86_64_v2"
"""What every x86 node of the last ten years has; a CPU is told by what it has beyond."""


def preflight_values(plan: Plan, how: Start, built_for: str, named: bool) -> dict[str, Any]:
    """What the template is filled with: ``node`` for the checks on every node, ``ranks`` for the rank test, or None.

    Parameters
    ----------
    built_for: archspec's name of the CPU that the image was compiled for, "" if it is that of the plan.
    named: the image is a name in the engine's store, not a file.
    """
    return {"node": _node(plan, how, built_for, named), "ranks": _ranks(plan, how), "preflight_status": STATUS}


def _node(plan: Plan, how: Start, built_for: str, named: bool) -> dict[str, Any]:
    paths = _paths(plan, how, named)
    values = {**_cpu(plan, built_for), **_driver(plan), **_library(plan), **_engine(plan, how, named), **_memory(plan)}
    helpers = {"finding": True, "there": bool(paths), "older": bool(values["driver"] or values["engine"]), "node": True}
    nodes = plan.job.nodes
    return {
        **values,
        "nodes": nodes,
        "limit_s": NODE_LIMIT_S,
        "paths": paths,
        "versions": helpers["older"],
        "functions": " ".join(f"preflight_{name}" for name, used in helpers.items() if used),
        "srun": how.outer[:1] == ["srun"],
        "passed": sh(f"{f'{nodes} nodes have' if nodes > 1 else 'this machine has'} what the job counts on"),
    }


def _paths(plan: Plan, how: Start, named: bool) -> list[tuple[str, str, str, str]]:
    """What must be there: how grave it is, what it is, what to do, and the paths."""
    site = plan.site.name
    gpu = plan.site.partitions[plan.partition].gpu
    found: list[tuple[str, str, str, list[str]]] = []
    if how.engine.image_is_file and not named and plan.job.nodes > 1:
        found.append(("FAILED", "image", "put it on a file system that every node sees", [Shell('"$1"')]))
    if gpu is not None and _wants_gpu(plan):
        todo = f"take nodes of the partition {plan.partition}, and ask for their GPUs in the header of the job"
        found.append(("FAILED", "GPU", todo, [GPU_DEVICES[gpu.vendor]]))
    if how.mpi is not None or how.inner:
        todo = f"take other nodes, or correct fabric.devices of the profile of {site}"
        found.append((_weight(plan.site, "fabric.devices"), "fabric", todo, list(plan.site.fabric.devices)))
    binds = [bind.source for bind in how.call.binds]
    found.append(("FAILED", "bind", f"correct mpi.binds of the profile of {site}", binds))
    return [(weight, what, sh(todo), line(paths)) for weight, what, todo, paths in found if paths]


def _cpu(plan: Plan, built_for: str) -> dict[str, str]:
    target = built_for or plan.site.partitions[plan.partition].cpu.target
    features = features_of(target)
    told = features - features_of(COMMON) or features
    return {
        "features": line(sorted(told)),
        "cpu": sh(f"{target}, for which the image was compiled"),
        "cpu_remedy": sh(
            f"its programs would end with SIGILL: take nodes of the partition {plan.partition}, or build it for these"
        ),
    }


def _wants_gpu(plan: Plan) -> bool:
    """Whether something in the image is made for GPUs; the rest works without."""
    return any(block.host for block in plan.blocks)


def _driver(plan: Plan) -> dict[str, str]:
    gpu = plan.site.partitions[plan.partition].gpu
    driver = oldest_driver(plan) if gpu is not None and gpu.vendor == "nvidia" else ""
    return {
        "driver": sh(driver) if driver else "",
        "driver_file": sh(DRIVER_FILE),
        "driver_expected": sh(f"{driver} or newer, for CUDA of the image"),
        "driver_remedy": sh("write the driver of these nodes into the profile and build again: CUDA is chosen by it"),
    }


def oldest_driver(plan: Plan) -> str:
    """The oldest NVIDIA driver that all blocks of the image work with; "" if none of them says."""
    from packaging.version import Version

    bounds = [part.strip() for block in plan.blocks for part in block.host.get("driver", "").split(",")]
    return max((part[2:].strip() for part in bounds if part.startswith(">=")), key=Version, default="")


def _library(plan: Plan) -> dict[str, Any]:
    host = swapped_in(plan)
    return {
        "folders": [sh(folder) for folder in host_folders(host)] if host is not None else [],
        "library": sh(MPI_LIBRARIES[host.abi]) if host is not None else "",
        "library_remedy": sh(f"correct mpi.libraries and mpi.binds of the profile of {plan.site.name}"),
    }


def _engine(plan: Plan, how: Start, named: bool) -> dict[str, Any]:
    """By the options and the kinds of image that not every release has."""
    oldest = how.engine.oldest(how.call)
    releases = [] if named else sorted(how.engine.image_releases.items())
    return {
        "engine": quoted(how.engine.command_name()) if oldest or releases else "",
        "oldest": sh(oldest) if oldest else "",
        "releases": [(sh(ending), sh(release)) for ending, release in releases],
        "engine_remedy": sh(f"load another release, or correct containers of the profile of {plan.site.name}"),
    }


def host_folders(host: HostMpi) -> list[str]:
    """The folders of ``mpi.libraries`` as the host has them: those that lie in a bind, by the innermost."""
    folders = []
    for folder in host.libraries:
        inner = [bind for bind in host.binds if f"{folder}/".startswith(f"{bind.target.rstrip('/')}/")]
        if inner:
            bind = max(inner, key=lambda each: len(each.target))
            folders.append(bind.source.rstrip("/") + folder[len(bind.target.rstrip("/")) :])
    return folders


def _memory(plan: Plan) -> dict[str, Any]:
    each = plan.job.memory_per_rank_gb
    if each is None:
        return {"memory": 0}
    needed = each * plan.job.ranks_per_node
    return {
        "memory": math.ceil(needed),
        "memory_expected": sh(f"{needed:g} GB for {plan.job.ranks_per_node} ranks"),
        "memory_remedy": sh("start fewer ranks on a node, or see what else runs there"),
    }


def _ranks(plan: Plan, how: Start) -> dict[str, Any] | None:
    """None where the image's own launcher starts the ranks inside: nothing of the host takes part in it."""
    if not how.outer or how.inner or not plan.stack.run.mpi or plan.block(RANK_TEST) is None:
        return None
    whose, folders = mpi_folders(plan) if swapped_in(plan) is not None else ("an MPI", [])
    fabric = plan.site.fabric
    debug = [f"{name}={value}" for name, value in DEBUG.items() if name not in plan.stack.run.environment]
    return {
        "limit_s": RANK_LIMIT_S + plan.job.ranks // RANKS_PER_SECOND,
        "command": line(["/usr/bin/env", *debug, RANK_PROGRAM]),
        "wanted": plan.job.ranks,
        "mpi_file": sh(MPI_FILE),
        "provider_is": sh(PROVIDER_IS),
        "folders": sh(" ".join(folder.rstrip("/") for folder in folders)),
        "whose": sh(whose),
        "fabric": sh(fabric.kind),
        "provider": sh(fabric.provider or ""),
        "provider_weight": _weight(plan.site, "fabric.provider"),
        "slow": sh(" ".join(name for name in SLOW if name != fabric.provider) if fabric.kind in FAST else ""),
    }


def _weight(site: Site, path: str) -> str:
    """``FAILED``, or ``warning`` for a fact that the profile calls unverified."""
    covering = [each for each in site.sources if f"{path}.".startswith(f"{each}.")]
    source = site.sources[max(covering, key=len)] if covering else None
    return "warning" if source is not None and source.verified == "no" else "FAILED"
