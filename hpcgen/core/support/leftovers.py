"""Leftovers of killed processes: the next process finds them and removes those that nobody uses any more.

A temporary file or folder is locked by the process that made it, and by the programs that it started for it. The kernel
frees the lock with the last of them, however they end. The name says on which machine it was made, because some network
file systems lock on one machine alone. What cannot be locked is left alone, and so is all that has another owner.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

from hpcgen.core.errors import OutputError

PATIENCE_S = 30.0
"""How long files are waited for that another process is changing."""
_NEW = ".hpcgen-{machine}-{token}.new"
_WORK = ".work"


def _machine() -> str:
    return sha256(os.uname().nodename.encode()).hexdigest()[:8]


def lock(descriptor: int) -> bool | None:
    """Lock an open file or folder; False where another process has it, None where nothing can be locked.

    Some network file systems lock no folders.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _ours(descriptor: int) -> bool:
    """Lock what was just made; False where another process took it for a leftover in the moment before."""
    taken = lock(descriptor)
    # Where nothing can be locked, nothing is taken for a leftover.
    return taken is None or (taken and os.fstat(descriptor).st_nlink > 0)


def new_file(folder: int, mode: int) -> tuple[int, str]:
    """A new file in an open folder, locked and open for writing: its descriptor, and its name."""
    while True:
        name = _NEW.format(machine=_machine(), token=secrets.token_hex(6))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(name, flags, mode, dir_fd=folder)
        if _ours(descriptor):
            return descriptor, name
        os.close(descriptor)


def new_folder(folder: int) -> tuple[int, str]:
    """As :func:`new_file`, a folder."""
    while True:
        name = _NEW.format(machine=_machine(), token=secrets.token_hex(6))
        os.mkdir(name, dir_fd=folder)
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            if _ours(descriptor) and _is(descriptor, name, folder):
                return descriptor, name
            os.close(descriptor)


def remove_left(folder: int) -> None:
    """Remove what :func:`new_file` and :func:`new_folder` made in an open folder for processes that are gone."""
    pattern = re.compile(re.escape(_NEW.format(machine=_machine(), token="TOKEN")).replace("TOKEN", "[0-9a-f]{12}"))
    with contextlib.suppress(OSError):
        for name in filter(pattern.fullmatch, os.listdir(folder)):
            with contextlib.suppress(OSError), _opened(name, folder) as descriptor:
                mode = os.fstat(descriptor).st_mode
                if (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) and lock(descriptor):
                    _remove(name, folder) if stat.S_ISDIR(mode) else os.unlink(name, dir_fd=folder)


def _remove(name: str, folder: int) -> None:
    for _, folders, files, place in os.fwalk(name, topdown=False, dir_fd=folder):
        for each in files:
            os.unlink(each, dir_fd=place)
        for each in folders:
            os.rmdir(each, dir_fd=place)
    os.rmdir(name, dir_fd=folder)


def _is(descriptor: int, path: str | Path, folder: int | None = None) -> bool:
    """Whether an open file or folder still has that name."""
    try:
        return os.path.samestat(os.stat(path, dir_fd=folder), os.fstat(descriptor))
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def alone_in(directory: Path, taken: OutputError, patience_s: float = 0.0) -> Iterator[None]:
    """Keep a second hpcgen out of a folder meanwhile, where the file system has locks.

    ``taken``: what is raised if another is still there after ``patience_s`` seconds. OSError: there is no such folder.
    """
    end = time.monotonic() + patience_s
    while True:
        with opened_folder(directory) as descriptor:
            # Where nothing can be locked, two writers at once are the user's risk.
            while (free := lock(descriptor)) is False and time.monotonic() < end:
                time.sleep(0.02)
            if free is False:
                raise taken
            # Another may have put a folder of its own there meanwhile.
            if _is(descriptor, directory):
                yield
                return


@contextlib.contextmanager
def opened_folder(directory: Path) -> Iterator[int]:
    """The open folder; OSError where there is none."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _opened(path: str | Path, folder: int | None = None) -> Iterator[int]:
    """One of the user's own, not by a link; OSError for all else."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise PermissionError(path)
        yield descriptor
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """A temporary folder that goes at the end, or with the next one of this name where the process was killed."""
    with work_folder(prefix) as (folder, _):
        yield folder


def left_folders(prefix: str, where: Path, leaving: Callable[[Path], None] | None = None) -> list[Path]:
    """Folders of :func:`work_folder` whose processes are gone.

    ``prefix``: how their names begin; it may have ``*``. ``leaving``: called with each, while no other process can take
    it.
    """
    found = []
    for left in sorted(where.glob(f"{prefix}{_machine()}-*{_WORK}")):
        with contextlib.suppress(OSError), _opened(left) as descriptor:
            if stat.S_ISDIR(os.fstat(descriptor).st_mode) and lock(descriptor):
                found.append(left)
                if leaving is not None:
                    leaving(left)
    return found


@contextlib.contextmanager
def work_folder(
    prefix: str, leaving: Callable[[Path], None] = lambda folder: None, where: Path | None = None
) -> Iterator[tuple[Path, int]]:
    """A temporary folder, and the descriptor that locks it, which programs inherit that work in it.

    prefix: how its name begins; what killed processes have left of that name goes first.
    leaving: called with each such folder before it goes.
    where: the folder that it is made in; by default that of temporary files.
    """
    import tempfile

    from hpcgen.core.support.placing import remove

    def away(left: Path) -> None:
        leaving(left)
        remove(left)

    left_folders(prefix, where or Path(tempfile.gettempdir()), away)
    whole = f"{prefix}{_machine()}-"
    while True:
        folder = Path(tempfile.mkdtemp(prefix=whole, suffix=_WORK, dir=where))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if _ours(descriptor) and _is(descriptor, folder):
                break
            os.close(descriptor)
    try:
        yield folder, descriptor
    finally:
        remove(folder)
        os.close(descriptor)
