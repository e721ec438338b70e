"""Where the MPI library of a rank must come from: the host's folders as they are seen inside, or the image's own."""

from __future__ import annotations

from hpcgen.backends.engines import engine_for
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import HostMpi
from hpcgen.launch.start import host_mpi


def swapped_in(plan: Plan) -> HostMpi | None:
    """The host's MPI, where it takes the place of the image's; not where it only starts the image's ranks."""
    host = host_mpi(plan, engine_for(plan.engine, None))
    return host if host is not None and host.shown_inside else None


def mpi_folders(plan: Plan) -> tuple[str, list[str]]:
    """Whose MPI the ranks must use, in words, and the folders that its libraries are below, inside of the image."""
    host, block = swapped_in(plan), plan.block("mpi")
    if host is None:
        return "the image's own", [f"/opt/{block.name}"] if block is not None else []
    # A link among the libraries leads to another folder that is bound too.
    folders = [*host.libraries, *(bind.target for bind in host.binds), host.root]
    return f"the host's ({host.flavour})", list(dict.fromkeys(folder for folder in folders if folder is not None))
