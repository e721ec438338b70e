"""Which partition of a profile a node belongs to."""

from __future__ import annotations

from hpcgen.core.model.site import Partition, Site
from hpcgen.machine.detect.seen import NODE, Seen
from hpcgen.machine.doctor.values import by_model, by_number, by_size, by_target


def which_partition(site: Site, seen: Seen, asked: str | None, queue: str) -> tuple[str, str]:
    """The partition, and why it is taken to be that one.

    Parameters
    ----------
    asked: the name that somebody gave.
    queue: what the batch system calls the job's partition; "" outside of a job.

    Raises
    ------
    UnknownNameError: the profile has no partition of the name that was given.
    """
    known = list(site.partitions)
    if asked is not None:
        return site.known_partition(asked), "asked for"
    queues = {name: [name, *(each.name for each in site.partitions[name].queues)] for name in known}
    of_queue = [name for name in known if queue and queue in queues[name]]
    if len(of_queue) == 1:
        return of_queue[0], f"the job runs in {queue}"
    if len(known) == 1:
        return known[0], "the profile has no other"
    candidates = of_queue or known
    best = max(candidates, key=lambda name: (fit(site.partitions[name], seen), name == site.default_partition))
    return best, f"the best match of {len(candidates)} by CPU, GPU and memory"


def fit(partition: Partition, seen: Seen) -> int:
    """How well the seen node fits; what tells partitions apart counts most."""

    def value(name: str) -> object:
        return seen.value(f"{NODE}.{name}")

    points = 0
    if (target := value("cpu.target")) is not None:
        points += {None: 8, "higher": 3}.get(by_target(partition.cpu.target, target), 0)
    if (cores := value("cpu.cores")) is not None and by_number(partition.cpu.cores, cores) is None:
        points += 4
    if (memory := value("memory.total_gb")) is not None and by_size(partition.memory.total_gb, memory) is None:
        points += 3
    if (sockets := value("cpu.sockets")) is not None and by_number(partition.cpu.sockets, sockets) is None:
        points += 1
    model = value("gpu.model")
    if (partition.gpu is not None) == (model is not None or value("gpu.vendor") is not None):
        points += 6
    if partition.gpu is not None and model is not None and by_model(partition.gpu.model, model) is None:
        points += 4
    return points
