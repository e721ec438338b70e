"""Which variables are set outside, which inside, and which of the host's are kept out."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hpcgen.engines import Engine
from hpcgen.launch.collectives import collectives_environment, plugin_folders
from hpcgen.model.plan import Plan
from hpcgen.model.site import MPI_LAUNCHERS, HostMpi
from hpcgen.schedulers import SCHEDULERS, scheduler_for

HARMFUL = ("BASH_ENV", "ENV", "LD_PRELOAD", "PYTHONHOME", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONUSERBASE", "TMPDIR")
"""Variables of a host that name files or folders which the image has not, or has another of."""

ONLY_INSIDE = (*HARMFUL, "LD_LIBRARY_PATH", "PATH")
"""Variables of the host's MPI that name files of a container, and would lead the host's own programs there."""

BOOTSTRAP = {"intel": "I_MPI_HYDRA_BOOTSTRAP", "mpich": "HYDRA_BOOTSTRAP"}

MPI_OUTPUT = (
    "I_MPI_DEBUG_OUTPUT",
    "OMPI_MCA_orte_output_filename",
    "OMPI_MCA_orte_tag_output",
    "OMPI_MCA_orte_timestamp_output",
    "OMPI_MCA_orte_xml_output",
    "PRTE_MCA_output",
)
"""By these a person has an MPI label or redirect what ranks print. Hydra's mpiexec has options for it alone."""


class Variables(msgspec.Struct, frozen=True):
    """``exported`` outside (and by that inside, if the engine lets them in), ``inside`` alone, and ``unset`` ones."""

    exported: dict[str, str]
    inside: dict[str, str]
    unset: tuple[str, ...]


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

    Parameters
    ----------
    image: variables of the image's final stage, as they are at its end.
    mpi: the host's MPI, if it takes the place of the image's own.
    inner: the ranks are started by the image's own launcher.
    more_inside: variables of the container alone.
    pinned: the start line keeps each rank to its CPUs.
    """
    exported = _exported(plan, engine, mpi, pinned and (inner or (mpi is not None and mpi.flavour == "intel")))
    inside: dict[str, str] = dict(more_inside or {})
    if not engine.image_environment:
        inside.update({name: value for name, value in image.items() if name not in exported})
    elif engine.host_environment:
        # The image's own would win over the host's.
        inside.update({name: value for name, value in exported.items() if image.get(name, value) != value})
    unset = dict.fromkeys([*HARMFUL, *plan.site.unset_environment])
    if mpi is not None and mpi.shown_inside:
        inside.update(_of_host_mpi(mpi, image, engine))
        if "FI_PROVIDER_PATH" in image and "FI_PROVIDER_PATH" not in mpi.environment:
            # The image's providers do not belong to the host's libfabric.
            inside.pop("FI_PROVIDER_PATH", None)
            unset["FI_PROVIDER_PATH"] = None
    if folders := plugin_folders(plan, engine):
        path = inside.get("LD_LIBRARY_PATH", image.get("LD_LIBRARY_PATH", ""))
        inside["LD_LIBRARY_PATH"] = ":".join([*folders, *filter(None, [path])])
    if inner:
        inside.update(_of_inner_launcher(plan))
        # The image has no programs of a batch system.
        batch = (SCHEDULERS.find(name).launcher_variables for name in SCHEDULERS.names())
        unset.update(dict.fromkeys(name for names in batch for name in names))
    if not engine.image_environment:
        unset["LD_LIBRARY_PATH"] = None
    if not engine.host_environment:
        unset = {}
    kept = {*exported, *inside}
    return Variables(exported, dict(sorted(inside.items())), tuple(sorted(n for n in unset if n not in kept)))


def output_variables() -> list[str]:
    """All variables of a caller by which what ranks print would not come as they print it."""
    batch = (SCHEDULERS.find(name).output_variables for name in SCHEDULERS.names())
    return sorted({*MPI_OUTPUT, *(name for names in batch for name in names)})


def _exported(plan: Plan, engine: Engine, mpi: HostMpi | None, no_pinning: bool) -> dict[str, str]:
    """What the site and the stack set, collectives between nodes, the threads of a rank, and the number of ranks.

    The host's launcher reads its MPI's variables, too: Intel MPI's binds the ranks.
    """
    said = {**plan.site.environment_of(plan.partition), **plan.stack.run.environment}
    of_mpi = {name: value for name, value in mpi.environment.items() if name not in ONLY_INSIDE} if mpi else {}
    exported = {**collectives_environment(plan, engine), **said, **of_mpi}
    exported["OMP_NUM_THREADS"] = str(plan.job.threads_per_rank)
    exported["HPCGEN_RANKS"] = str(plan.job.ranks)
    if mpi is not None and mpi.bootstrap is not None and mpi.launcher in MPI_LAUNCHERS and mpi.flavour in BOOTSTRAP:
        exported.setdefault(BOOTSTRAP[mpi.flavour], mpi.bootstrap)
    if mpi is not None and mpi.launcher in MPI_LAUNCHERS:
        exported = {**scheduler_for(plan.site.scheduler).mpi_environment.get(mpi.flavour, {}), **exported}
    if no_pinning:
        # Intel MPI pins its ranks by itself, wherever they were.
        exported.setdefault("I_MPI_PIN", "off")
    return dict(sorted(exported.items()))


def _of_host_mpi(mpi: HostMpi, image: Mapping[str, str], engine: Engine) -> dict[str, str]:
    """The host's libraries before the image's."""
    path = [*mpi.libraries, *image.get("LD_LIBRARY_PATH", "").split(":"), engine.library_path]
    result = {"LD_LIBRARY_PATH": ":".join(dict.fromkeys(folder for folder in path if folder))}
    if mpi.flavour == "intel" and mpi.root is not None:
        result["I_MPI_ROOT"] = mpi.root
    return {**result, **mpi.environment}


def _of_inner_launcher(plan: Plan) -> dict[str, str]:
    """Ranks of one node are forked: the image has neither ssh nor the batch system."""
    if plan.mpi.family == "openmpi":
        # Open MPI refuses root, which is who one is inside rootless podman.
        return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return dict.fromkeys(BOOTSTRAP.values(), "fork")
