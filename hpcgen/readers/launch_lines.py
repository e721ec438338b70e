"""Command lines of scripts: what starts the ranks, and what it starts. Read as words; no shell is started."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import JobFact, Launched
from hpcgen.readers.job_directives import Directive, fact, slurm
from hpcgen.readers.launch_options import GivenOption, starting, take
from hpcgen.readers.shell_values import computed, plain
from hpcgen.readers.shell_words import UnclosedError, commands_in

_PREFIXES: Mapping[str, tuple[frozenset[str], int]] = {
    **dict.fromkeys(("time", "exec", "nohup", "command", "stdbuf", "setsid"), (frozenset({"-o", "-i", "-e"}), 0)),
    "nice": (frozenset({"-n"}), 0),
    "numactl": (frozenset(["-N", "-m", "-C", "-i", "-p"]), 0),
    "taskset": (frozenset(), 1),
    "timeout": (frozenset({"-s", "-k"}), 1),
    "env": (frozenset({"-u"}), 0),
}
"""Programs that start another one in their place: options with a further word, and how many words follow these."""
_ENVIRONMENTS = re.compile(r"(uv|poetry|pdm|pipenv|hatch|rye|pixi|conda|mamba|micromamba)")
"""Programs that start another one with ``run``, in a Python environment."""
_OF_RUN = frozenset(
    [
        *("-n", "-p", "--name", "--prefix", "-e", "--environment", "--with", "--extra", "--python", "--group"),
        *("--only-group", "--no-group", "--env-file", "--project", "--directory", "--package", "--index", "-C", "-P"),
    ]
)
"""Options of ``run`` with a further word."""
_QUIET = ("time", "exec", "nohup", "command")
_PREPARES = re.compile(
    r"pip\d?|venv|virtualenv|ensurepip|pytest|unittest|black|isort|pylint|flake8|ruff|mypy|build|twine|http\.server|"
    r"pre_commit|ipykernel|nltk\.downloader|json\.tool|compileall|timeit|cProfile|site|jupyter|notebook|spacy|gdown"
)
"""Modules that install, check or show something."""
_NO_PROGRAM = re.compile(r"\./(configure|bootstrap|autogen|Miniconda\S*|Mambaforge\S*|.*\.(sh|bash|run))")


_SHOWS = re.compile(
    r"echo|hostname|date|env|printenv|true|sleep|ls|cat|mkdir|cp|rm|mv|nvidia-smi|rocm-smi|nproc|lscpu|lsmod|modinfo|"
    r"sudo|enroot|skopeo|scontrol|sinfo|squeue"
)
"""Programs that a launcher starts to show or prepare something, and the host's own."""


def _only_shows(words: list[str]) -> bool:
    """Whether a command, or each of those that it gives to a shell, shows or prepares something."""
    if re.fullmatch(r"(/bin/)?(ba)?sh", words[0]) and words[1:2] == ["-c"] and len(words) == 3:
        with suppress(UnclosedError):
            inner = [each.words for each in commands_in(words[2]) if each.words]
            return bool(inner) and all(each[1:] == ["--version"] or _SHOWS.fullmatch(each[0]) for each in inner)
    return _SHOWS.fullmatch(words[0]) is not None


class ScriptLine(NamedTuple):
    """Words of a script's line, what stands behind them, and whether it stands inside of something.

    ``known``: variables of the batch system whose values the directives of the script say. ``own``: names of programs
    of the project.
    """

    words: list[str]
    where: Position
    dropped: str = ""
    repeated: bool = False
    known: Mapping[str, str] = {}
    own: frozenset[str] = frozenset()


def launched(line: ScriptLine) -> Launched | None:
    """What a line starts by a launcher of ranks; or, without one, what may be a program; None for all else."""
    words, before = _without_prefixes(list(line.words))
    launcher, words = _launcher(words)
    facts: list[JobFact] = []
    strange: list[str] = []
    image = ""
    if launcher:
        taken = take(words, starting().launchers[launcher])
        facts, unread = _facts(launcher, taken.given, line)
        strange = [f"{launcher} {each}" for each in [*taken.strange, *unread]]
        image = next((each.value for each in taken.given if launcher == "srun" and each.name in starting().pyxis), "")
        words, more = _without_prefixes(taken.rest)
        before += more
    dropped = line.dropped
    if launcher and ":" in words[1:]:
        end = words.index(":", 1)
        words, dropped = words[:end], f"{' '.join(words[end:])} {dropped}".rstrip()
    container = ""
    while (inside := _without_container(words)) is not None:
        words, container, image, unknown = inside.words, inside.runtime, inside.image, inside.strange
        strange += [f"{container} {each}" for each in unknown]
        words, more = _without_prefixes(words)
        before += more
    words = _by_rscript(words)
    nothing = not words or re.match(r"[-\d]", words[0]) or _only_shows(words)
    if nothing or not (launcher or container or words[0] in line.own or _is_program(words)):
        return None
    return Launched(
        words,
        line.where,
        launcher,
        facts,
        container,
        plain(image),
        " ".join(before),
        dropped,
        line.repeated,
        [],
        strange,
    )


def _by_rscript(words: list[str]) -> list[str]:
    """``R CMD BATCH "--args 3" x.R x.Rout`` and ``R -f x.R`` by the program that writes where a job's output goes."""
    if not words or words[0].rpartition("/")[2] != "R":
        return words
    given = words[3:] if words[1:3] == ["CMD", "BATCH"] else words[1:]
    given = [part for word in given for part in (word.split() if word.startswith("-") else [word])]
    script = next((each.removeprefix("--file=") for each in given if re.search(r"\.[rR]$", each)), "")
    behind = given[given.index("--args") + 1 :] if "--args" in given else []
    arguments = [each for each in behind if each != script and not each.endswith(".Rout")]
    return ["Rscript", script, *arguments] if script else words


def _launcher(words: list[str]) -> tuple[str, list[str]]:
    """The launcher that words begin with, and what follows it."""
    name = words[0].rpartition("/")[2] if words else ""
    if name not in starting().launchers:
        return "", words
    if name == "flux":
        verbs = 2 if words[1:3] == ["mini", "run"] else 1 if words[1:2] == ["run"] else 0
        return ("flux", words[1 + verbs :]) if verbs else ("", words)
    return name, words[1:]


def _without_prefixes(words: list[str]) -> tuple[list[str], list[str]]:
    """The words behind those that start another program in their place, and what of these is worth a remark."""
    left: list[str] = []
    for _ in range(8):
        name = words[0].rpartition("/")[2] if words else ""
        if name in _PREFIXES:
            valued, more = _PREFIXES[name]
            rest = _behind(words[1:], valued)[more:]
        elif _ENVIRONMENTS.fullmatch(name) and words[1:2] == ["run"]:
            rest = _behind(words[2:], _OF_RUN)
            # uv itself has the option of Python that names a module.
            module = name == "uv" and not {"-m", "--module"}.isdisjoint(words[2 : len(words) - len(rest)])
            started = bool(rest) and (module or rest[0].endswith(".py"))
            rest = ["python", *(["-m"] if module else []), *rest] if started else rest
            name = f"{name} run"
        elif re.fullmatch(r"\$\{?\w+\}?", words[0] if words else "") and words[1:] and _is_program(words[1:]):
            # Such a variable is a profiler or a launcher, or empty.
            rest = words[1:]
        else:
            break
        left += [] if name in _QUIET else words[: max(1, len(words) - len(rest))] if name == "numactl" else [name]
        words = rest
    return words, left


def _is_program(words: list[str]) -> bool:
    """Whether words look like a program of the project, not like a command that prepares something."""
    name = words[0].rpartition("/")[2]
    if re.fullmatch(r"python[\d.]*", name):
        first = next((each for each in words[1:] if not re.fullmatch(r"-[uOBEsSI]+", each)), "")
        named = [*words[words.index("-m") + 1 :], ""] if first == "-m" else [first]
        module = named[0] if first == "-m" else ""
        if not named[0] or _PREPARES.fullmatch(module.partition(".")[0]) or _PREPARES.fullmatch(module):
            return False
        return bool(first) and (first == "-m" or not first.startswith("-")) and first.rpartition("/")[2] != "setup.py"
    if name == "accelerate":
        return words[1:2] == ["launch"] and len(words) > 2
    if re.fullmatch(r"torchrun|deepspeed|julia|Rscript", name):
        return len(words) > 1 and words[1] not in ("-V", "--version", "-e")
    return words[0].startswith(("./", "build/")) and not _NO_PROGRAM.fullmatch(words[0])


# What the options of a launcher say.


def filled(value: str, known: Mapping[str, str]) -> str:
    """A value with variables of the batch system, and what is computed from them."""
    if "$" not in value:
        return value
    value = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda match: known.get(match[1], match[0]), value)
    for pattern in (r"\$\(\(([^()]*)\)\)", r"\$\(expr ([^()]*)\)", r"`expr ([^`]*)`"):
        value = re.sub(pattern, lambda match: "".join(computed(match[1].replace("\\", ""), known) or [match[0]]), value)
    return value


def _facts(launcher: str, given: list[GivenOption], line: ScriptLine) -> tuple[list[JobFact], list[str]]:
    """What options say of the number of ranks, and those of them whose values are not understood."""
    found: list[JobFact] = []
    unread = []
    if launcher == "jsrun":
        return _of_resource_sets(given, line), []
    for each in given:
        dashes = "--" if len(each.name) > 1 and each.said.startswith("--") else "-"
        value = filled(each.value, line.known)
        directive = Directive(f"{dashes}{each.name}", value, f"{launcher} {each.said}", line.where)
        field = starting().launchers[launcher].fields.get(each.name)
        if launcher == "srun":
            said = slurm(directive)
        elif field is not None:
            said = fact(directive, field, value)
        else:
            said = _of_mapping(directive) if each.name == "map-by" else []
        found += said
        counts = field is not None or (launcher == "srun" and each.name in ("n", "N", "c", "G", "ntasks", "nodes"))
        if counts and not said and value != "0":
            unread.append(each.said)
    return found, unread


def _of_mapping(each: Directive) -> list[JobFact]:
    """``--map-by ppr:4:node:PE=8`` of Open MPI."""
    ranks = re.search(r"\bppr:(\d+):node\b", each.value)
    threads = re.search(r"\bpe=(\d+)", each.value, re.I)
    return [
        *(fact(each, "ranks_per_node", ranks[1]) if ranks else []),
        *(fact(each, "threads", threads[1]) if threads else []),
    ]


_RESOURCES = {
    "n": "sets",
    "nrs": "sets",
    "a": "tasks",
    "tasks-per-rs": "tasks",
    "c": "cpus",
    "cpu-per-rs": "cpus",
    "g": "gpus",
    "gpu-per-rs": "gpus",
    "r": "on_node",
    "rs-per-host": "on_node",
    "p": "ranks",
    "np": "ranks",
}


def _of_resource_sets(given: list[GivenOption], line: ScriptLine) -> list[JobFact]:
    """jsrun counts sets of resources, each with so many tasks, CPUs and GPUs."""
    values = {_RESOURCES[each.name]: filled(each.value, line.known) for each in given if each.name in _RESOURCES}
    number = {name: int(value) for name, value in values.items() if re.fullmatch(r"\d{1,6}", value)}
    tasks = number.get("tasks", 1)
    said = "jsrun " + " ".join(each.said for each in given if each.name in _RESOURCES)
    whole = Directive("jsrun", "", said, line.where)
    ranks = number.get("ranks", number["sets"] * tasks if "sets" in number else 0)
    on_node = number.get("on_node", 0)
    return [
        *fact(whole, "ranks", str(ranks)),
        *fact(whole, "ranks_per_node", str(on_node * tasks)),
        *fact(whole, "threads", str(number.get("cpus", 0) // max(1, tasks))),
        *fact(whole, "gpus_per_node", str(on_node * number.get("gpus", 0))),
    ]


# Containers.


class _Inside(NamedTuple):
    words: list[str]
    runtime: str
    image: str
    strange: list[str]


def _behind(words: list[str], valued: frozenset[str]) -> list[str]:
    """What follows the options and the variables that a command begins with."""
    number = 0
    while number < len(words) and (words[number].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[number])):
        number += 2 if words[number] in valued else 1
        if words[number - 1] == "--":
            break
    return words[number:]


def _without_container(words: list[str]) -> _Inside | None:
    """The words behind ``apptainer exec … IMAGE``; None where there is no container."""
    name = words[0].rpartition("/")[2] if words else ""
    if name not in starting().runtimes:
        return None
    runtime = starting().runtimes[name]
    taken = take(words[1:], runtime.options)
    shown, given, strange = name, taken.given, taken.strange
    if runtime.verbs:
        if not taken.rest or taken.rest[0] not in runtime.verbs:
            return None
        shown = f"{name} {taken.rest[0]}"
        taken = take(taken.rest[1:], runtime.options)
        given, strange = [*given, *taken.given], [*strange, *taken.strange]
    image = next((each.value for each in given if each.name in runtime.names), "")
    rest = taken.rest
    if runtime.positional and not image:
        image, rest = (rest[0], rest[1:]) if rest else ("", [])
    return _Inside(rest[1:] if rest[:1] == ["--"] else rest, shown, image, strange)
