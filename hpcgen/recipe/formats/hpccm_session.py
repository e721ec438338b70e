"""The only place that touches hpccm: primitives of one recipe are made and printed under one lock.

hpccm keeps format, distribution and version in module globals, freezes some of them when an object is made and
reads others when it is printed. So a whole recipe is made from plain descriptions, printed, and the globals put
back, before anybody else may start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpcgen.core.model.recipe_facts import KeptPart, PulledBase, StepLabel, StoredBase
from hpcgen.core.support.partial_packages import module_alone
from hpcgen.core.support.traced import Subject, Traced, subjects_of, together, traced

STAGES = ("builder", "final")
_LOCK = threading.Lock()
_GLOBALS = (
    "g_cpu_arch",
    "g_cpu_target",
    "g_ctype",
    "g_linux_distro",
    "g_linux_version",
    "g_singularity_version",
    "g_wd",
    "g_singularity_tmp_fallback",
)


class Primitive(msgspec.Struct, frozen=True):
    """An hpccm primitive to be made: its class's name and keyword arguments.

    ``label``: what it does, for an instruction that runs commands. ``joined``: no empty line comes after it. ``of``:
    what all its lines are of, where they do not say it themselves.
    """

    name: str
    arguments: Mapping[str, Any] = {}
    label: StepLabel | None = None
    joined: bool = False
    of: Subject | None = None


class Written(msgspec.Struct, frozen=True):
    """The text of a recipe, whose lines know what they are of, and by stage what its instructions that run commands do.

    ``heredoc``: the word that ends what engines read, where the text is a script with that in a here-document.
    ``bases``: base images whose digest engines do not check themselves. ``stored``: those that are told to a cache.
    ``lines``: on which line each primitive begins, by stage, from 0. ``kept``: what is done once for many projects.
    """

    text: str
    steps: list[list[StepLabel]]
    heredoc: str = ""
    bases: list[PulledBase] = []
    stored: list[StoredBase] = []
    lines: list[list[int]] = []
    kept: KeptPart | None = None


def primitive(
    name: str, label: StepLabel | None = None, joined: bool = False, of: Subject | None = None, **arguments: Any
) -> Primitive:
    """A :class:`Primitive` by keywords."""
    return Primitive(name, arguments, label, joined, of)


def emit(stages: Sequence[Sequence[Primitive]], kind: str) -> Written:
    """A recipe: its text, and the labels of the primitives in the order in which they stand there.

    ``stages``: the primitives of each stage, in order, the final one last. ``kind``: ``docker`` or ``singularity``.
    """
    with _LOCK:
        module_alone("hpccm.primitives")
        hpccm = sys.modules["hpccm"]
        kept = {name: getattr(hpccm.config, name) for name in _GLOBALS}
        try:
            hpccm.config.set_container_format(kind)
            hpccm.config.set_singularity_version("3.2")
            named = zip(stages, STAGES[-len(stages) :], strict=True)
            printed = [_stage(hpccm, stage, name) for stage, name in named]
            text = together([together(pieces) for pieces in printed], "\n\n")
        finally:
            for name, value in kept.items():
                setattr(hpccm.config, name, value)
    labels = [[each.label for each in stage if each.label is not None] for stage in stages]
    return Written(text, labels, lines=_first_lines(printed))


def _first_lines(stages: Sequence[Sequence[str]]) -> list[list[int]]:
    """Of each primitive, the number of its first line in the whole text."""
    found: list[list[int]] = []
    line = 0
    for pieces in stages:
        found.append([])
        for piece in pieces:
            found[-1].append(line)
            line += piece.count("\n")
        line += 2
    return found


def _stage(hpccm: Any, descriptions: Sequence[Primitive], name: str) -> list[str]:
    """The text of each primitive, with the break after it."""
    printed = []
    for description in descriptions:
        # hpccm keeps and changes the lists it is given.
        arguments = {k: list(v) if isinstance(v, (tuple, list)) else v for k, v in description.arguments.items()}
        if description.name == "comment":
            made = hpccm.primitives.comment(arguments.pop("text"), **arguments)
        else:
            made = getattr(hpccm.primitives, description.name)(**arguments)
        after = "\n" if description.joined else "\n\n"
        last = description is descriptions[-1]
        printed.append(together([_with_subjects(str(made), description, name), "" if last else after]))
    return printed


def _with_subjects(text: str, description: Primitive, stage: str) -> str:
    """hpccm's output with the subjects of its lines: raw text comes back line by line as it was given."""
    if description.of is not None:
        return traced(text, description.of._replace(stage=stage))
    given = [subjects_of(each) for each in description.arguments.values() if isinstance(each, str)]
    found = Traced(text)
    found.subjects = {line: of._replace(stage=stage) for each in given for line, of in each.items()}
    return found
