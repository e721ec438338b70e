"""What a kind of node of Slurm has: cores, memory, GPUs. Source: slurm.conf(5), gres.conf(5)."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from hpcgen.core.support.cpu_lists import read_list
from hpcgen.machine.detect.seen import Seen
from hpcgen.machine.site_sources.said import gpu_of, whole
from hpcgen.machine.site_sources.slurm_conf import SlurmLine

NODE_KEYS = [
    "boards",
    "sockets",
    "socketsperboard",
    "corespersocket",
    "threadspercore",
    "cpus",
    "procs",
    "realmemory",
    "gres",
    "corespeccount",
    "cpuspeclist",
    "memspeclimit",
]
"""By these nodes are alike or not."""
MIB_PER_GB = 1024
_SLICE = re.compile(r"(?:^|[_.-])\d{1,2}g\.\d{1,3}gb\b")
"""How NVIDIA names the profiles of MIG, which types of Gres are called after: ``a100_3g.20gb``."""
_SHARED = ("mps", "shard")
"""Gres that are parts of the GPUs beside them."""


class NodeKind(msgspec.Struct, frozen=True):
    """Nodes that are alike: what they have, who they are, and the features that all of them have."""

    shape: tuple[tuple[str, str], ...]
    line: SlurmLine
    names: tuple[str, ...]
    features: frozenset[str] = frozenset()

    def get(self, key: str) -> str:
        """What the nodes' lines say, "" where they do not."""
        return dict(self.shape).get(key, "")

    def number(self, key: str) -> int | None:
        """The positive number that they say."""
        return whole(self.get(key))

    @property
    def cpus(self) -> int | None:
        """What Slurm counts on a node; ``Procs`` is its former name."""
        return self.number("cpus") or self.number("procs")


def features_of(line: SlurmLine) -> set[str]:
    """By what ``--constraint`` selects the nodes of a line; Slurm takes either word."""
    text = line.said.get("features") or line.said.get("feature", "")
    return {word.strip() for word in text.split(",") if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+:-]*", word.strip())}


class Cores(msgspec.Struct, frozen=True):
    """Sockets, cores of all of them, hardware threads of a core; ``doubt``: what does not agree with CPUs."""

    sockets: int | None
    cores: int
    threads: int
    doubt: str = ""


def cores_of(kind: NodeKind) -> Cores | None:
    """What a node has of them; None where its lines do not tell.

    ``Sockets`` beside ``Boards`` is the number of each board; without either it follows from CPUs.
    """
    cpus, per_socket, threads = kind.cpus, kind.number("corespersocket"), kind.number("threadspercore") or 1
    given = kind.number("socketsperboard") or kind.number("sockets")
    boards = kind.number("boards") or 1
    sockets = given * boards if given else None
    if per_socket:
        fitting = cpus // (per_socket * threads) if cpus and not cpus % (per_socket * threads) else 0
        sockets = sockets or fitting or boards
        cores = sockets * per_socket
        doubt = f"{sockets} × {per_socket} cores with {threads} threads"
        return Cores(sockets, cores, threads, "" if cpus in (None, cores, cores * threads) else doubt)
    if not cpus:
        return None
    cores = max(1, cpus // threads)
    fits = not cpus % threads and (sockets is None or not cores % sockets)
    return Cores(sockets, cores, threads, "" if fits else f"{sockets or 1} sockets with {threads} threads of a core")


def note_cores(kind: NodeKind, node: str, seen: Seen) -> None:
    """The facts of its CPUs; what contradicts itself stays open."""
    how, found = kind.line.how, cores_of(kind)
    if found is None:
        seen.add_unseen(f"{node}.cpu.cores", f"{how} says neither CoresPerSocket nor CPUs")
        return
    seen.add(f"{node}.cpu.threads_per_core", found.threads, how)
    if found.doubt:
        seen.add_unseen(f"{node}.cpu.cores", f"{how}: CPUs={kind.cpus} does not agree with {found.doubt}")
        seen.add_unseen(f"{node}.cpu.sockets", f"{how}: see its cores")
        return
    seen.add(f"{node}.cpu.sockets", found.sockets, how)
    seen.add(f"{node}.cpu.cores", found.cores, how if kind.get("corespersocket") else f"{how}, CPUs={kind.cpus}")
    reserved = kind.number("corespeccount")
    if not reserved and (listed := kind.get("cpuspeclist")):
        reserved = -(-len(read_list(listed)) // (found.threads if kind.cpus != found.cores else 1))
    if reserved and reserved < found.cores:
        said = "CoreSpecCount" if kind.get("corespeccount") else "CpuSpecList"
        seen.add(f"{node}.cpu.system_cores", reserved, f"{how}, {said}: jobs get {found.cores - reserved} cores")


def note_memory(kind: NodeKind, node: str, seen: Seen) -> None:
    """Its memory, and what of it jobs may have."""
    how, memory, kept = kind.line.how, kind.number("realmemory"), kind.number("memspeclimit") or 0
    seen.add(f"{node}.memory.total_gb", round(memory / MIB_PER_GB, 1) if memory else None, f"{how}, RealMemory")
    seen.add_unseen(f"{node}.memory.total_gb", f"{how} says no RealMemory")
    if memory and 0 < kept < memory:
        usable = (memory - kept) * 10 // MIB_PER_GB / 10
        seen.add(f"{node}.memory.usable_gb", usable, f"{how}, RealMemory less MemSpecLimit")


def note_gpus(kind: NodeKind, node: str, seen: Seen) -> None:
    """Its whole GPUs; slices of MIG, MPS and shards are named."""
    whole_ones, slices, shared = Counter[str](), Counter[str](), Counter[str]()
    for word in re.sub(r"\([^()]*\)", "", kind.get("gres")).split(","):
        name, *more = word.strip().split(":")
        typed = more[0] if more and not _number(more[0]) and more[0] != "no_consume" else ""
        count = _number(more[-1] if more else "") or 1
        if name in _SHARED:
            shared[name] += count
        elif name == "gpu":
            (slices if _SLICE.search(typed) else whole_ones)[typed] += count
    how = f"{kind.line.how}, Gres"
    if slices:
        named = ", ".join(f"{count} × {typed}" for typed, count in slices.items())
        seen.notes.append(f"{how}: {named} are slices of GPUs (MIG), which are not counted as GPUs")
    if shared:
        named = ", ".join(f"{name} {count}" for name, count in shared.items())
        seen.notes.append(f"{how}: {named}: parts of the GPUs, which jobs share by them; no GPUs of their own")
    if whole_ones:
        _add_gpus(whole_ones, node, how, seen)
    elif slices:
        seen.add_unseen(f"{node}.gpu", f"{how} has slices of GPUs alone, which a profile does not describe")


def _number(text: str) -> int | None:
    """A count, which may be in units of 1024 as in ``2K``."""
    match = re.fullmatch(r"(\d{1,9})([kmg]?)", text.lower())
    return int(match[1]) * {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}[match[2]] or None if match else None


def _add_gpus(counts: Counter[str], node: str, how: str, seen: Seen) -> None:
    typed, count = counts.most_common(1)[0]
    if len(counts) > 1:
        seen.notes.append(f"{how}: GPUs of several types ({', '.join(counts)}); a profile has one kind per node")
    seen.add(f"{node}.gpu.count", count, how)
    for field, value in gpu_of(typed).items():
        by_table = f"{how}, {typed} in hpcgen's table of GPUs"
        seen.add(f"{node}.gpu.{field}", value, how if field == "model" else by_table)
    for field in ("vendor", "model"):
        seen.add_unseen(f"{node}.gpu.{field}", f"{how} {f'says {typed}' if typed else 'names no type of GPU'}")
