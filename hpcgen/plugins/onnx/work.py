"""The folder in which the programs work on one model, and what they leave there, which is read as a stranger's.

    given/…                 copies of the files that the ensemble names, by their paths there
    programs/*.py           the programs of this room
    job.json                what they are asked
    MODEL/                  the model as ONNX, MODEL/VARIANT/ what else was made of it
    said/MODEL.STEP.json    what a program says at its end
    log/MODEL.STEP.log      what it printed

Foreign code runs here and may change all of it, so each model has a folder of its own, programs and job are written
anew before each start, and nothing that is found afterwards is followed when it is a link.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpcgen.catalog.collections import built_in
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import JobFailedError
from hpcgen.core.support.hashing import CHUNK, hash_file, open_plain
from hpcgen.core.support.refusals import explained
from hpcgen.plugins.onnx.ensemble import LoadedEnsemble, files_below
from hpcgen.plugins.onnx.records import HashedFile

T = TypeVar("T")
PROGRAMS = Path(__file__).with_name("programs")
SESSIONS = "building_blocks/files/onnx_sessions.py"
"""What opens runtimes, by its place in the built-in collection: the block ``onnx_serve`` brings it too."""

MOST_SAID = 16 * 1024 * 1024
MOST_FILES = 1000
KEPT_OUT = ("reference",)
"""Files whose names begin so serve the programs alone."""


class ModelWork:
    """The work folder of one model: ``folder``, ``model`` its name."""

    def __init__(self, folder: Path, model: str) -> None:
        self.folder = folder
        self.model = model
        self._begun: dict[str, str] = {}

    @property
    def result(self) -> Path:
        """Where the programs put the model's files."""
        return self.folder / self.model

    def log(self, step: str) -> Path:
        """The file with what a step printed, and the others that were begun with it."""
        return self.folder / "log" / f"{self.model}.{self._begun.get(step, step)}.log"

    def log_name(self, step: str) -> str:
        """The same below the folder of all models, which has another name after a failure."""
        return f"{self.model}/log/{self.log(step).name}"

    def make(self, loaded: LoadedEnsemble) -> list[HashedFile]:
        """Make the folder, with copies of what the model needs.

        Returns the files with their hashes, as they were copied.

        OutputError: they cannot be written, as on a full disk.
        """
        with explained(self.folder):
            for name in ("given", "said", "log", self.model):
                (self.folder / name).mkdir(parents=True)
            found: dict[str, HashedFile] = {}
            for name in loaded.given(self.model):
                for path in _each_file(loaded.folder, name):
                    found[path] = _copied(loaded.folder / path, self.folder / "given" / path, path)
            return [found[path] for path in sorted(found)]

    def write(self, job: dict[str, Any]) -> None:
        """Write what the programs are asked, and the programs themselves, anew. OutputError: they cannot be written."""
        with explained(self.folder):
            programs = self.folder / "programs"
            remove_any(programs)
            programs.mkdir()
            for source in [*sorted(PROGRAMS.glob("*.py")), built_in() / SESSIONS]:
                _new(programs / source.name, source.read_bytes())
            _new(self.folder / "job.json", msgspec.json.format(msgspec.json.encode(job)))
            for name in ("said", "log", self.model):
                if not _is_folder(self.folder / name):
                    remove_any(self.folder / name)
                    (self.folder / name).mkdir()

    def begin(self, steps: Sequence[str]) -> None:
        """Remove what an earlier start of these steps said; what they print is in the log of the first."""
        for step in steps:
            remove_any(self.folder / "said" / f"{self.model}.{step}.json")
            self._begun[step] = steps[0]

    def said(self, step: str, type_: type[T]) -> T | None:
        """What a program said at its end; None if it said nothing. JobFailedError: it is damaged, or no file."""
        path = self.folder / "said" / f"{self.model}.{step}.json"
        if not _is_folder(path.parent) or not os.path.lexists(path):
            return None
        try:
            with open_plain(path) as stream:
                raw = stream.read(MOST_SAID + 1)
        except OSError as failure:
            raise self._damaged(step, failure.strerror or str(failure)) from failure
        if len(raw) > MOST_SAID:
            raise self._damaged(step, f"it is larger than {MOST_SAID} bytes")
        try:
            return record_from(msgspec.json.decode(raw), type_)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as failure:
            raise self._damaged(step, str(failure)) from failure

    def _damaged(self, step: str, why: str) -> JobFailedError:
        return JobFailedError(
            f"the answer of the program on {self.model} ({step}) is invalid: {why}",
            remedy=f"its output is in {self.log_name(step)}; the model's own code may have changed it",
        )

    def files(self) -> list[HashedFile]:
        """The files of the model and of its variants, with their hashes, by their paths in the result.

        JobFailedError: there is something else than regular files and the folders of variants.
        """
        found = []
        for path in self.paths():
            try:
                digest, size = hash_file(path)
            except OSError as failure:
                raise self._strange(path, failure.strerror or str(failure)) from failure
            found.append(HashedFile(path=str(path.relative_to(self.folder)), sha256=digest, bytes=size))
        return found

    def paths(self) -> list[Path]:
        """The files of the model and of its variants as they lie here; errors as :meth:`files`."""
        if not _is_folder(self.result):
            raise self._strange(self.result, "it is not a folder")
        found: list[Path] = []
        for path in files_below(self.result):
            if not stat.S_ISREG(path.lstat().st_mode):
                raise self._strange(path, "it is not a regular file")
            if len(path.relative_to(self.result).parts) > 2:
                raise self._strange(path, "no program puts files so deep")
            if path.name.startswith(KEPT_OUT):
                continue
            if not path.name.isprintable():
                raise self._strange(path, "its name is not printable")
            found.append(path)
            if len(found) > MOST_FILES:
                raise self._strange(self.result, f"it has more than {MOST_FILES} files")
        return found

    def _strange(self, path: Path, why: str) -> JobFailedError:
        return JobFailedError(
            f"{str(path.relative_to(self.folder))!a} is nothing that a conversion leaves: {why}",
            remedy=f"the code of {self.model} may have written it; look at {self.model}/log",
        )


def remove_any(path: Path) -> None:
    """Remove a file, a link or a folder, whatever stands there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


def _is_folder(path: Path) -> bool:
    """Whether it is a folder itself, not a link to one."""
    return path.is_dir() and not path.is_symlink()


def _each_file(root: Path, name: str) -> list[str]:
    """The files that a given name stands for, by their paths below the root."""
    full = root / name
    return [str(each.relative_to(root)) for each in files_below(full)] if full.is_dir() else [name]


def _copied(source: Path, target: Path, path: str) -> HashedFile:
    """Copy a file and hash what is copied."""
    import hashlib

    target.parent.mkdir(parents=True, exist_ok=True)
    hasher, size = hashlib.sha256(), 0
    with open_plain(source, links=True) as stream, open(target, "xb") as out:
        while data := stream.read(CHUNK):
            hasher.update(data)
            size += len(data)
            out.write(data)
    return HashedFile(path=path, sha256=hasher.hexdigest(), bytes=size)


def _new(path: Path, data: bytes) -> None:
    """A new file; what stands there goes, and a link is not followed."""
    remove_any(path)
    with open(path, "xb") as stream:
        stream.write(data)
