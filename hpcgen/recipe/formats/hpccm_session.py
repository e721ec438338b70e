"""The only place that touches hpccm: primitives of one recipe are made and printed under one lock.

hpccm keeps format, distribution and version in module globals, freezes some of them when an object is made and
reads others when it is printed. So a whole recipe is made from plain descriptions, printed, and the globals put
back, before anybody else may start.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hpcgen.model.recipe_facts import PulledBase, StepLabel

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

    ``label``: what it does, for an instruction that runs commands. ``joined``: no empty line comes after it.
    """

    name: str
    arguments: Mapping[str, Any] = {}
    label: StepLabel | None = None
    joined: bool = False


class Written(msgspec.Struct, frozen=True):
    """The text of a recipe, and by stage what its instructions that run commands are for.

    ``heredoc``: the word that ends what engines read, where the text is a script with that in a here-document.
    ``bases``: base images whose digest engines do not check themselves.
    """

    text: str
    steps: list[list[StepLabel]]
    heredoc: str = ""
    bases: list[PulledBase] = []


def primitive(name: str, label: StepLabel | None = None, joined: bool = False, **arguments: Any) -> Primitive:
    """A :class:`Primitive` by keywords."""
    return Primitive(name, arguments, label, joined)


def emit(stages: Sequence[Sequence[Primitive]], kind: str) -> Written:
    """A recipe: its text, and the labels of the primitives in the order in which they stand there.

    Parameters
    ----------
    stages: the primitives of each stage, in order.
    kind: ``docker`` or ``singularity``.
    """
    with _LOCK:
        with warnings.catch_warnings():
            # Python 3.12 and later warn of backslashes in hpccm's own modules when they are compiled.
            warnings.simplefilter("ignore", SyntaxWarning)
            import hpccm
            import hpccm.config
            import hpccm.primitives
        kept = {name: getattr(hpccm.config, name) for name in _GLOBALS}
        try:
            hpccm.config.set_container_format(kind)
            hpccm.config.set_singularity_version("3.2")
            text = "\n\n".join(_stage(hpccm, stage) for stage in stages)
        finally:
            for name, value in kept.items():
                setattr(hpccm.config, name, value)
    return Written(text, [[each.label for each in stage if each.label is not None] for stage in stages])


def _stage(hpccm: Any, descriptions: Sequence[Primitive]) -> str:
    text = ""
    for description in descriptions:
        # hpccm keeps and changes the lists it is given.
        arguments = {k: list(v) if isinstance(v, (tuple, list)) else v for k, v in description.arguments.items()}
        if description.name == "comment":
            made = hpccm.primitives.comment(arguments.pop("text"), **arguments)
        else:
            made = getattr(hpccm.primitives, description.name)(**arguments)
        text += f"{made}\n" if description.joined else f"{made}\n\n"
    return text.rstrip("\n")
