"""A profile held against files that describe the system, instead of against the machine."""

from __future__ import annotations

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.provenance import Fact, facts_of
from hpcgen.core.model.site import Site
from hpcgen.machine.detect.combine import PARTITIONS, kinds_of
from hpcgen.machine.detect.seen import NODE, Seen, SeenFact
from hpcgen.machine.doctor.examine import examine
from hpcgen.machine.doctor.report import Report

_ENGINES = "containers.engines."


def report_on_files(catalog: Catalog, name: str, seen: Seen, partition: str | None = None) -> Report:
    """Compare the profile of a name, or in a file, with what files say of the system.

    Parameters
    ----------
    seen: of :func:`hpcgen.machine.detect.combine.combine`.
    partition: which kind of node is compared; the profile's default if None.

    Raises
    ------
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
