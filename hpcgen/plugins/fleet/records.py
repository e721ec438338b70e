"""A fleet: which stacks are built for which sites; and fleet.lock: what was last built of them."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import msgspec

from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, Limit, load, loads
from hpcgen.core.errors import InputError, OutputError
from hpcgen.core.model.fields import Date, FormatName, Name, Record, Reference, Sha256, Text, matching
from hpcgen.core.model.record import BuilderName
from hpcgen.core.support.file_formats import FLEET_LOCK, NewerFormatError
from hpcgen.core.support.writing import write_file, yaml_text

Registry = Annotated[
    str,
    matching(
        r"^[a-z0-9][a-z0-9.-]*(:[0-9]{1,5})?(/[a-z0-9][a-z0-9._-]*)*$(?!\n)",
        "a registry's host and folder, in lower case and without https://",
        "registry.example.org/hpc",
    ),
]


class Member(Record, frozen=True):
    """One image: a stack for a site. ``name`` is STACK-SITE unless given; ``engine`` is the one that builds.

    ``settings`` are ``BLOCK.OPTION=VALUE``, as with ``--set``. Without ``test`` an image is done when it is built.
    ``test_site`` describes the machine that tests, where that is not the site itself. With ``allow_unsupported`` what
    breaks the contract between image and host is a warning, and ``latest_base`` takes base images by the tags that
    move, as with the options of these names.
    """

    stack: Reference
    site: Reference | None = None
    name: Name | None = None
    partition: Name | None = None
    settings: list[Text] = []
    format: FormatName | None = None
    engine: BuilderName | None = None
    test: bool | None = None
    test_site: Reference | None = None
    allow_unsupported: bool = False
    latest_base: bool | None = None


class Defaults(Record, frozen=True):
    """Defaults for members that do not set them."""

    site: Reference | None = None
    format: FormatName | None = None
    engine: BuilderName | None = None
    test: bool = True
    test_site: Reference | None = None
    latest_base: bool = False


class AdvisoryException(Record, frozen=True):
    """An advisory that keeps no image back, by its id or an alias; ``until`` is the last day on which it is so."""

    id: Text
    reason: Annotated[Text, msgspec.Meta(min_length=1)]
    until: Date | None = None


class Fleet(Record, frozen=True):
    """fleet.yaml. ``registry`` is where images are published, as REGISTRY/NAME:CONTENT.

    ``collections`` are folders, from the folder of this file. ``build_on`` is the site whose batch system
    ``hpcgen build --all --array`` uses; it can be left out where all members are for one site.
    """

    members: Annotated[list[Member], msgspec.Meta(min_length=1)]
    registry: Registry | None = None
    collections: list[Text] = []
    build_on: Reference | None = None
    defaults: Defaults = Defaults()
    advisory_exceptions: list[AdvisoryException] = []


class LockedImage(Record, frozen=True):
    """What was last built of one member: the plan's hash, and by what; ``tested`` only if all tests passed.

    ``image`` is its kind and place, such as ``sif:images/x.sif``; ``published`` the name in the registry.
    """

    content: Sha256
    format: FormatName
    engine: BuilderName
    tested: bool = False
    image: Text = ""
    digest: Text = ""
    published: Text = ""


class FleetLock(Record, frozen=True):
    """fleet.lock: the last good build of each member by its name."""

    images: dict[Name, LockedImage]
    fleet_lock: int = 1


_HEAD = """\
# Written by hpcgen: the last successful build of each member of the fleet. A member is built again when the hash of
# its plan has changed, or when it is not in here.
"""
LIMIT = Limit(LONG_LIST.bytes, "split the fleet: each fleet.yaml has its own lock")
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

    ``locked``: members that are in the lock. ``names``: members that are built.
    """
    size = path.stat().st_size if path.exists() else 0
    more = len(set(names).difference(locked))
    if size + more * _ENTRY_BYTES > LIMIT.bytes:
        message = f"{path} has no room for {more} more members"
        raise InputError(message, expected=f"at most {LIMIT.bytes} bytes", remedy=LIMIT.remedy)


def lock_text(images: Mapping[str, LockedImage], name: str = "fleet.lock") -> str:
    """The lock as YAML, members by name. ``name``: what messages call it."""
    data = {
        FLEET_LOCK.field: FLEET_LOCK.newest,
        "images": {name: msgspec.to_builtins(images[name]) for name in sorted(images)},
    }
    text = _HEAD + yaml_text(data)
    convert(loads(text, name, LIMIT), FleetLock)
    return text


def update_lock(path: Path, changes: Mapping[str, LockedImage]) -> None:
    """Put members into the lock, or replace them. Safe while others do the same, on this node or another.

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
