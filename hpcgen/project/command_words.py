"""The words of a command of the project, as they are in the image."""

from __future__ import annotations

import itertools
import posixpath
import re
import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple

from hpcgen.core.errors import Position
from hpcgen.core.model.own_project import FileWord, Launched
from hpcgen.core.support.quoting import command
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found
from hpcgen.readers.launch_options import GivenOption, starting, take
from hpcgen.readers.shell_values import plain, unknown
from hpcgen.readers.shell_words import UnclosedError, commands_in

_PYTHON = r"python(\d(\.\d+)?)?"
RANKS = {name: f"/opt/{name}/share/ranks.py" for name in ("pytorch", "jax", "conda_packages")}
"""The program of each framework's block that tells a rank its place, whatever launched it."""


def in_image(words: list[str], found: Found, draft: Draft, folders: Sequence[str] = ("",)) -> list[str]:
    """The same command in the image: programs and files of the project by their places there.

    ``folders``: of the project, where its files are looked for by the paths in the command.
    """
    name = words[0].rpartition("/")[2]
    flags = [*itertools.takewhile(lambda each: re.fullmatch(r"-[uOBEsSI]+", each), words[1:])]
    behind = words[1 + len(flags) :]
    module = behind[1] if re.fullmatch(_PYTHON, name) and behind[:1] == ["-m"] and len(behind) > 1 else ""
    if module and (file := linked_module(module, found)):
        return ["python3", *flags, f"{APP}/{file}", *(_placed(each, found, folders) for each in behind[2:])]
    if module and (root := module_root(module, found)) is not None:
        return [*run_module(module, root, flags), *(_placed(each, found, folders) for each in behind[2:])]
    return [*_program(words[0], found, draft, folders), *(_placed(each, found, folders) for each in words[1:])]


def _placed(word: str, found: Found, folders: Sequence[str]) -> str:
    """A word by the place in the image, if it is a file of the project, or ``--option=FILE``."""
    option, joined, value = word.partition("=")
    if joined and re.fullmatch(r"[\w.+~/-]+", option):
        path = place_of(value, found, folders)
        return f"{option}={path}" if path else word
    return place_of(word, found, folders) or _only_input(word, found) or word


_INPUT = re.compile(
    r"(?:\.{1,2}/)*((?:[\w+-][\w.+-]*/)*(?:in\.[\w.+-]+|[\w.+-]+\.(?:in|inp|nml|ya?ml|json|toml|xml|cfg|ini|par|params?|"
    r"mesh|msh|nex|deck|lua)))"
)


def _only_input(word: str, found: Found) -> str:
    """Where the image has the one input file of this name, whatever folder a README or a script is in meanwhile."""
    match = _INPUT.fullmatch(word)
    alike = [path for path in found.tree.paths() if f"/{path}".endswith(f"/{match[1]}")] if match else []
    least = min((path.count("/") for path in alike), default=0)
    highest = [path for path in alike if path.count("/") == least]
    return f"{APP}/{highest[0]}" if len(highest) == 1 else ""


def folders_of(each: Launched, own: str) -> list[str]:
    """Where the files of a command line may be: where the script goes before, in its own folder, in the project's."""
    beside = (each.folder, f"{own}/{each.folder}") if each.folder else ()
    return list(dict.fromkeys([*beside, own, ""]))


def place_of(path: str, found: Found, folders: Sequence[str]) -> str:
    """Where the image has a file of the project; empty if there is none of this path."""
    if not path:
        return ""
    there = found.tree.paths()
    for folder in folders if not unknown(path) else ():
        inside = found.tree.behind_links(posixpath.normpath(posixpath.join(folder, path)))
        if inside in there:
            return f"{APP}/{inside}"
    behind = _behind_project(path, found)
    return f"{APP}/{behind}" if behind in there else ""


_PROJECT = re.compile(
    r"(?:\$\{?\w+\}?|\.\.\.|<[^<>/]+>|[~/]?(?:[\w.-]+/)*(?:path[/_]to|path_to_\w+)(?:/[\w-]+)?)/+(.+\.(?:py|sh|jl|R))"
)
"""A program below what stands for the folder that the project is in: ``$CODE/train.py``."""


def _behind_project(path: str, found: Found) -> str:
    """A path from the project's folder, where it is said from the folder around it or by what stands for it.

    A whole path of the author's own machine is known by its end, if that is a file in a folder of the project.
    """
    first, _, rest = path.removeprefix("./").partition("/")
    match = _PROJECT.fullmatch(path)
    if match is None and path.startswith("/"):
        parts, there = path.split("/"), found.tree.paths()
        ends = ("/".join(parts[at:]) for at in range(2, len(parts) - 1))
        return next((each for each in ends if each in there), "")
    return match[1] if match else rest if rest and first == found.top.resolve().name else ""


def text_in_image(text: str, found: Found, draft: Draft, folders: Sequence[str] = ("",)) -> str:
    """A text for a shell in the image: programs and files of the project by their places there."""
    try:
        commands = list(commands_in(text))
    except UnclosedError:
        return text
    for each in reversed(commands):
        first = next((n for n, word in enumerate(each.words) if not re.match(r"\w+=|\$", word)), len(each.words))
        words = each.words[first:]
        if words:
            new = in_image(without_framework(words)[0], found, draft, folders)
            # What is not new is in quotes already, where it has to be.
            shown = " ".join(word if word in words else command(word) for word in new)
            text = text[: each.spans[first][0]] + shown + text[each.spans[-1][1] :]
    return textwrap.dedent(text.strip("\n")).strip()


def _program(word: str, found: Found, draft: Draft, folders: Sequence[str]) -> list[str]:
    name = word.rpartition("/")[2]
    if re.fullmatch(_PYTHON, name):
        return ["python3"]
    if compiled := draft.program(name):
        return [compiled]
    path = place_of(word, found, folders)
    if path:
        return ["python3", path] if path.endswith(".py") else [path]
    if name in found.table.scripts and (code := script_code(found.table.scripts[name], found)):
        return ["python3", "-c", code]
    if not word.startswith(("./", "../", "build/")):
        return [word]
    made = [each for each in folders if each and found.tree.has(f"{each}/Makefile") and "/" not in word[2:]]
    from_there = folders if word.startswith("../") else made[:1] or [""]
    inside = (posixpath.normpath(posixpath.join(each, word)) for each in from_there)
    return [next((f"{APP}/{each}" for each in inside if not each.startswith("..")), word)]


def script_code(script: FileWord, found: Found) -> str:
    """What Python runs for a command that an installation of the project would have; empty without its module."""
    module, _, function = script.text.partition(":")
    root = module_root(module, found)
    found_by = f"import sys; sys.path.insert(0, {root!r})"
    called = f"from {module} import {function.partition('.')[0]}; sys.exit({function}())"
    return f"{found_by}; {called}" if root is not None else ""


def module_root(module: str, found: Found) -> str | None:
    """The folder in the image where a module of the project is found; None where the project has none of that name."""
    path = module.replace(".", "/")
    for below in ("", "src/"):
        if any(found.tree.has(f"{below}{path}{end}") for end in (".py", "/__init__.py", "/__main__.py")):
            return f"{APP}/{below}".rstrip("/")
    return None


def linked_module(module: str, found: Found) -> str:
    """The file of a module that has its name by a link to a folder, or by setup.py alone; empty for any other."""
    paths = [f"{below}{module.replace('.', '/')}.py" for below in ("", "src/")]
    real = [found.tree.behind_links(path) for path in paths if not found.tree.has(path)]
    real = [each for each in real if each not in paths and found.tree.has(each)]
    return real[0] if real else ""


def run_module(module: str, root: str, flags: Sequence[str] = ()) -> list[str]:
    """``python3 -m MODULE``, wherever the job starts."""
    code = f"import runpy, sys; sys.path.insert(0, {root!r}); runpy.run_module({module!r}, None, '__main__', True)"
    return ["python3", *flags, "-c", code]


class Framework(NamedTuple):
    """What was left out of a command: the launcher of a framework and its options.

    ``name``: empty where there was none. ``other``: options that say more than how many processes there are.
    """

    name: str = ""
    given: tuple[GivenOption, ...] = ()
    other: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()

    def number(self, *names: str) -> str:
        """The value of the first of these options that is there."""
        return next((each.value for name in names for each in self.given if each.name == name), "")

    def said(self, *names: str) -> str:
        """The text of the first of these options that is there."""
        return next((each.said for name in names for each in self.given if each.name == name), "")


def without_framework(words: list[str]) -> tuple[list[str], Framework]:
    """A command without ``torchrun`` and the like: here the site's launcher starts the ranks."""
    name = words[0].rpartition("/")[2]
    python = re.fullmatch(_PYTHON, name) is not None
    flags = [*itertools.takewhile(lambda each: re.fullmatch(r"-[uOBEsSI]+", each), words[1:])] if python else []
    behind = words[1 + len(flags) :]
    if python and behind[:1] == ["-m"] and behind[1:2] and behind[1] in starting().frameworks:
        name, behind = behind[1], behind[2:]
    elif python and behind[:2] == ["-m", "accelerate.commands.launch"]:
        name, behind = "accelerate", behind[2:]
    elif name == "accelerate" and behind[:1] == ["launch"]:
        behind = behind[1:]
    elif name not in starting().frameworks or name == "accelerate":
        return words, Framework()
    taken = take(behind, starting().frameworks[name])
    if not taken.rest:
        return words, Framework()
    other = tuple(each.said for each in taken.given if each.name not in starting().sizes)
    names = {each.name for each in taken.given}
    start = [] if "no-python" in names else ["python3", *flags, *(["-m"] if {"m", "module"} & names else [])]
    # argparse, by which all of these read their words, takes the first -- behind the program away.
    program, *words = taken.rest
    words = words[1:] if words[:1] == ["--"] else words
    return [*start, program, *words], Framework(name, tuple(taken.given), other, tuple(taken.strange))


def framework_in(words: list[str]) -> Framework:
    """The launcher of a framework in a command, also in a text for a shell."""
    if words[:2] != ["bash", "-c"] or len(words) < 3:
        return without_framework(words)[1]
    try:
        commands = list(commands_in(words[2]))
    except UnclosedError:
        return Framework()
    lines = [[*itertools.dropwhile(lambda word: re.match(r"\w+=|\$", word), each.words)] for each in commands]
    return next((cut for each in lines if each and (cut := without_framework(each)[1]).name), Framework())


_PLACEHOLDER = re.compile(
    r"<[^<>]+>|(\./|/sample)?/?path/to\b.*|\{\s*[\w -]+\s*\}|\[[A-Z_ ]+\]|\[[\w./-]+\]|(YOUR|MY)[_-].+|your[_-].+|"
    r".*/your/.*|xxx+|(.*/)?\.\.\.(/.*)?",
    re.I,
)


_IN_CAPITALS = re.compile(
    r"(?:[A-Z]+_)*(?:NAME|ID|PATH|DIR|DIRECTORY|FILE|FOLDER|CONFIG|CONFIGURATION)(?:_[A-Z]+)*|[A-Z]{4,}ID"
)
"""Words that stand for a value: ``DATASET_NAME``."""


def placeholders(each: Launched) -> list[str]:
    """Words of a command line in whose place a value of the user's belongs: ``<name>``, ``--env env_id``."""
    pairs = [(option.strip("-"), word) for option, word in zip(each.words, each.words[1:], strict=False)]
    said = {word for name, word in pairs if re.fullmatch(rf"{re.escape(name)}_(id|name|path)", word)}
    said |= {word for name, word in pairs if name and word == re.sub(r"-", "_", name).upper() and word != name}
    values = {word: word.rpartition("=")[2].strip("\"'\\") for word in each.words[1:]}
    return [
        word
        for word, value in values.items()
        if word in said or _PLACEHOLDER.fullmatch(value) or _IN_CAPITALS.fullmatch(value)
    ]


def is_synopsis(each: Launched) -> bool:
    """Whether a command line shows what can stand there rather than what somebody runs; places of data do no harm."""
    usage = re.search(r"<\s*\w[^<>|]*>|\[", each.dropped)
    stand = [word for word in placeholders(each) if not re.search(r"(^|[=/])path/to/(?!your)", word)]
    return bool(usage or stand or unknown_variables(each.words)) or not {"--help", "-h"}.isdisjoint(each.words)


def subject_of(each: Launched) -> str:
    """The program, or the module by its path."""
    words = without_framework(each.words)[0]
    if re.fullmatch(r"python[\d.]*|julia|Rscript", words[0].rpartition("/")[2]):
        behind = [word for word in words[1:] if word == "-m" or not word.startswith("-")]
        words = behind[1:] if behind[:1] == ["-m"] else behind
        return words[0].replace(".", "/") if words and not words[0].endswith(".py") else "".join(words[:1])
    if re.fullmatch(r"(ba|da|k|z)?sh", words[0].rpartition("/")[2]) and words[1:] and not words[1].startswith("-"):
        return words[1]
    # A command of several words says by the second what it does.
    return "/".join(words[:2]) if all(re.fullmatch(r"\w[\w-]*", each) for each in words[:2]) else words[0]


_TASK = re.compile(r"\$\{?(SLURM_ARRAY_TASK_ID|PBS_ARRAY_INDEX|PBS_ARRAYID|SGE_TASK_ID)\b\}?")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*|[1-9]\b)")
_IN_JOBS = re.compile(r"(SLURM|PBS|PMI|PMIX|OMPI)_\w+|HPCGEN_TASK|USER|HOME|HOSTNAME")


def by_a_shell(words: list[str], start: str = "0", unquoted: Sequence[str] = ()) -> list[str]:
    """A command with variables that are known only when it runs: a shell in the image puts them in.

    ``start``: the number of the first task of an array, which is 0 in jobs of hpcgen. ``unquoted``: variables that are
    several words, or none, if their values are.
    """
    task = "$HPCGEN_TASK" if start == "0" or not start.isdecimal() else f"$((HPCGEN_TASK + {start}))"
    words = [_TASK.sub(lambda match: task, word) for word in words]
    if words[-3:-1] == ["bash", "-c"]:
        return words
    if not any(unknown(word) for word in words):
        return [plain(word) for word in words]
    return ["bash", "-c", f"exec {' '.join(word if word in unquoted else _quoted(word) for word in words)}"]


def _quoted(word: str) -> str:
    """A word for a shell that puts in what the script leaves open."""
    if not unknown(word):
        return command(plain(word))
    # Text in double quotes, but for what a command in it has of its own.
    parts = re.split(r"(?<!\\)(\$\([^()]*\)|`[^`]*`)", word)
    return '"' + "".join(each if n % 2 else each.replace('"', '\\"') for n, each in enumerate(parts)) + '"'


def unknown_variables(words: list[str]) -> list[str]:
    """Variables that neither a batch system nor hpcgen sets in a job."""
    text = [re.sub(r"\\[$`]", "", word) for word in words]
    own = (
        {name for word in text for name in re.findall(r"\b([A-Za-z_]\w*)=", word)}
        if words[-3:-1] == ["bash", "-c"]
        else ()
    )
    names = dict.fromkeys(name for word in text for name in _VARIABLE.findall(word))
    found = [f"${name}" for name in names if not _IN_JOBS.fullmatch(name) and name not in own]
    return [*found, *dict.fromkeys(each for word in text for each in re.findall(r"\$\([^()]*\)|`[^`]*`", word))]


def steps_of(commands: list[list[str]]) -> list[dict[str, Any]]:
    """Commands as the steps of a job, each with a name of its own."""
    steps: list[dict[str, Any]] = []
    for words in commands:
        stem = re.sub(r"[^a-z0-9]+", "-", _subject(words).lower()).strip("-") or "step"
        alike = sum(each["name"] == stem or each["name"].startswith(f"{stem}-") for each in steps)
        steps.append({"name": f"{stem}-{alike + 1}" if alike else stem, "command": words})
    return steps


_CODE = re.compile(
    r"run_module\('([\w.]+)'|\bfrom ([\w.]+) import \w+; sys\.exit\(\w+\(\)\)(?:\S* ([a-z][\w-]*)(?=\s|$))?"
)
"""What :func:`run_module` and :func:`script_code` have Python run, and the first word for that."""
_PLAIN_NAMES = ("main", "__main__", "cli", "run")


def _subject(words: list[str]) -> str:
    """What a command is about: its script, module or program."""
    if code := _CODE.search(" ".join(words)):
        parts = (code[1] or code[2]).split(".")
        own = next((part for part in reversed(parts) if part not in _PLAIN_NAMES), parts[0])
        return f"{own}-{code[3]}" if code[3] else own
    names = [word for word in words if not word.startswith("-") and word not in ("python3", "bash", *RANKS.values())]
    name = names[0] if names else words[0]
    return name.removeprefix("exec ").partition(" ")[0].rpartition("/")[2].partition(".")[0]


def commands_of(run: dict[str, Any]) -> list[list[str]]:
    """What the ``run`` of a stack starts, in its order."""
    if "steps" in run:
        return [each["command"] for each in run["steps"]]
    return [run["command"]] if "command" in run else []


def wrap_reason(draft: Draft, why: str, where: Position) -> None:
    """Say why a command has the block's program before it, or has lost its launcher."""
    draft.add_block("mpi", "the ranks are started by the site's MPI", where)
    draft.because(("run", "command"), None, why, where)


def told_by(draft: Draft, parallel: bool) -> str:
    """The block whose program tells ranks their place, where a program computes on several."""
    if not parallel or "horovod" in draft.blocks:
        return ""
    without = () if draft.torch_of_conda else ("conda_packages",)
    return next((block for block in RANKS if block in draft.blocks and block not in without), "")
