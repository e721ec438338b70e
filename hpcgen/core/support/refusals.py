"""What the operating system refuses, in words: a full disk, a name that is too long, a file that others own."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from hpcgen.core.errors import HpcgenError, InputError, OutputError

STDOUT = "to stdout"
"""The file's name in what the operating system says of stdout."""
_LONGEST = 500
_ELSEWHERE = "write elsewhere"
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""What goes on when there is more room."""
# errno → what happened, what to do
_REASONS = {
    errno.ENOSPC: ("the disk is full", "free some space, or write elsewhere"),
    errno.EDQUOT: ("your disk quota is used up", "free some space, or write elsewhere"),
    errno.EFBIG: ("the file would be larger than allowed", "raise the limit (ulimit -f)"),
    errno.EACCES: ("permission denied", "write to one of your own folders"),
    errno.EPERM: ("permission denied", "write to one of your own folders"),
    errno.EROFS: ("the file system is read-only", _ELSEWHERE),
    errno.ENOENT: ("the folder it belongs in does not exist", "create that folder first (mkdir -p)"),
    errno.ENOTDIR: ("a part of its path is not a folder", "check the path"),
    errno.EBADF: ("it is closed", "open it, or have the result in a file"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter one"),
}
# What only those meet who write.
_OF_WRITERS = {*NO_ROOM, errno.EROFS}


@contextlib.contextmanager
def explained(target: Path) -> Iterator[None]:
    """Turn what the operating system says about writing ``target`` into an OutputError in plain words."""
    try:
        yield
    except OSError as failure:
        raise unwritable(target, failure) from failure
    except UnicodeEncodeError as failure:
        raise refusal(target, "the text cannot be written as UTF-8", "report this as a bug") from failure


def unwritable(target: Path | str, failure: OSError) -> OutputError:
    """That ``target`` could not be written, as the error to raise."""
    return refusal(target, *said_of_writing(failure))


def said_of_writing(failure: OSError) -> tuple[str, str]:
    """Why something could not be written, in plain words, and what to do about it."""
    said = failure.strerror or str(failure)
    return _REASONS.get(failure.errno or 0, (said, _ELSEWHERE))


def refusal(target: Path | str, message: str, remedy: str) -> OutputError:
    """That ``target`` cannot be written, as the error to raise."""
    return OutputError(f"cannot write {_short(str(target))}: {message}", None, "", remedy)


def refused(failure: OSError) -> HpcgenError | None:
    """What the operating system refused where nobody had words for it; None for what is no answer of the system.

    Without a name it was an open file, which is one that is written: others are read whole.
    """
    number, name = failure.errno or 0, failure.filename
    if number not in errno.errorcode or not failure.strerror:
        return None
    if name is None or isinstance(name, int):
        return unwritable("a file", failure)
    name = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    if number in _OF_WRITERS or name == STDOUT:
        return unwritable(name, failure)
    # Who reads and who writes meet the same here.
    reason = _REASONS[number][0] if number == errno.ENAMETOOLONG else failure.strerror.lower()
    return InputError(f"{_short(name)} cannot be used: {reason}", remedy="check its path, and who may use it")


def _short(name: str) -> str:
    """A path as far as it helps to find it."""
    return name if len(name) <= _LONGEST else f"{name[:60]}…{name[-20:]} ({len(name)} characters)"
