"""A build that adds to a finished squashfs or SIF has its engine take over what that has compressed already.

The engine is started with a folder first on PATH that has a ``mksquashfs``: :mod:`hpcgen.images.repacking.program`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from hpcgen.builders.watching import Watcher
from hpcgen.engines.building import Work, query
from hpcgen.images.kinds.sif import sif_squashfs_offset
from hpcgen.images.repacking.program import Finished
from hpcgen.support.quoting import sh

_FOLDER, _TOLD = "programs/bin", "taken-over.txt"
_START = "import sys; sys.path[:] = {paths!r}; from hpcgen.images.repacking.program import main; main(sys.argv[1:])"
_OFFSETS = {"squashfs": lambda path: 0, "sif": sif_squashfs_offset}


class TakenOver:
    """The stand-in for mksquashfs of one build; there is none where the build writes no such file from another.

    Parameters
    ----------
    converter: see :class:`hpcgen.engines.base.Engine`.
    """

    def __init__(self, work: Work, converter: str = "") -> None:
        self.work, self.converter = work, converter
        self.variables: dict[str, str] = {}

    def prepare(self) -> None:
        """Write the program, once the build's folder for temporary files is there."""
        extended, program = self.work.plan.extends, shutil.which("mksquashfs")
        offset_of = _OFFSETS.get(self.work.target.kind)
        if extended is None or not extended.file or offset_of is None or program is None:
            return
        image = (self.work.kit / extended.file).resolve()
        offset = offset_of(str(image)) if image.is_file() else None
        if offset is None:
            return
        finished = Finished(str(image), offset, program, str(self._told))
        paths = [str(Path(__file__).parents[2]), *(each for each in sys.path if each)]
        words = [sys.executable, "-I", "-c", _START.format(paths=paths), msgspec.json.encode(finished).decode()]
        folder = self.work.scratch / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "mksquashfs"
        place.write_text(f'#!/bin/sh\nexec {" ".join(sh(word) for word in words)} "$@"\n', encoding="utf-8")
        place.chmod(0o755)
        if script := shutil.which(self.converter):
            # What it takes for its own folder is where it was found.
            (folder / self.converter).symlink_to(script)
            (folder.parent / "lib").symlink_to(Path(script).resolve().parent.parent / "lib")
        # A folder for temporary files may be mounted so that nothing in it can be started.
        if query([str(place), "-version"])[0] == query([program, "-version"])[0]:
            self.variables = {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

    @property
    def _told(self) -> Path:
        return self.work.scratch / _TOLD

    def environment(self, added: Mapping[str, str]) -> dict[str, str]:
        """That of a command of the engine."""
        return {**os.environ, **self.variables, **added}

    def tell(self, watcher: Watcher) -> None:
        """Say what became of it, where there was something to take over."""
        if not self.variables:
            return
        said = f"{self.work.target.name} was written whole: the engine uses a mksquashfs of its own"
        if self._told.is_file():
            said = self._told.read_text(encoding="utf-8", errors="replace").strip()
        watcher.note(said)
