"""The batch system: its kind, its queues for this kind of node, what it offers to ranks.

Sources: sinfo(1), scontrol(1), srun(1) of Slurm; qconf(1), queue_conf(5) of Grid Engine; qstat(1B) of PBS and Torque;
condor_version(1), which pools print to whoever asks.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.seen import Seen

_LIMIT = re.compile(r"(?:(\d{1,4})-)?(\d{1,3}):(\d{2}):(\d{2})|(\d{1,4}):(\d{2})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_.+-]{0,63}")
_ALL_QUEUES = "which queues lead to this kind of node could not be determined: all are listed"
_SAME_MEMORY = 0.15
_MIB_PER_GB = 1024


class Rows(msgspec.Struct, frozen=True):
    """One line of sinfo: nodes that are alike in one partition. ``memory_gb`` is what jobs may have of them."""

    partition: str
    default: bool
    nodes: int
    memory_gb: float
    gres: str
    sockets: int
    cores: int
    threads: int
    limit: str | None
    min_nodes: int
    max_nodes: int | None


def probe(machine: Machine, seen: Seen) -> None:
    """Facts below ``scheduler``, and ``node.queues`` and ``node.nodes``."""
    answer = machine.output("sinfo")
    if answer.text is not None:
        seen.add("scheduler.kind", "slurm", machine.how("sinfo"))
        _array_size(machine, seen)
        _slurm(machine, parse_sinfo(answer.text), seen)
        return
    clusters = machine.output("qconf-queues")
    if clusters.text is not None:
        seen.add("scheduler.kind", "gridengine", machine.how("qconf-queues"))
        _grid_engine(clusters.text, machine, seen)
        return
    queues = machine.output("qstat-queues")
    if queues.text is not None:
        version = machine.output("qstat-version").text or ""
        kind = "pbs" if "pbs" in version.lower() else "torque"
        seen.add("scheduler.kind", kind, machine.how("qstat-version"))
        seen.add("node.queues", _pbs_queues(queues.text), machine.how("qstat-queues"))
        seen.notes.append(_ALL_QUEUES)
        return
    if (machine.output("condor-version").text or "").startswith("$CondorVersion"):
        seen.add("scheduler.kind", "htcondor", machine.how("condor-version"))
        return
    unanswered = [each for each in (answer, clusters, queues) if not each.missing]
    seen.add("scheduler.kind", "none", "; ".join(each.why for each in unanswered or (answer, queues)))
    if unanswered:
        seen.notes.append(f"there may be a batch system: {'; '.join(each.why for each in unanswered)}")


def _array_size(machine: Machine, seen: Seen) -> None:
    text = machine.output("scontrol-config").text or ""
    match = re.search(r"^MaxArraySize[ \t]*=[ \t]*([1-9]\d{0,8})$", text, re.MULTILINE)
    seen.add("scheduler.max_array_size", int(match[1]) if match else None, machine.how("scontrol-config"))


def parse_sinfo(text: str) -> list[Rows]:
    """The lines of ``sinfo --format`` as :data:`hpcgen.machine.detect.commands.SINFO_FORMAT` asks for them."""
    rows = []
    for line in text.split("\n"):
        parts = [part.strip() for part in line.split("|")]
        if len(parts) != 11 or not _NAME.fullmatch(parts[0].rstrip("*")):
            continue
        low, _, high = parts[10].partition("-")
        row = Rows(
            partition=parts[0].rstrip("*"),
            default=parts[0].endswith("*"),
            nodes=_whole(parts[2]),
            memory_gb=_whole(parts[4]) / _MIB_PER_GB,
            gres="" if parts[5] == "(null)" else parts[5],
            sockets=_whole(parts[6]),
            cores=_whole(parts[7]),
            threads=_whole(parts[8]),
            limit=wall_time(parts[9]),
            min_nodes=max(1, _whole(low)),
            max_nodes=_whole(high or low) or None,
        )
        if parts[1] == "up":
            rows.append(row)
    return rows


def _whole(text: str) -> int:
    """A number that may have a + behind it, where nodes differ."""
    return int(match[0]) if (match := re.match(r"\d{1,12}", text)) else 0


def wall_time(text: str) -> str | None:
    """``2-00:00:00`` and ``30:00`` as hours, minutes and seconds; None for none, or no limit."""
    match = _LIMIT.fullmatch(text.strip())
    if not match:
        return None
    if match[5]:
        minutes = int(match[5])
        return f"{minutes // 60:02}:{minutes % 60:02}:{match[6]}"
    return f"{int(match[1] or 0) * 24 + int(match[2]):02}:{match[3]}:{match[4]}"


def _slurm(machine: Machine, rows: list[Rows], seen: Seen) -> None:
    how = machine.how("sinfo")
    own = _partitions_of_node(machine)
    here = [row for row in rows if row.partition in own] if own else [row for row in rows if _alike(row, seen)]
    here = [row for row in here if _alike(row, seen)] or here
    names = list(dict.fromkeys(row.partition for row in here))
    seen.add("node.queues", [_queue(name, [r for r in here if r.partition == name]) for name in names], how)
    seen.add("node.nodes", max((row.nodes for row in here), default=None), how)
    if not here:
        seen.add_unseen("node.queues", "no partition of Slurm has nodes like this one: it may be a login node")
    for row in rows:
        if row not in here:
            gres = f", {row.gres}" if row.gres else ""
            shape = f"{row.sockets} × {row.cores} cores, {row.threads} threads each, {row.memory_gb:.0f} GB{gres}"
            seen.notes.append(f"Slurm's {row.partition}: {row.nodes} nodes of {shape}; not the kind of this one")
    _conventions(machine, here, seen)


def _partitions_of_node(machine: Machine) -> set[str]:
    text = machine.output("scontrol-node").text or ""
    match = re.search(r"\bPartitions=([A-Za-z0-9._+,-]{1,2000})", text)
    return set(match[1].split(",")) if match else set()


def _alike(row: Rows, seen: Seen) -> bool:
    """Whether nodes of a partition are what this node is."""
    cores, threads = seen.value("node.cpu.cores"), seen.value("node.cpu.threads_per_core")
    memory = seen.value("node.memory.total_gb")
    gpus = seen.value("node.gpu.vendor") is not None
    if not cores or not memory or not row.memory_gb:
        return False
    # Slurm may be told of one thread per core, or count threads as cores.
    same_cores = row.sockets * row.cores in (cores, cores * (threads or 1))
    return same_cores and abs(row.memory_gb - memory) <= _SAME_MEMORY * memory and ("gpu" in row.gres) == gpus


def _queue(name: str, rows: list[Rows]) -> dict[str, Any]:
    queue: dict[str, Any] = {"name": name}
    if (low := min(row.min_nodes for row in rows)) > 1:
        queue["min_nodes"] = low
    # "infinite" is bounded by the nodes that there are.
    queue["max_nodes"] = min(rows[0].max_nodes or sum(row.nodes for row in rows), sum(row.nodes for row in rows)) or 1
    if rows[0].limit:
        queue["max_time"] = rows[0].limit
    return queue


def _conventions(machine: Machine, rows: list[Rows], seen: Seen) -> None:
    """How jobs ask for GPUs, and options that a plugin needs."""
    if seen.value("node.gpu.vendor") is not None and rows and not any("gpu" in row.gres for row in rows):
        seen.add("scheduler.gpu_request", "none", f"{machine.how('sinfo')}: no generic resource gpu")
    for path in (
        "/etc/slurm/plugstack.conf",
        "/etc/slurm/plugstack.conf.d/ear.conf",
        "/etc/slurm/plugstack.conf.d/earplug.conf",
    ):
        if re.search(r"^[ \t]*(required|optional)[ \t]+\S*earplug\.so", machine.text(path) or "", re.MULTILINE):
            # EAR loads itself into every process, and is not in an image. Source: EAR's user guide, "--ear=on|off".
            seen.add("scheduler.directives", ["--ear=off"], f"EAR's plugin in {path}")


def _pbs_queues(text: str) -> list[dict[str, Any]]:
    """Execution queues that are started and take jobs."""
    queues = []
    for block in re.split(r"^Queue:\s*", text, flags=re.MULTILINE)[1:]:
        name, _, rest = block.partition("\n")
        facts = dict(re.findall(r"^[ \t]*([A-Za-z_.]+)[ \t]*=[ \t]*(\S+)[ \t]*$", rest, re.MULTILINE))
        fine = facts.get("queue_type", "").lower().startswith("e") and facts.get("started", "").lower() == "true"
        if not fine or facts.get("enabled", "").lower() != "true" or not _NAME.fullmatch(name.strip()):
            continue
        queue: dict[str, Any] = {"name": name.strip()}
        if _whole(facts.get("resources_max.nodect", "")):
            queue["max_nodes"] = _whole(facts["resources_max.nodect"])
        if limit := wall_time(facts.get("resources_max.walltime", "")):
            queue["max_time"] = limit
        queues.append(queue)
    return queues


def _grid_engine(text: str, machine: Machine, seen: Seen) -> None:
    """Batch queues with their limits, and the parallel environments that they name."""
    queues, environments = [], dict[str, None]()
    for block in re.split(r"^(?=qname )", text, flags=re.MULTILINE)[1:]:
        facts = dict(re.findall(r"^(qname|qtype|h_rt|pe_list) +(.*?) *$", block, re.MULTILINE))
        if not _NAME.fullmatch(facts["qname"]) or "BATCH" not in facts.get("qtype", "BATCH"):
            continue
        queue: dict[str, Any] = {"name": facts["qname"]}
        if limit := wall_time(facts.get("h_rt", "").partition(",")[0]):
            queue["max_time"] = limit
        queues.append(queue)
        # Hosts may have others: mpi,[@fat=mpi_fat smp]
        words = re.sub(r"\[[^=\]]*=|[\],]", " ", facts.get("pe_list", "")).split()
        environments.update(dict.fromkeys(word for word in words if _ENVIRONMENT.fullmatch(word) and word != "NONE"))
    seen.add("node.queues", queues, machine.how("qconf-queues"))
    seen.notes.append(_ALL_QUEUES)
    if len(environments) == 1:
        seen.add("scheduler.parallel_environment", next(iter(environments)), machine.how("qconf-queues"))
        return
    named = f"one of {', '.join(environments)}; qconf -sp NAME" if environments else "no queue names one; qconf -spl"
    seen.add_unseen("scheduler.parallel_environment", f"{named} shows how it places a job's slots on nodes")


def offered_pmi(machine: Machine) -> list[str]:
    """What ``srun --mpi=list`` names, as a profile has it."""
    words = set(re.findall(r"[a-z0-9_]+", machine.output("srun-mpi-list").text or ""))
    return [name for name in ("pmix", "pmi2") if any(word == name or word.startswith(f"{name}_v") for word in words)]
