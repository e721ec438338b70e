"""Which image is meant: a file, a folder, or a name in an engine's store."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import HpcgenError, InputError, UnknownNameError
from hpcgen.core.model.record import ImageKindName
from hpcgen.core.support.quoting import plain
from hpcgen.images.folder import MAX_FILE
from hpcgen.images.kinds import KINDS, ImageKind, every_kind, kind_for, recognised

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+%-]{0,254}")


class ImageReference(msgspec.Struct, frozen=True):
    """One image: the name of its kind, and its absolute path or its name in the store.

    ``start``: it may be started where it cannot be read otherwise. ``shown``: what people know it by, if that is not
    where it lies.
    """

    kind: ImageKindName
    name: str
    start: bool = False
    shown: str = ""

    @property
    def image_kind(self) -> ImageKind:
        """What hpcgen knows of images of this kind."""
        return kind_for(self.kind)

    def __str__(self) -> str:
        return self.shown or (f"{self.kind}:{self.name}" if self.image_kind.spelled else self.name)

    def read(self, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Regular files of the image by their absolute path in it; errors as :meth:`ImageKind.read`."""
        kind = self.image_kind
        return kind.read_started(self.name, paths, most) if self.start else kind.read(self.name, paths, most)

    def bytes_on_disk(self) -> int | None:
        """How much it takes on the disk; None if nobody can tell."""
        try:
            return self.image_kind.bytes_on_disk(self.name)
        except (HpcgenError, OSError):
            return None


def parse_image(text: str, start: bool = False) -> ImageReference:
    """The image that the user names.

    ``podman:NAME``, ``docker:NAME``, ``ch-image:NAME`` and ``oci-archive:FILE`` say it themselves; a path is taken
    for what it holds; another word is looked up in the stores of the engines that are installed.

    start: it may be started where it cannot be read otherwise.
    UnknownNameError: nothing of that name is here.
    InputError: it is no image, or several stores have the name.
    """
    return msgspec.structs.replace(_parsed(text), start=start)


def _parsed(text: str) -> ImageReference:
    plain(text, "the image's name")
    kind, _, rest = text.partition(":")
    if rest.startswith("//") and kind in ("docker", "oras", "library", "shub"):
        raise InputError(
            f"{text} is in a registry, and hpcgen only starts local images",
            expected="a file, a folder, or a name in an engine's store",
            remedy=f"apptainer pull IMAGE.sif {text}, then IMAGE.sif"
            + (f"; or podman pull {rest[2:]}, then podman:{rest[2:]}" if kind == "docker" else ""),
        )
    if kind in KINDS and rest:
        named = kind_for(kind)
        if named.stored:
            return stored_reference(kind, rest)
        return _at_path(Path(rest), kind if named.spelled else None)
    path = Path(text)
    if text.startswith(("/", "./", "../", "~")) or text in (".", "..") or path.exists() or _has_ending(text):
        return _at_path(path, None)
    return _look_up(text)


def _has_ending(text: str) -> bool:
    return text.endswith(tuple(ending for each in every_kind() for ending in each.endings))


def _at_path(path: Path, kind: str | None) -> ImageReference:
    full = Path(os.path.normpath(Path.cwd() / path.expanduser()))
    if not full.exists():
        raise UnknownNameError(
            f"there is no image {full}",
            remedy=f"name a file or folder, or a store's image as podman:{path.name or 'NAME'}",
        )
    try:
        known = None if kind else recognised(full)
    except OSError as failure:
        raise InputError(f"{full} cannot be read: {failure.strerror}") from failure
    found = kind or (known.name if known is not None else None)
    if found is None:
        raise InputError(
            f"{full} is not a container image of a known kind",
            expected="a SIF, a squashfs, a tar file, an OCI archive or a folder with an image's root",
        )
    return ImageReference(found, str(full))


def stored_reference(kind: str, name: str) -> ImageReference:
    """An image of a store by its name; InputError for what no store takes as a name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{name!r} is not an image name", expected="letters, digits and . _ / : @ + % -, as in localhost/x:1"
        )
    return ImageReference(kind, name)


def _look_up(text: str) -> ImageReference:
    stored_reference("", text)
    stores = [each for each in every_kind() if each.stored and any(shutil.which(tool) for tool in each.programs())]
    have = [each.name for each in stores]
    found = [each.name for each in stores if each.is_stored(text)]
    if len(found) > 1:
        names = [f"{kind}:{text}" for kind in found]
        raise InputError(f"several stores have an image {text}", remedy=f"say {' or '.join(names)}")
    if not found:
        where = f"in the stores of {', '.join(have)}" if have else "and no engine with a store is installed"
        raise UnknownNameError(
            f"there is no file or folder {text}, {'nor an image ' if have else ''}{where}",
            remedy=f"check the name, or name the store: podman:{text}, docker:{text}, ch-image:{text}",
        )
    return ImageReference(found[0], text)
