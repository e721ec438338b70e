"""Files of an image of any kind, read without starting a container where that can be done.

An image is input from somebody else: links are followed inside the image alone, sizes are bounded, and nothing
is unpacked to names that the image chose.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from hpcgen.errors import MissingToolError, Problem
from hpcgen.images.folder import MAX_FILE, read_folder
from hpcgen.images.reference import ImageReference


def read_files(image: ImageReference, paths: Sequence[str]) -> dict[str, bytes]:
    """Regular files by their absolute path in the image; those that it does not have are left out.

    Raises
    ------
    InputError: the image cannot be read, or is made to do harm.
    MissingToolError: a program that reads this kind of image is not installed.
    UnknownNameError: the store has no image of that name.
    """
    if image.kind == "directory":
        return read_folder(image.name, paths)
    if image.kind == "squashfs":
        from hpcgen.images.squashfs import read_squashfs

        return read_squashfs(image.name, paths)
    if image.kind == "sif":
        return _read_sif(image.name, paths)
    if image.kind == "tar":
        from hpcgen.images.tarball import read_tar

        return read_tar(image.name, paths)
    if image.kind == "oci-archive":
        from hpcgen.images.oci_layout import archive_image

        return archive_image(image.name).read(paths)
    return _read_stored(image, paths)


def _read_stored(image: ImageReference, paths: Sequence[str]) -> dict[str, bytes]:
    from hpcgen.images import stores

    if image.kind != "ch-image":
        return stores.read_stored(image.kind, image.name, paths)
    folder = stores.storage_folder(image.name)
    if not folder.is_dir():
        from hpcgen.errors import UnknownNameError

        raise UnknownNameError(
            Problem(
                f"ch-image has no image {image.name} ({folder} is not there)",
                remedy="ch-image list shows what it has; CH_IMAGE_STORAGE says where",
            )
        )
    return read_folder(str(folder), paths)


def _read_sif(path: str, paths: Sequence[str]) -> dict[str, bytes]:
    from hpcgen.images.squashfs import read_squashfs, sif_squashfs_offset

    offset = sif_squashfs_offset(path)
    if offset is not None and shutil.which("unsquashfs"):
        return read_squashfs(path, paths, offset)
    engine = shutil.which("apptainer") or shutil.which("singularity")
    if engine is None:
        raise MissingToolError(
            Problem(
                f"neither unsquashfs nor apptainer is on PATH; one is needed to read {path}",
                remedy="install squashfs-tools or Apptainer",
            )
        )
    return _read_by_engine(engine, path, paths)


def _read_by_engine(engine: str, path: str, paths: Sequence[str]) -> dict[str, bytes]:
    """Where the root file system is no plain squashfs, or unsquashfs is missing: the engine prints the files."""
    from hpcgen.errors import InputError
    from hpcgen.images.commands import ask

    found = {}
    for wanted in paths:
        answer = ask([engine, "exec", "--containall", "--no-home", path, "cat", wanted], limit=MAX_FILE)
        if answer.status == 0:
            found[wanted] = answer.output
        elif "No such file" not in answer.complaint and "Is a directory" not in answer.complaint:
            raise InputError(Problem(f"{path} cannot be read: {answer.last_line}"))
    return found
