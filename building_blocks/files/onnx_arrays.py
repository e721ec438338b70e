"""Data files read for a model, cut into pieces, and results written whole: part of onnx_infer.py."""

import hashlib
import os
import socket
import time
import zipfile
from pathlib import Path

import numpy as np
from onnx_sessions import Cannot

LEFT_BEHIND_S = 3600.0


class Unfit(Exception):
    """Arrays that are not those of the model."""


def read_data(path, model):
    """The arrays of a file by the model's inputs, in its types."""
    names = [name for name, _, _ in model.inputs]
    try:
        with np.load(path, allow_pickle=False) if path.suffix == ".npz" else _one(path, names) as given:
            missing = [name for name in names if name not in given]
            if missing:
                raise Unfit(f"it has no {', '.join(missing)}, only {', '.join(given)}")
            arrays = {name: given[name] for name in names}
    except Unfit as failure:
        raise Cannot(f"{path}: {failure}") from failure
    except (OSError, ValueError, zipfile.BadZipFile, EOFError) as failure:
        raise Cannot(f"{path} holds no arrays of numbers, or is damaged: {failure}") from failure
    return {name: _fitted(path, arrays[name], name, shape, kind) for name, shape, kind in model.inputs}


class _one(dict):
    """The array of a file .npy as if its file had named it."""

    def __init__(self, path, names):
        if len(names) != 1:
            raise Unfit(f"the model has the inputs {', '.join(names)}, and a .npy file holds one: give an .npz file")
        super().__init__({names[0]: np.load(path, allow_pickle=False)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def _fitted(path, array, name, shape, kind):
    if array.ndim != len(shape):
        raise Cannot(f"{path}: {name} has the shape {array.shape}, the model takes {shape}")
    for found, wanted in list(zip(array.shape, shape, strict=True))[1:]:
        if isinstance(wanted, int) and found != wanted:
            raise Cannot(f"{path}: {name} has the shape {array.shape}, the model takes {shape}")
    if array.dtype != kind and not np.can_cast(array.dtype, kind, "same_kind"):
        raise Cannot(f"{path}: {name} is {array.dtype}, the model takes {kind}")
    return array.astype(kind, copy=False)


def infer(model, arrays, batch):
    """What the model gives for all rows: pieces of ``batch`` rows, or as long as the model's first axis is fixed."""
    fixed = {shape[0] for _, shape, _ in model.inputs if shape and isinstance(shape[0], int)}
    lengths = {len(arrays[name]) for name, shape, _ in model.inputs if shape and not isinstance(shape[0], int)}
    if fixed and not lengths and all(len(arrays[name]) == shape[0] for name, shape, _ in model.inputs if shape):
        return model.run(arrays)
    rows = {len(each) for each in arrays.values() if each.ndim}
    if len(rows) != 1:
        raise Cannot(f"the arrays have different first axes: {', '.join(map(str, sorted(rows)))}")
    (total,), step = rows, min(fixed) if fixed else batch
    if total == 0:
        raise Cannot("the arrays have no rows")
    pieces = []
    for first in range(0, total, step):
        part = {name: each[first : first + step] for name, each in arrays.items()}
        count = min(step, total - first)
        found = model.run({name: padded(each, step) for name, each in part.items()} if fixed else part)
        wanted = step if fixed else count
        if total > count and any(each.ndim == 0 or len(each) != wanted for each in found):
            raise Cannot(f"an output is not by row, so that {total} rows cannot be cut into pieces: --batch {total}")
        pieces.append([each[:count] for each in found] if fixed else found)
    return pieces[0] if len(pieces) == 1 else [np.concatenate(each) for each in zip(*pieces, strict=True)]


def padded(array, length):
    """The array with its last row repeated up to a length that the model has fixed."""
    lack = length - len(array)
    return np.concatenate([array, np.repeat(array[-1:], lack, axis=0)]) if lack > 0 else array


def digest(path):
    """SHA-256 of a file; of a model's also of the weights that lie beside it."""
    beside = []
    if path.suffix in (".onnx", ".xml"):
        beside = [each for end in ("*.data", "*.bin", "*.onnx_data") for each in path.parent.glob(end)]
    total = hashlib.sha256()
    for each in [path, *sorted(beside)]:
        with each.open("rb") as file:
            while piece := file.read(1 << 20):
                total.update(piece)
    return total.hexdigest()


def is_whole(path, mark):
    """Whether a result is there, whole, and of this model and these data."""
    try:
        with zipfile.ZipFile(path) as found:
            return found.comment == mark and bool(found.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def write(path, arrays, mark):
    """Write a result whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_behind(path)
    aside = path.with_name(f".{path.name}.{here()}.{os.getpid()}.partial")
    try:
        with aside.open("wb") as file:
            np.savez(file, **arrays)
        with zipfile.ZipFile(aside, "a") as file:
            file.comment = mark
        with aside.open("rb+") as file:
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def here():
    """Where the number of a process means one: this host, and in a container that has its own numbers, that."""
    try:
        numbers = f"-{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        numbers = ""
    return socket.gethostname() + numbers


def remove_left_behind(path):
    """What a process that was killed had begun to write."""
    for each in path.parent.glob(f".{glob_escaped(path.name)}.*.partial"):
        host, _, number = each.name.removesuffix(".partial").removeprefix(f".{path.name}.").rpartition(".")
        gone = host == here() and number.isdecimal() and not Path("/proc", number).exists()
        try:
            if gone or time.time() - each.stat().st_mtime > LEFT_BEHIND_S:
                each.unlink()
        except OSError:
            pass


def glob_escaped(text):
    return "".join(f"[{each}]" if each in "*?[" else each for each in text)
