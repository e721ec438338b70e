"""How a plan's ranks are started: by the host's launcher, one container each, or by the image's own inside one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from hpcgen.backends.engines import Call, Engine, engine_for, runners
from hpcgen.backends.engines.base import assigned, bind_words, environment_words, file_system_words, refuse_separators
from hpcgen.backends.hardware.mpi_abi import MPI_PMI, wanted_abi
from hpcgen.backends.launchers import launcher_of
from hpcgen.backends.schedulers import Scheduler, launched_by, scheduler_for
from hpcgen.blocks.capabilities import COPY_DEVICES, UNDER_OLD_DRIVER
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.host_mpi import Bind, HostMpi
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SiteEngine
from hpcgen.core.support.quoting import Shell, expanded, quoted
from hpcgen.core.support.traced import Subject
from hpcgen.launch.binding import Binding, binding, gpus_by_launcher
from hpcgen.launch.caches import Caches, caches_of, downloads_folder
from hpcgen.launch.collectives import by_engine
from hpcgen.launch.environment import Variables, variables
from hpcgen.launch.within_node import family, joins

if TYPE_CHECKING:
    from hpcgen.launch.data import BoundData


class Start(msgspec.Struct, frozen=True):
    """The parts of the command line: ``outer`` launcher, container, ``inner`` launcher, ``binding`` of a rank to its
    GPU; then comes the command. ``under_old_driver``: the image's program that starts each rank by a newer CUDA, where
    the node's driver is old. ``data``: what the job has to find on the host. ``caches``: what the programs keep.
    ``models``: shell for the folder of downloads, where what the job needs was fetched; "" where nothing is.
    """

    engine: Engine
    mpi: HostMpi | None
    variables: Variables
    call: Call
    outer: list[str] = []
    inner: list[str] = []
    under_old_driver: list[str] = []
    binding: Binding | None = None
    modules: list[str] = []
    data: tuple[BoundData, ...] = ()
    caches: Caches | None = None
    models: str = ""


def start(
    plan: Plan,
    image_environment: Mapping[str, str],
    more_inside: Mapping[str, str] | None = None,
    *,
    sealed: bool = False,
    shown: Sequence[Bind] = (),
) -> Start:
    """Decide how a plan is started.

    image_environment: variables of the image's final stage, as they are at its end.
    more_inside: variables that are set in the container alone.
    sealed: foreign code runs in it, without a network and with nothing of the host but the folder of the job.
    shown: folders of the host that it sees beside that, sealed or not.
    PolicyError: several nodes without a launcher that can span them; an engine that lacks what the job needs.
    """
    site_engine = plan.site.containers.engines.get(plan.engine, SiteEngine())
    engine = engine_for(plan.engine, site_engine.version)
    if sealed:
        plan = _sealed(plan, engine)
    mpi = host_mpi(plan, engine)
    problems = start_problems(plan, engine, mpi)
    if problems:
        raise PolicyError(problems)
    inner = _inner_launcher(plan) if mpi is None and _uses_mpi(plan) else []
    bound = binding(plan, mpi, inner=bool(inner))
    pinned = bound is not None and bool(bound.cpus)
    values = variables(plan, image_environment, engine, mpi, bool(inner), more_inside, pinned=pinned)
    gpu = plan.site.partitions[plan.partition].gpu
    data = _data(plan)
    caches = caches_of(plan, engine) if not sealed else None
    call = Call(
        binds=(
            *(mpi.binds if mpi is not None else ()),
            *(each.bind for each in data if each.mounted or not each.packed),
            *shown,
        ),
        packed=tuple(each.bind for each in data if each.packed and not each.mounted),
        file_systems=_file_systems(plan, engine, mpi),
        inside=values.inside,
        inherited=(
            *values.exported,
            *(bound.reads() if bound is not None and not inner else ()),
            *(caches.inherited() if caches is not None else ()),
        ),
        unset=values.unset,
        gpu=gpu.vendor if gpu is not None else "",
        gpu_cdi=(gpu.cdi or "") if gpu is not None else "",
        devices=(*plan.fabric.devices, *_copy_devices(plan)),
        join=_join(plan, mpi),
        shared_memory=plan.stack.run.mpi or gpu is not None,
        mpi=family(mpi) if mpi is not None else "",
        fabric=plan.fabric.kind,
        python=any(plan.block(name) is not None for name in ("python", "conda_packages")),
        gpu_collectives=by_engine(plan, engine),
        sealed=sealed,
        options=tuple(word for each in site_engine.run_options for word in each.split(" ")),
        makes_targets=plan.found is not None and bool(plan.found.made),
    )
    modules = [*plan.site.scheduler.modules, *(mpi.modules if mpi is not None else []), *site_engine.modules]
    return Start(
        engine=engine,
        mpi=mpi,
        variables=values,
        call=call,
        data=data,
        caches=caches,
        models=_models(plan),
        outer=_outer(plan, engine, mpi),
        inner=inner,
        under_old_driver=[image_environment[UNDER_OLD_DRIVER]] if UNDER_OLD_DRIVER in image_environment else [],
        binding=bound,
        modules=list(dict.fromkeys(modules)),
    )


def batch_of(plan: Plan, how: Start) -> Scheduler | None:
    """The batch system whose own launcher starts the containers; None where an MPI's does, or nothing."""
    return launched_by(how.outer[0], plan.site.scheduler) if how.outer else None


def _data(plan: Plan) -> tuple[BoundData, ...]:
    if not plan.stack.run.binds and not plan.stack.run.models:
        return ()
    from hpcgen.launch.data import data_of

    return data_of(plan)


def _copy_devices(plan: Plan) -> list[str]:
    """Those that the nodes have and the image's UCX has use for."""
    have = plan.site.partitions[plan.partition].copy_devices
    return [device for name, device in COPY_DEVICES.items() if device in have and plan.block(name) is not None]


def _models(plan: Plan) -> str:
    """Where downloads are kept, as shell that fails nowhere; "" where nothing is fetched for the job."""
    if not plan.stack.run.models:
        return ""
    folder = downloads_folder(plan.site)
    return f"$({{ echo {quoted(expanded(folder))}; }} 2> /dev/null || true)" if folder else "$PWD/.cache"


def group_subjects(how: Start) -> dict[tuple[str, ...], Subject]:
    """What each group of words of the engine's command line is of, where it is not of the engine itself."""
    call = how.call
    found = {tuple(group): Subject("file systems") for group in file_system_words(call)}
    if call.options:
        found[call.options] = Subject("fact", f"containers.engines.{how.engine.name}.run_options")
    for bind in call.binds:
        found |= {tuple(group): Subject("bind", bind.target) for group in bind_words(how.engine.bind_option, [bind])}
    for name in call.inherited:
        ways = [("-e", name), *map(tuple, environment_words(replace(call, inherited=(name,), inside={}, sealed=True)))]
        found |= dict.fromkeys(ways, Subject("job variable", name))
    for name, value in call.inside.items():
        found |= dict.fromkeys([(assigned(name, value),), ("-e", f"{name}={value}")], Subject("job variable", name))
    if call.unset:
        found |= dict.fromkeys(((f"--unset-env={name}",) for name in call.unset), Subject("unset"))
        found[tuple(environment_words(call, call.unset)[0])] = Subject("unset")
    return found


def _sealed(plan: Plan, engine: Engine) -> Plan:
    """The plan without what would show the host's folders inside; PolicyError for an engine that cannot seal."""
    if reason := engine.unsealed_reason():
        # Of a release that is new enough, so that only what an engine never can is left out.
        names = sorted(name for name, each in runners().items() if not each("999").unsealed_reason())
        raise PolicyError(
            f"{engine.name} cannot start a container isolated from the host and the network: {reason}",
            expected=f"{', '.join(names[:-1])} or {names[-1]}, with its version in the profile of {plan.site.name}",
            remedy="name another engine with --engine; the image may have to be converted for it (hpcgen convert)",
        )
    systems = {name: replace(each, bind=False) for name, each in plan.site.file_systems.items()}
    stack = replace(plan.stack, run=replace(plan.stack.run, mpi=False, binds=[], models=[]))
    return replace(plan, site=replace(plan.site, file_systems=systems), stack=stack)


def _file_systems(plan: Plan, engine: Engine, mpi: HostMpi | None) -> tuple[str, ...]:
    """The site's file systems as words: a path, or the value that a variable has when the job runs."""
    bound = {bind.target for bind in mpi.binds} if mpi is not None else set()
    words: list[str] = []
    for name, each in plan.site.file_systems.items():
        if not each.bind or not engine.bind_in_place():
            continue
        if each.path is not None:
            refuse_separators(each.path, f"file_systems.{name}.path")
            words += [each.path] if each.path not in bound else []
        elif each.variable is not None and not engine.targets_in_image:
            words.append(Shell(f'"${{{each.variable}:-}}"'))
    return tuple(dict.fromkeys(words))


def host_mpi(plan: Plan, engine: Engine) -> HostMpi | None:
    """The host's MPI, which takes the place of the image's or starts its ranks; None where the image's own does.

    Where the profile names none, the batch system's launcher starts the ranks of several nodes, as a host's MPI would
    that is the image's.
    """
    if not _uses_mpi(plan) or not engine.started_by_launcher:
        return None
    host = plan.host_mpi
    if host is None:
        return _batch_launcher(plan) if plan.job.nodes > 1 or not plan.mpi.abi else None
    abi: Any = wanted_abi(host)
    if host.bind_modules:
        host = _shown_by_modules(host, engine)
    pmi: Any = host.pmi or _only_pmi(plan, host, engine)
    return msgspec.structs.replace(host, abi=abi, pmi=pmi)


def _shown_by_modules(host: HostMpi, engine: Engine) -> HostMpi:
    """With modules of the site that show it inside, or, for an engine that does not read what they set, without."""
    if not engine.environment_prefixes:
        return msgspec.structs.replace(host, bind_modules=[])
    return msgspec.structs.replace(host, libraries=[], binds=[], modules=[*host.modules, *host.bind_modules])


def _only_pmi(plan: Plan, host: HostMpi, engine: Engine) -> list[str]:
    """What a batch system's launcher must be asked for where the profile says nothing: Open MPI 5 has PMIx alone, as
    Open MPI has in images; else what it offers by itself.
    """
    own = launched_by(host.launcher, plan.site.scheduler)
    if own is None or "pmix" not in own.pmi or own.pmi_variable in {**plan.site.environment, **host.environment}:
        return []
    if engine.swaps(host):
        return ["pmix"] if host.flavour == "openmpi" and int(host.version.split(".")[0]) >= 5 else []
    return ["pmix"] if plan.mpi.family == "openmpi" else []


def _batch_launcher(plan: Plan) -> HostMpi | None:
    batch, block, own = scheduler_for(plan.site.scheduler), plan.block("mpi"), plan.mpi
    pmi: list[Any] = [each for each in MPI_PMI.get(own.family, ()) if each in batch.pmi]
    if block is None or not batch.launcher or (own.abi and not pmi):
        return None
    if not own.abi:
        # Processes without MPI: nothing of it is asked for.
        return HostMpi(flavour="mpich", version="0", abi="mpich", launcher=batch.launcher)
    flavour: Any = own.flavour
    abi: Any = own.abi
    return HostMpi(flavour=flavour, version=block.version, abi=abi, launcher=batch.launcher, pmi=pmi)


def _outer(plan: Plan, engine: Engine, mpi: HostMpi | None) -> list[str]:
    if mpi is not None:
        return launcher_of(mpi, plan.site.scheduler).words(plan.job, gpus_by_launcher(plan, mpi))
    own = launched_by(engine.launcher, plan.site.scheduler) if engine.launcher else None
    return own.launch_one(plan.job.ranks_per_node * plan.job.threads_per_rank) if own is not None else []


def _inner_launcher(plan: Plan) -> list[str]:
    words = ["mpiexec", "-n", str(plan.job.ranks)]
    # Open MPI binds one or two ranks to one core each, and all their threads with them.
    return [*words, "--bind-to", "none"] if plan.mpi.family == "openmpi" else words


def _uses_mpi(plan: Plan) -> bool:
    return plan.stack.run.mpi and plan.block("mpi") is not None


def _join(plan: Plan, mpi: HostMpi | None) -> int:
    """Ranks of MPICH and Open MPI read each other's memory, which only processes of one container may."""
    return plan.job.ranks_per_node if plan.job.ranks_per_node > 1 and joins(plan, mpi) else 0


def start_problems(plan: Plan, engine: Engine, mpi: HostMpi | None) -> list[Problem]:
    """Why a plan's job cannot be started as it is laid out. ``mpi``: what :func:`host_mpi` gives."""
    problems = []
    job = plan.job
    if job.ranks > 1 and not _uses_mpi(plan):
        problems.append(
            Problem(
                f"{job.ranks} ranks of {plan.stack.name}, which has no MPI to start them",
                remedy="add the block mpi to the stack, or request one rank",
            )
        )
    elif job.nodes > 1 and mpi is None:
        why = (
            f"{engine.name} does not let the host's launcher start processes in its containers"
            if not engine.started_by_launcher
            else f"the profile of {plan.site.name} names no host MPI, the image's own starts ranks only on one node, "
            f"and {plan.site.scheduler.kind} has no launcher for them"
        )
        problems.append(
            Problem(
                f"{job.nodes} nodes cannot be used: {why}",
                expected="--nodes 1",
                remedy="describe the host's MPI in the profile (mpi), or use one node",
            )
        )
    return problems
