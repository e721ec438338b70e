"""Which GPUs each rank of a node sees, and which CPUs it keeps to.

A launcher of an MPI knows nothing of GPUs, so that every rank takes the first one, from whatever CPU it runs on. The
container therefore starts each rank by a function of the job script, which reads the rank's number on its node.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import msgspec

from hpcgen.backends.hardware.fabrics import ONECCL
from hpcgen.backends.launchers import launcher_of
from hpcgen.core.model.host_mpi import HostMpi
from hpcgen.core.model.nodes import Gpu
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.cpu_lists import list_text, read_list
from hpcgen.core.support.quoting import Shell
from hpcgen.core.support.templates import Template
from hpcgen.launch.collectives import any_oneccl

VISIBLE = {"nvidia": "CUDA_VISIBLE_DEVICES", "amd": "ROCR_VISIBLE_DEVICES", "intel": "ZE_AFFINITY_MASK"}
"""The variable that says which GPUs a process sees, by their numbers.

Source: NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables"; AMD's "GPU isolation techniques"; Intel's
oneAPI Level Zero specification, "Affinity Mask".
"""

FUNCTION = "own_gpu"
_fill = Template(Path(__file__).with_name("templates") / "binding.sh").fill


class Binding(msgspec.Struct, frozen=True):
    """What each rank of a node has.

    local_rank: the variable with the rank's number on its node.
    visible: the variable that says which GPUs a process sees; "" where every rank sees all, or the launcher chooses.
    gpus: the numbers of the GPUs, for each rank.
    cpus: lists of CPUs, for each rank; empty where the launcher alone decides about them.
    count: devices of the node that the job has: GPUs, or the tiles that each of them consists of.
    """

    local_rank: str
    visible: str
    gpus: list[list[int]]
    cpus: list[str]
    count: int

    def reads(self) -> list[str]:
        """The variables outside that the function reads inside."""
        return [self.local_rank, *([self.visible] if self.visible else [])]

    def words(self) -> list[Shell | str]:
        """The words before each rank's command, inside the container."""
        return ["/bin/bash", "-c", Shell(f'"$(declare -f {FUNCTION}); {FUNCTION} \\"\\$@\\""'), FUNCTION]

    def function(self) -> str:
        """The shell function that these words call."""
        rows = []
        for rank, gpus in enumerate(self.gpus):
            row = [f"nth={','.join(str(number + 1) for number in gpus)}"] * bool(self.visible)
            row += [f"cpus={cpus}" for cpus in self.cpus[rank : rank + 1]]
            rows.append(f"{rank}) {' '.join(row)} ;;")
        names = ["nth"] * bool(self.visible) + ["cpus", "seen"] * bool(self.cpus)
        every = ",".join(map(str, range(self.count)))
        parts = [
            _fill("function", local_rank=self.local_rank, names=names, last=str(len(rows) - 1), ranks=rows),
            _fill("visible", visible=self.visible, every=every) if self.visible else "",
            _fill("cpus", local_rank=self.local_rank) if self.cpus else "",
            _fill("end"),
        ]
        return "".join(parts)


def binding(plan: Plan, mpi: HostMpi | None, *, inner: bool) -> Binding | None:
    """What the ranks of a plan's job get; None where there is nothing to divide, or no way to tell a rank's number.

    ``mpi``: the host's, if its launcher starts the ranks. ``inner``: the image's own launcher starts them.
    """
    gpu, count = _divided(plan)
    number = local_rank(plan, mpi, inner=inner)
    devices = count * (gpu.tiles if gpu is not None else 1)
    if gpu is None or not number:
        return None
    ranks = plan.job.ranks_per_node
    shares = shares_of(ranks, devices)
    next_to = [cpus for cpus in gpu.cpus for _ in range(gpu.tiles)]
    cpus = cpus_of(shares, next_to, plan.job.threads_per_rank) if count == gpu.count else []
    chosen = plan.job.rank_gpus == "own" and not gpus_by_launcher(plan, mpi) and not _sees_all(plan)
    if not chosen and not cpus:
        return None
    return Binding(number, VISIBLE[gpu.vendor] if chosen else "", shares, cpus, devices)


def binding_text(plan: Plan, mpi: HostMpi | None, found: Binding | None) -> str:
    """How the ranks of a node share its GPUs, for people; "" where there is nothing to share.

    ``found``: what :func:`binding` gives.
    """
    gpu, _ = _divided(plan)
    if gpu is None:
        return ""
    if plan.job.rank_gpus == "own" and _sees_all(plan):
        text = f"every rank sees the whole node, as {ONECCL} needs it, and must choose by its local rank"
    elif plan.job.rank_gpus == "all":
        text = "every rank sees the whole node and must choose by itself"
    elif gpus_by_launcher(plan, mpi):
        text = "the launcher gives each rank its own"
    elif found is None:
        text = "every rank sees all of the node: how this launcher numbers the ranks of a node is unknown"
    else:
        parts = ", with tiles as devices" if gpu.tiles > 1 else ""
        text = f"each rank sees its own{parts}, by {found.visible}"
    return f"{text}; it keeps to the CPUs next to it" if found is not None and found.cpus else text


def gpus_by_launcher(plan: Plan, mpi: HostMpi | None) -> int:
    """How many GPUs the batch system's own launcher is asked to give each rank; 0 if it is not asked to."""
    gpu, count = _divided(plan)
    batch = plan.site.scheduler
    asked = batch.gpu_bind == "launcher" and plan.job.rank_gpus == "own"
    if gpu is None or gpu.tiles > 1 or not asked or mpi is None:
        return 0
    # It gives a GPU to one rank alone.
    share = count // plan.job.ranks_per_node
    return share if launcher_of(mpi, batch).binds_gpus(share) else 0


def shares_of(ranks: int, gpus: int) -> list[list[int]]:
    """The GPUs of each rank, neighbours together; where there are more ranks than GPUs, several have the same."""
    starts = [rank * gpus // ranks for rank in range(ranks + 1)]
    return [list(range(start, max(start + 1, stop))) for start, stop in pairwise(starts)]


def cpus_of(shares: list[list[int]], next_to: list[str], threads: int) -> list[str]:
    """Lists of CPUs for ranks with these GPUs; none at all if a rank would get fewer than it has threads.

    ``shares``: the GPUs of each rank. ``next_to``: the CPUs next to each GPU, which may be the same for several.
    """
    if not next_to:
        return []
    pools = [tuple(sorted({cpu for gpu in gpus for cpu in read_list(next_to[gpu])})) for gpus in shares]
    found = []
    for rank, pool in enumerate(pools):
        place, of = pools[:rank].count(pool), pools.count(pool)
        own = pool[place * len(pool) // of : (place + 1) * len(pool) // of]
        if len(own) < threads:
            return []
        found.append(list_text(own))
    return found


def _divided(plan: Plan) -> tuple[Gpu | None, int]:
    """The GPUs that several ranks of a node share, and how many of them the job has; None where
    there are fewer than two devices.
    """
    gpu = plan.site.partitions[plan.partition].gpu
    if gpu is None or plan.job.ranks_per_node == 1:
        return None, 0
    count = gpu.count if plan.job.gpus_per_node is None else plan.job.gpus_per_node
    return (gpu, count) if count * gpu.tiles > 1 else (None, 0)


def _sees_all(plan: Plan) -> bool:
    """Whether the ranks must see every GPU of the node: oneCCL finds those of other ranks by what its own sees.

    Source: public job scripts for Aurora, which for that set no ``ZE_AFFINITY_MASK``.
    """
    return any_oneccl(plan)


def local_rank(plan: Plan, mpi: HostMpi | None, *, inner: bool) -> str:
    """The variable with a rank's number on its node; "" if nothing numbers them, or its name is not known.

    ``mpi``: the host's, if its launcher starts the ranks. ``inner``: the image's own launcher starts them.
    """
    if inner:
        return "OMPI_COMM_WORLD_LOCAL_RANK" if plan.mpi.family == "openmpi" else "MPI_LOCALRANKID"
    return launcher_of(mpi, plan.site.scheduler).local_rank if mpi is not None else ""
