"""Directives of job scripts: what they ask for, in words of hpcgen's own.

Slurm: https://slurm.schedmd.com/sbatch.html. PBS: qsub(1B) of OpenPBS and of Torque. Grid Engine: qsub(1). LSF:
bsub(1). PJM: pjsub(1), and ``--omp`` as in scripts for the machines of Tokyo's Information Technology Center.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, JobFact, JobField

MARKS = {"#SBATCH": "slurm", "#PBS": "pbs", "#$": "gridengine", "#BSUB": "lsf", "#PJM": "pjm"}
"""How a line of each batch system begins."""
_SLURM_NAMES: Mapping[JobField, str] = {
    "nodes": "-N --nodes",
    "ranks": "-n --ntasks",
    "ranks_per_node": "--ntasks-per-node --tasks-per-node",
    "threads": "-c --cpus-per-task",
    "time": "-t --time",
    "queue": "-p --partition",
    "account": "-A --account",
    "name": "-J --job-name",
    "array": "-a --array",
    "gpus": "-G --gpus",
    "gpus_per_node": "--gpus-per-node --gres",
    "gpus_per_rank": "--gpus-per-task",
}
_SLURM = {name: field for field, names in _SLURM_NAMES.items() for name in names.split()}
_PBS: Mapping[str, JobField] = {"-A": "account", "-q": "queue", "-N": "name", "-J": "array", "-t": "array"}
_GRID: Mapping[str, JobField] = {"-P": "account", "-q": "queue", "-N": "name", "-t": "array"}
_LSF: Mapping[str, JobField] = {"-n": "ranks", "-nnodes": "nodes", "-q": "queue", "-P": "account"}
_PJM: Mapping[str, JobField] = {"-g": "account", "-N": "name"}
_LONG_AFTER_ONE_DASH = ("lsf",)
"""Batch systems whose options have names of several letters behind one dash, and values as words of their own."""
_COUNTED = ("nodes", "ranks", "ranks_per_node", "threads", "gpus_per_node", "gpus_per_rank", "gpus")


class Directive(NamedTuple):
    """One option of a directive line; ``said``: as it stands there."""

    name: str
    value: str
    said: str
    where: Position


def read_directives(batch: str, lines: list[FileWord]) -> tuple[list[JobFact], list[FileWord]]:
    """What the directives of a script ask for, and those that say nothing of that.

    ``lines``: what stands behind the mark of each directive.
    """
    facts: list[JobFact] = []
    other: list[FileWord] = []
    for each in (option for line in lines for option in options_of(line, batch)):
        found = _READERS[batch](each)
        facts += found
        if not found:
            other.append(FileWord(each.said, each.where))
    return facts, other


def options_of(line: FileWord, batch: str) -> Iterator[Directive]:
    """The options of one line: ``-N 2 --time=1:00:00``."""
    try:
        words = shlex.split(line.text, comments=True)
    except ValueError:
        words = line.text.split()
    number, short = 0, batch not in _LONG_AFTER_ONE_DASH
    while number < len(words):
        name, joined, value = words[number].partition("=")
        if short and not name.startswith("--") and len(name) > 2 and name.startswith("-"):
            name, value = name[:2], name[2:] + joined + value
        elif not joined and number + 1 < len(words) and not words[number + 1].startswith("-"):
            number += 1
            value = words[number]
        # A pool of slots and its size, as in `-pe mpi 32`.
        if name == "-p" and value == "e" and number + 2 < len(words):
            name, value, number = "-pe", " ".join(words[number + 1 : number + 3]), number + 2
        number += 1
        yield Directive(
            name, value, f"{name}{'=' if name.startswith('--') and value else ' '}{value}".strip(), line.where
        )


def fact(each: Directive, field: JobField, value: str) -> list[JobFact]:
    """What an option says, if it can be understood."""
    if field in ("nodes",):
        value = value.partition("-")[0] or value
    if field in _COUNTED and not re.fullmatch(r"[1-9]\d{0,6}", value):
        return []
    if not value or not value.isprintable() or "%j" in value or re.search(r"[${}<>]", value):
        return []
    return [JobFact(field, value, each.said, each.where)]


def slurm(each: Directive) -> list[JobFact]:
    """Of Slurm: sbatch's options, and srun's."""
    field = _SLURM.get(each.name)
    if field is None:
        return []
    value = each.value
    if each.name == "--gres":
        match = re.fullmatch(r"(?:gres:)?gpu(?:[:=][\w.-]+)?[:=](\d+).*", value)
        value = match[1] if match else "1" if re.fullmatch(r"gpu(:[A-Za-z_][\w.-]*)?", value) else ""
    elif field in ("gpus", "gpus_per_node", "gpus_per_rank"):
        value = value.rpartition(":")[2]
    return fact(each, field, value)


def _pbs(each: Directive) -> list[JobFact]:
    if each.name != "-l":
        return fact(each, _PBS[each.name], each.value) if each.name in _PBS else []
    found: list[JobFact] = []
    fields: dict[str, JobField] = {
        "select": "nodes",
        "nodes": "nodes",
        "mpiprocs": "ranks_per_node",
        "ppn": "ranks_per_node",
        "ompthreads": "threads",
        "ngpus": "gpus_per_node",
        "gpus": "gpus_per_node",
        "walltime": "time",
    }
    for part in each.value.split(","):
        # Several kinds of chunks are joined by "+"; what each of them is for, hpcgen has no words for.
        pieces = [part] if part.startswith("walltime") else [] if "+" in part else part.split(":")
        for piece in pieces:
            key, _, value = piece.partition("=")
            if key in fields:
                found += fact(each, fields[key], value)
    return found


def _grid(each: Directive) -> list[JobFact]:
    if each.name == "-pe":
        return fact(each, "ranks", each.value.split()[-1])
    if each.name != "-l":
        return fact(each, _GRID[each.name], each.value) if each.name in _GRID else []
    found: list[JobFact] = []
    for piece in each.value.split(","):
        key, _, value = piece.partition("=")
        if key in ("h_rt", "s_rt"):
            found += fact(each, "time", value)
        elif key in ("gpu", "gpus", "ngpus"):
            found += fact(each, "gpus_per_node", value)
    return found


def _lsf(each: Directive) -> list[JobFact]:
    found: list[JobFact] = []
    if each.name == "-W":
        # Minutes, or hours and minutes; a host may stand behind them.
        found += fact(each, "time", each.value.partition("/")[0] + ":00")
    elif each.name == "-J":
        name, _, tasks = each.value.partition("[")
        found += fact(each, "name", name) + fact(each, "array", tasks.replace("]", ""))
    elif each.name == "-R":
        spans: Mapping[str, JobField] = {"ptile": "ranks_per_node", "hosts": "nodes"}
        for key, value in re.findall(r"\b(ptile|hosts)=(\d+)", each.value):
            found += fact(each, spans[key], value)
    elif each.name == "-gpu":
        for value in re.findall(r"\bnum=(\d+)(?![\d/])|\bnum=(\d+)/host", each.value):
            found += fact(each, "gpus_per_node", "".join(value))
    elif each.name in _LSF:
        found += fact(each, _LSF[each.name], each.value)
    return found


def _pjm(each: Directive) -> list[JobFact]:
    if each.name not in ("-L", "--rsc-list", "--mpi", "--omp"):
        return fact(each, _PJM[each.name], each.value) if each.name in _PJM else []
    fields: dict[str, JobField] = {
        "node": "nodes",
        "elapse": "time",
        "rscgrp": "queue",
        "proc": "ranks",
        "max-proc-per-node": "ranks_per_node",
        "thread": "threads",
    }
    found: list[JobFact] = []
    for key, _, value in (piece.partition("=") for piece in each.value.split(",")):
        # Nodes may be a torus with two or three sides, and how they lie to each other stands behind that.
        if key == "node" and (sides := re.fullmatch(r"(\d{1,5}(?:x\d{1,5}){0,2})(?::[\w-]+)*", value)):
            value = str(math.prod(int(side) for side in sides[1].split("x")))
        if key in fields:
            found += fact(each, fields[key], value)
    return found


_READERS: Mapping[str, Callable[[Directive], list[JobFact]]] = {
    "slurm": slurm,
    "pbs": _pbs,
    "gridengine": _grid,
    "lsf": _lsf,
    "pjm": _pjm,
}
