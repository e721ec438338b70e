"""The words of a command of the project, as they are in the image."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from hpcgen.core.support.quoting import command
from hpcgen.project.draft import APP, Draft
from hpcgen.project.found import Found

_TORCHRUN = ("torch.distributed.run", "torch.distributed.launch")
_TORCHRUN_PLAIN = {"--standalone", "--use_env", "--use-env", "-m", "--module", "--no_python", "--no-python"}
_PYTHON = r"python(\d(\.\d+)?)?"
RANKS = {"pytorch": "/opt/pytorch/share/ranks.py", "jax": "/opt/jax/share/ranks.py"}
"""The program of each framework's block that tells a rank its place, whatever launched it."""


def in_image(words: list[str], found: Found, draft: Draft, folder: str = "") -> list[str]:
    """The same command in the image: programs and files of the project by their places there.

    Parameters
    ----------
    folder: of the job script, where it is not the project's own.
    """
    there = {each.path for each in found.tree.files}
    as_module = re.fullmatch(_PYTHON, words[0].rpartition("/")[2]) and words[1:2] == ["-m"] and len(words) > 2
    if as_module and (root := module_root(words[2], found)) is not None:
        return [*run_module(words[2], root), *in_image(["-", *words[3:]], found, draft, folder)[1:]]
    result = []
    for number, word in enumerate(words):
        path = _plain(word)
        if number == 0:
            result.append(_program(word, path, there, draft))
        elif path in there:
            result.append(f"{APP}/{path}")
        elif folder and _plain(f"{folder}/{path}") in there:
            result.append(f"{APP}/{_plain(f'{folder}/{path}')}")
        else:
            result.append(word)
    return result


def _program(word: str, path: str, there: set[str], draft: Draft) -> str:
    name = word.rpartition("/")[2]
    if re.fullmatch(_PYTHON, name):
        return "python3"
    if name in draft.programs:
        return draft.programs[name]
    if path in there or word.startswith(("./", "build/")):
        return f"{APP}/{path}"
    return word


def module_root(module: str, found: Found) -> str | None:
    """The folder in the image where a module of the project is found; None where the project has none of that name."""
    path = module.replace(".", "/")
    for below in ("", "src/"):
        if any(found.tree.has(f"{below}{path}{end}") for end in (".py", "/__init__.py", "/__main__.py")):
            return f"{APP}/{below}".rstrip("/")
    return None


def run_module(module: str, root: str) -> list[str]:
    """``python3 -m MODULE``, wherever the job starts."""
    code = f"import runpy, sys; sys.path.insert(0, {root!r}); runpy.run_module({module!r}, None, '__main__', True)"
    return ["python3", "-c", code]


def _plain(word: str) -> str:
    return re.sub(r"/(\./)+", "/", re.sub(r"^(\./)+", "", word))


class Torchrun(NamedTuple):
    """What was left out of a command: the program, and the ranks that it starts on each node as it is asked to."""

    name: str = ""
    ranks: str = ""


def without_torchrun(words: list[str]) -> tuple[list[str], Torchrun]:
    """A command without ``torchrun`` and its options, and what was left out: here the site's launcher starts ranks."""
    if words[0].rpartition("/")[2] == "torchrun":
        behind, cut = words[1:], "torchrun"
    elif len(words) > 2 and words[1] == "-m" and words[2] in _TORCHRUN:
        behind, cut = words[3:], words[2]
    else:
        return words, Torchrun()
    number, module, ranks = 0, False, ""
    while number < len(behind) and behind[number].startswith("-"):
        name, joined, value = behind[number].partition("=")
        module = module or name in ("-m", "--module")
        number += 1
        if not joined and name not in _TORCHRUN_PLAIN:
            value = "".join(behind[number : number + 1])
            number += 1
        if name.replace("_", "-") == "--nproc-per-node":
            ranks = value
    if number >= len(behind):
        return words, Torchrun()
    return ["python3", *(["-m"] if module else []), *behind[number:]], Torchrun(cut, ranks)


_TASK = re.compile(r"\$\{?(SLURM_ARRAY_TASK_ID|PBS_ARRAY_INDEX|PBS_ARRAYID|SGE_TASK_ID)\b\}?")
_VARIABLE = re.compile(r"\$\{?([A-Za-z_]\w*)")
_IN_JOBS = re.compile(r"(SLURM|PBS|PMI|PMIX|OMPI)_\w+|HPCGEN_TASK|USER|HOME|HOSTNAME")


def by_a_shell(words: list[str], start: str = "0") -> list[str]:
    """A command with variables that are known only when it runs: a shell in the image puts them in.

    Parameters
    ----------
    start: the number of the first task of an array, which is 0 in jobs of hpcgen.
    """
    task = "$HPCGEN_TASK" if start == "0" or not start.isdecimal() else f"$((HPCGEN_TASK + {start}))"
    words = [_TASK.sub(lambda match: task, word) for word in words]
    if not any("$" in word or "`" in word for word in words):
        return words
    line = " ".join(f'"{word}"' if "$" in word and '"' not in word else command(word) for word in words)
    return ["bash", "-c", f"exec {line}"]


def unknown_variables(words: list[str]) -> list[str]:
    """Variables that neither a batch system nor hpcgen sets in a job."""
    names = dict.fromkeys(name for word in words for name in _VARIABLE.findall(word))
    return [f"${name}" for name in names if not _IN_JOBS.fullmatch(name)]


def steps_of(commands: list[list[str]]) -> list[dict[str, Any]]:
    """Commands as the steps of a job, each with a name of its own."""
    steps: list[dict[str, Any]] = []
    for words in commands:
        stem = re.sub(r"[^a-z0-9]+", "-", _subject(words).lower()).strip("-") or "step"
        alike = sum(each["name"] == stem or each["name"].startswith(f"{stem}-") for each in steps)
        steps.append({"name": f"{stem}-{alike + 1}" if alike else stem, "command": words})
    return steps


def _subject(words: list[str]) -> str:
    """What a command is about: its script or program."""
    names = [word for word in words if not word.startswith("-") and word not in ("python3", "bash", *RANKS.values())]
    name = names[0] if names else words[0]
    return name.removeprefix("exec ").partition(" ")[0].rpartition("/")[2].partition(".")[0]


def commands_of(run: dict[str, Any]) -> list[list[str]]:
    """What the ``run`` of a stack starts, in its order."""
    return (
        [each["command"] for each in run["steps"]] if "steps" in run else [run["command"]] if "command" in run else []
    )
