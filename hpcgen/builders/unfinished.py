"""The folder of a build, and what a killed build leaves: a half image beside its final place, or a name in a store."""

from __future__ import annotations

import contextlib
import re
from contextlib import AbstractContextManager
from pathlib import Path

from hpcgen.backends.engines import builders
from hpcgen.backends.engines.building import Target, query
from hpcgen.core.support.leftovers import work_folder
from hpcgen.core.support.placing import PARTIAL, remove

_NOTE = "unfinished"
"""The file in a build's folder that says where its image is until it is whole."""
_STORED = re.compile(r"(localhost/)?hpcgen-build:[0-9a-f]{8}")
"""Such a name in a store of docker, podman or buildah."""


def build_folder() -> AbstractContextManager[tuple[Path, int]]:
    """A build's folder and the descriptor that locks it; what killed builds have left goes first."""
    return work_folder("hpcgen-build-", remove_unfinished)


def note(folder: Path, builder: str, target: Target) -> None:
    """Note where the image of a builder will be while it is not whole."""
    (folder / _NOTE).write_text(f"{builder}\n{target.temporary}", encoding="utf-8")


def remove_unfinished(folder: Path) -> None:
    """Remove the half image that a killed build noted in its folder."""
    with contextlib.suppress(OSError, ValueError):
        builder, _, temporary = (folder / _NOTE).read_text(encoding="utf-8").partition("\n")
        path = Path(temporary)
        if path.is_absolute() and path.name.startswith(PARTIAL):
            remove(path)
        elif _STORED.fullmatch(temporary) and builder in builders():
            query([builder, "rmi", temporary])
