"""PBS and Torque, as they print themselves → kinds of nodes, their queues, and what jobs have to know.

Sources: pbs_queue_attributes(7B), pbs_server_attributes(7B) and pbs_node_attributes(7B) of OpenPBS and of Torque; PBS
Professional Administrator's Guide, "Associating Vnodes with Queues" (``Qlist``); Torque's guide, "Mapping a queue to
a subset of resources" (``neednodes``, ``acl_hosts``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from hpcgen.core.errors import InputError
from hpcgen.core.support.units import some
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.pbs_text import PbsData, PbsObject, read_output
from hpcgen.machine.site_sources.said import SourceSettings, gpu_of, kind_name, whole
from hpcgen.machine.site_sources.slurm import limit_of
from hpcgen.readers.folder import ProjectFolder

_KIB = {"b": 1 / 1024, "kb": 1.0, "mb": 1024.0, "gb": 1024.0**2, "tb": 1024.0**3, "pb": 1024.0**4}
_SAME_MEMORY = 0.05
_COUNTED = ("ncpus", "mem", "ngpus", "mpiprocs", "ompthreads", "vmem", "nodect", "nodes", "walltime", "cput", "place")
_TORQUE = ("node_check_rate", "tcp_timeout", "next_job_number", "node_pack", "mom_job_sync")
_PBS = ("pbs_version", "resv_enable", "default_chunk.ncpus", "pbs_license_min", "max_array_size")
_MOST_FILES, MOST_KINDS, MOST_QUEUES, _MOST_PAIRS = 20, 1000, 5000, 5_000_000


class PbsHost(msgspec.Struct):
    """A machine, which may be several vnodes: the sums of what they have, and what is common to them."""

    name: str
    how: str
    ncpus: int = 0
    kib: float = 0.0
    ngpus: int = 0
    gpu: str = ""
    said: dict[str, str] = {}


class HostKind(msgspec.Struct):
    """Hosts that are alike."""

    hosts: list[PbsHost]

    @property
    def like(self) -> PbsHost:
        """The first of them."""
        return self.hosts[0]


def read_pbs(folder: ProjectFolder, file: str, asked: SourceSettings) -> Seen:
    """The facts of a file with the output of such a command, or of a folder of them.

    ``asked``: is not used: one server describes one system. InputError: lines that are none, or neither a queue nor a
    node.
    """
    data = PbsData()
    files = (
        sorted(path.name for path in folder.top.iterdir() if path.is_file())[:_MOST_FILES] if file == "." else [file]
    )
    for each in files:
        read_output(folder, each, data)
    if not data.queue and not data.node:
        expected = "output of qmgr -c 'print server', pbsnodes -a, qstat -Qf, or a folder with such files"
        raise InputError("neither a queue nor a node is described", folder.shown(file), expected)
    seen = Seen()
    server = next(iter(data.server.values()), PbsObject("", folder.shown(file)))
    _kind_of_system(data, server, seen)
    kinds = _kinds(data, seen)
    queues = _queues(data, seen)
    leads = _leads(kinds, queues)
    names = _names(kinds, queues, leads)
    for kind, name, counts in zip(kinds, names, leads, strict=True):
        there = [(queue, count) for queue, count in zip(queues, counts, strict=True) if count]
        there = [each for each in there if not _for_some(each[0])] or there
        _kind(kind, name, there, server, seen)
    if not kinds:
        _queues_alone(queues, server, seen)
    _whole_system(data, server, kinds, names, seen)
    return seen


def _kind_of_system(data: PbsData, server: PbsObject, seen: Seen) -> None:
    objects = [server, *list(data.node.values())[:100]]
    for each in objects:
        if each.get("ntype") == "cluster" or each.get("np") or any(name in each.said for name in _TORQUE):
            seen.add("scheduler.kind", "torque", f"{each.how}, which is Torque's")
            return
    for each in objects:
        if each.get("ntype") == "PBS" or any(name in each.said for name in _PBS):
            seen.add("scheduler.kind", "pbs", f"{each.how}, which is PBS Pro's or OpenPBS's")
            return
    seen.add_unseen("scheduler.kind", "neither PBS's nor Torque's own attributes are there: pbs or torque")


# nodes


def _kinds(data: PbsData, seen: Seen) -> list[HostKind]:
    """Kinds of hosts, those of most first."""
    hosts: dict[str, PbsHost] = {}
    for node in data.node.values():
        name = node.get("resources_available.host") or re.sub(r"\[\d+\]$", "", node.name)
        _add(hosts.setdefault(name, PbsHost(name, node.how)), node)
    unknown = [host.name for host in hosts.values() if not host.ncpus]
    if unknown:
        seen.notes.append(f"nodes without ncpus, down or never started, which were left out: {some(unknown, 6)}")
    kinds: list[HostKind] = []
    for host in hosts.values():
        if not host.ncpus:
            continue
        known = next((kind for kind in kinds if _alike(kind.like, host)), None)
        if known is None:
            if len(kinds) >= MOST_KINDS:
                raise InputError(
                    f"more than {MOST_KINDS} kinds of nodes", host.how, remedy="check that it is one system"
                )
            kinds.append(HostKind([host]))
        else:
            known.hosts.append(host)
    return sorted(kinds, key=lambda kind: -len(kind.hosts))


def _add(host: PbsHost, node: PbsObject) -> None:
    status = dict(re.findall(r"(?:^|,)([a-z]+)=([^,]*)", node.get("status")))
    host.ncpus += whole(node.get("resources_available.ncpus") or node.get("np")) or 0
    memory = node.get("resources_available.mem") or status.get("physmem", "")
    host.kib += _kib(memory)
    host.ngpus += whole(node.get("resources_available.ngpus") or node.get("gpus")) or 0
    host.said |= {name: each.value for name, each in node.said.items() if name not in host.said}
    names = [
        each.value for name, each in node.said.items() if "gpu" in name and name.startswith("resources_available.")
    ]
    names += re.findall(r"gpu_product_name=([^;,]+)", node.get("gpu_status"))
    host.gpu = host.gpu or next((name for name in names if not whole(name) and gpu_of(name)), "")


def _kib(text: str) -> float:
    match = re.fullmatch(r"(\d{1,18})([kmgtp]?b)", text.strip().lower())
    return int(match[1]) * _KIB[match[2]] if match else 0.0


def _alike(one: PbsHost, other: PbsHost) -> bool:
    same = (one.ncpus, one.ngpus, one.gpu) == (other.ncpus, other.ngpus, other.gpu)
    return same and abs(one.kib - other.kib) <= _SAME_MEMORY * max(one.kib, other.kib)


def _kind(kind: HostKind, name: str, there: list[tuple[PbsObject, int]], server: PbsObject, seen: Seen) -> None:
    """Its facts; ``there``: the queues that lead to it, each with the number of its nodes that it leads to."""
    node, host = f"partitions.{name}", kind.like
    seen.add(f"{node}.nodes", len(kind.hosts), host.how)
    seen.add(f"{node}.cpu.cores", host.ncpus, f"{host.how}, ncpus; fewer if the nodes have several threads per core")
    seen.add_unseen(
        f"{node}.cpu.target", "PBS does not know the kind of CPU; archspec's name: `archspec cpu` on a node"
    )
    seen.add(f"{node}.memory.total_gb", round(host.kib / 1024**2, 1) or None, f"{host.how}, mem")
    seen.add_unseen(f"{node}.memory.total_gb", f"{host.how} says no mem")
    if host.ngpus:
        seen.add(f"{node}.gpu.count", host.ngpus, f"{host.how}, ngpus")
        for field, value in gpu_of(host.gpu).items() if host.gpu else ():
            seen.add(f"{node}.gpu.{field}", value, f"{host.how}, {host.gpu}")
        for field in ("vendor", "model"):
            seen.add_unseen(f"{node}.gpu.{field}", f"{host.how} names no kind of GPU")
    found = [_queue(queue, count, host, server, seen) for queue, count in there]
    seen.add(f"{node}.queues", found, ", ".join(queue.how for queue, _ in there))
    seen.add_unseen(
        f"{node}.queues", "no queue that takes jobs leads to these nodes: qmgr -c 'print server' names queues"
    )


def _leads(kinds: Sequence[HostKind], queues: Sequence[PbsObject]) -> list[list[int]]:
    """To how many nodes of each kind each queue leads; InputError where that would take too long to find out."""
    if len(queues) * sum(len(kind.hosts) for kind in kinds) > _MOST_PAIRS:
        raise InputError("too many queues and nodes", queues[0].how, remedy="give the queues of one system")
    chunks = any("default_chunk.qlist" in queue.said for queue in queues)
    return [[sum(_takes(queue, host, chunks) for host in kind.hosts) for queue in queues] for kind in kinds]


def _names(kinds: Sequence[HostKind], queues: Sequence[PbsObject], leads: Sequence[Sequence[int]]) -> list[str]:
    """What a profile calls each kind: the one queue that leads to it alone, else how the nodes are called."""
    names: dict[str, None] = {}
    totals = [sum(counts) for counts in zip(*leads, strict=True)]
    for kind, counts in zip(kinds, leads, strict=True):
        own = [
            queue.name for queue, count, total in zip(queues, counts, totals, strict=True) if count and count == total
        ]
        prefix = re.sub(r"[\d_-]+$", "", re.split(r"[.\d]", kind.like.name, maxsplit=1)[0])
        name = kind_name(own[0] if len(own) == 1 < len(kinds) else prefix or "nodes")
        while name in names:
            name = f"{name}-{len(names) + 1}"
        names[name] = None
    return list(names)


# queues


def _queues(data: PbsData, seen: Seen) -> list[PbsObject]:
    """Those in which jobs can start; those that are for some people alone come last."""
    fine, some_only = [], []
    if len(data.queue) > MOST_QUEUES:
        where = next(iter(data.queue.values())).how
        raise InputError(f"more than {MOST_QUEUES} queues", where, remedy="check that it is the right file")
    for queue in data.queue.values():
        kind = queue.get("queue_type").lower()
        if kind.startswith("r"):
            continue
        if not (kind.startswith("e") and queue.true("enabled") and queue.true("started")):
            seen.notes.append(f"{queue.how}: the queue {queue.name} is not enabled and started, and was left out")
        elif _for_some(queue):
            some_only.append(queue)
        else:
            fine.append(queue)
    routes = [queue for queue in data.queue.values() if queue.get("queue_type").lower().startswith("r")]
    for queue in (*fine, *some_only):
        if queue.true("from_route_only"):
            by = next(
                (each for each in routes if queue.name in re.split(r"[,\s]+", each.get("route_destinations"))), None
            )
            queue.said["route"] = msgspec.structs.replace(queue.said["from_route_only"], value=by.name if by else "")
    for queue in some_only:
        people = "acl_groups" if queue.true("acl_group_enable") else "acl_users"
        note = f"{queue.at(people)}: the queue {queue.name} takes jobs of its {people} alone"
        seen.notes.append(f"{note}; it is written only where no other leads to the same nodes")
    return [*fine, *some_only]


def _for_some(queue: PbsObject) -> bool:
    return queue.true("acl_user_enable") or queue.true("acl_group_enable")


def _takes(queue: PbsObject, host: PbsHost, chunks: bool) -> bool:
    """Whether jobs of a queue may start on a host; ``chunks``: queues say it by ``default_chunk.Qlist``."""
    if host.said.get("queue"):
        return host.said["queue"] == queue.name
    wanted = {
        name.partition(".")[2]: each.value for name, each in queue.said.items() if name.startswith("default_chunk.")
    }
    for name, value in wanted.items():
        has = host.said.get(f"resources_available.{name}")
        if name not in _COUNTED and (has is None or value not in re.split(r"[,\s]+", has)):
            return False
    by_name = host.said.get("resources_available.qlist")
    if by_name is not None and not chunks:
        return queue.name in re.split(r"[,\s]+", by_name)
    if need := queue.get("resources_default.neednodes"):
        properties = host.said.get("properties", "").split(",")
        return all(word in properties for word in need.split(":") if not re.fullmatch(r"\d+|[a-z]+=\S*", word))
    if queue.get("acl_hosts") and queue.get("acl_host_enable").lower() == "false":
        names = {name.partition(".")[0] for name in re.split(r"[+,]", queue.get("acl_hosts"))}
        return host.name.partition(".")[0] in names
    return True


def _queue(queue: PbsObject, there: int, host: PbsHost | None, server: PbsObject, seen: Seen) -> dict[str, Any]:
    """Limits of the queue, else of the server; those of CPUs and GPUs are in nodes of that kind."""

    def limit(name: str) -> str:
        return queue.get(f"resources_max.{name}") or server.get(f"resources_max.{name}")

    found: dict[str, Any] = {"name": queue.name}
    low = whole(queue.get("resources_min.nodect")) or whole(queue.get("resources_min.nodes")) or 1
    if low > 1:
        found["min_nodes"] = low
    most = [there] if there else []
    most += [number for name in ("nodect", "nodes") if (number := whole(limit(name)))]
    for name, each in (("ncpus", host.ncpus if host else 0), ("ngpus", host.ngpus if host else 0)):
        if each and (number := whole(limit(name))):
            most.append(max(1, number // each))
            if number < each:
                seen.notes.append(
                    f"{queue.how}: {queue.name} takes {number} {name}, less than a whole node has ({each})"
                )
    if most:
        found["max_nodes"] = max(min(most), low)
    for field, text in (("min_time", queue.get("resources_min.walltime")), ("max_time", limit("walltime"))):
        if time := _time(text):
            found[field] = time
    if queue.get("route"):
        found["directives"] = [f"-q {queue.get('route')}"]
    return found


def _time(text: str) -> str | None:
    """``[DAYS:]HOURS:MINUTES:SECONDS`` or seconds; None for none."""
    if re.fullmatch(r"\d{1,9}", text):
        return limit_of(f"00:{int(text) // 60:02}:{int(text) % 60:02}")
    parts = text.split(":")
    if len(parts) == 4:
        return limit_of(f"{parts[0]}-{':'.join(parts[1:])}")
    return limit_of(text if len(parts) == 3 else f"00:{text}") if len(parts) in (2, 3) else None


def _queues_alone(queues: Sequence[PbsObject], server: PbsObject, seen: Seen) -> None:
    """Without nodes the queues are those of the one kind of node that is known of."""
    queues = [queue for queue in queues if not _for_some(queue)] or queues
    found = [_queue(queue, 0, None, server, seen) for queue in queues]
    seen.add("node.queues", found, ", ".join(queue.how for queue in queues))
    for field in ("cpu.target", "cpu.cores", "memory.total_gb"):
        seen.add_unseen(f"node.{field}", "no nodes were given: pbsnodes -a, or -a -F json")


def _whole_system(
    data: PbsData, server: PbsObject, kinds: Sequence[HostKind], names: Sequence[str], seen: Seen
) -> None:
    default = data.queue.get(server.get("default_queue"))
    if default is not None:
        targets = re.split(r"[,\s]+", default.get("route_destinations")) if default.get("route_destinations") else []
        wanted = {default.name, *targets}
        counts: Counter[str] = Counter()
        for kind, name in zip(kinds, names, strict=True):
            queues = seen.value(f"partitions.{name}.queues") or []
            counts[name] += len(kind.hosts) * any(each["name"] in wanted for each in queues)
        if counts and counts.most_common(1)[0][1]:
            seen.add("default_partition", counts.most_common(1)[0][0], server.at("default_queue"))
        time = default.get("resources_default.walltime") or server.get("resources_default.walltime")
        seen.add("scheduler.default_time", _time(time), default.at("resources_default.walltime"))
    seen.add("scheduler.max_array_size", whole(server.get("max_array_size")), server.at("max_array_size"))
