"""Which variables are set outside, which inside, and which of the host's are kept out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, NamedTuple

import msgspec

from hpcgen.backends.engines import Engine
from hpcgen.backends.launchers import launcher_of
from hpcgen.backends.schedulers import SCHEDULERS, scheduler_for
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.quoting import joined
from hpcgen.launch.collectives import by_plugin_folders, collectives_environment, plugin_folders
from hpcgen.launch.within_node import apart, apart_settings

HARMFUL = (
    *("BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "TMPDIR"),
    *("CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"),
)
"""Variables of a host that name files or folders which the image has not, or has another of."""

ONLY_INSIDE = (*HARMFUL, "LD_LIBRARY_PATH", "PATH")
"""Variables of the host's MPI that name files of a container, and would lead the host's own programs there."""

OF_LOADER = re.compile("LD_PRELOAD|LD_AUDIT|GLIBC_TUNABLES|MALLOC_.+")
"""Variables that every program's loader or allocator reads: set outside, they would change launcher and engine, too."""

BOOTSTRAP = ("I_MPI_HYDRA_BOOTSTRAP", "HYDRA_BOOTSTRAP")
"""Variables that say how the launchers in images reach nodes: Intel MPI's and MPICH's."""

HOST_LISTS = ("I_MPI_HYDRA_HOST_FILE", "HYDRA_HOST_FILE")
"""By these the same launchers read a list of nodes in a file of the host's; Intel's ends where it is missing."""

MPI_OUTPUT = (
    "I_MPI_DEBUG_OUTPUT",
    "OMPI_MCA_orte_output_filename",
    "OMPI_MCA_orte_tag_output",
    "OMPI_MCA_orte_timestamp_output",
    "OMPI_MCA_orte_xml_output",
    "PRTE_MCA_output",
)
"""By these the user has an MPI label or redirect what ranks print. Hydra's mpiexec has options for it alone."""


GivenBy = Literal[
    "site", "stack", "job", "collectives", "scheduler", "pinning", "image", "host mpi", "launcher", "caller", "engine"
]


class Giver(NamedTuple):
    """What gives a variable its value, and the path of that in the profile, the stack or the job, if it has one."""

    by: GivenBy
    path: str = ""


class Variables(msgspec.Struct, frozen=True):
    """``exported`` outside (and by that inside, if the engine lets them in), ``inside`` alone, and ``unset`` ones.

    ``givers``, ``inside_givers``: what gives each its value.
    """

    exported: dict[str, str]
    inside: dict[str, str]
    unset: tuple[str, ...]
    givers: dict[str, Giver] = {}
    inside_givers: dict[str, Giver] = {}


class _Values(dict[str, str]):
    """Variables of which each knows what gave it its value."""

    def __init__(self) -> None:
        super().__init__()
        self.givers: dict[str, Giver] = {}

    def put(self, values: Mapping[str, str], by: GivenBy, path: str = "", *, over: bool = True) -> None:
        """Take values in; the names below ``path`` in what gives them are their own. ``over``: also of names it has."""
        for name, value in values.items():
            if over or name not in self:
                self[name] = value
                self.givers[name] = Giver(by, path.format(name=name))


def variables(
    plan: Plan,
    image: Mapping[str, str],
    engine: Engine,
    mpi: HostMpi | None,
    inner: bool,
    more_inside: Mapping[str, str] | None = None,
    *,
    pinned: bool = False,
) -> Variables:
    """The variables of a job.

    image: variables of the image's final stage, as they are at its end.
    mpi: the host's MPI, if it takes the place of the image's own.
    inner: the ranks are started by the image's own launcher.
    more_inside: variables of the container alone.
    pinned: the start line keeps each rank to its CPUs.
    """
    exported = _exported(plan, engine, mpi, pinned and (inner or (mpi is not None and mpi.flavour == "intel")))
    inside = _Values()
    inside.put(more_inside or {}, "caller")
    for name in filter(OF_LOADER.fullmatch, list(exported)):
        inside.put({name: exported.pop(name)}, *exported.givers.pop(name), over=False)
    if not engine.image_environment:
        inside.put({name: value for name, value in image.items() if name not in exported}, "image")
    elif engine.host_environment:
        # The image's own would win over the host's.
        for name, value in exported.items():
            if image.get(name, value) != value:
                inside.put({name: value}, *exported.givers[name])
    own_mpi = mpi is None or not engine.swaps(mpi)
    harmful = [*HARMFUL, *plan.site.unset_environment, *(plan.mpi.host_settings if own_mpi else ())]
    # Where the image has its own value, that wins over the host's.
    unset = dict.fromkeys(name for name in harmful if name not in image)
    if mpi is not None and mpi.shown_inside:
        _put_host_mpi(inside, plan, mpi, image, engine)
        if "FI_PROVIDER_PATH" in image and "FI_PROVIDER_PATH" not in mpi.environment:
            # The image's providers do not belong to the host's libfabric.
            inside.pop("FI_PROVIDER_PATH", None)
            unset["FI_PROVIDER_PATH"] = None
    if folders := plugin_folders(plan, engine):
        path = inside.get("LD_LIBRARY_PATH", image.get("LD_LIBRARY_PATH", ""))
        inside.put({"LD_LIBRARY_PATH": by_plugin_folders(path, folders)}, "collectives")
    if inner:
        inside.put(_of_inner_launcher(plan), "launcher")
        # The image has no programs of a batch system.
        batch = (SCHEDULERS.find(name).launcher_variables for name in SCHEDULERS.names())
        unset.update(dict.fromkeys((*HOST_LISTS, *(name for names in batch for name in names))))
    if not engine.image_environment:
        unset["LD_LIBRARY_PATH"] = None
    if not engine.host_environment:
        unset = {}
    kept = {*exported, *inside}
    left = tuple(sorted(name for name in unset if name not in kept))
    return Variables(dict(sorted(exported.items())), dict(sorted(inside.items())), left, exported.givers, inside.givers)


def output_variables() -> list[str]:
    """All variables of a caller by which what ranks print would not come as they print it."""
    batch = (SCHEDULERS.find(name).output_variables for name in SCHEDULERS.names())
    return sorted({*MPI_OUTPUT, *(name for names in batch for name in names)})


def _exported(plan: Plan, engine: Engine, mpi: HostMpi | None, no_pinning: bool) -> _Values:
    """What the site and the stack set, collectives between nodes, the threads of a rank, and the number of ranks.

    The host's launcher reads its MPI's variables, too: Intel MPI's binds the ranks.
    """
    found, job = _Values(), plan.job
    found.put(collectives_environment(plan, engine), "collectives")
    gpu = plan.site.partitions[plan.partition].gpu
    if gpu is not None and gpu.tiles > 1 and plan.gpu_vendor == "intel" and job.gpus_per_node != 0:
        # By numbers of tiles a job says what each rank sees; what is the default depends on the runtime's release.
        found.put({"ZE_FLAT_DEVICE_HIERARCHY": "FLAT"}, "site", f"partitions.{plan.partition}.gpu.tiles")
    if (proxy := plan.site.network.job_proxy) is not None:
        for name, (field, value) in proxy.variables().items():
            found.put({name: value}, "site", f"network.job_proxy.{field}")
    found.put(_read_by(plan, plan.site.environment), "site", "environment.{name}")
    of_partition = _read_by(plan, plan.site.partitions[plan.partition].environment)
    found.put(of_partition, "site", f"partitions.{plan.partition}.environment.{{name}}")
    found.put(plan.stack.run.environment, "stack", "run.environment.{name}")
    if plan.stack.run.models:
        from hpcgen.core.model.hub_cache import HUB_CACHE, hub_repositories

        if hub_repositories(plan.stack.run.models):
            found.put({"HF_HUB_CACHE": HUB_CACHE}, "stack", "run.models.0.from", over=False)
    if plan.stack.run.models and any(each.variable == "HF_HOME" for block in plan.in_image for each in block.caches):
        # What ranks need was fetched before: each of them would ask the hub for it again, or wait in vain.
        found.put({"HF_HUB_OFFLINE": "1"}, "stack", "run.models.0.from", over=False)
    if mpi is not None:
        _put_environment(
            found, plan, {name: mpi.environment[name] for name in mpi.environment if name not in ONLY_INSIDE}
        )
    threads = str(job.threads_per_rank)
    found.put({"OMP_NUM_THREADS": threads}, "job", "threads_per_rank")
    pools = [name for block in plan.in_image for name in block.thread_variables]
    found.put(dict.fromkeys(pools, threads), "job", "threads_per_rank", over=False)
    found.put({"HPCGEN_RANKS": str(job.ranks)}, "job", "nodes ranks_per_node")
    launcher = launcher_of(mpi, plan.site.scheduler) if mpi is not None else None
    if mpi is not None and launcher is not None and mpi.bootstrap is not None and launcher.bootstrap_variable:
        found.put({launcher.bootstrap_variable: mpi.bootstrap}, "site", "mpi.bootstrap", over=False)
    if mpi is not None and launcher is not None and launcher.of_mpi:
        by_batch = scheduler_for(plan.site.scheduler).mpi_environment.get(mpi.flavour, {})
        found.put(by_batch, "scheduler", "scheduler.kind", over=False)
    if mpi is not None and job.ranks_per_node > 1 and apart(plan, engine, mpi):
        found.put(apart_settings(plan, engine, mpi), "engine", over=False)
    if no_pinning:
        # Intel MPI pins its ranks by itself, wherever they were.
        found.put({"I_MPI_PIN": "off"}, "pinning", over=False)
    return found


def _read_by(plan: Plan, values: Mapping[str, str]) -> dict[str, str]:
    """Those that something in the image reads: KMP_… are of Intel's and LLVM's OpenMP, and GCC's does not know them."""
    kmp = any(block.kmp for block in plan.in_image)
    return {name: value for name, value in values.items() if kmp or not name.startswith("KMP_")}


def _put_environment(found: _Values, plan: Plan, values: Mapping[str, str]) -> None:
    """Variables of the host's MPI, with the place in the profile that says each."""
    for name, value in values.items():
        found.put({name: value}, "site", plan.mpi_path("environment", name))


def _put_host_mpi(inside: _Values, plan: Plan, mpi: HostMpi, image: Mapping[str, str], engine: Engine) -> None:
    """The host's libraries before the image's, and what else its MPI wants."""
    path = [*mpi.libraries, *image.get("LD_LIBRARY_PATH", "").split(":"), engine.library_path]
    libraries = ":".join(dict.fromkeys(folder for folder in path if folder))
    if mpi.bind_modules:
        libraries = joined(engine.given_by_host("LD_LIBRARY_PATH"), libraries)
    inside.put({"LD_LIBRARY_PATH": libraries}, "host mpi", "mpi.bind_modules" if mpi.bind_modules else "mpi.libraries")
    if mpi.flavour == "intel" and mpi.root is not None:
        inside.put({"I_MPI_ROOT": mpi.root}, "host mpi", "mpi.root")
    _put_environment(inside, plan, mpi.environment)
    before = inside.get("LD_PRELOAD", image.get("LD_PRELOAD", ""))
    loaded = ":".join(filter(None, [*mpi.preload, *re.split("[: ]", before)]))
    if mpi.bind_modules:
        loaded = joined(engine.given_by_host("LD_PRELOAD"), loaded)
        inside.put({"LD_PRELOAD": loaded}, "host mpi", "mpi.bind_modules")
    elif mpi.preload:
        inside.put({"LD_PRELOAD": loaded}, "site", plan.mpi_path("preload", mpi.preload[0]))


def _of_inner_launcher(plan: Plan) -> dict[str, str]:
    """Ranks of one node are forked: the image has neither ssh nor the batch system."""
    if plan.mpi.family == "openmpi":
        # Open MPI refuses root, which is who one is inside rootless podman.
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return dict.fromkeys(BOOTSTRAP, "fork")
