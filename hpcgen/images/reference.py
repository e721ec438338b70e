"""Which image is meant: a file, a folder, or a name in an engine's store."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
from itertools import islice
from pathlib import Path
from typing import get_args

import msgspec

from hpcgen.errors import InputError, Problem, UnknownNameError
from hpcgen.model.record import ImageKind
from hpcgen.support.quoting import plain

STORES: tuple[ImageKind, ...] = ("podman", "docker", "ch-image")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@+%-]{0,254}")
_ENDINGS = (".sif", ".sqfs", ".squashfs", ".tar", ".tar.gz", ".tgz", ".oci")
# An OCI archive has a member for each blob and three more; an image's root has thousands.
_FIRST_MEMBERS = 200


class ImageReference(msgspec.Struct, frozen=True):
    """One image: its kind, and its absolute path or its name in the store."""

    kind: ImageKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}" if self.kind in (*STORES, "oci-archive") else self.name


def parse_image(text: str) -> ImageReference:
    """The image that a person names.

    ``podman:NAME``, ``docker:NAME``, ``ch-image:NAME`` and ``oci-archive:FILE`` say it themselves; a path is taken
    for what it holds; another word is looked up in the stores of the engines that are installed.

    Raises
    ------
    UnknownNameError: nothing of that name is here.
    InputError: it is no image, or several stores have the name.
    """
    plain(text, "the image's name")
    kind, _, rest = text.partition(":")
    if kind in STORES and rest:
        return stored_reference(kind, rest)
    if kind == "oci-archive" and rest:
        return _at_path(Path(rest), "oci-archive")
    if kind in get_args(ImageKind) and rest:
        return _at_path(Path(rest), None)
    path = Path(text)
    if text.startswith(("/", "./", "../", "~")) or text in (".", "..") or text.endswith(_ENDINGS) or path.exists():
        return _at_path(path, None)
    return _look_up(text)


def image_kind(path: Path) -> ImageKind | None:
    """What a file or folder holds, by its first bytes; None if it is no image that hpcgen knows."""
    if path.is_dir():
        return "directory"
    with path.open("rb") as stream:
        first = stream.read(512)
    if first[32:41] == b"SIF_MAGIC":
        return "sif"
    if first[:4] == b"hsqs":
        return "squashfs"
    if first[:2] == b"\x1f\x8b" or first[:6] == b"\xfd7zXZ\0" or first[:3] == b"BZh":
        return "tar"
    if first[257:262] == b"ustar":
        return _kind_of_tar(path)
    return None


def _kind_of_tar(path: Path) -> ImageKind:
    try:
        with tarfile.open(path, "r:") as archive:
            names = {member.name.removeprefix("./") for member in islice(archive, _FIRST_MEMBERS)}
    except (tarfile.TarError, OSError, ValueError) as failure:
        raise InputError(Problem(f"{path} cannot be read as a tar file: {failure}")) from failure
    if "oci-layout" in names:
        return "oci-archive"
    if "manifest.json" in names and any(name.endswith(("/layer.tar", ".json")) for name in names - {"manifest.json"}):
        raise InputError(
            Problem(
                f"{path} is a Docker archive",
                expected="an OCI archive, a SIF, a squashfs, a folder or a tar file of a root",
                remedy=f"skopeo copy docker-archive:{path.name} oci-archive:{path.stem}-oci.tar",
            )
        )
    return "tar"


def _at_path(path: Path, kind: ImageKind | None) -> ImageReference:
    full = Path(os.path.normpath(Path.cwd() / path.expanduser()))
    if not full.exists():
        raise UnknownNameError(
            Problem(f"there is no image {full}", remedy="name a file or folder, or a store's image as podman:NAME")
        )
    try:
        found = kind or image_kind(full)
    except OSError as failure:
        raise InputError(Problem(f"{full} cannot be read: {failure.strerror}")) from failure
    if found is None:
        raise InputError(
            Problem(
                f"{full} is no container image that hpcgen knows",
                expected="a SIF, a squashfs, a tar file, an OCI archive or a folder with an image's root",
            )
        )
    return ImageReference(found, str(full))


def stored_reference(kind: ImageKind, name: str) -> ImageReference:
    """An image of a store by its name; InputError for what no store takes as a name."""
    if not _NAME.fullmatch(name):
        raise InputError(
            Problem(f"{name!r} is no image name", expected="letters, digits and . _ / : @ + % -, as in localhost/x:1")
        )
    return ImageReference(kind, name)


def _look_up(text: str) -> ImageReference:
    from hpcgen.images.stores import STORE_PROGRAMS, is_stored

    stored_reference("podman", text)
    have = [kind for kind in STORES if any(shutil.which(program) for program in STORE_PROGRAMS[kind])]
    found = [kind for kind in have if is_stored(kind, text)]
    if len(found) > 1:
        names = [f"{kind}:{text}" for kind in found]
        raise InputError(Problem(f"several stores have an image {text}", remedy=f"say {' or '.join(names)}"))
    if not found:
        where = f"in the stores of {', '.join(have)}" if have else "and no engine with a store is installed"
        raise UnknownNameError(
            Problem(
                f"there is no file or folder {text}, {'nor an image ' if have else ''}{where}",
                remedy="check the name, or name the store: podman:NAME, docker:NAME, ch-image:NAME",
            )
        )
    return ImageReference(found[0], text)
