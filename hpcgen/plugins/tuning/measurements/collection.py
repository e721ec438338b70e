"""The measurements of collections: ``measurements/*.yaml`` by people, and ``*.jsonl``, to which programs add."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hpcgen.core.config.yamlfile import LONG_LIST, Document, load
from hpcgen.core.errors import InputError, Problems
from hpcgen.plugins.tuning.measurements.lines import read_lines
from hpcgen.plugins.tuning.measurements.lookup import Measurements
from hpcgen.plugins.tuning.measurements.records import Measurement
from hpcgen.plugins.tuning.measurements.table import rows_of

FOLDER = "measurements"


def load_measurements(collections: Sequence[Path], shown: Callable[[Path], str] = str) -> Measurements:
    """Every row of every collection; they add up, those of earlier collections first.

    Parameters
    ----------
    collections: their folders, as in ``Catalog.folders``.
    shown: how messages name a file.

    Raises
    ------
    InputError: with all that is wrong in all files.
    """
    rows: list[Measurement] = []
    problems = Problems()
    for collection in collections:
        for path in sorted((collection / FOLDER).glob("*")):
            with problems.caught():
                rows += read_file(path, shown(path))
    problems.raise_as(InputError)
    return Measurements(rows)


def read_file(path: Path, name: str) -> list[Measurement]:
    """The rows of one file; none of a file that is neither kind.

    Raises
    ------
    InputError: with all that is wrong in it.
    """
    if path.suffix == ".yaml":
        return rows_of(load(path, name, LONG_LIST))
    return read_lines(path, name) if path.suffix == ".jsonl" else []


def check_measurements(document: Document | None, path: Path, *_: object) -> None:
    """What ``hpcgen check`` asks of a table, or of a file of lines, which is no document."""
    if document is None:
        read_lines(path, str(path))
    else:
        rows_of(document)
