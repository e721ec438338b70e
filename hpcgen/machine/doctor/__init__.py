"""Drift: a profile held against the machine that it speaks of.

:func:`examine` is pure: what was seen, and what is there, comes in as data. It is seen with the MPI of the profile
(:func:`seen_for`). The parts: ``examine`` looks for the paths and modules that the profile names, and finds out which
partition a node belongs to; ``rules`` says which facts are compared how, by what they mean, and how grave a difference
is; ``dependents`` what rests on a fact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpcgen.backends.hardware.mpi_abi import MPI_LIBRARIES, STANDARD
from hpcgen.backends.schedulers import launched_by
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.provenance import Fact, facts_of
from hpcgen.core.model.site import Partition, Site
from hpcgen.machine.detect.detection import PARTITIONS, detect, kinds_of
from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes.batch import offered_pmi
from hpcgen.machine.detect.probes.mpi import ROOTS, standard_library
from hpcgen.machine.detect.seen import NODE, Seen, SeenFact
from hpcgen.machine.doctor.examine import examine, look
from hpcgen.machine.doctor.rules import Drift, Report, Unseen, by_model, by_number, by_size, by_target

# A machine looked at for one profile: where several MPIs are installed, it is the profile's that counts.


def seen_for(machine: Machine, site: Site) -> Seen:
    """Everything that can be seen of a machine, the MPI being the one that the profile names."""
    mpi = site.mpi
    if mpi is not None and mpi.root is not None:
        for name in ROOTS:
            machine.environment.pop(name, None)
        machine.environment["MPI_ROOT"] = mpi.root
        machine.environment["LD_LIBRARY_PATH"] = ":".join(mpi.libraries)
    seen = detect(machine)
    by_batch = mpi is not None and launched_by(mpi.launcher, site.scheduler) is not None
    if by_batch and machine.output("srun-mpi-list").text:
        # All that is offered, whether the MPI is known to understand it or not.
        seen.add("mpi.pmi", offered_pmi(machine), machine.how("srun-mpi-list"))
    if mpi is not None and mpi.root is None:
        _forget_mpi(seen, "the profile has no mpi.root, so it is unclear which MPI is meant")
    elif mpi is not None and mpi.root is not None and not _is_that_mpi(machine, seen, [mpi.root, *mpi.libraries]):
        version, root = seen.value("mpi.version") or "of unknown version", seen.value("mpi.root")
        _forget_mpi(seen, f"the MPI that was found is another one: {version} in {root}")
    elif mpi is not None and mpi.abi == STANDARD:
        _see_standard(machine, seen, mpi.libraries)
    return seen


def _see_standard(machine: Machine, seen: Seen, folders: Iterable[str]) -> None:
    """That the MPI also has the standard's interface, where the profile names that and not the family's own."""
    if library := next(filter(None, (standard_library(machine, folder) for folder in folders)), ""):
        seen.add("mpi.abi", STANDARD, f"{library}, SONAME {MPI_LIBRARIES[STANDARD]}")


def _is_that_mpi(machine: Machine, seen: Seen, places: Iterable[str]) -> bool:
    """Whether the seen MPI lies where the profile has its own, whatever links lead there."""
    found = seen.value("mpi.root")
    if found is None:
        return True
    real = machine.real(found) or found
    return any(f"{real}/".startswith(f"{machine.real(place) or place}/") for place in places)


def _forget_mpi(seen: Seen, why: str) -> None:
    """Another MPI says nothing of the profile's; where it lies is worth knowing."""
    for path in [path for path in seen.facts if path.startswith("mpi.") and path not in ("mpi.pmi", "mpi.root")]:
        del seen.facts[path]
    seen.unseen["mpi"] = why


# Which partition of a profile a node belongs to.


def which_partition(site: Site, seen: Seen, asked: str | None, queue: str) -> tuple[str, str]:
    """The partition, and why it is taken to be that one.

    asked: the name that somebody gave.
    queue: what the batch system calls the job's partition; "" outside of a job.
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


__all__ = ["Drift", "Report", "Unseen", "examine", "report_on"]


def report_on(
    catalog: Catalog,
    name: str,
    machine: Machine,
    *,
    partition: str | None = None,
    queue: str = "",
    login: bool = False,
) -> Report:
    """Compare the profile of a name, or in a file, with a machine.

    partition: which kind of node it is; found out if None. queue: the partition of the job that this runs in.
    login: it is a login node: what the profile says of compute nodes is left out.
    InputError: the profile is wrong. UnknownNameError: there is no such profile or partition.
    """
    site = catalog.site(name)
    document = catalog.site_document(name)
    seen = seen_for(machine, site)
    chosen = ("", "") if login else which_partition(site, seen, partition, queue)
    facts = _of_nodes(facts_of(document), chosen[0])
    return examine(site.name, document.name, facts, seen, look(machine, facts, login), *chosen)


def _of_nodes(facts: list[Fact], partition: str) -> list[Fact]:
    """Without the fabrics that these nodes do not have: those of other partitions, and the site's beside their own."""
    own = f"partitions.{partition}.fabric."
    has_own = any(fact.path.startswith(own) for fact in facts)
    other = re.compile(r"partitions\..+\.fabric\.")
    return [
        fact
        for fact in facts
        if fact.path.startswith(own) or not (other.match(fact.path) or (has_own and fact.path.startswith("fabric.")))
    ]


# A profile held against files that describe the system, instead of against the machine.

_ENGINES = "containers.engines."


def report_on_files(catalog: Catalog, name: str, seen: Seen, partition: str | None = None) -> Report:
    """Compare the profile of a name, or in a file, with what files say of the system.

    seen: of :func:`hpcgen.machine.detect.detection.combine`.
    partition: which kind of node is compared; the profile's default if None.
    InputError: the profile is wrong. UnknownNameError: there is no such profile or partition.
    """
    site, document = catalog.site(name), catalog.site_document(name)
    chosen = site.known_partition(partition) if partition is not None else site.default_partition
    why = "asked for" if partition is not None else "the profile's default"
    facts = [fact for fact in facts_of(document) if _spoken_of(fact, seen)]
    return examine(site.name, document.name, facts, _as_node(seen, _kind(site, chosen, seen)), (), chosen, why)


def _kind(site: Site, partition: str, seen: Seen) -> str | None:
    """What the files call a partition of the profile: by its name, a queue in common, or as the only one."""
    kinds = kinds_of(seen)
    if partition in kinds:
        return partition
    own = {queue.name for queue in site.partitions[partition].queues} | {partition}
    shared = [
        kind for kind in kinds if own & {each["name"] for each in seen.value(f"{PARTITIONS}.{kind}.queues") or ()}
    ]
    if len(shared) == 1:
        return shared[0]
    return kinds[0] if len(kinds) == len(site.partitions) == 1 else None


def _as_node(seen: Seen, kind: str | None) -> Seen:
    """The facts of one kind of node as those of the node that was looked at, beside the system's own."""
    above = f"{PARTITIONS}.{kind}."
    found = Seen()
    for path, fact in seen.facts.items():
        own = path.startswith(above)
        if path.startswith(f"{PARTITIONS}.") and not own:
            continue
        path = f"{NODE}.{path.removeprefix(above)}" if own else path
        # ReFrame names the queue that it uses itself, Slurm all that there are, with their sizes.
        if path != f"{NODE}.queues" or all("max_nodes" in each for each in fact.value):
            found.facts[path] = SeenFact(path, fact.value, fact.how)
    if not any(path.startswith(f"{NODE}.gpu.") for path in found.facts):
        found.unseen[f"{NODE}.gpu"] = "the files name no GPUs of these nodes"
    for path, reason in seen.unseen.items():
        if not path.startswith(f"{PARTITIONS}."):
            found.unseen[path] = reason
    if kind is None:
        found.unseen[NODE] = "the files have no kind of node of that name or with these queues"
    return found


def _spoken_of(fact: Fact, seen: Seen) -> bool:
    """Of engines the files name some, and say nothing of others."""
    if not fact.path.startswith(_ENGINES):
        return True
    engine = fact.path.split(".")[2]
    return any(path == f"{_ENGINES}{engine}" or path.startswith(f"{_ENGINES}{engine}.") for path in seen.facts)
