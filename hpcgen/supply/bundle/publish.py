"""From the place where a bundle was made to its name: a folder, a tar file, or pieces of one."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.model.image_paths import MANIFEST, SUMS
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.core.support.units import size
from hpcgen.supply.bundle.parts import MOST_PIECES, PieceWriter, write_tar
from hpcgen.supply.bundle.store import sweep, walk
from hpcgen.supply.bundle.workspace import Workspace, explained_disk


def check_target(target: Path, split: int | None) -> None:
    """OutputError where the target, or what would take its place, already exists."""
    if target.name in ("", "..") or target.name.endswith(".partial"):
        raise OutputError(f"{target} cannot be the name of a bundle", remedy="-o NAME, or NAME.tar")
    if split is not None and target.suffix != ".tar":
        raise InputError("only a tar file is split", "--split", remedy=f"-o {target.name}.tar")
    others = [target.with_name(f"{target.name}.000"), target.with_name(f"{target.name}.SHA256SUMS")]
    unfinished = target.with_name(f"{target.name}.partial").is_dir()
    for path in [target, *(others if split is not None and not unfinished else [])]:
        empty = path.is_dir() and not path.is_symlink() and not os.listdir(path) and target.suffix != ".tar"
        if (path.exists() or path.is_symlink()) and not empty:
            raise OutputError(
                f"{path} already exists", remedy="choose another name, remove it, or reuse it with --reuse"
            )


def publish(place: Workspace, epoch: int, split: int | None, watch: Watch) -> None:
    """Give a bundle that is whole its name: as a folder, a tar file, or pieces of one."""
    if place.target.suffix != ".tar":
        place.publish_folder()
        return
    paths = [path for path, _ in walk(place.bundle)]
    # What a reader wants to know first stands first.
    paths.sort(key=lambda path: (path != MANIFEST, path != SUMS, path))
    whole = sum((place.bundle / path).stat().st_size for path in paths)
    if split is not None and whole // split >= MOST_PIECES - 1:
        raise InputError(f"{size(whole)} would make more than {MOST_PIECES} pieces", "--split", remedy="larger pieces")
    check_room(place, whole)
    progress = TransferProgress(f"writing {place.target.name}", len(paths), whole)
    watch.begin(progress)

    def moved(path: str, count: int) -> None:
        progress.moved(path, count)
        watch.tick()

    try:
        with explained_disk(place, whole, whole):
            place.out.mkdir(exist_ok=True)
            sweep(place.out, ())
            output = PieceWriter(place.out / place.target.name, split)
            try:
                write_tar(place.bundle, paths, output, epoch, moved)
                names = output.finish()
            finally:
                output.abandon()
    finally:
        watch.end()
    place.publish_files(names)


def check_room(place: Workspace, needed: int) -> None:
    """OutputError where there is not room for so many bytes more."""
    with explained_disk(place):
        free = shutil.disk_usage(place.folder).free  # quotas are not seen
    if needed > free:
        raise OutputError(
            f"cannot write {place.target}: {size(needed)} more needed, {size(free)} are free",
            remedy=f"free some space and run the same command again: it resumes from {place.folder}",
        )
