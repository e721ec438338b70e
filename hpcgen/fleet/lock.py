"""fleet.lock: which build of each member was the last good one. Small, sorted, made to be reviewed."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hpcgen.config.decoding import convert
from hpcgen.config.yamlfile import load, loads
from hpcgen.errors import OutputError
from hpcgen.model.fleet import FleetLock, LockedImage
from hpcgen.support.file_formats import FLEET_LOCK
from hpcgen.support.writing import write_file

_HEAD = """\
# Written by hpcgen: the last successful build of each member of the fleet. A member is built again when the hash of
# its plan has changed, or when it is not in here.
"""


def read_lock(path: Path) -> dict[str, LockedImage]:
    """What is locked, by member; nothing if there is no file. InputError for a file that is no lock."""
    if not path.exists():
        return {}
    document = load(path, str(path))
    FLEET_LOCK.check(document.data, str(path))
    return dict(convert(document, FleetLock).images)


def lock_text(images: Mapping[str, LockedImage]) -> str:
    """The lock as YAML, members by name."""
    import yaml

    data = {
        FLEET_LOCK.field: FLEET_LOCK.newest,
        "images": {name: msgspec.to_builtins(images[name]) for name in sorted(images)},
    }
    body: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=110)
    text = _HEAD + body
    convert(loads(text, "fleet.lock"), FleetLock)
    return text


def update_lock(path: Path, changes: Mapping[str, LockedImage]) -> None:
    """Put members into the lock, or replace them. Safe while others do the same, on this node or another.

    Raises
    ------
    OutputError: it cannot be written, or the file system has no locks; the file is as it was.
    """
    with _alone(path):
        write_file(path, lock_text({**read_lock(path), **changes}))


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait for everyone else who changes this lock.

    The lock's file itself is replaced at each change, so a second file that stays is what is waited for.
    On NFS Linux turns flock into a lock of the server, which other nodes see too (flock(2)).
    """
    beside = path.with_name(f".{path.name}.busy")
    try:
        stream = beside.open("a")
    except OSError as failure:
        raise _refusal(path, failure, "name another place with --lock") from failure
    with stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX)
        except OSError as failure:
            raise _refusal(path, failure, "put it on a file system with file locking, with --lock") from failure
        yield


def _refusal(path: Path, failure: OSError, remedy: str) -> OutputError:
    return OutputError(f"cannot lock {path}: {failure.strerror or failure}", remedy=remedy)
