"""Tar files: of an image's root, or an OCI archive, which is a layout with layers."""

from __future__ import annotations

import tarfile
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

from hpcgen.core.errors import InputError
from hpcgen.core.support.limits import BoundedMember
from hpcgen.core.support.placing import folder_bytes
from hpcgen.images import roots
from hpcgen.images.archive import list_tar, read_tar
from hpcgen.images.folder import COPY_AGAIN, MAX_FILE
from hpcgen.images.kinds.base import (
    ConversionRule,
    ConversionStep,
    ConversionTask,
    ImageKind,
    by_command,
    conversion_command,
)
from hpcgen.images.kinds.directory import marked
from hpcgen.images.marks import Marks
from hpcgen.images.oci_layout import archive_image
from hpcgen.images.reading.files import ImageFileSource
from hpcgen.images.reading.sources import tar_source

# An OCI archive has a member for each blob and three more; an image's root has thousands.
_FIRST_MEMBERS = 200


def _is_layout(path: Path) -> bool:
    """Whether an uncompressed tar file is an OCI archive; InputError for Docker's older kind of archive."""
    try:
        with tarfile.open(path, "r:", tarinfo=BoundedMember) as archive:
            names = {member.name.removeprefix("./") for member in islice(archive, _FIRST_MEMBERS)}
    except (tarfile.TarError, OSError, ValueError) as failure:
        raise InputError(f"{path} cannot be read as a tar file: {failure}", remedy=COPY_AGAIN) from failure
    if "oci-layout" in names:
        return True
    if "manifest.json" in names and any(name.endswith(("/layer.tar", ".json")) for name in names - {"manifest.json"}):
        raise InputError(
            f"{path} is a Docker archive",
            expected="an OCI archive, a SIF, a squashfs, a folder or a tar file of a root",
            remedy=f"skopeo copy docker-archive:{path.name} oci-archive:{path.stem}-oci.tar",
        )
    return False


def _unpack(task: ConversionTask) -> list[ConversionStep]:
    # Devices are the engine's to give, and only root could make them.
    devices = ["--exclude=./dev/*", "--exclude=dev/*"]
    tar = conversion_command(
        "tar", "-C", task.target, "--numeric-owner", "--delay-directory-restore", *devices, "-xpf", task.source
    )
    return [conversion_command("mkdir", task.target), tar, marked(task)]


def _tar_to_oci(task: ConversionTask) -> list[ConversionStep]:
    level = 6 if task.last else 1
    source, target = Path(task.source), Path(task.target)
    return [
        ConversionStep(
            f"write {target.name}: an OCI archive of one layer, with variables and labels",
            action=lambda: roots.tar_to_oci(source, target, task.marks, task.architecture, level),
        )
    ]


def _oci_to_tar(task: ConversionTask) -> list[ConversionStep]:
    source, target = Path(task.source), Path(task.target)
    return [
        ConversionStep(f"join the layers in {target.name}", action=lambda: roots.oci_to_tar(source, target)),
        ConversionStep("add the image's variables", action=lambda: roots.mark_tar(target, task.marks)),
    ]


def skopeo(before: str, after: str) -> Callable[[ConversionTask], list[ConversionStep]]:
    """A conversion by skopeo, from one of its transports to another."""
    return by_command("skopeo", "copy", "--quiet", f"{before}:{{source}}", f"{after}:{{target}}")


class OciArchiveKind(ImageKind):
    """An OCI image layout in a tar file, by which images go from one store to another."""

    name = "oci-archive"
    spelled = True
    endings = (".oci",)
    conversions = (ConversionRule("oci-archive", "tar", (), 2, _oci_to_tar),)

    def recognises(self, path: Path, first: bytes) -> bool:
        return first[257:262] == b"ustar" and _is_layout(path)

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        return archive_image(name).read(paths, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        return archive_image(name).listed(wanted)

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        return nullcontext(archive_image(name).source())

    def configuration(self, name: str) -> dict[str, Any] | None:
        return archive_image(name).settings()

    def settings(self, name: str) -> Marks | None:
        config = archive_image(name).settings()
        told = config.get("Env")
        pairs = (str(each).partition("=") for each in told) if isinstance(told, list) else ()
        labels = config.get("Labels")
        labels = labels if isinstance(labels, dict) else {}
        return Marks({key: value for key, _, value in pairs}, {str(key): str(value) for key, value in labels.items()})

    def bytes_on_disk(self, name: str) -> int | None:
        path = Path(name)
        return folder_bytes(path) if path.is_dir() else path.stat().st_size


class TarKind(ImageKind):
    """A tar file of an image's root, perhaps compressed."""

    name = "tar"
    endings = (".tar", ".tar.gz", ".tgz")
    conversions = (
        ConversionRule("tar", "oci-archive", (), 2, _tar_to_oci),
        ConversionRule("tar", "directory", ("tar",), 2, _unpack),
    )

    def recognises(self, path: Path, first: bytes) -> bool:
        """By the mark of tar, or of gzip, xz or bzip2."""
        packed = first[:2] == b"\x1f\x8b" or first[:6] == b"\xfd7zXZ\0" or first[:3] == b"BZh"
        return packed or first[257:262] == b"ustar"

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Without unpacking it to the disk."""
        return read_tar(name, paths, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        return list_tar(name, wanted)

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        return nullcontext(tar_source(name))
