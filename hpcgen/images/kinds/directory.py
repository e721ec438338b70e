"""A folder with an image's root.

Three forms of it are told apart: ``directory`` has what Charliecloud looks for, ``sandbox`` was built by Apptainer,
``foreign`` is any other, to a copy of which the marks are added.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from hpcgen.backends.engines.common import MKSQUASHFS_OPTIONS
from hpcgen.core.support.placing import folder_bytes
from hpcgen.images.folder import MAX_FILE, folders_of, list_folder, read_folder
from hpcgen.images.kinds.base import (
    ConversionRule,
    ConversionStep,
    ConversionTask,
    ImageKind,
    by_command,
    conversion_command,
)
from hpcgen.images.marks import ENVIRONMENT

if TYPE_CHECKING:
    from hpcgen.images.reading.files import ImageFileSource

_OPTIONS = ("-noappend", "-no-progress", "-no-xattrs", "-all-root", *MKSQUASHFS_OPTIONS["gzip"])
_SQUASH = by_command("mksquashfs", "{source}", "{target}", *_OPTIONS)


def marked(task: ConversionTask) -> ConversionStep:
    """The step that makes a folder one that engines start."""
    from hpcgen.images.roots import mark_folder

    about = "add the image's variables and mount points"
    return ConversionStep(about, action=lambda: mark_folder(task.path, task.marks))


def _pack(task: ConversionTask) -> list[ConversionStep]:
    from hpcgen.images.roots import mark_tar

    owner = [] if os.geteuid() == 0 else ["--owner=0", "--group=0"]
    left_out = [f"--exclude={name}" for name in ("./.git", "./.gitignore", "./ch/git.pickle")]
    tar = conversion_command("tar", "-C", task.source, "--numeric-owner", *owner, *left_out, "-cf", task.target, ".")
    return [tar, ConversionStep("add the image's variables", action=lambda: mark_tar(task.path, task.marks))]


class DirectoryKind(ImageKind):
    """A folder that ch-run or Apptainer starts."""

    name = "directory"
    conversions = (
        ConversionRule("directory", "tar", ("tar",), 2, _pack),
        ConversionRule("foreign", "tar", ("tar",), 2, _pack),
        ConversionRule("directory", "squashfs", ("mksquashfs",), 3, _SQUASH),
        ConversionRule("sandbox", "foreign", (), 0, lambda task: []),
    )

    def recognises(self, path: Path, first: bytes) -> bool:
        return path.is_dir()

    def form(self, name: str) -> str:
        root = Path(name)
        if (root / ENVIRONMENT).is_file() and (root / "mnt" / "9").is_dir():
            return "directory"
        return "sandbox" if (root / ".singularity.d" / "env").is_dir() else "foreign"

    def start_form(self, name: str) -> str:
        """A folder that has what Apptainer looks for is started by it too."""
        return "sandbox" if Path(name, ".singularity.d").is_dir() else "directory"

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Where they lie, as a process inside would see them."""
        return read_folder(name, paths, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        return list_folder(name, wanted)

    def folders(self, name: str, paths: Sequence[str]) -> set[str] | None:
        return folders_of(Path(name), paths)

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        from hpcgen.images.reading.sources import FolderSource

        return nullcontext(FolderSource(name))

    def bytes_on_disk(self, name: str) -> int | None:
        return folder_bytes(Path(name))
