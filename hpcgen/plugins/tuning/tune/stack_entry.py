"""Variables and the memory that a search found, put into a stack's file as text: all else stays as it was."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec

from hpcgen._version import __version__
from hpcgen.core.config.yamlfile import Document, load, loads
from hpcgen.core.errors import InputError
from hpcgen.core.support.writing import write_file
from hpcgen.machine.detect.yaml_text import dump
from hpcgen.planning.memory import DECIDES
from hpcgen.plugins.tuning.bench.comparison import Compared
from hpcgen.plugins.tuning.bench.running import BenchOutcome, image_variables
from hpcgen.plugins.tuning.bench.variants import KEEPING, of_memory
from hpcgen.plugins.tuning.tune.profile import LayoutEntry, indent_of, with_entry

_ENVIRONMENT = ("run", "environment")
_BLOCKS = {"kept_memory", "huge_pages"}


class StackEntry(msgspec.Struct, frozen=True):
    """Variables for a stack's ``run.environment``, its ``memory``, and the note that says how they were measured."""

    variables: dict[str, str]
    note: str
    memory: str = ""

    @property
    def words(self) -> list[str]:
        """What is added, by its names."""
        return [*self.variables, *([f"memory: {self.memory}"] if self.memory else [])]

    @property
    def text(self) -> str:
        """As it stands in a stack."""
        memory = {"memory": self.memory} if self.memory else {}
        run = {"run": {"environment": self.variables}} if self.variables else {}
        return dump({**memory, **run, "notes": [self.note]})


def is_stack(path: Path) -> bool:
    """Whether a file is a stack's and no profile's."""
    data = load(path).data
    return bool({"blocks", "run", "from"} & data.keys()) and "partitions" not in data


def stack_entry(winner: Compared, layout: LayoutEntry) -> StackEntry | None:
    """The variables and the memory of what was faster than the default; None if it sets neither.

    None too where memory was kept because somebody asked for that: a stack's ``memory`` only takes defaults away.
    """
    outcome = winner.outcome
    variables, memory = _variables(outcome), "plain" if outcome.variant.memory == "plain" else ""
    plan = outcome.case.job.plan
    if (memory and _is_asked_for(outcome)) or not (variables or memory):
        return None
    cpu = plan.site.partitions[plan.partition].cpu
    where = f"{plan.site.name}-{plan.partition}, {cpu.model or cpu.target}"
    names = ", ".join([*variables, *(["memory"] if memory else [])])
    note = f"{names}: hpcgen tune {__version__} on {where}: {layout.layout.measured}"
    if any(name.startswith("HPCGEN_") for name in variables):
        note += "; programs read HPCGEN_… by the block hpcgen_settings"
    return StackEntry(variables, note, memory)


def _is_asked_for(outcome: BenchOutcome) -> bool:
    """Whether memory is kept by a block or variables that somebody asked for."""
    job = outcome.case.job
    known = image_variables(outcome.case)
    more = [name for name in known.keys() - of_memory(known).keys() if name.startswith(DECIDES)]
    by_image = all(name in job.environment and name not in job.plan.stack.run.environment for name in KEEPING)
    return bool(more) or not by_image or bool(_BLOCKS & job.plan.stack.blocks.keys())


def _variables(outcome: BenchOutcome) -> dict[str, str]:
    """Of what was measured. A stack that sets malloc's variables has no memory kept by default: it says that too."""
    variables = outcome.variant.environment
    if outcome.variant.memory == "plain" or not any(name.startswith(DECIDES) for name in variables):
        return dict(variables)
    return {**of_memory(image_variables(outcome.case)), **variables}


def add_to_stack(path: Path, entry: StackEntry) -> None:
    """Put the variables and the note into a stack, in the place of values that it has for them.

    Raises
    ------
    InputError: the file is not written with one key per line; what is to be added is in the message. Nothing changed.
    OutputError: it cannot be written.
    """
    before = load(path)
    written = path.read_text("utf-8")
    try:
        if entry.memory:
            written = _with_memory(loads(written, str(path)), written, entry.memory)
        for name, value in entry.variables.items():
            written = _with_variable(loads(written, str(path)), written, name, value)
        written = with_entry(loads(written, str(path)), written, "notes", [entry.note])
        good = loads(written, str(path)).data == _wanted(before.data, entry)
    except InputError:
        good = False
    if not good:
        message = "it does not have one key per line, so nothing can be added without changing the rest"
        raise InputError(message, str(path), remedy=f"add this by hand:\n{entry.text}")
    write_file(path, written)


def _with_memory(document: Document, text: str, memory: str) -> str:
    own = dump({"memory": memory})
    if not document.has(("memory",)):
        return text + ("" if text.endswith("\n") else "\n") + own
    lines = text.splitlines(keepends=True)
    at = document.position(("memory",), key=True).line - 1
    lines[at : at + 1] = [own]
    return "".join(lines)


def _with_variable(document: Document, text: str, name: str, value: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    own = dump({name: value})
    path = (*_ENVIRONMENT, name)
    if document.has(path):
        at = document.position(path, key=True).line - 1
        lines[at : at + 1] = [indent_of(lines, at) + own]
    elif document.has(_ENVIRONMENT) and document.data["run"]["environment"]:
        first = next(iter(document.data["run"]["environment"]))
        at = document.position((*_ENVIRONMENT, first), key=True).line - 1
        lines[at:at] = [indent_of(lines, at) + own]
    elif document.has(("run",)) and document.data["run"] and not document.has(_ENVIRONMENT):
        at = document.position(("run", next(iter(document.data["run"]))), key=True).line - 1
        indent = indent_of(lines, at)
        lines[at:at] = [f"{indent}environment:\n", f"{indent}  {own}"]
    else:
        lines += ["run:\n", "  environment:\n", f"    {own}"]
    return "".join(lines)


def _wanted(before: dict[str, Any], entry: StackEntry) -> dict[str, Any]:
    """What the old text said, and the entry."""
    wanted = deepcopy(before)
    if entry.memory:
        wanted["memory"] = entry.memory
    if entry.variables:
        run = wanted.get("run") or {}
        wanted["run"] = {**run, "environment": {**(run.get("environment") or {}), **entry.variables}}
    wanted["notes"] = [entry.note, *(before.get("notes") or [])]
    return wanted
