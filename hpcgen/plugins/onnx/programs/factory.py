"""What a user's factory returns. It is foreign code: it runs here, in the container, and nowhere else."""

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path

from .common import GIVEN, text


def made(model):
    """The model that the factory gives for the arguments of the ensemble file."""
    path, _, name = model.factory.rpartition(":")
    function = getattr(module(model, path), name, None)
    if not callable(function):
        raise model.wrong(f"{path} has no function {name}", "correct factory in the ensemble file")
    try:
        inspect.signature(function).bind(**model.arguments)
    except TypeError as failure:
        raise model.wrong(
            f"{model.factory} cannot be called so: {failure}", "correct arguments in the ensemble file"
        ) from None
    except ValueError:
        pass  # Python knows no signature of it.
    try:
        return function(**model.arguments)
    except Exception as failure:
        raise model.wrong(
            f"{model.factory} fails{place_of(failure)}: {type(failure).__name__}: {failure}", "correct the factory"
        ) from failure


def module(model, path):
    """A file of the user's, run once: a factory's, or one that registers converters."""
    file = GIVEN / path
    name = file.stem
    if name not in sys.modules:
        sys.path.append(str(file.parent.resolve()))
        spec = importlib.util.spec_from_file_location(name, file.resolve())
        sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(sys.modules[name])
        except Exception as failure:
            del sys.modules[name]
            raise model.wrong(
                f"{path} cannot be imported{place_of(failure)}: {type(failure).__name__}: {failure}",
                "name the files that it needs in include; packages must be in the image",
            ) from failure
    return sys.modules[name]


def place_of(failure):
    """The last line of the user's own files that a failure comes from, "" if of none."""
    mine = str(GIVEN.resolve())
    for each in reversed(traceback.extract_tb(failure.__traceback__)):
        if each.filename.startswith(mine):
            return f" at {shown(each.filename)}:{each.lineno}"
    return ""


def shown(file):
    """A file as the user knows it: from the ensemble's folder."""
    file = Path(file)
    try:
        return str(file.resolve().relative_to(GIVEN.resolve()))
    except ValueError:
        return text(file)
