"""The log of a build: where it was asked for, beside the record, or for the time of the build alone."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from hpcgen.core.errors import BuildFailedError, OutputError


@contextlib.contextmanager
def log_file(asked: Path | None, record: bool, identity: str) -> Iterator[IO[str]]:
    """The log, opened for writing.

    Without a record and without having been asked for, it is a temporary file, which stays only where a failed
    build's message names it.

    Parameters
    ----------
    asked: the file that was asked for.
    record: whether a record is kept, beside which the log then lies.
    identity: the build's, in the file's name.

    Raises
    ------
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
