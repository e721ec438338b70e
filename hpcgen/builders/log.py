"""What a build keeps beside the image: the engine's whole output, and a note of itself while it runs."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from hpcgen.backends.engines import builders
from hpcgen.backends.engines.building import Target, query
from hpcgen.core.errors import BuildFailedError, OutputError
from hpcgen.core.support.leftovers import work_folder
from hpcgen.core.support.placing import PARTIAL, remove

# The log of a build: where it was asked for, beside the record, or for the time of the build alone.


@contextlib.contextmanager
def log_file(asked: Path | None, record: bool, identity: str) -> Iterator[IO[str]]:
    """The log, opened for writing.

    Without a record and without having been asked for, it is a temporary file, which stays only where a failed
    build's message names it.

    asked: the file that was asked for.
    record: whether a record is kept, beside which the log then lies.
    identity: the build's, in the file's name.
    OutputError: it cannot be written.
    """
    from hpcgen.builders.records.store import records_folder

    path = asked or records_folder() / f"{identity}.log"
    passing = asked is None and not record
    remedy = "name another file" if asked is not None else "name another file with --log, or set HPCGEN_RECORDS"
    try:
        if passing:
            handle, name = tempfile.mkstemp(prefix=f"hpcgen-{identity}-", suffix=".log")
            os.close(handle)
            path = Path(name)
        elif asked is None:
            path.parent.mkdir(parents=True, exist_ok=True)
        file = path.absolute().open("w", encoding="utf-8", errors="replace")
    except OSError as failure:
        raise OutputError(f"the log {path} cannot be written: {failure.strerror}", "--log", remedy=remedy) from failure
    try:
        yield file
    except BuildFailedError:
        passing = False
        raise
    finally:
        with contextlib.suppress(OSError):
            file.close()
        if passing:
            with contextlib.suppress(OSError):
                path.unlink()


# The folder of a build, and what a killed build leaves: a half image beside its final place, or a name in a store.

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
