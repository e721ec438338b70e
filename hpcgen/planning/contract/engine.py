"""The engine has all options that recipe and launch line use, and shows the host's files that the image needs."""

from __future__ import annotations

from hpcgen.blocks.capabilities import COPY_DEVICES
from hpcgen.core.support.units import some
from hpcgen.launch.node_checks import LOCKED_KB, SHARED_BY_GPUS_GB, SHARED_KB, between_gpus
from hpcgen.launch.start import start_problems
from hpcgen.launch.within_node import apart, apart_settings, setuid
from hpcgen.planning.contract.case import Check, ContractCase, Outcome, holds, release_of, skipped, unknown
from hpcgen.planning.contract.fabric import covered
from hpcgen.planning.contract.mpi import OWN_LAUNCHER
from hpcgen.recipe.bind_targets import bound_file_systems

COVERED_BY_IMAGE = ("/", "/bin", "/etc", "/lib", "/lib64", "/opt", "/sbin", "/usr", "/usr/lib", "/usr/lib64", "/var")


def flags(case: ContractCase) -> list[Check]:
    """The engine is new enough for each option that the kit uses."""
    name, engine = "engine", case.engine
    known = case.site.containers.engines.get(case.plan.engine)
    path = f"containers.engines.{case.plan.engine}.version"
    found = []
    gpu = case.partition.gpu.vendor if case.partition.gpu is not None else ""
    reason = engine.unsupported_reason(gpu)
    if reason:
        found.append(_too_old(case, reason, "use another engine of the site, or correct the profile", path))
    if known is None or known.version is None:
        reason = f"the version of {case.plan.engine} is unknown, so only options that every release has are used"
        return found or [unknown(name, reason, path)]
    here = release_of(known.version, 3)
    for since, what in engine.requires(gpu, known.fakeroot):
        if here < release_of(since, 3):
            remedy = f"correct {path}, or build elsewhere"
            found.append(_too_old(case, f"{what} came with {since}", remedy, path, f"{since} or newer"))
    # The image may well be built elsewhere.
    since, what = engine.builds_since
    if not found and here < release_of(since, 3):
        reason = f"{case.plan.engine} {known.version} of {case.site.name} is too old for {what}: they came with"
        remedy = f"build with {since} or newer elsewhere"
        found.append(Check(name, "doubtful", f"{reason} {since}", remedy, "", path))
    return found or [holds(name, f"{case.plan.engine} {known.version} has everything that is used")]


def _too_old(case: ContractCase, what: str, remedy: str, path: str, expected: str = "") -> Check:
    version = case.engine.version or "of unknown version"
    reason = f"{case.site.name} has {case.plan.engine} {version}: {what}"
    return Check("engine", "broken", reason, remedy, expected, path)


def user_namespaces(case: ContractCase) -> Check:
    """Ordinary users may create the user namespaces in which the engine starts containers.

    It is doubted and not refused: a setuid installation, or an AppArmor profile of the engine, may do without.
    """
    name, site, engine = "user namespaces", case.site, case.plan.engine
    if not case.engine.user_namespaces:
        return skipped(name, f"{engine} starts containers without them")
    if site.system.user_namespaces is None:
        return skipped(name, f"the profile of {site.name} does not say that they are closed")
    if site.system.user_namespaces:
        return holds(name, f"{site.name} lets users create them")
    reason = f"{engine} starts containers in a user namespace, which the kernel of {site.name} denies to users"
    remedy = f"`hpcgen test` on a node shows whether {engine} has an exception there; if not, use another engine"
    return Check(name, "doubtful", reason, remedy, "", "system.user_namespaces")


def within_node(case: ContractCase) -> Check:
    """Ranks of one node can read each other's memory, or their MPI does not try."""
    name, plan, engine = "within a node", case.plan, case.plan.engine
    if case.mpi is None or not plan.stack.run.mpi or plan.job.ranks_per_node == 1:
        return skipped(name, "a node has one rank")
    if case.host is None:
        return holds(name, f"{OWN_LAUNCHER}, all in one container")
    if case.host.flavour == "intel":
        return holds(name, "Intel MPI copies through shared memory, which containers of a node have in common")
    if not apart(plan, case.engine, case.host):
        how = "without user namespaces" if setuid(plan) or not case.engine.user_namespaces else "as one container"
        return holds(name, f"{engine} starts the ranks of a node {how}: they may read each other's memory")
    told = apart_settings(plan, case.engine, case.host)
    reason = f"{engine} gives each rank its own user namespace: ranks cannot read each other's memory, so messages are"
    reason += f" copied twice{f' ({some(list(told))})' if told else ''}"
    path = f"containers.engines.{engine}.version"
    if case.engine.version is None:
        return unknown(name, reason, path)
    remedy = "use another engine, or another release of it, or start fewer ranks with more threads"
    return Check(name, "doubtful", reason, remedy, "", path)


def shared_memory(case: ContractCase) -> Check:
    """/dev/shm is large enough for what the ranks of a node share by it."""
    name, job, size = "shared memory", case.plan.job, case.partition.memory.shared_gb
    path = f"partitions.{case.plan.partition}.memory.shared_gb"
    ranks = job.ranks_per_node if case.mpi is not None and case.plan.stack.run.mpi else 1
    least = {f"{ranks} ranks of MPI": ranks * SHARED_KB / 2**20} if ranks > 1 else {}
    if collectives := " and ".join(between_gpus(case.plan)):
        least[f"{collectives} between {job.gpus_per_node} GPUs"] = SHARED_BY_GPUS_GB
    if not least:
        return skipped(name, "nothing in the image is known to share memory by it")
    if size is None:
        return skipped(name, "the profile does not say how large /dev/shm is; the preflight looks")
    wants = max(least, key=lambda each: least[each])
    if size < least[wants]:
        remedy = "ask the site to have it mounted with its usual size, half of the memory"
        reason = f"{wants} want {least[wants]:.2g} GB of /dev/shm, and the nodes have {size:g} GB"
        return Check(name, "doubtful", reason, remedy, f"at least {least[wants]:.2g} GB", path)
    return holds(name, f"/dev/shm has {size:g} GB; {' and '.join(least)} use it")


def locked_memory(case: ContractCase) -> Check:
    """The network's cards may have the memory that they read and write locked in its place."""
    name, plan, limit = "locked memory", case.plan, case.partition.memory.locked_gb
    path = f"partitions.{plan.partition}.memory.locked_gb"
    if plan.job.nodes == 1 or not plan.stack.run.mpi or plan.fabric.kind != "infiniband":
        return skipped(name, "no ranks of several nodes meet over InfiniBand")
    if limit is None:
        return skipped(name, "the profile does not say how much a job may lock; the preflight looks")
    least = LOCKED_KB / 2**20
    if limit != "unlimited" and limit < least:
        reason = f"a job may lock {limit:g} GB of memory, and below {least:g} GB RDMA is left out"
        return Check(name, "doubtful", reason, "ask the site to raise it (ulimit -l)", f"at least {least:g} GB", path)
    return holds(name, f"a job may lock {limit if limit == 'unlimited' else f'{limit:g} GB'}")


def copy_devices(case: ContractCase) -> Check:
    """The nodes have the modules by which the image's UCX copies between ranks of a node, and from and to GPUs."""
    name, plan, have = "copy devices", case.plan, case.partition.copy_devices
    path = f"partitions.{plan.partition}.copy_devices"
    ucx = plan.block("ucx")
    if ucx is None or case.swapped or not plan.stack.run.mpi:
        return skipped(name, "the image's UCX has no part in the start")
    used = {each: device for each, device in COPY_DEVICES.items() if plan.block(each) is not None}
    missing = [each for each, device in used.items() if device not in have]
    if missing and not have:
        return unknown(name, f"whether the nodes have the modules for {some(missing)} is unknown", path)
    if missing:
        reason = f"ucx is built with {some(missing)}, and the nodes have {some(have)}: it copies another way"
        remedy = f"--set ucx.{missing[0]}=false, or correct {path}"
        return Check(name, "doubtful", reason, remedy, "", path)
    if used:
        return holds(name, f"ucx copies by {' and '.join(used)}")
    return skipped(name, "ucx is built without gdrcopy and xpmem")


def launch(case: ContractCase) -> list[Check]:
    """Something can start the job as it is laid out."""
    problems = start_problems(case.plan, case.engine, case.host)
    if problems:
        return [Check("launch", "broken", each.message, each.remedy, each.expected) for each in problems]
    host, block = case.host, case.mpi
    if host is not None and block is not None and case.site.mpi is None:
        reason = (
            f"the profile of {case.site.name} names no host MPI: {host.launcher} starts the image's own {block.name} "
            f"on {case.plan.job.nodes} nodes by {host.pmi[0]}; the profile does not state support for this"
        )
        remedy = f"ask the site, or {host.launcher} itself, which PMI it offers, and describe it in mpi"
        return [Check("launch", "doubtful", reason, remedy, "", "scheduler.kind")]
    how = host.launcher if host is not None else "the image's own launcher"
    return [holds("launch", f"{case.plan.engine}, ranks by {how}" if case.mpi is not None else case.plan.engine)]


def binds(case: ContractCase) -> list[Check]:
    """The files of the host's MPI are visible inside, and no bind hides the image's own files."""
    name, host = "binds", case.host
    half = _half_described(case)
    if half is not None:
        return [half]
    systems = bound_file_systems(case.site)
    found: list[Check] = []
    for path, each in systems.items():
        found += _hiding(case, path, path, "do not bind it", f"file_systems.{each}.bind")
    if host is None or not host.shown_inside:
        if systems:
            return found or [holds(name, f"{some(list(systems))}, where the node has them")]
        return [skipped(name, "only the job's folder of the host is bound")]
    for bind in host.binds:
        where = f"{case.plan.mpi_path('binds', bind)}.target"
        found += _hiding(case, bind.source, bind.target, "bind only the folders of the MPI", where)
    if host.bind_modules:
        return found or [holds(name, f"{some(host.bind_modules)} of the site show the host's MPI")]
    hidden = [] if host.abi in case.engine.brings_mpi else [f for f in host.libraries if not covered(case, f)]
    if hidden and len(hidden) == len(host.libraries):
        found.append(_hidden(case, hidden))
    elif hidden:
        reason = f"no bind makes {some(hidden)} visible inside, so the loader skips it"
        found.append(Check(name, "doubtful", reason, "add it to mpi.binds, or remove it", "", "mpi.libraries"))
    for path in host.preload:
        if not covered(case, path):
            reason = f"no bind makes {path} visible inside, so ranks do not load it first"
            where = case.plan.mpi_path("preload", path)
            found.append(Check(name, "broken", reason, "add a folder above it to mpi.binds", "", where))
    if not host.binds:
        return found or [holds(name, f"{case.plan.engine} brings in the host's MPI")]
    shown = f"{some([bind.target for bind in host.binds])}: created in the image, filled by the host"
    if any(bind.file for bind in host.binds):
        # Most profiles bind folders alone.
        from hpcgen.planning.contract.libraries import hidden_libraries, own_libraries

        found += hidden_libraries(case)
        shown += own_libraries(case)
    return found or [holds(name, shown)]


def _half_described(case: ContractCase) -> Check | None:
    """The host's MPI is named by its prefix or its binds, and nothing makes the loader find it inside."""
    host = case.host
    if (
        host is None
        or host.libraries
        or host.bind_modules
        or host.abi in case.engine.brings_mpi
        or not (host.root or host.binds)
    ):
        return None
    if host.binds and case.plan.fabric.libraries:
        # They show the fabric's libraries alone.
        return None
    given, missing = ("mpi.binds", ["mpi.libraries"]) if host.binds else ("mpi.root", ["mpi.libraries", "mpi.binds"])
    reason = (
        f"the profile has {given} and no {' and '.join(missing)}, so the host's {host.flavour} does not replace "
        "the image's MPI: the host only starts the ranks"
    )
    named = " and ".join(each for each in ("mpi.root" * bool(host.root), "mpi.binds" * bool(host.binds)) if each)
    remedy = f"add {' and '.join(missing)}, or remove {named} where that is meant"
    return Check("binds", "doubtful", reason, remedy, "", given)


def _hiding(case: ContractCase, source: str, bound: str, remedy: str, path: str) -> list[Check]:
    target = bound.rstrip("/") or "/"
    if target not in COVERED_BY_IMAGE and target not in {f"/opt/{block.name}" for block in case.plan.blocks}:
        return []
    reason = f"{source} would hide {target} of the image, with everything in it"
    return [Check("binds", "broken", reason, remedy, "", path)]


def _hidden(case: ContractCase, folders: list[str]) -> Check:
    host = case.host
    assert host is not None
    known = case.site.containers.engines.get(case.plan.engine)
    # Some sites have modules that tell Apptainer what to bind.
    by_module = bool(not host.binds and (host.modules or (known is not None and known.modules)))
    reason = f"no bind makes {some(folders)} visible inside: ranks would use the image's own MPI"
    remedy = f"add a bind with the target {folders[0]}, or a folder above it, to mpi.binds"
    outcome: Outcome = "doubtful" if by_module else "broken"
    if by_module:
        reason += ", unless a module of the site binds it"
    return Check("binds", outcome, reason, remedy, "every folder of mpi.libraries below a target", "mpi.libraries")
