"""A fitted model as a file: the same rows give the same bytes."""

from __future__ import annotations

from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import InputError
from hpcgen.core.support.file_formats import MODEL
from hpcgen.core.support.hashing import read_plain
from hpcgen.plugins.tuning.predict.linear import LinearModel
from hpcgen.plugins.tuning.predict.terms import BY_NAME

MAX_BYTES = 64 * 1024 * 1024


def model_text(model: LinearModel) -> str:
    """A model as JSON, one value on a line, so that two can be compared."""
    return msgspec.json.format(msgspec.json.encode(model), indent=1).decode() + "\n"


def read_model(path: Path) -> LinearModel:
    """A model that ``hpcgen model fit -o`` wrote.

    Raises
    ------
    InputError: it cannot be read, is no model, or a newer hpcgen wrote it.
    """
    remedy = f"write one with: {MODEL.command}"
    try:
        data = read_plain(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise InputError(f"{path} is larger than any model", remedy=remedy)
        plain = msgspec.json.decode(data)
    except OSError as failure:
        raise InputError(f"the model {path} cannot be read: {failure.strerror}", remedy=remedy) from failure
    except (msgspec.DecodeError, RecursionError) as failure:
        raise InputError(f"{path} is no model: {failure}", remedy=remedy) from failure
    MODEL.check(plain, str(path))
    try:
        found = record_from(plain, LinearModel)
    except (msgspec.ValidationError, RecursionError) as failure:
        raise MODEL.not_understood(plain, str(path), failure) from failure
    terms = {column.term for column in found.columns} | {seen.term for seen in found.seen}
    if unknown := sorted(terms - BY_NAME.keys()):
        raise MODEL.not_understood(plain, str(path), f"no term is called {ascii(unknown[0])[:40]}")
    if any(len(row.position) != len(found.columns) for row in found.rows):
        raise MODEL.not_understood(plain, str(path), "a row has not one position for each column")
    return found
