"""All probes, one after the other: a machine → what was seen of it; facts from several places → one record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes import batch, cpu, engines, fabric, gpus, images, mpi, network, squashfs, system
from hpcgen.machine.detect.seen import NODE, Contradiction, Seen, SeenFact

_PROBES = (
    system.probe,
    cpu.probe,
    gpus.probe,
    batch.probe,
    fabric.probe,
    system.see_modules,
    mpi.probe,
    engines.probe,
    squashfs.probe,
    system.see_file_systems,
    network.probe,
    images.probe,
)
"""In this order: a node's CPUs and GPUs tell which partition it belongs to, the batch system how ranks start."""


def detect(machine: Machine) -> Seen:
    """Everything that can be seen of a machine, with what stays open and why.

    A machine where nothing can be read gives no facts, and no error.
    """
    seen = Seen()
    for probe in _PROBES:
        probe(machine, seen)
    seen.notes += [f"{path} {why}" for path, why in machine.refused.items()]
    for path in seen.facts:
        seen.unseen.pop(path, None)
    return seen


PARTITIONS = "partitions"
_UNITED = ("directives", "modules", "pmi", "image_formats")
"""Lists that several places add to, by the last word of their path."""
_SAME_MEMORY = 0.05


def combine(found: Sequence[Seen]) -> Seen:
    """One record of several, where the earlier one counts.

    Kinds of nodes are the same if they are called the same, have a queue in common, or are the only ones. What speaks
    of "the node" is meant of the only kind, or of the one that its cores, memory and GPUs fit; else it is one more.
    """
    whole = Seen()
    for seen in found:
        alias = _same_kinds(whole, seen)
        general = NODE not in alias and f"{NODE}.cpu.cores" not in seen.facts and kinds_of(whole)
        for fact in seen.facts.values():
            if general and fact.path.startswith(f"{NODE}."):
                _add_to_all(whole, fact)
                continue
            path = _renamed(fact.path, alias)
            _add(whole, SeenFact(path, fact.value, fact.how))
        for path, why in seen.unseen.items():
            if general and path.startswith(f"{NODE}."):
                continue
            whole.unseen.setdefault(_renamed(path, alias), why)
        whole.notes += seen.notes
        whole.contradictions += seen.contradictions
    for path in list(whole.unseen):
        if path in whole.facts or (path == "mpi" and "mpi.version" in whole.facts):
            del whole.unseen[path]
    return whole


def kinds_of(seen: Seen) -> list[str]:
    """The names of the kinds of nodes that a record speaks of; ``node`` is not one of them."""
    parts = (path.split(".") for path in [*seen.facts, *seen.unseen])
    return list(dict.fromkeys(steps[1] for steps in parts if steps[0] == PARTITIONS and len(steps) > 2))


def _renamed(path: str, alias: dict[str, str]) -> str:
    steps = path.split(".")
    if steps[0] == NODE and NODE in alias:
        return ".".join([PARTITIONS, alias[NODE], *steps[1:]])
    if steps[0] == PARTITIONS and len(steps) > 2 and steps[1] in alias:
        return ".".join([PARTITIONS, alias[steps[1]], *steps[2:]])
    return path


def _same_kinds(whole: Seen, seen: Seen) -> dict[str, str]:
    """What the kinds of nodes of a record are called in the whole."""
    known, new = kinds_of(whole), kinds_of(seen)
    alias: dict[str, str] = {}
    # The node of an earlier record, such as detection's, becomes a kind that this one has a name for.
    if any(path.startswith(f"{NODE}.") for path in whole.facts) and new:
        chosen = _fitting(seen, new, whole)
        if chosen is not None:
            _name_node(whole, chosen)
            known = kinds_of(whole)
    for name in new:
        own = _queues(seen, name)
        shared = [each for each in known if own & _queues(whole, each)]
        if name in known:
            continue
        if len(shared) == 1:
            alias[name] = shared[0]
        elif len(known) == len(new) == 1:
            alias[name] = known[0]
    if any(path.startswith(f"{NODE}.") for path in [*seen.facts, *seen.unseen]) and known:
        chosen = _fitting(whole, known, seen)
        if chosen is not None:
            alias[NODE] = chosen
    if (default := seen.facts.get("default_partition")) is not None and default.value in alias:
        seen.facts["default_partition"] = SeenFact(default.path, alias[default.value], default.how)
    return alias


def _fitting(whole: Seen, names: Sequence[str], node: Seen) -> str | None:
    """The kind of nodes that a node is of; None where that is not clear."""
    fits = [name for name in names if _fits(whole, name, node)]
    return fits[0] if len(fits) == 1 else None


def _fits(whole: Seen, name: str, node: Seen) -> bool:
    if len(kinds_of(whole)) == 1:
        return True
    here = f"{PARTITIONS}.{name}"
    checks = [
        (whole.value(f"{here}.cpu.cores"), node.value(f"{NODE}.cpu.cores")),
        (whole.value(f"{here}.cpu.target"), node.value(f"{NODE}.cpu.target")),
        (whole.value(f"{here}.gpu.vendor"), node.value(f"{NODE}.gpu.vendor")),
        (whole.value(f"{here}.gpu.capability"), node.value(f"{NODE}.gpu.capability")),
        (whole.value(f"{here}.memory.total_gb"), node.value(f"{NODE}.memory.total_gb")),
    ]
    compared = [_agree("memory", one, other) for one, other in checks if one is not None and other is not None]
    gpus = [
        any(path.startswith(f"{above}.gpu.") for path in facts)
        for above, facts in ((here, whole.facts), (NODE, node.facts))
    ]
    if f"{NODE}.cpu.cores" in node.facts and gpus[0] != gpus[1]:
        return False
    return bool(compared) and all(compared)


def _name_node(whole: Seen, name: str) -> None:
    alias = {NODE: name}
    for path in [path for path in whole.facts if path.startswith(f"{NODE}.")]:
        fact = whole.facts.pop(path)
        new = _renamed(path, alias)
        whole.facts.setdefault(new, SeenFact(new, fact.value, fact.how))
    for path in [path for path in whole.unseen if path.split(".")[0] == NODE]:
        whole.unseen.setdefault(_renamed(path, alias), whole.unseen.pop(path))


def _queues(seen: Seen, name: str) -> set[str]:
    queues = seen.value(f"{PARTITIONS}.{name}.queues")
    return {each["name"] for each in queues} if isinstance(queues, list) else set()


def _add(whole: Seen, fact: SeenFact) -> None:
    """One more fact; where there is one at its path, the earlier counts."""
    known = whole.facts.get(fact.path)
    last = fact.path.rpartition(".")[2]
    if known is None:
        whole.facts[fact.path] = fact
    elif last == "queues":
        _queue_lists(whole, known, fact)
    elif last in _UNITED and isinstance(known.value, list) and isinstance(fact.value, list):
        more = [each for each in fact.value if each not in known.value]
        if more:
            whole.facts[fact.path] = SeenFact(fact.path, [*known.value, *more], f"{known.how}; {fact.how}")
    elif not _agree(fact.path, known.value, fact.value):
        whole.contradictions.append(Contradiction(known, fact))


def _add_to_all(whole: Seen, fact: SeenFact) -> None:
    """What is said of no kind of node in particular, such as what Spack builds for: where nothing else is known."""
    below = fact.path.partition(".")[2]
    for name in kinds_of(whole):
        path = f"{PARTITIONS}.{name}.{below}"
        vendor = whole.value(f"{PARTITIONS}.{name}.gpu.vendor")
        if path not in whole.facts and (vendor is not None or not below.startswith("gpu.")):
            whole.facts[path] = SeenFact(path, fact.value, fact.how)


def _queue_lists(whole: Seen, known: SeenFact, fact: SeenFact) -> None:
    """Queues of both; of one that both name, all that either says of it."""
    first = {each["name"]: dict(each) for each in known.value}
    for each in fact.value:
        have = first.setdefault(each["name"], {"name": each["name"]})
        for field, value in each.items():
            if have.setdefault(field, value) != value:
                path = f"{fact.path} ({each['name']}, {field})"
                pair = SeenFact(path, have[field], known.how), SeenFact(path, value, fact.how)
                whole.contradictions.append(Contradiction(*pair))
    queues = list(first.values())
    if queues != known.value:
        whole.facts[fact.path] = SeenFact(fact.path, queues, f"{known.how}; {fact.how}")


def _agree(path: str, one: Any, other: Any) -> bool:
    """Whether two values say the same: memory nearly, versions as far as both go, names without regard to case."""
    if one == other or {} in (one, other):
        return True
    if "memory" in path and all(isinstance(each, (int, float)) for each in (one, other)):
        return bool(abs(one - other) <= _SAME_MEMORY * max(one, other))
    if path.endswith("version"):
        parts = [str(each).split(".") for each in (one, other)]
        return all(a == b for a, b in zip(*parts, strict=False))
    if path.endswith("gpu.model"):
        words = sorted((str(one).lower(), str(other).lower()), key=len)
        return words[0] in words[1]
    return str(one).casefold() == str(other).casefold()
