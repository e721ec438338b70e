"""A ``mksquashfs`` that adds the site's compressor, for converters without an option for it, such as ch-convert.

The engine is started with a folder first on PATH that has it. How it compresses: :mod:`squashing
<hpcgen.backends.engines.common>`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from hpcgen.backends.engines.building import Work, query
from hpcgen.backends.engines.common import squashing_words
from hpcgen.core.support.quoting import line

_FOLDER = "programs/bin"
# What follows ch-convert's -e is left out of the image, so the options come before that.
_PROGRAM = """\
#!/bin/sh
[ $# -gt 2 ] || exec {called} "$@"
source=$1 target=$2
shift 2
exec {called} "$source" "$target" {options} "$@"
"""


class MksquashfsShim:
    """The shim of one build; there is none where the build writes no squashfs by a converter.

    ``converter``: see :class:`hpcgen.backends.engines.base.Engine`.
    """

    def __init__(self, work: Work, converter: str) -> None:
        self.work, self.converter = work, converter
        self.variables: dict[str, str] = {}

    def prepare(self) -> None:
        """Write the program, once the build's folder for temporary files is there."""
        program = shutil.which("mksquashfs") if self.converter and self.work.target.kind == "squashfs" else None
        options = self._options(program) if program is not None else ()
        if program is None or not options:
            return
        folder = self.work.scratch / _FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / "mksquashfs"
        place.write_text(_PROGRAM.format(called=line([program]), options=line(options)), "utf-8")
        place.chmod(0o755)
        if script := shutil.which(self.converter):
            # What it takes for its own folder is where it was found.
            (folder / self.converter).symlink_to(script)
            (folder.parent / "lib").symlink_to(Path(script).resolve().parent.parent / "lib")
        # A folder for temporary files may be mounted so that nothing in it can be started.
        if query([str(place), "-version"])[0] == query([program, "-version"])[0]:
            self.variables = {"PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}

    def _options(self, program: str) -> tuple[str, ...]:
        """How to compress, if this mksquashfs can do it."""
        options = squashing_words(self.work.plan)
        trial = [str(self.work.scratch / name) for name in ("empty", "trial.sqfs")]
        Path(trial[0]).mkdir()
        return options if query([program, *trial, *options])[0] == 0 else ()

    def environment(self, added: Mapping[str, str]) -> dict[str, str]:
        """That of a command of the engine."""
        return {**os.environ, **self.variables, **added}
