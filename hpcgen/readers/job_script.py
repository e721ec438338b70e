"""Job scripts: what they ask of a batch system, and what they start. Read as text; nothing of them is run.

What may be a secret goes no further than here: only its name does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, JobFact, JobFile, Launched
from hpcgen.core.secret_rules import secret_name, without_secret_words, without_secrets
from hpcgen.readers.folder import ProjectFolder
from hpcgen.readers.job_directives import MARKS, Directive, fact, read_directives, slurm

_DIRECTIVE = re.compile(rf"({'|'.join(map(re.escape, MARKS))})[ \t]+(-.*)")
_ASSIGNED = re.compile(r"(?:export\s+|declare\s+-x\s+)?([A-Za-z_]\w*)=(.*)")
_USED = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_ENDS = ("|", "||", "&&", ";", "&", ">", ">>", "<", "2>", "2>&1", "&>", ">&", "<<", "|&", "(", ")")
_OPENING, _CLOSING = {"for", "while", "until", "if", "case", "function", "{"}, {"done", "fi", "esac", "}"}
_INNER = {"do", "then", "else"}
_MOST_LINES, _MOST_ROUNDS = 5000, 12


def read_job(folder: ProjectFolder, path: str) -> JobFile | None:
    """What a script says; None where it is no job script. InputError where it is no text."""
    lines = folder.text(path).split("\n")[:_MOST_LINES]
    marked = [
        (match[1], FileWord(without_secrets(match[2].rstrip()), Position(path, number, 1)))
        for number, line in enumerate(lines, 1)
        if (match := _DIRECTIVE.match(line))
    ]
    if not marked:
        return None
    mark = marked[0][0]
    facts, other = read_directives(MARKS[mark], [said for each, said in marked if each == mark])
    body = _Body(path)
    for number, line in _logical(lines):
        body.line(number, line)
    return JobFile(
        path,
        MARKS[mark],
        marked[0][1].where,
        facts,
        other,
        body.launched,
        list(body.exported.values()),
        list(body.secrets.values()),
        body.modules,
    )


def has_secrets(folder: ProjectFolder, path: str) -> bool:
    """Whether a script has what may be a secret. InputError where it is no text."""
    return any(without_secrets(line) != line for line in folder.text(path).split("\n"))


class _Loop(NamedTuple):
    """A loop over plain words: its variable, the words, and how much the script starts before it."""

    name: str
    values: list[str]
    first: int


class _Body:
    """The lines that are commands."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.values: dict[str, str] = {}
        self.exported: dict[str, FileWord] = {}
        self.secrets: dict[str, FileWord] = {}
        self.modules: list[FileWord] = []
        self.launched: list[Launched] = []
        self._open: list[_Loop | None] = []

    def line(self, number: int, line: str) -> None:
        """One line, continued ones joined."""
        where = Position(self.path, number, len(line) - len(line.lstrip()) + 1)
        for words in _commands(line):
            while words and words[0] in (_OPENING | _CLOSING | _INNER):
                if words[0] in _OPENING:
                    self._open.append(self._loop(words))
                elif words[0] in _CLOSING:
                    self._close()
                words = [] if words[0] in ("for", "case", "function") else words[1:]
            if words:
                self._command(words, where)

    def _loop(self, words: list[str]) -> _Loop | None:
        """A loop over plain words; None for all else that has a beginning and an end."""
        values = [self._value(word) for word in words[3:]]
        plain = 0 < len(values) <= _MOST_ROUNDS and all(re.fullmatch(r"[\w.:=/+@%-]+", word) for word in values)
        if words[0] != "for" or words[2:3] != ["in"] or not plain:
            return None
        self.values.pop(words[1], None)
        return _Loop(words[1], values, len(self.launched))

    def _close(self) -> None:
        """The end of a loop: what it starts is started for each of its words."""
        loop = self._open.pop() if self._open else None
        if loop is None:
            return
        body = self.launched[loop.first :]
        pattern = re.compile(rf"\$(?:\{{{loop.name}\}}|{loop.name}\b)")
        if len(body) * len(loop.values) > _MOST_ROUNDS:
            return
        self.launched[loop.first :] = [
            _public(replace(each, words=[value.join(pattern.split(word)) for word in each.words]))
            for value in loop.values
            for each in body
        ]

    def _command(self, words: list[str], where: Position) -> None:
        end = next((n for n, word in enumerate(words) if word in _ENDS or re.match(r"\d?>", word)), len(words))
        behind = " ".join(without_secret_words(["", *words[end:]]).words[1:])
        dropped, words = re.sub(r"(\d) >& (\d)", r"\1>&\2", behind), words[:end]
        if match := _ASSIGNED.fullmatch(" ".join(words[:2]) if words[:1] == ["export"] else " ".join(words[:1])):
            value = self._value(match[2])
            if len(words) == (2 if words[0] == "export" else 1):
                self._assigned(match[1], value, words[0] == "export", where)
                return
        if words[:1] in (["module"], ["ml"]):
            names = [word for word in words[1:] if word not in ("load", "add") and not word.startswith("-")]
            names = [name for name in names if name.isprintable()]
            if not {"purge", "unload", "list", "use", "avail", "swap"} & {*words[1:2]}:
                self.modules += [FileWord(self._value(name), where) for name in names]
            return
        while words and re.match(r"[A-Za-z_]\w*=", words[0]):
            words = words[1:]
        # No stack has words that cannot be printed.
        if words and all(word.isprintable() for word in words):
            filled = [self._value(word) for word in words]
            found = launched(ScriptLine(filled, where, dropped, None in self._open))
            self.launched += [_public(found)] if found is not None else []

    def _assigned(self, name: str, value: str, exported: bool, where: Position) -> None:
        plain = "$" not in value and "`" not in value and value.isprintable()
        secret = plain and (secret_name(name, value) or without_secrets(value) != value)
        for known in (self.values, self.exported, self.secrets):
            known.pop(name, None)
        if plain and not secret:
            self.values[name] = value
        if secret:
            self.secrets[name] = FileWord(name, where)
        elif plain and exported:
            self.exported[name] = FileWord(f"{name}={value}", where)

    def _value(self, word: str) -> str:
        """A word with the variables that the script itself gives a plain value."""
        return _USED.sub(lambda match: self.values.get(match[1] or match[2], match[0]), word)[:4096]


def _public(each: Launched) -> Launched:
    words, left = without_secret_words(each.words)
    return replace(each, words=words, secrets=[*each.secrets, *left])


def _logical(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines that are commands, each with its number; what ends with a backslash goes on."""
    start, text = 0, ""
    for number, line in enumerate(lines, 1):
        if not text and (line.lstrip().startswith("#") or not line.strip()):
            continue
        start = start if text else number
        if line.endswith("\\"):
            text += line[:-1] + " "
            continue
        yield start, text + line
        text = ""
    if text:
        yield start, text


def _commands(line: str) -> Iterator[list[str]]:
    """The commands of a line, split where one ends and the next begins."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split, lexer.commenters = True, "#"
    try:
        words = list(lexer)
    except ValueError:
        words = line.split()
    current: list[str] = []
    for word in words:
        if word.endswith((";", "&&", "||")) and not word.strip("|&;<>()"):
            if current:
                yield current
            current = []
        else:
            current.append(word)
    if current:
        yield current


# Command lines of job scripts: what starts the ranks, and what it starts. Read as words; no shell is started.

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


class ScriptLine(NamedTuple):
    """Words of a script's line, what was cut off behind them, and whether it stands inside of something."""

    words: list[str]
    where: Position
    dropped: str
    repeated: bool


def launched(line: ScriptLine) -> Launched | None:
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


def _launched_words(launcher: str, words: list[str], line: ScriptLine) -> tuple[list[str], list[JobFact]]:
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
