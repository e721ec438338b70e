"""Kinds of images, one class each; ``KINDS`` names them, in the order in which a file is tried."""

from __future__ import annotations

from pathlib import Path

from hpcgen.core.support.hashing import open_plain
from hpcgen.core.support.registry import Registry
from hpcgen.images.kinds.base import ImageKind

__all__ = ["KINDS", "ImageKind", "every_kind", "kind_for", "recognised"]

KINDS: Registry[ImageKind] = Registry(
    "kind of image",
    "image_kinds",
    {
        "podman": "hpcgen.images.kinds.store:PodmanStore",
        "docker": "hpcgen.images.kinds.store:DockerStore",
        "oci-archive": "hpcgen.images.kinds.archives:OciArchiveKind",
        "tar": "hpcgen.images.kinds.archives:TarKind",
        "directory": "hpcgen.images.kinds.directory:DirectoryKind",
        "squashfs": "hpcgen.images.kinds.squashfs:SquashfsKind",
        "sif": "hpcgen.images.kinds.sif:SifKind",
        "ch-image": "hpcgen.images.kinds.store:ChImageStore",
    },
)


_STARTED = ("directory", "squashfs", "sif")
"""What most images are that are started; each says by itself what it is, so the others need not be loaded first."""


def kind_for(name: str) -> ImageKind:
    """The kind of image with this name, such as ``sif``."""
    return KINDS.find(name)()


def every_kind() -> list[ImageKind]:
    """Every kind of image, built in or registered."""
    return [kind_for(name) for name in KINDS.names()]


def recognised(path: Path) -> ImageKind | None:
    """The kind of a file or folder, by what it holds; None if it is no image that hpcgen knows.

    OSError: it cannot be read. InputError: it is damaged, or of a kind that has to be converted first.
    """
    first = b""
    if not path.is_dir():
        with open_plain(path, links=True) as stream:
            first = stream.read(512)
    names = sorted(KINDS.names(), key=lambda name: name not in _STARTED)
    return next((kind for kind in map(kind_for, names) if kind.recognises(path, first)), None)
