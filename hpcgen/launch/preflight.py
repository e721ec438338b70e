"""What a job counts on, as checks on its nodes before the program starts; the shell is in templates/preflight.sh.

Every check rests on a fact of the plan: what the plan does not say is not looked for. What the profile itself calls
unverified warns and does not stop a job, unless the image or the launch line would fail for the same reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from hpcgen.backends.hardware.fabrics import FAST, SLOW, drivers
from hpcgen.backends.hardware.microarchitecture import code_features
from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES
from hpcgen.backends.schedulers import scheduler_for
from hpcgen.blocks.capabilities import COPY_DEVICES
from hpcgen.blocks.rank_test import (
    DEBUG,
    LABEL,
    MPI_FILE,
    OPEN_MPI_CHATTER,
    OPEN_MPI_COMPONENT,
    OPEN_MPI_DEBUG,
    OPEN_MPI_OFI,
    OPEN_MPI_PROVIDERS,
    PROVIDER_IS,
    rank_words,
)
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import Shell, line, quoted, sh
from hpcgen.launch import node_checks
from hpcgen.launch.binding import local_rank
from hpcgen.launch.collectives import DEVICES, collectives_environment, collectives_text, gpu_network
from hpcgen.launch.node_checks import NODE_LIMIT_S, fill, has_rank_test, is_open_mpi, weight
from hpcgen.launch.parts import mpi_folders, swapped_in
from hpcgen.launch.start import Start, batch_of
from hpcgen.recipe.selftest import DRIVER_FILE, GPU_DEVICES

PREFLIGHT = "preflight.sh"
"""Name of the kit's script that looks before the job starts; the job script calls it."""

STATUS = 78
"""Exit status of a script whose preflight failed: EX_CONFIG of sysexits.h."""

RANK_LIMIT_S = 120
RANKS_PER_SECOND = 32
"""Seconds for the rank test, and how many ranks get one more."""

COMMON = "x86_64_v2"
"""What every x86 node of the last ten years has; a CPU is told by what it has beyond."""


def preflight_text(plan: Plan, how: Start, *, built_for: str = "", named: bool = False, sha256: str = "") -> str:
    """The functions of the preflight, and the lines that call it.

    built_for: archspec's name of the CPU that the image was compiled for, "" if it is that of the plan.
    named: the image is a name in the engine's store, not a file.
    sha256: of its file, which must be that one; "" where nobody asks.
    """
    node, helpers = _node(plan, how, built_for, named)
    ranks = _ranks(plan, how)
    functions = [fill(name) for name in helpers]
    functions += [node, fill("report", nodes=str(plan.job.nodes), status=str(STATUS), label=LABEL)]
    if plan.job.nodes > 1:
        names = " ".join(f"preflight_{name}" for name in [*helpers, "node"])
        functions.append(fill("nodes", limit_s=str(NODE_LIMIT_S), functions=names))
    alone = node_checks.alone(plan, how) if ranks else ""
    functions += [fill("ranks", **ranks)] if ranks else []
    functions += [alone] if alone else []
    functions.append(_order(plan, how, bool(ranks), bool(alone), sha256))
    return "\n".join([*functions, fill("call", status=str(STATUS))])


def _order(plan: Plan, how: Start, ranks: bool, alone: bool, sha256: str) -> str:
    """The function that asks all others, first the nodes, then the ranks, and if these fail, each node's by itself."""
    nodes = plan.job.nodes
    parts = [fill("preflight")]
    batch = batch_of(plan, how)
    if batch is not None and batch.launcher_allocates:
        parts.append(fill("allocation", launcher=batch.launcher, variable=batch.job_variable))
    if nodes > 1:
        parts += _all_nodes(plan, how)
    else:
        parts.append(fill("one"))
    if sha256:
        todo = "get the signed image again and resubmit the job"
        parts.append(fill("signed", signed_as=sh(sha256), expected=sh(f"sha256:{sha256}, as signed"), todo=sh(todo)))
    parts.append(node_checks.caches(plan, how))
    collectives = collectives_text(plan, how.engine)
    if not ranks:
        who = f"{nodes} nodes meet" if nodes > 1 else "this machine meets"
        parts.append(fill("passed", passed=sh(f"{who} all requirements")))
    parts.append(fill("reported", status=str(STATUS)))
    parts += [fill("collectives", text=sh(f"preflight: collectives: {collectives}"))] if collectives else []
    if ranks:
        words = {"status": str(STATUS), "variable": scheduler_for(plan.site.scheduler).job_variable}
        parts.append(fill("started_or_alone", **words) if alone else fill("started"))
    return "".join([*parts, fill("done")])


def _all_nodes(plan: Plan, how: Start) -> list[str]:
    """The part that starts a process on each node, and tells which nodes there are."""
    scheduler, outer, nodes = scheduler_for(plan.site.scheduler), line(how.outer), str(plan.job.nodes)
    expected = fill("expected", nodes=scheduler.node_list).rstrip("\n") if scheduler.node_list else ""
    own, asked = scheduler.on_each_node(plan.job.nodes), fill("asked", expected=expected)
    if not own or own[0] == how.outer[0]:
        return [asked, fill("all", outer=outer)]
    launcher = sh(f"{how.outer[0]} on {nodes} nodes")
    path = f"mpi.launcher and mpi.bootstrap of the profile of {plan.site.name}"
    todo = sh(f"if the nodes lack nothing else, correct {path}; {own[0]} reaches those that answer")
    words = {"outer": outer, "own": line(own), "variable": scheduler.job_variable}
    twice = fill("twice", nodes=nodes, launcher=launcher, todo=todo, **words)
    return [asked, twice]


# the node


def _node(plan: Plan, how: Start, built_for: str, named: bool) -> tuple[str, list[str]]:
    """The function that looks at a node, and the functions that it uses."""
    paths = _paths(plan, how, named)
    # With libraries for older drivers in the image, what starts the ranks looks at the node's.
    versions = ("" if how.under_old_driver else _driver(plan)) + _engine(plan, how, named)
    library = _library(plan)
    number = local_rank(plan, how.mpi, inner=bool(how.inner))
    first = fill("first", local_rank=number) if plan.job.nodes > 1 and number else ""
    image = node_checks.image(plan, how, named)
    checks = [first, paths, image, node_checks.starts(plan, how), _cpu(plan, built_for), versions, library]
    others = (node_checks.names, node_checks.variables, node_checks.shared_memory, node_checks.locked_memory)
    checks += [part(plan, how) for part in others]
    checks.append(_memory(plan))
    helpers = ["finding", *(["there"] if paths else []), *(["older"] if versions else [])]
    helpers += ["sum"] if image or (library and plan.job.nodes > 1) else []
    return fill("node", folders=" folders" if library else "") + "".join(checks) + fill("end"), helpers


def _paths(plan: Plan, how: Start, named: bool) -> str:
    """What must be there, with how grave it is and what to do."""
    site = plan.site.name
    gpu = plan.site.partitions[plan.partition].gpu
    found: list[tuple[str, str, str, list[str]]] = []
    if how.engine.image_is_file and not named and plan.job.nodes > 1:
        found.append(("FAILED", "image", "put it on a file system that every node can see", [Shell('"$1"')]))
    # What is made for GPUs says so by `host`, or is a run time for them; the rest works without.
    if gpu is not None and (plan.gpu_vendor or any(block.host for block in plan.blocks)):
        todo = f"use nodes of the partition {plan.partition}, and request their GPUs in the header of the job"
        found.append(("FAILED", "GPU", todo, [GPU_DEVICES[gpu.vendor]]))
    if how.mpi is not None or how.inner:
        path = plan.site.fabric_path(plan.partition, "devices")
        todo = f"use other nodes, or correct {path} of the profile of {site}"
        found.append((weight(plan.site, path), "fabric", todo, list(plan.fabric.devices)))
    path = f"partitions.{plan.partition}.copy_devices"
    todo = f"use other nodes, or correct {path} of the profile of {site}: UCX then copies in another way"
    copying = [device for name, device in COPY_DEVICES.items() if plan.block(name) is not None]
    found.append(("warning", "copy device", todo, [*copying]))
    found += _collectives(plan, how)
    models = [each.bind.source for each in how.data if each.model]
    # The job script makes the cache of the hub.
    fetched = [each.bind.source for each in how.data if each.model and not each.hub]
    found.append(("FAILED", "model", "fetch it: hpcgen data fetch", fetched))
    binds = [bind.source for bind in how.call.binds if bind.source not in models]
    found.append(("FAILED", "bind", f"correct mpi.binds of the profile of {site}", binds))
    if mpi := how.mpi:
        for path in mpi.preload:
            todo = f"correct {plan.mpi_path('preload', path)} of the profile of {site}"
            found.append(("FAILED", "library", todo, on_host(mpi, [path])))
    opened = ""
    if any(what == "GPU" for _, what, _, _ in found) and gpu is not None and gpu.vendor != "nvidia":
        todo = "ask to join the group that may open it (render or video), or check the driver of the compute nodes"
        opened = fill("opened", device=sh(GPU_DEVICES[gpu.vendor]), todo=sh(todo))
    rows = [(weight, sh(what), sh(todo), line(paths)) for weight, what, todo, paths in found if paths]
    there = [fill("paths", weight=weight, what=what, todo=todo, paths=all) for weight, what, todo, all in rows]
    return "".join([*there, opened])


def _collectives(plan: Plan, how: Start) -> list[tuple[str, str, str, list[str]]]:
    """The device of the network between GPUs, and the interface that what speaks IP is told to use."""
    site, found = plan.site, []
    kind, network = site.gpu_fabric_of(plan.partition), gpu_network(plan, how.engine)
    device = DEVICES.get((kind, network.name)) if network is not None else None
    if device is not None:
        path = f"partitions.{plan.partition}.gpu.fabric"
        gpu = site.partitions[plan.partition].gpu
        path = path if gpu is not None and gpu.fabric else site.fabric_path(plan.partition, "kind")
        todo = f"use other nodes, or correct {path} of the profile of {site.name}"
        found.append((weight(site, path), "GPU network", todo, [device]))
    interface = plan.fabric.interface
    if interface is not None and interface in collectives_environment(plan, how.engine).values():
        path = site.fabric_path(plan.partition, "interface")
        todo = f"correct {path} of the profile of {site.name}"
        found.append((weight(site, path), "interface", todo, [f"/sys/class/net/{interface}"]))
    return found


def _cpu(plan: Plan, built_for: str) -> str:
    target = built_for or plan.site.partitions[plan.partition].cpu.target
    features = code_features(target)
    told = sorted(features - code_features(COMMON) or features)
    if not told:
        return ""
    todo = f"its programs would end with SIGILL: use nodes of the partition {plan.partition}, or build it for these"
    return fill("cpu", features=line(told), cpu=sh(f"{target}, for which the image was compiled"), todo=sh(todo))


def _driver(plan: Plan) -> str:
    gpu = plan.site.partitions[plan.partition].gpu
    driver = oldest_driver(plan) if gpu is not None and gpu.vendor == "nvidia" else ""
    if not driver:
        return ""
    return fill(
        "driver",
        file=sh(DRIVER_FILE),
        driver=sh(driver),
        expected=sh(f"{driver} or newer, for CUDA of the image"),
        todo=sh("enter these nodes' driver in the profile and rebuild: it determines the CUDA version"),
    )


def oldest_driver(plan: Plan) -> str:
    """The oldest NVIDIA driver that all blocks of the image work with; "" if none of them says."""
    from packaging.version import Version

    bounds = [part.strip() for block in plan.blocks for part in block.host.get("driver", "").split(",")]
    return max((part[2:].strip() for part in bounds if part.startswith(">=")), key=Version, default="")


def _library(plan: Plan) -> str:
    host = swapped_in(plan)
    folders = on_host(host, host.libraries) if host is not None else []
    if host is None or not folders:
        return ""
    return fill(
        "library",
        folders=[sh(folder) for folder in folders],
        library=sh(MPI_LIBRARIES[host.abi]),
        sum=node_checks.library_sum(MPI_LIBRARIES[host.abi]) if plan.job.nodes > 1 else "",
        todo=sh(f"correct mpi.libraries and mpi.binds of the profile of {plan.site.name}"),
    )


def on_host(host: HostMpi, paths: Iterable[str]) -> list[str]:
    """Paths inside, such as ``mpi.libraries``, as the host has them: those that lie in a bind, by the innermost."""
    found = []
    for path in paths:
        inner = [bind for bind in host.binds if f"{path}/".startswith(f"{bind.target.rstrip('/')}/")]
        if inner:
            bind = max(inner, key=lambda each: len(each.target))
            found.append(bind.source.rstrip("/") + path[len(bind.target.rstrip("/")) :])
    return found


def _engine(plan: Plan, how: Start, named: bool) -> str:
    """By the options and the kinds of image that not every release has."""
    oldest = how.engine.oldest(how.call)
    releases = {} if named else how.engine.image_releases
    if not oldest and not releases:
        return ""
    cases = [f"*{sh(ending)}) word={sh(release)} ;;" for ending, release in sorted(releases.items())]
    return fill(
        "engine",
        engine=quoted(how.engine.command_name()),
        oldest=sh(oldest),
        releases=cases or ["*) ;;"],
        todo=sh(f"load another release, or correct containers of the profile of {plan.site.name}"),
    )


def _memory(plan: Plan) -> str:
    each = plan.job.memory_per_rank_gb
    if each is None:
        return ""
    needed = each * plan.job.ranks_per_node
    limited = sh("request more: the profile's scheduler.memory_request says how jobs request memory")
    expected = sh(f"{needed:g} GB for {plan.job.ranks_per_node} ranks")
    todo = sh("start fewer ranks per node, or check what else runs there")
    return fill("memory", memory=str(math.ceil(needed)), expected=expected, todo=todo, limited=limited)


# the ranks


def _ranks(plan: Plan, how: Start) -> dict[str, str]:
    if not has_rank_test(plan, how):
        return {}
    whose, folders = mpi_folders(plan) if swapped_in(plan) is not None else ("an MPI", [])
    fabric = plan.fabric
    open_mpi = is_open_mpi(plan)
    asked = OPEN_MPI_DEBUG if open_mpi else DEBUG
    debug = [f"{name}={value}" for name, value in asked.items() if name not in plan.stack.run.environment]
    slow = [name for name in SLOW if name != fabric.provider] if fabric.kind in FAST else []
    return {
        "limit_s": str(RANK_LIMIT_S + plan.job.ranks // RANKS_PER_SECOND),
        "command": line(["/usr/bin/env", *debug, *rank_words(plan)]),
        "wanted": str(plan.job.ranks),
        "mpi_file": sh(MPI_FILE),
        "label": LABEL,
        "provider_is": sh(PROVIDER_IS),
        "open_mpi": _open_mpi() if open_mpi else "",
        **{part: fill(part) if how.binding is not None and how.binding.cpus else "" for part in ("bound", "loose")},
        "folders": sh(" ".join(folder.rstrip("/") for folder in folders)),
        "whose": sh(whose),
        "fabric": sh(fabric.kind),
        "provider": sh(fabric.provider or ""),
        "same": sh(" ".join(drivers(fabric.provider) if fabric.provider else ())),
        "provider_weight": weight(plan.site, plan.site.fabric_path(plan.partition, "provider")),
        "slow": sh(" ".join(slow)),
    }


def _open_mpi() -> str:
    """awk's rules for what Open MPI says of its components."""
    rows = [f'component == "{name}" ? "{provider}" : ' for name, provider in sorted(OPEN_MPI_PROVIDERS.items())]
    return fill(
        "open_mpi",
        component=OPEN_MPI_COMPONENT,
        below=OPEN_MPI_OFI,
        chatter=OPEN_MPI_CHATTER,
        known="".join(rows) + '""',
    )
