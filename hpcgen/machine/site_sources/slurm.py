"""``slurm.conf`` → kinds of nodes, their queues, and what the batch system asks of jobs. Source: slurm.conf(5)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Problems, did_you_mean
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import SourceSettings, kind_name, whole
from hpcgen.machine.site_sources.slurm_conf import (
    MOST_NAMES,
    Conf,
    HostListError,
    HostLists,
    SlurmLine,
    TooManyNamesError,
    read_conf,
)
from hpcgen.machine.site_sources.slurm_node import (
    MIB_PER_GB,
    NODE_KEYS,
    NodeKind,
    features_of,
    note_cores,
    note_gpus,
    note_memory,
)
from hpcgen.readers.folder import ProjectFolder

_MEMORY_UNITS = ("cpu", "gpu", "node")
MOST_KINDS, MOST_PARTITIONS = 1000, 5000
_MOST_HINTS = 20
"""Unknown nodes for which one of a similar name is looked for."""
_FORCED = {"associations", "limits", "qos", "safe", "wckeys", "all", "1", "2"}


class SlurmPartition(msgspec.Struct, frozen=True):
    """A partition of Slurm with all that its line and the defaults say, and how many nodes of each kind it has."""

    name: str
    said: dict[str, str]
    line: SlurmLine
    nodes: dict[int, int]


def read_slurm(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a ``slurm.conf``.

    ``asked``: is not used: one file describes one cluster. InputError: lines that are none, lists of nodes that are
    none, or no node at all.
    """
    conf, seen, problems = read_conf(folder, file), Seen(), Problems()
    lists = HostLists()
    try:
        kinds = _kinds(conf, lists, problems)
        parts = _partitions(conf, kinds, lists, problems)
    except TooManyNamesError:
        raise InputError(
            f"its lists of nodes have more than {MOST_NAMES} names together",
            folder.shown(file),
            remedy="check its ranges, or name a file with the NodeName and PartitionName lines of one cluster",
        ) from None
    problems.raise_as(InputError)
    types = _types_beside(folder, file, lists, seen)
    kinds = [_typed(kind, types) for kind in kinds]
    if not kinds:
        expected = "NodeName=… lines, in it or in a file of its folder that it includes"
        raise InputError("no nodes are described", folder.shown(file), expected, "name the controller's slurm.conf")
    seen.notes += conf.left_out
    seen.add("scheduler.kind", "slurm", folder.shown(file))
    names, cluster = _names(kinds, parts), conf.whole
    for number, name in enumerate(names):
        _kind(kinds, number, name, [part for part in parts if number in part.nodes], cluster, seen)
    _whole_cluster(conf, names, parts, seen)
    return seen


def _of(conf: Conf, key: str) -> list[SlurmLine]:
    """Lines of a kind, each with what the line DEFAULT before it says."""
    found, defaults = [], dict[str, str]()
    for line in conf.lines:
        if line.key != key:
            continue
        if line.said[key].upper() == "DEFAULT":
            defaults |= {name: value for name, value in line.said.items() if name != key}
        else:
            found.append(msgspec.structs.replace(line, said={**defaults, **line.said}))
    return found


def _hosts(text: str, line: SlurmLine, lists: HostLists, problems: Problems) -> list[str]:
    try:
        return lists.names(text)
    except HostListError as failure:
        expected = "names of nodes, with ranges as in c[001-100,200]"
        problems.add(f"{text[:80]!r}: {failure}", line.where, expected, "correct the list")
        return []


def _kinds(conf: Conf, lists: HostLists, problems: Problems) -> list[NodeKind]:
    """Kinds of nodes, those of most nodes first; what will come in FUTURE does not count."""
    found: dict[tuple[tuple[str, str], ...], tuple[SlurmLine, dict[str, None], set[str]]] = {}
    for line in _of(conf, "nodename"):
        if line.said.get("state", "").upper() == "FUTURE":
            continue
        shape = tuple(sorted((key, value.lower()) for key, value in line.said.items() if key in NODE_KEYS))
        names = _hosts(line.said["nodename"], line, lists, problems)
        of_kind = found.setdefault(shape, (line, {}, features_of(line)))
        of_kind[1].update(dict.fromkeys(names))
        of_kind[2].intersection_update(features_of(line))
    if len(found) > MOST_KINDS:
        line = list(found.values())[MOST_KINDS][0]
        remedy = "describe nodes that are alike in the same words"
        problems.add(f"more than {MOST_KINDS} kinds of nodes", line.where, remedy=remedy)
        problems.raise_as(InputError)
    kinds = [
        NodeKind(shape, line, tuple(names), frozenset(features)) for shape, (line, names, features) in found.items()
    ]
    return sorted(kinds, key=lambda kind: -len(kind.names))


def _types_beside(folder: ProjectFolder, file: str, lists: HostLists, seen: Seen) -> list[tuple[set[str], str]]:
    """Types of GPUs by the names of nodes, none for all nodes, of the ``gres.conf`` in the same folder."""
    beside = folder.beside(file, "gres.conf")
    if not folder.holds(beside):
        return []
    try:
        lines = read_conf(folder, beside).lines
        return [
            (set(lists.names(line.said.get("nodename", ""))), line.said["type"])
            for line in lines
            if line.said.get("name", "").lower() == "gpu" and "type" in line.said
        ]
    except (InputError, HostListError) as failure:
        seen.notes.append(f"{folder.shown(beside)} was not read: {str(failure).splitlines()[0]}")
        return []


def _typed(kind: NodeKind, types: list[tuple[set[str], str]]) -> NodeKind:
    """The kind with its GPUs' types, where its own line counts GPUs alone and all of a type are alike."""
    found = {each for names, each in types if not names or names & set(kind.names)}
    match = re.fullmatch(r"gpu(:\d+)?", kind.get("gres"))
    if match is None or len(found) != 1:
        return kind
    gres = f"gpu:{found.pop().lower()}{match[1] or ':1'}"
    return msgspec.structs.replace(kind, shape=tuple(sorted((dict(kind.shape) | {"gres": gres}).items())))


def _partitions(conf: Conf, kinds: list[NodeKind], lists: HostLists, problems: Problems) -> list[SlurmPartition]:
    kind_of = {name: number for number, kind in reversed(list(enumerate(kinds))) for name in kind.names}
    whole_cluster = dict(Counter(kind_of.values()))
    lines = _of(conf, "partitionname")
    if len(lines) > MOST_PARTITIONS:
        where, remedy = lines[MOST_PARTITIONS].where, "check that it is the right file"
        problems.add(f"more than {MOST_PARTITIONS} partitions", where, remedy=remedy)
        problems.raise_as(InputError)
    sets = _node_sets(conf, lists, problems)
    found = []
    for line in lines:
        text = line.said.get("nodes", "")
        there = whole_cluster
        if text.upper() != "ALL":
            nodes: dict[str, None] = {}
            for name in _hosts(text, line, lists, problems):
                lists.take(len(sets.get(name, ())))
                nodes.update(dict.fromkeys(sets.get(name, [name])))
            if unknown := sorted(nodes.keys() - kind_of.keys()):
                known = sorted(kind_of)[:5000] if len(problems) < _MOST_HINTS else []
                problems.add(
                    f"partition {line.said['partitionname']} has {len(unknown)} nodes that no NodeName describes, "
                    f"such as {unknown[0]}",
                    line.where,
                    "nodes of NodeName lines",
                    did_you_mean(unknown[0], known) if known else "name the file that has them",
                )
            there = dict(Counter(kind_of[name] for name in nodes if name in kind_of))
        found.append(SlurmPartition(line.said["partitionname"], line.said, line, there))
    return found


def _node_sets(conf: Conf, lists: HostLists, problems: Problems) -> dict[str, list[str]]:
    lines = _of(conf, "nodeset")
    wanted = {line.said["feature"] for line in lines if "feature" in line.said}
    features: dict[str, list[str]] = {}
    for line in _of(conf, "nodename") if wanted else ():
        for feature in sorted(features_of(line) & wanted):
            names = _hosts(line.said["nodename"], line, lists, Problems())
            lists.take(len(names))
            features.setdefault(feature, []).extend(names)
    found: dict[str, list[str]] = {}
    for line in lines:
        named = _hosts(line.said.get("nodes", ""), line, lists, problems)
        of_feature = features.get(line.said.get("feature", "-"), [])
        lists.take(len(named) + len(of_feature))
        found[line.said["nodeset"]] = [*named, *of_feature]
    return found


def _names(kinds: list[NodeKind], parts: list[SlurmPartition]) -> list[str]:
    """What a profile calls each kind: the largest partition that has no other nodes, else how the nodes are called."""
    names: dict[str, None] = {}
    for number, kind in enumerate(kinds):
        own = [part for part in parts if part.nodes.keys() == {number}]
        own.sort(key=lambda part: (-sum(part.nodes.values()), part.said.get("default", "").upper() != "YES"))
        prefix = re.sub(r"[\d_-]+$", "", kind.names[0]) if kind.names else ""
        name = kind_name(own[0].name if own else prefix or "nodes")
        while name in names:
            name = f"{name}-{len(names) + 1}"
        names[name] = None
    return list(names)


def _kind(
    kinds: list[NodeKind], number: int, name: str, parts: list[SlurmPartition], cluster: dict[str, str], seen: Seen
) -> None:
    kind = kinds[number]
    node, how = f"partitions.{name}", kind.line.how
    seen.add(f"{node}.nodes", len(kind.names), how)
    note_cores(kind, node, seen)
    seen.add_unseen(
        f"{node}.cpu.target", "Slurm does not know the kind of CPU; archspec's name: `archspec cpu` on a node"
    )
    note_memory(kind, node, seen)
    note_gpus(kind, node, seen)
    taking = [part for part in parts if _takes_jobs(part)]
    queues = [_queue(part, part.nodes[number], cluster) for part in taking]
    seen.add(f"{node}.queues", queues, ", ".join(part.line.how for part in taking))
    for part in taking:
        if part.nodes.keys() != {number}:
            seen.notes.append(f"{part.line.how}: partition {part.name} also has nodes of another kind than {name}")
        if (most := whole(part.said.get("maxcpuspernode"))) and most < (kind.cpus or most + 1):
            said = f"jobs of partition {part.name} get {most} of the {kind.cpus} CPUs of a node (MaxCPUsPerNode)"
            seen.notes.append(f"{part.line.how}: {said}")
    seen.add_unseen(f"{node}.queues", "no partition that takes jobs has these nodes")
    others = {other for part in taking for other in part.nodes} - {number}
    if others and (own := sorted(kind.features - frozenset().union(*(kinds[other].features for other in others)))):
        seen.add(f"{node}.directives", [f"--constraint={own[0]}"], f"{how}, Features={own[0]}")
    elif others:
        seen.notes += [_first_given(part, kinds, number, name) for part in taking if len(part.nodes) > 1]


def _first_given(part: SlurmPartition, kinds: list[NodeKind], number: int, name: str) -> str:
    """Which nodes jobs of a partition get where no feature chooses: Slurm gives those of the lowest weight first."""
    weights = {each: whole(kinds[each].line.said.get("weight")) or 1 for each in part.nodes}
    here, lowest = weights[number], min(other for each, other in weights.items() if each != number)
    said = f"{part.line.how}: no feature chooses the nodes of {name} in partition {part.name}"
    if here == lowest:
        return f"{said}, and Weight={here} none of its kinds before the others: a job may get any"
    order = "first, and others if these are taken" if here < lowest else f"last, after those of Weight={lowest}"
    return f"{said}: by Weight={here} jobs get them {order}"


def _takes_jobs(part: SlurmPartition) -> bool:
    return part.said.get("state", "UP").upper() == "UP" and part.said.get("rootonly", "NO").upper() != "YES"


def _queue(part: SlurmPartition, there: int, cluster: dict[str, str]) -> dict[str, Any]:
    queue: dict[str, Any] = {"name": part.name}
    if (low := whole(part.said.get("minnodes"))) and low > 1:
        queue["min_nodes"] = low
    queue["max_nodes"] = min(whole(part.said.get("maxnodes")) or there, there)
    if limit := limit_of(part.said.get("maxtime", "")):
        queue["max_time"] = limit
    for field, word in (("default_memory", "def"), ("max_memory", "max")):
        own = any(f"{word}memper{of}" in part.said for of in _MEMORY_UNITS)
        if memory := _memory(part.said if own else cluster, word):
            queue[field] = memory
    return queue


def _memory(said: dict[str, str], word: str) -> dict[str, float]:
    """GB for each of what Slurm counts memory by, which it writes in MiB."""
    found = {of: whole(said.get(f"{word}memper{of}")) for of in _MEMORY_UNITS}
    return {of: max(round(size / MIB_PER_GB, 2), 0.01) for of, size in found.items() if size}


def limit_of(text: str) -> str | None:
    """A time of slurm.conf (minutes, ``minutes:seconds``, ``days-hours:minutes:seconds`` …) as hours:minutes:seconds.

    None for none, or no limit.
    """
    match = re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?", text.strip())
    if match is None:
        return None
    first, second, third = int(match[2]), int(match[3] or 0), int(match[4] or 0)
    if match[1]:
        seconds = ((int(match[1]) * 24 + first) * 60 + second) * 60 + third
    elif match[4]:
        seconds = (first * 60 + second) * 60 + third
    else:
        seconds = first * 60 + second
    if not seconds or seconds >= 10_000 * 3600:
        return None
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _whole_cluster(conf: Conf, names: list[str], parts: list[SlurmPartition], seen: Seen) -> None:
    said = {key: (value, line.how) for line in conf.lines for key, value in line.said.items() if line.key == key}
    if "clustername" in said:
        seen.notes.append("the cluster is called {} ({})".format(*said["clustername"]))
    for part in parts:
        if part.said.get("default", "").upper() == "YES":
            most = max(range(len(names)), key=lambda number: part.nodes.get(number, 0))
            seen.add("default_partition", names[most], part.line.how)
            text = part.said.get("defaulttime", "")
            seen.add("scheduler.default_time", limit_of(text), part.line.how)
    size = whole(said.get("maxarraysize", ("", ""))[0])
    seen.add("scheduler.max_array_size", size, said.get("maxarraysize", ("", ""))[1])
    enforced, how = said.get("accountingstorageenforce", ("", ""))
    if _FORCED & {word.strip().lower() for word in enforced.split(",")}:
        seen.add("scheduler.account", "required", f"{how}, AccountingStorageEnforce={enforced}")
        seen.notes.append(
            f"{how}: jobs need an account; where users have a default one, write scheduler.account: optional"
        )
    pmi, how = said.get("mpidefault", ("", ""))
    offered = next((name for name in ("pmix", "pmi2") if pmi.lower().startswith(name)), None)
    seen.add("mpi.pmi", [offered] if offered else None, f"{how}, MpiDefault")
    seen.add("mpi.launcher", "srun" if offered else None, f"{how}, MpiDefault: srun starts ranks by {pmi}")
    select, how = said.get("selecttype", ("", ""))
    if select.endswith("linear"):
        seen.notes.append(f"{how}: SelectType={select}: jobs get whole nodes")
    if not any("realmemory" in line.said for line in conf.lines):
        # Its default is 1 MiB, beside which Slurm refuses every job that asks for memory.
        seen.add("scheduler.memory_request", "none", f"{conf.lines[0].where.file}: no node has RealMemory")
