"""An ensemble file → its models, each mistake at its place, and the files that it names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import MAX_BYTES, Document, load
from hpcgen.core.errors import InputError, Position, Problems, did_you_mean
from hpcgen.core.support.hashing import read_plain
from hpcgen.plugins.onnx.records import Ensemble, EnsembleInput, EnsembleModel, Origin

BATCH = "batch"
"""The axis whose lengths ``batches`` gives."""
RESERVED = ("given", "log", "programs", "said", "job.json", "ensemble.yaml", "report.json", "report.html", "stack.yaml")
"""No model's name: they are those of other files beside the models' folders."""

_FACTORY: dict[Origin, bool] = {"pytorch": True, "keras": True, "sklearn": True}
_WHAT: dict[Origin, str] = {
    "torch-export": "a program that torch.export.save wrote",
    "tensorflow": "the folder of a SavedModel",
    "onnx": "an ONNX file",
}


class LoadedEnsemble(msgspec.Struct, frozen=True):
    """An ensemble file as it was read, and its text."""

    path: Path
    ensemble: Ensemble
    document: Document
    text: str

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self.path.parent

    def place(self, *path: str | int) -> Position:
        """Where the file says something."""
        return self.document.position(path)

    def given(self, name: str) -> list[str]:
        """The files and folders that a model needs, by their paths below the folder."""
        model = self.ensemble.models[name]
        first = [model.factory.partition(":")[0]] if model.factory else []
        first += [each for each in (model.file, model.converters) if each]
        named = [*first, *model.data, *model.calibration]
        return list(dict.fromkeys([*named, *self.ensemble.include]))

    def chosen(self, names: tuple[str, ...]) -> list[str]:
        """The models of these names, or all; UnknownNameError for one that the file does not have."""
        from hpcgen.core.errors import UnknownNameError

        for name in names:
            if name not in self.ensemble.models:
                remedy = did_you_mean(name, list(self.ensemble.models))
                raise UnknownNameError(f"{self.path} has no model {name!r}", "--only", remedy=remedy)
        return [name for name in self.ensemble.models if not names or name in names]


def read_ensemble(path: Path) -> LoadedEnsemble:
    """Read an ensemble file. Nothing that it names is run, and of data only the names are looked at.

    InputError: with every mistake of the file, each with file, line and column.
    """
    document = load(path)
    ensemble, text = convert(document, Ensemble), read_plain(path, MAX_BYTES).decode("utf-8-sig")
    loaded = LoadedEnsemble(path, ensemble, document, text)
    problems = Problems()
    if not loaded.ensemble.models:
        problems.add("the ensemble has no models", loaded.place("models"), "at least one, by its name")
    for name, model in loaded.ensemble.models.items():
        _check_model(loaded, name, model, problems)
    _check_target(loaded, problems)
    for number, each in enumerate(loaded.ensemble.include):
        _check_given(loaded, each, problems, loaded.place("include", number), folder=True)
    if problems:
        raise InputError(sorted(problems, key=_by_place))
    return loaded


def _by_place(problem: object) -> tuple[int, int]:
    where = getattr(problem, "where", None)
    return (where.line, where.column) if isinstance(where, Position) else (0, 0)


def _check_model(loaded: LoadedEnsemble, name: str, model: EnsembleModel, problems: Problems) -> None:
    document, at = loaded.document, ("models", name)
    if name in RESERVED:
        problems.add(f"no model can be called {name}", document.position(at, key=True), "another name")
    if not model.inputs:
        problems.add(f"{name} has no inputs", document.position((*at, "inputs")), "its inputs, each with its shape")
    _check_source(loaded, name, model, problems)
    _check_axes(loaded, name, model, problems)
    for input_name, each in model.inputs.items():
        _check_values(document.position((*at, "inputs", input_name)), input_name, each, problems)
    endings = (".npz", ".npy") if len(model.inputs) == 1 else (".npz",)
    for field, paths in (("data", model.data), ("calibration", model.calibration)):
        for number, path in enumerate(paths):
            place = document.position((*at, field, number))
            if not path.endswith(endings):
                expected = f"a file {' or '.join(endings)}" + (
                    " with an array for each input" if len(endings) == 1 else ""
                )
                problems.add(f"{path} is not a test data file", place, expected)
            _check_given(loaded, path, problems, place)


def _check_source(loaded: LoadedEnsemble, name: str, model: EnsembleModel, problems: Problems) -> None:
    """Factory and file, as the framework needs them."""
    document, at = loaded.document, ("models", name)
    place = document.position(at)
    takes_factory = _FACTORY.get(model.from_, False)
    if model.factory is not None and not takes_factory:
        problems.add(f"a model from {model.from_} has no factory", document.position((*at, "factory")), "file alone")
    if takes_factory and model.factory is None and model.file is None:
        expected = "factory: FILE.py:FUNCTION, which returns the model, or file"
        problems.add(f"the location of {name} is not set", place, expected)
    if not takes_factory and model.file is None:
        problems.add(f"the location of {name} is not set", place, f"file: {_WHAT[model.from_]}")
    if model.from_ == "sklearn" and model.factory is not None and model.file is not None:
        problems.add("a scikit-learn model is a file or the result of a factory, not both", place, "one of the two")
    if model.arguments and model.factory is None:
        problems.add("arguments are those of a factory", document.position((*at, "arguments")), "a factory too")
    if document.has((*at, "signature")) and model.from_ != "tensorflow":
        problems.add("only a SavedModel has signatures", document.position((*at, "signature")), "no signature")
    if model.converters is not None:
        given = document.position((*at, "converters"))
        if not model.converters.endswith(".py"):
            problems.add(f"{model.converters} is not a Python file", given, "FILE.py, which registers converters")
        _check_given(loaded, model.converters, problems, given)
    if model.factory is not None:
        _check_given(loaded, model.factory.partition(":")[0], problems, document.position((*at, "factory")))
    if model.file is not None:
        _check_given(loaded, model.file, problems, document.position((*at, "file")), folder=model.from_ == "tensorflow")


def _check_axes(loaded: LoadedEnsemble, name: str, model: EnsembleModel, problems: Problems) -> None:
    document, at = loaded.document, ("models", name)
    named = {axis for each in model.inputs.values() for axis in each.dimensions if isinstance(axis, str)}
    for axis in sorted(named - {BATCH} - set(model.axes)):
        place = document.position((*at, "inputs"))
        problems.add(f"nothing says how long the axis {axis} of {name} is when it is traced", place, f"axes: {axis}: N")
    for axis in sorted(set(model.axes) - named):
        place = document.position((*at, "axes", axis), key=True)
        problems.add(f"no input of {name} has an axis {axis}", place, remedy=did_you_mean(axis, sorted(named)))
    if model.batches and BATCH not in named:
        problems.add(
            f"no input of {name} has an axis {BATCH} to vary",
            document.position((*at, "batches")),
            f"{BATCH} in a shape",
        )


def _check_values(place: Position, name: str, each: EnsembleInput, problems: Problems) -> None:
    if not each.low < each.high:
        problems.add(f"no value of {name} is between {each.low:g} and {each.high:g}", place, "low less than high")
    if each.dtype.startswith(("int", "uint")) and (each.low % 1 or each.high % 1):
        problems.add(f"{name} has whole numbers, but its limits do not", place, "whole numbers as low and high")


def _check_target(loaded: LoadedEnsemble, problems: Problems) -> None:
    target = loaded.ensemble.target
    if target.partition is not None and target.site is None:
        problems.add("a partition without its site", loaded.place("target", "partition"), "site: its name too")


def _check_given(
    loaded: LoadedEnsemble, path: str, problems: Problems, place: Position, *, folder: bool = False
) -> None:
    """A file that is named is there, is no special file, and does not lead out of the folder.

    ``folder``: it may be one, with all that is in it.
    """
    full = loaded.folder / path
    try:
        found = full.resolve(strict=True)
    except OSError as failure:
        why = "there is no" if isinstance(failure, FileNotFoundError) else f"{failure.strerror}:"
        problems.add(f"{why} {path}", place, f"a file below {loaded.folder or '.'}", "check the spelling of its path")
        return
    except RuntimeError:
        problems.add(
            f"{path} is a link that leads to itself", place, "a file", remedy="put the file there in its place"
        )
        return
    root = loaded.folder.resolve()
    if not found.is_relative_to(root):
        problems.add(f"{path} leads out of the ensemble's folder", place, f"a file below {root}", "copy it there")
        return
    what = "a file or a folder" if folder else "a file"
    if found.is_dir() and not folder:
        problems.add(f"{path} is a folder", place, what)
        return
    if not found.is_dir() and not found.is_file():
        problems.add(f"{path} is not a regular file", place, what)
        return
    for each in files_below(found) if found.is_dir() else ():
        mode = each.lstat().st_mode
        if not stat.S_ISREG(mode):
            kind = "a symbolic link" if stat.S_ISLNK(mode) else "not a regular file"
            problems.add(
                f"{each.relative_to(root)} is {kind}",
                place,
                "regular files alone in a folder that is given",
                remedy="put the file there in its place, or take it out",
            )
            return


def files_below(folder: Path) -> Iterator[Path]:
    """All that is below a folder but folders, in a fixed order; links are not followed."""
    for place, names, found in os.walk(folder):
        linked = [name for name in names if Path(place, name).is_symlink()]
        names.sort()
        for name in sorted([*found, *linked]):
            yield Path(place, name)
