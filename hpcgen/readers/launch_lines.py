"""Command lines of job scripts: what starts the ranks, and what it starts. Read as words; no shell is started."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import JobFact, Launched
from hpcgen.readers.job_directives import Directive, fact, slurm

_SRUN = "-n -N -c -t -p -A -J -o -e -i -w -x -C -D -G -m -q -L -d -B -K -O -W -X"
_MPIRUN = (
    "-n -np -c -N -H -host -hosts -hostfile -machinefile -f -ppn -perhost -rr -wdir -x -rf -rankfile -mca -map-by "
    "-bind-to -rank-by -genv -env -npernode -npersocket -gtool -l -configfile -launcher -iface --np --host --hosts "
    "--hostfile --machinefile --map-by --bind-to --rank-by --mca --prtemca --oversubscribe-to --wdir --rankfile "
    "--npernode --ppn --depth --cpu-bind --nolocal-to --envlist"
)
_VALUED: Mapping[str, frozenset[str]] = {
    "srun": frozenset(_SRUN.split()),
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun"), frozenset(_MPIRUN.split())),
    "ibrun": frozenset({"-n", "-o"}),
    "aprun": frozenset(["-n", "-N", "-d", "-S", "-j", "-cc", "-L", "-r", "-m", "-e"]),
}
"""Programs that start ranks, each with those options that a further word belongs to."""
_TWO = {"-mca", "--mca", "-genv", "-env", "--prtemca"}
"""Options with two further words."""
_SLURM_LONG = re.compile(
    r"--(nodes|ntasks|ntasks-per-node|cpus-per-task|time|partition|account|job-name|gpus|gpus-per-node|gpus-per-task|"
    r"gres|mem|mem-per-cpu|constraint|distribution|output|error|input|mpi|chdir|nodelist|exclude|hint|export|"
    r"cpu-bind|gpu-bind|mem-bind|reservation|qos|het-group|network|threads-per-core|kill-on-bad-exit)"
)
_CONTAINERS = {"singularity", "apptainer"}
_CONTAINER_VALUED = frozenset(
    ("-B", "--bind", "-H", "--home", "-W", "--workdir", "--pwd", "--cwd", "--env", "--env-file", "-S", "--overlay")
)
_PREFIXES = {"time", "exec", "nice", "nohup", "numactl", "env"}


class Line(NamedTuple):
    """Words of a script's line, what was cut off behind them, and whether it stands inside of something."""

    words: list[str]
    where: Position
    dropped: str
    repeated: bool


def launched(line: Line) -> Launched | None:
    """What a line starts by a launcher of ranks; or, without one, what may be a program; None for all else."""
    words = list(line.words)
    while words and words[0].rpartition("/")[2] in _PREFIXES:
        words = _behind(words[1:], frozenset({"-n", "-N", "-m", "-C"}))
    launcher = words[0].rpartition("/")[2] if words else ""
    if launcher not in _VALUED:
        launcher = ""
    facts: list[JobFact] = []
    if launcher:
        words, facts = _launched_words(launcher, words[1:], line)
    words, container = _without_container(words)
    if not words or not (launcher or container or _is_program(words)):
        return None
    return Launched(words, line.where, launcher, facts, container, line.dropped, line.repeated)


def _is_program(words: list[str]) -> bool:
    """Whether words look like a program of the project, not like a command that prepares something."""
    name = words[0].rpartition("/")[2]
    if re.fullmatch(r"python[\d.]*|torchrun|accelerate|deepspeed|julia|Rscript", name):
        return len(words) > 1 and words[1] not in ("-V", "--version")
    return words[0].startswith("./") or words[0].startswith("build/")


def _launched_words(launcher: str, words: list[str], line: Line) -> tuple[list[str], list[JobFact]]:
    facts: list[JobFact] = []
    number = 0
    while number < len(words) and words[number].startswith("-"):
        name, joined, value = words[number].partition("=")
        taken = 0
        if not joined:
            more = name in _VALUED[launcher] or (launcher == "srun" and _SLURM_LONG.fullmatch(name) is not None)
            taken = 2 if name in _TWO else 1 if more else 0
            value = " ".join(words[number + 1 : number + 1 + taken])
            if launcher == "srun" and not taken and re.fullmatch(r"-[nNcG]\d+", name):
                name, value = name[:2], name[2:]
        each = Directive(name, value, f"{launcher} {name} {value}".strip(), line.where)
        facts += slurm(each) if launcher == "srun" else _of_mpi(each)
        number += 1 + taken
    return words[number:], facts


def _of_mpi(each: Directive) -> list[JobFact]:
    if each.name in ("-n", "-np", "--np"):
        return fact(each, "ranks", each.value)
    if each.name in ("-ppn", "--ppn", "-perhost", "-npernode", "--npernode"):
        return fact(each, "ranks_per_node", each.value)
    return []


def _behind(words: list[str], valued: frozenset[str]) -> list[str]:
    """What follows the options and the variables that a command begins with."""
    number = 0
    while number < len(words) and (words[number].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[number])):
        number += 2 if words[number] in valued else 1
    return words[number:]


def _without_container(words: list[str]) -> tuple[list[str], str]:
    """The words behind ``apptainer exec … IMAGE``, and the runtime."""
    if len(words) < 3 or words[0].rpartition("/")[2] not in _CONTAINERS:
        return words, ""
    behind = _behind(words[1:], _CONTAINER_VALUED)
    if not behind or behind[0] not in ("exec", "run"):
        return words, ""
    return _behind(behind[1:], _CONTAINER_VALUED)[1:], " ".join([words[0].rpartition("/")[2], behind[0]])
