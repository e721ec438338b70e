"""``slurm.conf`` → kinds of nodes, their queues, and what the batch system asks of jobs. Source: slurm.conf(5)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import msgspec

from hpcgen.core.errors import InputError, Problems, did_you_mean
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.asked import SourceSettings
from hpcgen.machine.site_sources.gpu_names import gpu_of
from hpcgen.machine.site_sources.host_lists import HostListError, hosts
from hpcgen.machine.site_sources.said import kind_name, whole
from hpcgen.machine.site_sources.slurm_conf import Conf, SlurmLine, read_conf
from hpcgen.readers.folder import ProjectFolder

_NODE_KEYS = {"sockets", "corespersocket", "threadspercore", "cpus", "procs", "realmemory", "gres", "boards"}
_MIB_PER_GB = 1024
_FORCED = {"associations", "limits", "qos", "safe", "wckeys", "all", "1", "2"}


class NodeKind(msgspec.Struct, frozen=True):
    """Nodes that are alike: what they have, and who they are."""

    shape: tuple[tuple[str, str], ...]
    line: SlurmLine
    names: tuple[str, ...]

    def get(self, key: str) -> str:
        """What the nodes' lines say, "" where they do not."""
        return dict(self.shape).get(key, "")


class SlurmPartition(msgspec.Struct, frozen=True):
    """A partition of Slurm with all that its line and the defaults say."""

    name: str
    said: dict[str, str]
    line: SlurmLine
    nodes: frozenset[str]


def read_slurm(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a ``slurm.conf``.

    Parameters
    ----------
    asked: is not used: one file describes one cluster.

    Raises
    ------
    InputError: lines that are none, lists of nodes that are none, or no node at all.
    """
    conf, seen, problems = read_conf(folder, file), Seen(), Problems()
    kinds = _kinds(conf, problems)
    parts = _partitions(conf, kinds, problems)
    problems.raise_as(InputError)
    if not kinds:
        expected = "NodeName=… lines, in it or in a file of its folder that it includes"
        raise InputError("no nodes are described", folder.shown(file), expected, "name the controller's slurm.conf")
    seen.notes += conf.left_out
    seen.add("scheduler.kind", "slurm", folder.shown(file))
    names = _names(kinds, parts)
    for kind, name in zip(kinds, names, strict=True):
        _kind(kind, name, parts, seen)
    _whole_cluster(conf, kinds, names, parts, seen)
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


def _hosts(text: str, line: SlurmLine, problems: Problems) -> list[str]:
    try:
        return hosts(text)
    except HostListError as failure:
        expected = "names of nodes, with ranges as in c[001-100,200]"
        problems.add(f"{text[:80]!r}: {failure}", line.where, expected, "correct the list")
        return []


def _kinds(conf: Conf, problems: Problems) -> list[NodeKind]:
    """Kinds of nodes, those of most nodes first; what will come in FUTURE does not count."""
    found: dict[tuple[tuple[str, str], ...], tuple[SlurmLine, dict[str, None]]] = {}
    for line in _of(conf, "nodename"):
        if line.said.get("state", "").upper() == "FUTURE":
            continue
        shape = tuple(sorted((key, value.lower()) for key, value in line.said.items() if key in _NODE_KEYS))
        names = _hosts(line.said["nodename"], line, problems)
        found.setdefault(shape, (line, {}))[1].update(dict.fromkeys(names))
    kinds = [NodeKind(shape, line, tuple(names)) for shape, (line, names) in found.items()]
    return sorted(kinds, key=lambda kind: -len(kind.names))


def _partitions(conf: Conf, kinds: list[NodeKind], problems: Problems) -> list[SlurmPartition]:
    every = {name for kind in kinds for name in kind.names}
    sets = _node_sets(conf, problems)
    found = []
    for line in _of(conf, "partitionname"):
        text = line.said.get("nodes", "")
        if text.upper() == "ALL":
            nodes = every
        else:
            listed = _hosts(text, line, problems)
            nodes = {node for name in listed for node in sets.get(name, [name])}
            if unknown := sorted(nodes - every):
                problems.add(
                    f"partition {line.said['partitionname']} has {len(unknown)} nodes that no NodeName describes, "
                    f"such as {unknown[0]}",
                    line.where,
                    "nodes of NodeName lines",
                    did_you_mean(unknown[0], sorted(every)[:5000]) if every else "name the file that has them",
                )
        found.append(SlurmPartition(line.said["partitionname"], line.said, line, frozenset(nodes & every)))
    return found


def _node_sets(conf: Conf, problems: Problems) -> dict[str, list[str]]:
    features: dict[str, list[str]] = {}
    for line in _of(conf, "nodename"):
        for feature in (line.said.get("features") or line.said.get("feature", "")).split(","):
            features.setdefault(feature.strip(), []).extend(_hosts(line.said["nodename"], line, Problems()))
    found: dict[str, list[str]] = {}
    for line in _of(conf, "nodeset"):
        named = _hosts(line.said.get("nodes", ""), line, problems)
        found[line.said["nodeset"]] = [*named, *features.get(line.said.get("feature", "-"), [])]
    return found


def _names(kinds: list[NodeKind], parts: list[SlurmPartition]) -> list[str]:
    """What a profile calls each kind: the largest partition that has no other nodes, else how the nodes are called."""
    names: list[str] = []
    for kind in kinds:
        own = [part for part in parts if part.nodes and part.nodes <= set(kind.names)]
        own.sort(key=lambda part: (-len(part.nodes), part.said.get("default", "").upper() != "YES"))
        prefix = re.sub(r"[\d_-]+$", "", kind.names[0]) if kind.names else ""
        name = kind_name(own[0].name if own else prefix or "nodes")
        while name in names:
            name = f"{name}-{len(names) + 1}"
        names.append(name)
    return names


def _kind(kind: NodeKind, name: str, parts: list[SlurmPartition], seen: Seen) -> None:
    node, how = f"partitions.{name}", kind.line.how
    seen.add(f"{node}.nodes", len(kind.names), how)
    sockets = (whole(kind.get("sockets")) or 1) * (whole(kind.get("boards")) or 1)
    per_socket, threads = whole(kind.get("corespersocket")), whole(kind.get("threadspercore")) or 1
    cpus = whole(kind.get("cpus") or kind.get("procs"))
    if per_socket:
        seen.add(f"{node}.cpu.sockets", sockets, how)
        seen.add(f"{node}.cpu.cores", sockets * per_socket, how)
        seen.add(f"{node}.cpu.threads_per_core", threads, how)
        if cpus not in (None, sockets * per_socket, sockets * per_socket * threads):
            shape = f"{sockets} sockets of {per_socket} cores with {threads} threads"
            seen.notes.append(f"{how}: CPUs={cpus} does not agree with {shape}, which were taken")
    elif cpus:
        seen.add(f"{node}.cpu.cores", max(1, cpus // threads), f"{how}, CPUs={cpus}")
    else:
        seen.add_unseen(f"{node}.cpu.cores", f"{how} says neither CoresPerSocket nor CPUs")
    seen.add_unseen(
        f"{node}.cpu.target", "Slurm does not know the kind of CPU; archspec's name: `archspec cpu` on a node"
    )
    memory = whole(kind.get("realmemory"))
    seen.add(f"{node}.memory.total_gb", round(memory / _MIB_PER_GB, 1) if memory else None, f"{how}, RealMemory")
    seen.add_unseen(f"{node}.memory.total_gb", f"{how} says no RealMemory")
    _gpus(kind, node, seen)
    queues = [_queue(part, kind) for part in parts if _takes_jobs(part) and part.nodes & set(kind.names)]
    places = ", ".join(part.line.how for part in parts if _takes_jobs(part) and part.nodes & set(kind.names))
    seen.add(f"{node}.queues", queues, places)
    for part in parts:
        if _takes_jobs(part) and part.nodes & set(kind.names) and not part.nodes <= set(kind.names):
            seen.notes.append(f"{part.line.how}: partition {part.name} also has nodes of another kind than {name}")
    seen.add_unseen(f"{node}.queues", "no partition that takes jobs has these nodes")


def _gpus(kind: NodeKind, node: str, seen: Seen) -> None:
    counts: Counter[str] = Counter()
    for word in kind.get("gres").split(","):
        parts = re.sub(r"\(.*", "", word).split(":")
        if parts[0] == "gpu":
            typed = parts[1] if len(parts) > 1 and not whole(parts[1]) else ""
            counts[typed] += whole(parts[-1]) or 1
    if not counts:
        return
    how = f"{kind.line.how}, Gres"
    typed, count = counts.most_common(1)[0]
    if len(counts) > 1:
        seen.notes.append(f"{how}: GPUs of several types ({', '.join(counts)}); a profile has one kind per node")
    seen.add(f"{node}.gpu.count", count, how)
    for field, value in gpu_of(typed).items():
        by_table = f"{how}, {typed} in hpcgen's table of GPUs"
        seen.add(f"{node}.gpu.{field}", value, how if field == "model" else by_table)
    for field in ("vendor", "model"):
        seen.add_unseen(f"{node}.gpu.{field}", f"{how} {f'says {typed}' if typed else 'names no type of GPU'}")


def _takes_jobs(part: SlurmPartition) -> bool:
    return part.said.get("state", "UP").upper() == "UP" and part.said.get("rootonly", "NO").upper() != "YES"


def _queue(part: SlurmPartition, kind: NodeKind) -> dict[str, Any]:
    queue: dict[str, Any] = {"name": part.name}
    if (low := whole(part.said.get("minnodes"))) and low > 1:
        queue["min_nodes"] = low
    there = len(part.nodes & set(kind.names))
    queue["max_nodes"] = min(whole(part.said.get("maxnodes")) or there, there)
    if limit := limit_of(part.said.get("maxtime", "")):
        queue["max_time"] = limit
    return queue


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


def _whole_cluster(
    conf: Conf, kinds: list[NodeKind], names: list[str], parts: list[SlurmPartition], seen: Seen
) -> None:
    said = {key: (value, line.how) for line in conf.lines for key, value in line.said.items() if line.key == key}
    if "clustername" in said:
        seen.notes.append("the cluster is called {} ({})".format(*said["clustername"]))
    for part in parts:
        if part.said.get("default", "").upper() == "YES":
            inside = [len(part.nodes & set(kind.names)) for kind in kinds]
            seen.add("default_partition", names[inside.index(max(inside))], part.line.how)
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
