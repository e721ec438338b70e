"""By what an image that carries no record is told from every other: its store's digest, or a hash of what it holds."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from hpcgen.core.errors import InputError
from hpcgen.core.support.hashing import hash_file
from hpcgen.images.kinds.store import storage_folder
from hpcgen.images.reference import ImageReference

_NOT_OF_IT = frozenset({".git", ".gitignore", "ch/git.pickle", "dev", "proc", "sys"})
"""What ch-image keeps beside an image for its cache, and where an engine mounts what is the machine's."""


def identity_of(image: ImageReference) -> str:
    """``sha256:…``: of a file, what the store calls it, or of all files of a folder; "" where some cannot be read.

    InputError: it is not there, or cannot be read. MissingToolError: the program of its store is not here.
    """
    try:
        if found := image.image_kind.digest(image.name):
            return found
        folder = storage_folder(image.name) if image.image_kind.stored else Path(image.name)
        return f"sha256:{folder_sha256(folder)}" if folder.is_dir() else ""
    except PermissionError:
        return ""
    except OSError as failure:
        raise InputError(f"{image} cannot be read: {failure.strerror}") from failure


def folder_sha256(root: Path) -> str:
    """The hash of an image's root: of each file its path, mode and content, of a link where it leads.

    OSError: something in it cannot be read.
    """
    import hashlib

    hasher = hashlib.sha256()
    for path, name in _below(root):
        status = path.lstat()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            what = f"link {path.readlink()}"
        elif stat.S_ISREG(status.st_mode):
            what = f"file {mode:o} {hash_file(path)[0]}"
        else:
            what = f"{stat.S_IFMT(status.st_mode):o} {mode:o}"
        hasher.update(f"{name}\0{what}\0".encode("utf-8", "surrogateescape"))
    return hasher.hexdigest()


def _below(root: Path) -> list[tuple[Path, str]]:
    """All that is below a folder, links not followed, by the name in the image, in a fixed order."""
    found: list[tuple[Path, str]] = []

    def refused(failure: OSError) -> None:
        raise failure

    for folder, folders, files in os.walk(root, onerror=refused):
        folders[:] = [each for each in folders if os.path.relpath(f"{folder}/{each}", root) not in _NOT_OF_IT]
        for each in [*folders, *files]:
            name = os.path.relpath(f"{folder}/{each}", root)
            if name not in _NOT_OF_IT:
                found.append((Path(folder, each), name))
    return sorted(found, key=lambda pair: os.fsencode(pair[1]))
