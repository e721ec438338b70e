"""How much an image takes on the disk."""

from __future__ import annotations

from pathlib import Path

from hpcgen.errors import HpcgenError
from hpcgen.images.reference import ImageReference
from hpcgen.support.placing import folder_bytes


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
