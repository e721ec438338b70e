"""Images in ch-image's storage, where each is a folder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hpcgen.core.errors import UnknownNameError
from hpcgen.core.support.placing import folder_bytes
from hpcgen.images.folder import read_folder
from hpcgen.images.kinds.base import ConversionRule, ImageKind, by_command

_CONVERT = ("ch-convert", "-i", "ch-image", "-o")
_IMPORT = by_command("ch-image", "import", "{source}", "{target}", undo=["ch-image", "delete", "{target}"])


def storage_folder(name: str) -> Path:
    """The folder of an image in ch-image's storage. Source: ch-image(1), and seen with 0.31 and 0.45."""
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or str(os.getuid())
    storage = os.environ.get("CH_IMAGE_STORAGE") or f"/var/tmp/{user}.ch"
    return Path(storage) / "img" / name.replace("/", "%").replace(":", "+")


class ChImageStore(ImageKind):
    """A name in ch-image's storage."""

    name = "ch-image"
    stored = True
    spelled = True
    conversions = (
        ConversionRule(
            "ch-image", "directory", ("ch-convert",), 2, by_command(*_CONVERT, "dir", "{source}", "{target}")
        ),
        ConversionRule(
            "ch-image", "squashfs", ("ch-convert",), 3, by_command(*_CONVERT, "squash", "{source}", "{target}")
        ),
        ConversionRule("directory", "ch-image", ("ch-image",), 2, _IMPORT),
    )

    def programs(self) -> tuple[str, ...]:
        """ch-image itself, though nothing but the folder is read."""
        return ("ch-image",)

    def is_stored(self, name: str) -> bool:
        """Whether its folder is there."""
        return storage_folder(name).is_dir()

    def read(self, name: str, paths: Sequence[str]) -> dict[str, bytes]:
        folder = storage_folder(name)
        if not folder.is_dir():
            raise UnknownNameError(
                f"ch-image has no image {name} ({folder} is not there)",
                remedy="ch-image list shows its images; CH_IMAGE_STORAGE is its folder",
            )
        return read_folder(str(folder), paths)

    def bytes_on_disk(self, name: str) -> int | None:
        folder = storage_folder(name)
        return folder_bytes(folder) if folder.is_dir() else None
