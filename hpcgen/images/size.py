"""How much an image takes on the disk."""

from __future__ import annotations

import os
from pathlib import Path

from hpcgen.errors import HpcgenError
from hpcgen.images.reference import ImageReference


def image_bytes(image: ImageReference) -> int | None:
    """Bytes of the file, of all files in the folder, or what the store says; None if nobody can tell."""
    from hpcgen.images import stores

    try:
        if image.kind in ("podman", "docker"):
            return stores.stored_image(image.kind, image.name).bytes
        path = stores.storage_folder(image.name) if image.kind == "ch-image" else Path(image.name)
        return folder_bytes(path) if path.is_dir() else path.stat().st_size
    except (HpcgenError, OSError):
        return None


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; hard links count once, links are not followed."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                facts = (Path(place) / name).lstat()
            except OSError:
                continue
            if facts.st_nlink > 1:
                if (facts.st_dev, facts.st_ino) in seen:
                    continue
                seen.add((facts.st_dev, facts.st_ino))
            total += facts.st_size
    return total
