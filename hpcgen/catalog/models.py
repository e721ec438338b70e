"""What the types of a stack's ``run.models`` cannot say: a hash for every file, and a place of its own for each."""

from __future__ import annotations

from posixpath import normpath

from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import Problem, Problems
from hpcgen.core.model.hub_cache import HUB_CACHE
from hpcgen.core.model.image_paths import overlap
from hpcgen.core.model.stack import Stack

_ONE = "`sha256` for one file, or `files` for those of a folder, each with its own"
_REMEDY = "hpcgen data pin ADDRESS writes the entry, with the hashes of what is there now"
_TO = "choose another `to` for one of them"


def model_problems(stack: Stack, document: Document) -> Problems:
    """What is wrong with the models and data sets of a stack, each with its place in the file."""
    problems = Problems()
    for number, model in enumerate(stack.run.models):
        where = document.position(["run", "models", number])
        others = stack.run.models[:number]
        if model.sha256 is None and not model.files:
            problems.add(f"nothing says what {model.name} must be", where, _ONE, _REMEDY)
        elif model.files and (model.sha256 is not None or model.size is not None):
            problems.add(f"{model.name} is both one file and a folder", where, _ONE)
        if model.name in [each.name for each in others]:
            problems.add(f"two models are called {model.name}", where, "a name of its own for each")
        if overlap(model.to, HUB_CACHE):
            message = f"{model.to} and {HUB_CACHE}, where models have their names on the hub, are in each other's way"
            problems.add(message, where, remedy="choose another `to`")
        if normpath(model.to) != model.to:
            problems.add(f"{model.to} is no plain path", where, normpath(model.to))
        problems += [
            Problem(f"{model.to} and {other.to} are the same place, or one is inside the other", where, remedy=_TO)
            for other in others
            if overlap(model.to, other.to)
        ]
        below = [(path, other) for path in model.files for other in model.files if path.startswith(f"{other}/")]
        for path, other in below:
            problems.add(f"{other} is a file, and {path} lies below it", where, "paths of files alone")
    return problems
