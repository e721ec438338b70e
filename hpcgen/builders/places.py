"""Where a build puts its image: the name that is looked for, the temporary name beside it, and the size."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from hpcgen.builders.engines.base import Target
from hpcgen.engines import engine_for
from hpcgen.images.placing import PARTIAL, refusal
from hpcgen.model.plan import Plan
from hpcgen.model.record import BuiltImage, ImageKind

_BLOCK = 1024 * 1024


def job_image(plan: Plan) -> str:
    """The file in which the job script looks for the image first.

    It is in the site's folder of images where that is on this machine, else in the current folder.
    """
    site_engine = plan.site.containers.engines.get(plan.engine)
    version = site_engine.version if site_engine is not None else None
    name = engine_for(plan.engine, version).image_names(plan.stack.name, plan.site.name)[0]
    folder = plan.site.containers.image_directory
    if folder is not None and os.access(folder, os.W_OK | os.X_OK):
        return f"{folder}/{name}"
    return name


def file_target(output: str, token: str, kinds: Mapping[str, ImageKind]) -> Target:
    """A file or folder, with a temporary name beside it that has the same ending.

    Parameters
    ----------
    kinds: what the name's endings stand for; without one of them it is a folder.

    Raises
    ------
    OutputError: its folder is not there or cannot be written, or something else has the name.
    """
    path = Path(output).absolute()
    kind: ImageKind = next((kind for ending, kind in kinds.items() if path.name.endswith(ending)), "directory")
    if not path.parent.is_dir():
        raise refusal(path, f"the folder {path.parent} does not exist", f"make it: mkdir -p {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise refusal(path, f"the folder {path.parent} cannot be written", "write elsewhere with -o")
    if path.is_dir() and not _is_image(path):
        raise refusal(path, "this is a folder, and no image", "remove it, or write elsewhere with -o")
    return Target(kind, str(path), str(path.with_name(f"{PARTIAL}{token}-{path.name}")))


def _is_image(folder: Path) -> bool:
    """An empty folder, or one that a builder made: only these are replaced."""
    return any((folder / name).is_dir() for name in ("ch", ".singularity.d")) or not any(folder.iterdir())


def measured(kind: ImageKind, path: Path) -> BuiltImage:
    """Size in bytes, and of a file its sha256; a folder is one, whatever its name says."""
    if not path.is_dir():
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                digest.update(block)
        return BuiltImage(kind=kind, name=str(path), bytes=path.stat().st_size, digest=f"sha256:{digest.hexdigest()}")
    kind, total = "directory", 0
    seen: set[tuple[int, int]] = set()
    for folder, _names, files in os.walk(path):
        for name in files:
            with contextlib.suppress(OSError):
                what = Path(folder, name).lstat()
                if what.st_nlink == 1 or (what.st_dev, what.st_ino) not in seen:
                    seen.add((what.st_dev, what.st_ino))
                    total += what.st_size
    return BuiltImage(kind=kind, name=str(path), bytes=total)
