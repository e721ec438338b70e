"""Files that take the place of others: an image's final name, and files of a folder that change together."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from hpcgen.core.errors import OutputError
from hpcgen.core.support.below import folder_of, is_below, rmdir_below, unlink_below
from hpcgen.core.support.hashing import read_plain

PARTIAL = ".hpcgen-"
"""How the name of an image begins that is not whole."""


def put_in_place(temporary: Path, final: Path) -> Path | None:
    """Give a whole image its final name; what had it before goes only then.

    Returns what could not be removed of the older image, if there is such.
    """
    try:
        if final.is_dir() and not final.is_symlink():
            import secrets

            aside = final.with_name(f"{PARTIAL}{secrets.token_hex(4)}-{final.name}")
            final.rename(aside)
            temporary.rename(final)
            return None if remove(aside) else aside
        else:
            if temporary.is_dir() and final.is_file():
                final.unlink()
            temporary.replace(final)
    except OSError as failure:
        raise refusal(final, failure.strerror or str(failure), "write elsewhere with -o") from failure
    return None


def remove(path: Path) -> bool:
    """Remove a file or folder, also folders that their owner may not write; whether nothing of it is left.

    A folder stays in which something is mounted.

    Folders that fakeroot builds made can hold files of the user's subordinate ids, which only root of a user
    namespace with these ids may remove.
    """
    if not path.is_dir() or path.is_symlink():
        with contextlib.suppress(OSError):
            path.unlink()
        return not path.exists()
    if f" {path.absolute()}/" in Path("/proc/self/mountinfo").read_text("utf-8", "replace"):
        return False
    for folder, names, _files in os.walk(path):
        for name in [".", *names]:
            each = Path(folder, name)
            with contextlib.suppress(OSError):
                if not each.is_symlink():
                    each.chmod(each.stat().st_mode | stat.S_IRWXU)
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        import subprocess

        # --map-auto: util-linux 2.38 and later.
        subprocess.run(
            ["unshare", "--map-root-user", "--map-auto", "rm", "-rf", str(path)],
            capture_output=True,
            check=False,
            timeout=600,
        )
    return not path.exists()


def refusal(path: Path, message: str, remedy: str) -> OutputError:
    """The error for an image that cannot be written there."""
    return OutputError(f"cannot write {path}: {message}", "--output", remedy=remedy)


def folder_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; hard links count once, links are not followed."""
    total = 0
    seen: set[tuple[int, int]] = set()
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                facts = (Path(place) / name).lstat()
            except OSError:
                continue
            if facts.st_nlink > 1:
                if (facts.st_dev, facts.st_ino) in seen:
                    continue
                seen.add((facts.st_dev, facts.st_ino))
            total += facts.st_size
    return total


# Files of a folder that change together: new ones come, older ones go, or all stays as it was.

SWAP = ".hpcgen-swap"
"""The hidden folder in it that has the new files before, and the older ones meanwhile."""
_ADDED = "added"  # in the hidden folder: the names that were not there before
_MARKER = "marker"  # and which of the names is the marker
_LONGEST_LIST = 16 * 1024 * 1024
_KIT_MARKER = "hpcgen.lock"  # of what hpcgen 0.1.0 left, which changed kits alone


def replace_together(
    directory: Path, files: Collection[str], retired: frozenset[str], marker: str, fill: Callable[[Path], None]
) -> None:
    """Change files of a folder together, or none of them; all others are left alone.

    files: their paths in it.
    retired: those that go, if they are there.
    marker: the one of ``files`` that leaves first and comes last: where it is, all are.
    fill: writes the new ones into an empty folder, and waits until they are on the disk.
    """
    swap = directory / SWAP
    new, old = swap / "new", swap / "old"
    present = {name for name in (*files, *retired) if (directory / name).exists()}
    try:
        for folder in (swap, new, old):
            folder.mkdir()
        fill(new)
        for name in present:
            (old / name).parent.mkdir(parents=True, exist_ok=True)
        # From here on the files change; this list says which names to remove in order to go back.
        # Half a list could name the wrong file, so it too appears whole or not at all.
        _write_list(swap / _MARKER, [marker])
        _write_list(swap / "list", sorted(set(files) - present))
        (swap / "list").rename(swap / _ADDED)
        sync_folder(swap)
        # Folders take room for data, so they come before the first file that is moved.
        for name in files:
            with folder_of(directory, name, make=True):
                pass
        # The marker leaves first and comes last: a folder with a marker is whole.
        for name in sorted(present, key=lambda name: (name != marker, name)):
            _move(directory, name, f"{SWAP}/old/{name}")
        for name in sorted(files, key=lambda name: (name == marker, name)):
            _move(directory, f"{SWAP}/new/{name}", name)
    except BaseException:
        settle(directory)
        raise
    sync_folder(directory)
    settle(directory)


def settle(directory: Path) -> None:
    """Bring an unfinished replacement back to the older files, and forget a finished one.

    It goes by what is on the disk alone, so that it can also follow a process that was killed, even one
    that was killed in here.

    OutputError: what lies there is not what this module leaves, as in a folder from somebody else. Nothing is changed.
    """
    swap = directory / SWAP
    if not os.path.lexists(swap):
        return
    new, added = swap / "new", swap / _ADDED
    marker, names, kept = _left(swap)
    begun = added.exists()
    # The marker is the last to leave `new`, so nothing is left there only when all is done.
    done = begun and not (new / marker).exists()
    if begun and not done:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                unlink_below(directory, name)
        remove_empty(directory, names)
        for name in sorted(kept, key=lambda name: (name == marker, name)):
            _move(directory, f"{SWAP}/old/{name}", name)
        sync_folder(directory)
    if done:
        remove_empty(directory, kept)
    shutil.rmtree(swap, ignore_errors=True)


def _left(swap: Path) -> tuple[str, list[str], list[str]]:
    """The marker, the names that are removed to go back, and those that come back.

    OutputError: it is not this user's, or has what is not written here.
    """
    found = swap.lstat()
    strange = not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid()
    texts = {} if strange else {name: _listed(swap / name) for name in (_MARKER, _ADDED)}
    marker, names = texts.get(_MARKER) or [_KIT_MARKER], texts.get(_ADDED) or []
    old = swap / "old"
    kept = [] if strange else [str(path.relative_to(old)) for path in old.rglob("*") if not path.is_dir()]
    if strange or None in texts.values() or len(marker) != 1 or not all(map(is_below, (*marker, *names, *kept))):
        message = f"{swap} is not what an unfinished replacement of hpcgen leaves"
        raise OutputError(message, remedy=f"look at what is in it; if it is worth nothing: rm -r {swap}")
    return marker[0], names, kept


def _listed(path: Path) -> list[str] | None:
    """The lines of a list; none where there is no such file, None for what is no list."""
    try:
        return read_plain(path, _LONGEST_LIST).decode("utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return None


def _write_list(path: Path, names: Iterable[str]) -> None:
    with open(path, "x", encoding="utf-8") as stream:
        stream.write("\n".join(names))
        stream.flush()
        os.fsync(stream.fileno())


def _move(directory: Path, source: str, target: str) -> None:
    """Rename a file, or one of the hidden folder, wherever its path may lead by now."""
    with folder_of(directory, source) as old, folder_of(directory, target, make=True) as new:
        os.replace(Path(source).name, Path(target).name, src_dir_fd=old, dst_dir_fd=new)


def remove_empty(directory: Path, names: Iterable[str]) -> None:
    """Remove the folders that files were in, as far as nothing else is in them."""
    for name in names:
        for parent in Path(name).parents[:-1]:
            with contextlib.suppress(OSError):
                rmdir_below(directory, str(parent))


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on the disk too; some network file systems cannot, and need not."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
