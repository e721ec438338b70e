"""Where a bundle is made: ``TARGET.partial``, which a later run continues, and which gets its name when it is whole.

Whatever moment a run is killed at, what lies there says by itself how far it came: files get their names only when
they are whole, and the step from here to the target is a rename, for several pieces a list of renames.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.model.image_paths import MANIFEST, SUMS
from hpcgen.core.support.leftovers import lock
from hpcgen.core.support.placing import sync_folder
from hpcgen.core.support.progress import TransferProgress, Watch
from hpcgen.core.support.refusals import NO_ROOM, said_of_writing
from hpcgen.core.support.units import size
from hpcgen.supply.bundle.parts import MOST_PIECES, PieceWriter, write_tar
from hpcgen.supply.bundle.store import sweep, walk, write_through
from hpcgen.supply.net.part import DiskError

_MARK = "UNFINISHED.txt"
_MARK_TEXT = "hpcgen is fetching files here. The same command resumes; if you no longer want it, delete this folder.\n"
_STATE = "state.json"


class InUseError(OutputError):
    """Another hpcgen works there now."""


class State(msgspec.Struct):
    """What one run tells the next.

    ``roots``: digest of a base image → sha256 of the tar file that was made of it. ``publishing``: pieces that are
    whole and on their way to their names.
    """

    roots: dict[str, str] = {}
    publishing: list[str] = []


class Workspace:
    """The folders of a bundle in the making."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.folder = target.with_name(f"{target.name}.partial")
        self.bundle = self.folder / "bundle"
        self.parts = self.folder / "parts"
        self.made = self.folder / "made"
        self.out = self.folder / "out"
        self.state = State()

    def load(self) -> None:
        """What the last run left as its state; nothing where that is not understood."""
        with contextlib.suppress(OSError, ValueError, RecursionError):
            self.state = msgspec.json.decode((self.folder / _STATE).read_bytes(), type=State)

    def save(self) -> None:
        """Keep the state for the next run."""
        write_through(self.folder / _STATE, msgspec.json.encode(self.state))

    def holds_anything(self) -> bool:
        """Whether there is something fetched or finished, which a next run goes on from."""
        places = (self.bundle, self.parts, self.out)
        return any(path.is_file() for place in places for path in place.rglob("*"))

    def publish_folder(self) -> None:
        """Rename the finished bundle to its final name."""
        with explained_disk(self):
            sync_folder(self.bundle)
            self.bundle.rename(self.target)
            sync_folder(self.target.parent)

    def publish_files(self, names: Sequence[str]) -> None:
        """Files in ``out`` get their names, all of them, by this run or the next."""
        with explained_disk(self):
            self.state.publishing = list(names)
            self.save()
            self.resume_publishing()

    def resume_publishing(self) -> bool:
        """Do the renames that are left of an earlier run; whether there were any."""
        if not self.state.publishing:
            return False
        for name in self.state.publishing:
            plain = Path(name).name
            with contextlib.suppress(FileNotFoundError):
                (self.out / plain).rename(self.target.parent / plain)
        sync_folder(self.target.parent)
        return True


@contextlib.contextmanager
def workspace(target: Path) -> Iterator[Workspace]:
    """The place where ``target`` is made, for this process alone; it goes away when the work is done.

    Raises
    ------
    InUseError: another hpcgen works there. OutputError: it is no place of hpcgen's, or it cannot be written.
    """
    place = Workspace(target)
    if place.folder.is_symlink():
        raise OutputError(f"cannot work in {place.folder}: it is a symbolic link", remedy="remove it")
    with explained_disk(place):
        place.folder.mkdir(exist_ok=True)
        descriptor = _alone(place.folder)
    try:
        present = set(os.listdir(place.folder))
        if present and _MARK not in present:
            raise OutputError(
                f"cannot work in {place.folder}: there are files in it that hpcgen did not put there",
                remedy="move them away, or write elsewhere",
            )
        with explained_disk(place):
            if _MARK not in present:
                # There in one step; only its name counts.
                (place.folder / _MARK).write_text(_MARK_TEXT, encoding="utf-8")
        place.load()
        try:
            yield place
        except BaseException:
            # What a next run could not use is not worth a folder that somebody has to remove.
            if not place.holds_anything():
                with contextlib.suppress(OSError):
                    _remove(place.folder)
            raise
        try:
            _remove(place.folder)
        except OSError as failure:
            reason, _ = said_of_writing(failure)
            message = f"{target} is complete, but {place.folder} cannot be removed: {reason}"
            raise OutputError(message, remedy=f"remove it: rm -r {place.folder}") from failure
    finally:
        os.close(descriptor)


def unfinished(folder: Path) -> list[Path]:
    """The places of bundles in a folder that no process works at now, without those that are links."""
    found = []
    for place in sorted(folder.glob("*.partial")):
        with contextlib.suppress(OSError):
            descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                marked = (place / _MARK).is_file() and not (place / _MARK).is_symlink()
                if marked and os.fstat(descriptor).st_uid == os.geteuid() and lock(descriptor):
                    found.append(place)
            finally:
                os.close(descriptor)
    return found


def _remove(folder: Path) -> None:
    """Away with the place, state and mark last, so that a kill here leaves nothing that is not known."""
    for entry in sorted(os.listdir(folder), key=lambda entry: entry == _STATE):
        path = folder / entry
        if entry != _MARK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (folder / _MARK).unlink()
    folder.rmdir()


def _alone(folder: Path) -> int:
    """Keep a second hpcgen out, where the file system has locks; a descriptor to close at the end."""
    for _ in range(10):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        taken = lock(descriptor)
        if taken is False:
            os.close(descriptor)
            raise InUseError(
                f"another hpcgen is working in {folder}", remedy="wait until it has finished, or write elsewhere"
            )
        if taken is None:
            return descriptor
        # The one who had it may have been done in between, and its folder gone.
        with contextlib.suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == folder.stat().st_ino:
                return descriptor
        os.close(descriptor)
        folder.mkdir(exist_ok=True)
    raise OutputError(f"another hpcgen is working in {folder}", remedy="wait until it has finished")


@contextlib.contextmanager
def explained_disk(place: Workspace, needed: int = 0, whole: int = 0) -> Iterator[None]:
    """What the system says while files are written, as an OutputError in plain words.

    ``needed``, ``whole``: bytes that are still missing at the beginning of the work, and that the bundle has in all.
    """
    try:
        yield
    except (DiskError, OSError) as failure:
        raised = failure.failure if isinstance(failure, DiskError) else failure
        reason, remedy = said_of_writing(raised)
        about = f"; {size(needed)} of {size(whole)} were still missing" if needed else ""
        stays = place.folder.is_dir()
        raise OutputError(
            f"cannot write {place.target}: {reason}{about}",
            remedy=(
                f"free some space and run the same command again: it resumes from {place.folder}"
                if stays and raised.errno in NO_ROOM
                else remedy
            ),
        ) from failure


def check_target(target: Path, split: int | None) -> None:
    """OutputError where the target, or what would take its place, already exists."""
    if target.name in ("", "..") or target.name.endswith(".partial"):
        raise OutputError(f"{target} cannot be the name of a bundle", remedy="-o NAME, or NAME.tar")
    if split is not None and target.suffix != ".tar":
        raise InputError("only a tar file can be split", "--split", remedy=f"-o {target.name}.tar")
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
