"""What an engine finds as mksquashfs, so that the file is written faster.

The engine is started with a folder first on PATH that has a ``mksquashfs``. It compresses as :mod:`squashing
<hpcgen.backends.engines.squashing>` says, where the engine itself has no option for that. Of a build that adds to a
finished squashfs or SIF it takes over what that has compressed already: :mod:`hpcgen.images.repacking.program`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from hpcgen.backends.engines.building import Work, query
from hpcgen.backends.engines.squashing import squashing_words
from hpcgen.builders.watching import Watcher
from hpcgen.core.support.shell_words import line
from hpcgen.images.kinds.sif import sif_squashfs_offset
from hpcgen.images.repacking.program import Finished

_FOLDER, _TOLD = "programs/bin", "taken-over.txt"
_START = "import sys; sys.path[:] = {paths!r}; from hpcgen.images.repacking.program import main; main(sys.argv[1:])"
# What follows ch-convert's -e is left out of the image, so the options come before that.
_STAND_IN = """\
#!/bin/sh
[ $# -gt 2 ] || exec {called} "$@"
source=$1 target=$2
shift 2
exec {called} "$source" "$target" {options} "$@"
"""
_OFFSETS = {"squashfs": lambda path: 0, "sif": sif_squashfs_offset}


class TakenOver:
    """The stand-in for mksquashfs of one build; there is none where the build writes no such file.

    Parameters
    ----------
    converter: see :class:`hpcgen.backends.engines.base.Engine`.
    """

    def __init__(self, work: Work, converter: str = "") -> None:
        self.work, self.converter = work, converter
        self.variables: dict[str, str] = {}
        self._words: list[str] = []

    def prepare(self) -> None:
        """Write the program, once the build's folder for temporary files is there."""
        program, offset_of = shutil.which("mksquashfs"), _OFFSETS.get(self.work.target.kind)
        if program is None or offset_of is None:
            return
        self._words = self._taking_over(program, offset_of)
        options = self._options(program)
        if not self._words and not options:
            return
        folder = self.work.scratch / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "mksquashfs"
        place.write_text(_STAND_IN.format(called=line(self._words or [program]), options=line(options)), "utf-8")
        place.chmod(0o755)
        if script := shutil.which(self.converter):
            # What it takes for its own folder is where it was found.
            (folder / self.converter).symlink_to(script)
            (folder.parent / "lib").symlink_to(Path(script).resolve().parent.parent / "lib")
        # A folder for temporary files may be mounted so that nothing in it can be started.
        if query([str(place), "-version"])[0] == query([program, "-version"])[0]:
            self.variables = {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

    def _options(self, program: str) -> tuple[str, ...]:
        """How to compress, where the engine's converter has no option for that and this mksquashfs can do it."""
        options = squashing_words(self.work.plan) if self.converter else ()
        trial = [str(self.work.scratch / name) for name in ("empty", "trial.sqfs")]
        if options:
            Path(trial[0]).mkdir()
        return options if options and query([program, *trial, *options])[0] == 0 else ()

    def _taking_over(self, program: str, offset_of: Callable[[str], int | None]) -> list[str]:
        """The command that takes over blocks of the image that is added to; none where there is no such file."""
        extended = self.work.plan.extends
        if extended is None or not extended.file:
            return []
        image = (self.work.kit / extended.file).resolve()
        offset = offset_of(str(image)) if image.is_file() else None
        if offset is None:
            return []
        finished = Finished(str(image), offset, program, str(self._told))
        paths = [str(Path(__file__).parents[2]), *(each for each in sys.path if each)]
        return [sys.executable, "-I", "-c", _START.format(paths=paths), msgspec.json.encode(finished).decode()]

    @property
    def _told(self) -> Path:
        return self.work.scratch / _TOLD

    def environment(self, added: Mapping[str, str]) -> dict[str, str]:
        """That of a command of the engine."""
        return {**os.environ, **self.variables, **added}

    def tell(self, watcher: Watcher) -> None:
        """Say what became of it, where there was something to take over."""
        if not self.variables or not self._words:
            return
        said = f"{self.work.target.name} was written whole: the engine uses a mksquashfs of its own"
        if self._told.is_file():
            said = self._told.read_text(encoding="utf-8", errors="replace").strip()
        watcher.note(said)
