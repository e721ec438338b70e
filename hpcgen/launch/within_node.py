"""Ranks of one node: whether they can read each other's memory (CMA), and what their MPI is told where they cannot.

The kernel lets no process read memory of another user namespace. Of two ranks in containers of their own, seen with
Apptainer 1.4.5 without setuid and without ``--sharens``: MPICH 5.0.2 aborts at the first collective, whatever its
netmod; MPICH 4.3.2 over UCX complains at each connection and sends by TCP; Open MPI 4.1.8 complains, and 4.1.4 was seen
to hang; all of them end well with the settings below. Intel MPI 2021.17 and Open MPI 5.0.8 need none. libfabric's own
shared memory tries first (prov/shm/src/smr_util.c of ofiwg/libfabric). openucx/ucx issues 4224, 5571 and 8958 and
apptainer/apptainer issue 769 have the same of UCX. MVAPICH2's is known from public job scripts alone.
"""

from __future__ import annotations

from hpcgen.backends.engines import Engine
from hpcgen.backends.hardware.mpi_abi import STANDARD, abi_of
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import SiteEngine

_OF_UCX = {"UCX_POSIX_USE_PROC_LINK": "n", "UCX_TLS": "^cma"}
_OF_MPI = {
    ("mpich", 5): {"MPIR_CVAR_CH4_CMA_ENABLE": "0"},
    ("mvapich2", 2): {"MV2_SMP_USE_CMA": "0"},
    ("openmpi", 4): {"OMPI_MCA_btl_vader_single_copy_mechanism": "none"},
}
"""By the flavour of an MPI and its major release."""


def family(mpi: HostMpi) -> str:
    """Whose modules of an engine serve it: the standard's interface is anybody's."""
    return abi_of(mpi.flavour) if mpi.abi == STANDARD else mpi.abi


def setuid(plan: Plan) -> bool:
    """Whether the profile says that the engine starts containers without user namespaces."""
    return plan.site.containers.engines.get(plan.engine, SiteEngine()).setuid


def joins(plan: Plan, mpi: HostMpi | None) -> bool:
    """Whether the engine is to put ranks of a node together, where a launcher starts a container for each.

    Intel MPI was seen to do without, and joining has its own risk: a rank that ends early leaves late ones behind.
    """
    return mpi is not None and mpi.flavour != "intel" and not setuid(plan)


def apart(plan: Plan, engine: Engine, mpi: HostMpi | None) -> bool:
    """Whether ranks of a node are in containers that the kernel keeps apart."""
    return joins(plan, mpi) and mpi is not None and not engine.ranks_together(family(mpi))


def apart_settings(plan: Plan, engine: Engine, mpi: HostMpi) -> dict[str, str]:
    """The variables by which the MPI in use does not read the memory of ranks that are kept apart."""
    block = plan.block("mpi")
    swapped = engine.swaps(mpi)
    flavour, version = (mpi.flavour, mpi.version) if swapped or block is None else (plan.mpi.flavour, block.version)
    major = version.split(".")[0]
    found = dict(_OF_MPI.get((flavour, int(major)), {})) if major.isdecimal() else {}
    by_ucx = plan.fabric.kind == "infiniband" if swapped else plan.block("ucx") is not None
    return {**found, **_OF_UCX} if by_ucx or plan.fabric.provider == "ucx" else found
