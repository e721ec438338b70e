"""fleet.lock: which build of each member was the last good one. Small, sorted, made to be reviewed."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, Limit, load, loads
from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.support.file_formats import FLEET_LOCK, NewerFormatError
from hpcgen.core.support.writing import write_file, yaml_text
from hpcgen.plugins.fleet.records import FleetLock, LockedImage

_HEAD = """\
# Written by hpcgen: the last successful build of each member of the fleet. A member is built again when the hash of
# its plan has changed, or when it is not in here.
"""
LIMIT = Limit(LONG_LIST.bytes, "split the fleet: each fleet.yaml has a lock of its own")
_ENTRY_BYTES = 1024
"""More than a member takes: some 380, and a long path or name in a registry."""


def read_lock(path: Path) -> dict[str, LockedImage]:
    """What is locked, by member; nothing if there is no file. InputError for a file that is no lock."""
    if not path.exists():
        return {}
    document = load(path, str(path), LIMIT)
    FLEET_LOCK.check(document.data, str(path))
    try:
        return dict(convert(document, FleetLock).images)
    except InputError as failure:
        other = FLEET_LOCK.not_understood(document.data, str(path), failure.problems[0])
        if isinstance(other, NewerFormatError):
            raise other from failure
        raise


def require_room(path: Path, locked: Collection[str], names: Collection[str]) -> None:
    """InputError if the lock would become too large by what is built next: said before it is built.

    Parameters
    ----------
    locked: members that are in the lock.
    names: members that are built.
    """
    size = path.stat().st_size if path.exists() else 0
    more = len(set(names).difference(locked))
    if size + more * _ENTRY_BYTES > LIMIT.bytes:
        message = f"there is no room in {path} for {more} more members"
        raise InputError(message, expected=f"at most {LIMIT.bytes} bytes", remedy=LIMIT.remedy)


def lock_text(images: Mapping[str, LockedImage], name: str = "fleet.lock") -> str:
    """The lock as YAML, members by name.

    Parameters
    ----------
    name: what messages call it.
    """
    data = {
        FLEET_LOCK.field: FLEET_LOCK.newest,
        "images": {name: msgspec.to_builtins(images[name]) for name in sorted(images)},
    }
    text = _HEAD + yaml_text(data)
    convert(loads(text, name, LIMIT), FleetLock)
    return text


def update_lock(path: Path, changes: Mapping[str, LockedImage]) -> None:
    """Put members into the lock, or replace them. Safe while others do the same, on this node or another.

    Raises
    ------
    OutputError: it cannot be written, or the file system has no locks; the file is as it was.
    """
    with _alone(path):
        write_file(path, lock_text({**read_lock(path), **changes}, str(path)))


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
