"""A SIF file, as Apptainer and Singularity build and start it."""

from __future__ import annotations

import shutil
import struct
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from hpcgen.core.errors import InputError, MissingToolError
from hpcgen.images.commands import ask
from hpcgen.images.folder import COPY_AGAIN, MAX_FILE
from hpcgen.images.kinds.base import (
    CarriedSignature,
    ConversionRule,
    ConversionStep,
    ConversionTask,
    ImageKind,
    conversion_command,
)
from hpcgen.images.kinds.directory import marked
from hpcgen.images.kinds.squashfs import list_squashfs, read_squashfs

if TYPE_CHECKING:
    from hpcgen.images.reading.files import ImageFileSource

# SIF: numbers are little-endian, without gaps. Source: apptainer/sif, pkg/sif/sif.go and descriptor.go.
_HEADER = struct.Struct("<32s10s3s3s16s8q")
_DESCRIPTOR = struct.Struct("<i?3I7q128s384s")
_PARTITION, _SIGNATURE, _SQUASHFS, _PRIMARY = 0x4004, 0x4005, 1, 2
_MAX_DESCRIPTORS = 4096
_START = "if you trust the image, --start starts it to read it"


class _Object(NamedTuple):
    """One row of the table that is in use: what it is, where it begins, and what its kind has to say of it."""

    kind: int
    start: int
    extra: bytes


def _objects(path: str) -> tuple[list[_Object], int]:
    """The table of a SIF, and the size of the file. InputError: it is no SIF, or damaged."""
    try:
        with open(path, "rb") as stream:
            header = _HEADER.unpack(stream.read(_HEADER.size))
            total, offset = header[8], header[9]
            if header[1] != b"SIF_MAGIC\0" or not 0 <= total <= _MAX_DESCRIPTORS or offset < 0:
                raise InputError(f"{path} is not a SIF image, or its header is damaged", remedy=COPY_AGAIN)
            stream.seek(offset)
            table = stream.read(total * _DESCRIPTOR.size)
            size = stream.seek(0, 2)
    except (OSError, struct.error) as failure:
        raise InputError(f"{path} cannot be read as a SIF image: {failure}", remedy=COPY_AGAIN) from failure
    whole = range(0, len(table) - _DESCRIPTOR.size + 1, _DESCRIPTOR.size)
    rows = (_DESCRIPTOR.unpack_from(table, at) for at in whole)
    return [_Object(row[0], row[5], row[-1]) for row in rows if row[1]], size


def sif_squashfs_offset(path: str) -> int | None:
    """Where the root file system begins in a SIF; None if it is no plain squashfs (ext3, encrypted, OCI layers).

    InputError: the file is no SIF, or its table is damaged.
    """
    objects, size = _objects(path)
    for each in objects:
        if each.kind == _PARTITION:
            file_system, part = struct.unpack_from("<2i", each.extra)
            if part == _PRIMARY:
                return each.start if file_system == _SQUASHFS and 0 < each.start < size else None
    return None


def _read_by_engine(engine: str, path: str, paths: Sequence[str], most: int) -> dict[str, bytes]:
    """The engine starts the image, which prints the files."""
    found = {}
    for wanted in paths:
        answer = ask([engine, "exec", "--containall", "--no-home", path, "cat", wanted], limit=most)
        if answer.status == 0:
            found[wanted] = answer.output
        elif "No such file" not in answer.complaint and "Is a directory" not in answer.complaint:
            raise InputError(f"{path} cannot be read: {answer.last_line}")
    return found


def _unsquash_sif(task: ConversionTask) -> list[ConversionStep]:
    offset = str(sif_squashfs_offset(task.source))
    options = ["-no-progress", "-no-xattrs", "-offset", offset]
    return [conversion_command("unsquashfs", *options, "-dest", task.target, task.source), marked(task)]


def apptainer_build(
    program: str, prefix: str = "", sandbox: bool = False
) -> Callable[[ConversionTask], list[ConversionStep]]:
    """The conversions that ``build`` of Apptainer and Singularity does; ``prefix`` names the kind of the source."""

    def steps(task: ConversionTask) -> list[ConversionStep]:
        options = ["--sandbox"] if sandbox else []
        build = conversion_command(program, "build", *options, task.target, f"{prefix}{task.source}")
        return [build, marked(task)] if sandbox else [build]

    return steps


class SifKind(ImageKind):
    """A file with a root file system, which is a squashfs as a rule."""

    name = "sif"
    signs_itself = True
    endings = (".sif",)
    conversions = (
        ConversionRule("sif", "directory", ("unsquashfs",), 2, _unsquash_sif),
        ConversionRule("sif", "directory", ("apptainer",), 2, apptainer_build("apptainer", sandbox=True)),
        ConversionRule("sif", "directory", ("singularity",), 2, apptainer_build("singularity", sandbox=True)),
        ConversionRule("sandbox", "sif", ("apptainer",), 3, apptainer_build("apptainer")),
        ConversionRule("sandbox", "sif", ("singularity",), 3, apptainer_build("singularity")),
        ConversionRule("oci-archive", "sif", ("apptainer",), 3, apptainer_build("apptainer", "oci-archive:")),
        ConversionRule("oci-archive", "sif", ("singularity",), 3, apptainer_build("singularity", "oci-archive:")),
    )

    def signature(self, name: str, signers: Path | None) -> CarriedSignature | None:
        """As Apptainer judges it."""
        from hpcgen.images.sif_signatures import judged

        signed = any(each.kind == _SIGNATURE for each in _objects(name)[0])
        return judged(name, signers) if signed else None

    def check_signing_key(self, fingerprint: str) -> None:
        """It has to be in Apptainer's own keyring."""
        from hpcgen.images.sif_signatures import key_number

        key_number(fingerprint)

    def sign(self, name: str, fingerprint: str) -> None:
        """In the file, by Apptainer."""
        from hpcgen.images.sif_signatures import sign_sif

        sign_sif(name, fingerprint)

    def recognises(self, path: Path, first: bytes) -> bool:
        """By its mark, which follows the line that starts it as a program."""
        return first[32:41] == b"SIF_MAGIC"

    def read(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """The root file system with unsquashfs: the engine would start the image, and a start can do anything."""
        offset = sif_squashfs_offset(name)
        if offset is None:
            raise InputError(
                f"the root file system of {name} is not a plain squashfs (ext3, encrypted, or OCI layers): "
                "only starting the image can read it",
                remedy=_START,
            )
        if not shutil.which("unsquashfs"):
            raise MissingToolError(
                f"unsquashfs is not on PATH; it is needed to read {name}", remedy=f"install squashfs-tools; {_START}"
            )
        return read_squashfs(name, paths, offset, most)

    def listed(self, name: str, wanted: Callable[[str], bool]) -> set[str] | None:
        """Where its root file system is a plain squashfs."""
        offset = sif_squashfs_offset(name)
        return list_squashfs(name, wanted, offset) if offset is not None else None

    def files(self, name: str) -> AbstractContextManager[ImageFileSource | None]:
        """Where its root file system is a plain squashfs."""
        from hpcgen.images.reading.sources import SquashfsSource

        offset = sif_squashfs_offset(name)
        return nullcontext(SquashfsSource(name, offset) if offset is not None else None)

    def read_started(self, name: str, paths: Sequence[str], most: int = MAX_FILE) -> dict[str, bytes]:
        """Where the root file system is no plain squashfs, or unsquashfs is missing, the engine prints the files."""
        if sif_squashfs_offset(name) is not None and shutil.which("unsquashfs"):
            return self.read(name, paths, most)
        engine = shutil.which("apptainer") or shutil.which("singularity")
        if engine is None:
            raise MissingToolError(
                f"neither unsquashfs nor apptainer is on PATH; one is needed to read {name}",
                remedy="install squashfs-tools or Apptainer",
            )
        return _read_by_engine(engine, name, paths, most)
