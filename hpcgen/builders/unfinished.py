"""The folder of a build, and the half image that a killed build leaves beside its final place."""

from __future__ import annotations

import contextlib
from contextlib import AbstractContextManager
from pathlib import Path

from hpcgen.engines.building import Target
from hpcgen.support.leftovers import work_folder
from hpcgen.support.placing import PARTIAL, remove

_NOTE = "unfinished"
"""The file in a build's folder that says where its image is until it is whole."""


def build_folder() -> AbstractContextManager[tuple[Path, int]]:
    """A build's folder and the descriptor that locks it; what killed builds have left goes first."""
    return work_folder("hpcgen-build-", _remove)


def note(folder: Path, target: Target) -> None:
    """Note where the image will be while it is not whole."""
    if target.is_file:
        (folder / _NOTE).write_text(target.temporary, encoding="utf-8")


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        path = Path((folder / _NOTE).read_text(encoding="utf-8"))
        if path.is_absolute() and path.name.startswith(PARTIAL):
            remove(path)
