"""Build records: kept, one JSON file each, in a folder of the user's; chosen, and removed."""

from __future__ import annotations

import os
import re
import secrets
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from hpcgen.core.config.decoding import record_from
from hpcgen.core.config.user_config import configured
from hpcgen.core.errors import InputError, OutputError, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.record import BuildRecord, BuiltImage, RecordPart, TestRun
from hpcgen.core.support.file_formats import RECORD
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.writing import write_file
from hpcgen.images.reference import ImageReference

MAX_BYTES = 64 * 1024 * 1024
_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,200}")


class RecordHead(RecordPart, frozen=True):
    """What records are chosen and sorted by: a few fields of :class:`BuildRecord`, a hundredth of its memory."""

    id: str
    started: str
    site: str
    stack: str
    folder: str = ""
    result: str = "built"
    image: BuiltImage | None = None
    record: Any = 1
    hpcgen: Any = ""


class StoredRecord(NamedTuple):
    """A record that is there: its head and its file."""

    head: RecordHead
    path: Path


def records_folder() -> Path:
    """``$HPCGEN_RECORDS``, else the config file's, else hpcgen/records in ``$XDG_STATE_HOME``."""
    if named := os.environ.get("HPCGEN_RECORDS") or configured("records", None):
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    # The XDG base directory specification has relative paths ignored.
    base = Path(state) if state and state.startswith("/") else Path.home() / ".local" / "state"
    return base / "hpcgen" / "records"


def new_id(started: str, site: str, stack: str) -> str:
    """A new record's name: random first, so that a few characters name it, then what the user looks for.

    ``started``: UTC, ISO 8601.
    """
    day = re.sub(r"[^0-9]", "", started)[:8]
    return f"{secrets.token_hex(4)}-{stack}-{site}-{day}"


def save(record: BuildRecord) -> Path:
    """Write a record, whole or not at all; an older one of the same id is replaced."""
    path = _path(record.id)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as failure:
        raise OutputError(
            f"cannot make {path.parent}: {failure.strerror}", remedy="set HPCGEN_RECORDS to one of your own folders"
        ) from failure
    _write(path, msgspec.to_builtins(record))
    return path


def _write(path: Path, data: dict[str, Any]) -> None:
    numbered = {RECORD.field: RECORD.newest, **{name: data[name] for name in data if name != RECORD.field}}
    write_file(path, msgspec.json.format(msgspec.json.encode(numbered), indent=1).decode() + "\n")


def _any(head: RecordHead) -> bool:
    return True


def entries(wanted: Callable[[RecordHead], bool] = _any) -> list[StoredRecord]:
    """The records that are wanted, the newest first; one that cannot be read is told on stderr and skipped."""
    decoder = msgspec.json.Decoder(RecordHead)
    found = []
    for path in records_folder().glob("*.json"):
        if path.name.startswith("."):
            continue
        try:
            head = _head(path, decoder)
        except InputError as error:
            _skip(error)
            continue
        if wanted(head):
            found.append(StoredRecord(head, path))
    return sorted(found, key=lambda each: (each.head.started, each.head.id), reverse=True)


def load_all(wanted: Callable[[RecordHead], bool] = _any) -> Iterator[BuildRecord]:
    """The records that are wanted, the newest first, each read when it is its turn; as :func:`entries`."""
    for _, path in entries(wanted):
        try:
            yield _load(path)
        except InputError as error:
            _skip(error)


def _head(path: Path, decoder: msgspec.json.Decoder[RecordHead]) -> RecordHead:
    try:
        if len(data := read_plain(path, MAX_BYTES)) <= MAX_BYTES:
            head = decoder.decode(data)
            RECORD.check({RECORD.field: head.record, "hpcgen": head.hpcgen}, str(path))
            return head
    except (ValueError, RecursionError, OSError):
        pass
    _load(path)  # says what is wrong with it
    raise InputError(f"{path} was written while it was read", remedy="list the records again")


def _skip(error: InputError) -> None:
    print(f"hpcgen: warning: {error.problems[0]}", file=sys.stderr)


def find(id_or_prefix: str) -> BuildRecord:
    """The record of that id, as :func:`find_file` finds it."""
    return _load(find_file(id_or_prefix))


def stored(id_or_prefix: str) -> dict[str, Any]:
    """All that is stored of that record, with what newer releases wrote."""
    return _read(find_file(id_or_prefix))[0]


def find_file(id_or_prefix: str) -> Path:
    """The file of the record of that id, or the one whose id begins so; UnknownNameError if none or several do."""
    if _ID.fullmatch(id_or_prefix) and _path(id_or_prefix).is_file():
        return _path(id_or_prefix)
    folder = records_folder()
    names = sorted(path.stem for path in folder.glob("*.json") if not path.name.startswith("."))
    fitting = [name for name in names if name.startswith(id_or_prefix)] if id_or_prefix else []
    if len(fitting) == 1:
        return _path(fitting[0])
    if fitting:
        raise UnknownNameError(
            f"{len(fitting)} records begin with {id_or_prefix}", remedy=f"name one of them: {', '.join(fitting[:5])}"
        )
    raise UnknownNameError(
        f"there is no build record {id_or_prefix!r} in {folder}", remedy=did_you_mean(id_or_prefix, names)
    )


def of_image(image: ImageReference) -> BuildRecord | None:
    """The newest record of a build that made this image."""

    def made_it(head: RecordHead) -> bool:
        return head.result == "built" and head.image is not None and _same(head.image, image)

    return next(load_all(made_it), None)


def newest_in(folder: Path, stack: str, site: str | None = None) -> BuildRecord | None:
    """The newest record of an image that was built in a folder.

    folder: an absolute path.
    stack: by its name.
    site: by its name; any if None.
    """

    def is_it(head: RecordHead) -> bool:
        same = (head.folder, head.stack) == (str(folder), stack) and site in (None, head.site)
        return same and head.result == "built" and head.image is not None

    return next(load_all(is_it), None)


def add_test_run(record: BuildRecord, test_run: TestRun) -> BuildRecord:
    """The record with one more test run, saved. What another process or a newer release added is kept."""
    path = _path(record.id)
    if not path.is_file():
        save(record)
    data, latest = _read(path)
    _write(path, {**data, "tests": [*data.get("tests", ()), msgspec.to_builtins(test_run)]})
    return msgspec.structs.replace(latest, tests=[*latest.tests, test_run])


def unwritten(error: OutputError) -> str:
    """Why a record could not be written, and what to do, in a line."""
    return f"{error.problems[0].message}; free space there, or set HPCGEN_RECORDS to another folder"


def tried_test_run(record: BuildRecord, test_run: TestRun, tell: Callable[[str], None]) -> BuildRecord | None:
    """As :func:`add_test_run`; where the record cannot be written, ``tell`` says so, and the tests' results stand."""
    try:
        return add_test_run(record, test_run)
    except OutputError as error:
        tell(f"warning: the tests could not be added to the build record: {unwritten(error)}")
        return None


def add_to_record_of(image: ImageReference, test_run: TestRun, tell: Callable[[str], None]) -> None:
    """The same for the newest record of a build that made this image, if there is one; ``tell`` says what is done."""
    record = of_image(image)
    if record is not None and tried_test_run(record, test_run, tell) is not None:
        tell(f"added to the build record {record.id}")


def _same(built: BuiltImage, image: ImageReference) -> bool:
    if built.kind != image.kind:
        return False
    if image.image_kind.tagged:
        return _full_name(built.name) == _full_name(image.name)
    return built.name == image.name


def _full_name(name: str) -> str:
    """A store's name with the parts that engines add: podman's localhost/, and the tag latest."""
    name = name.removeprefix("localhost/")
    return name if ":" in name.rsplit("/", 1)[-1] or "@" in name else f"{name}:latest"


def _path(record_id: str) -> Path:
    if not _ID.fullmatch(record_id):
        raise UnknownNameError(f"{record_id!r} is not the id of a build record", remedy="hpcgen records lists them")
    return records_folder() / f"{record_id}.json"


def _load(path: Path) -> BuildRecord:
    return _read(path)[1]


def _read(path: Path) -> tuple[dict[str, Any], BuildRecord]:
    """All that is in a record's file, as the newest format says it, and what this release knows of it."""
    data: Any = None
    try:
        text = read_plain(path, MAX_BYTES)
        if len(text) > MAX_BYTES:
            raise InputError(
                f"{path} is too large for a build record",
                remedy="it does not belong to hpcgen; move it out of the folder of records",
            )
        data = msgspec.json.decode(text)
        RECORD.check(data, str(path))
        for run in data.get("tests", ()):
            for each in run["results"]:
                if each.get("result") == "left out":  # in format 1
                    each["result"] = "skipped"
        return data, record_from(data, BuildRecord)
    except (ValueError, RecursionError, OSError, LookupError, TypeError, AttributeError) as failure:
        raise RECORD.not_understood(data, str(path), failure) from failure


# Which records are meant: by site, stack, result and age.


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Records for which all holds that is not None; ages in days since the build began."""

    site: str | None = None
    stack: str | None = None
    result: str | None = None
    older_than: float | None = None
    newer_than: float | None = None

    def has(self, head: RecordHead) -> bool:
        """Whether a record is one of them. InputError for an age before the calendar began."""
        for name in ("site", "stack", "result"):
            wanted = getattr(self, name)
            if wanted is not None and getattr(head, name) != wanted:
                return False
        if self.older_than is not None and head.started >= _days_ago(self.older_than):
            return False
        return self.newer_than is None or head.started >= _days_ago(self.newer_than)


def _days_ago(days: float) -> str:
    """As records write times, so that text can be compared."""
    try:
        return (datetime.now(timezone.utc) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        raise InputError(f"{days:g} days are too many", expected="at most some 700000") from None


# Remove records that nobody needs any longer, with their logs.


def prune(chosen: Selection, keep: int, *, dry_run: bool) -> Iterator[tuple[RecordHead, int]]:
    """Remove the chosen records but the newest ``keep`` of them; each with the bytes that it and its log took.

    Records that cannot be read, such as those of a newer release, stay.

    OutputError: what could not be removed, after all the others are.
    """
    problems = Problems()
    for head, path in entries(chosen.has)[keep:]:
        # A log that was asked for elsewhere belongs to whoever asked.
        files = [each for each in (path, path.with_suffix(".log")) if each.is_file()]
        taken = sum(each.stat().st_size for each in files)
        try:
            for each in [] if dry_run else files:
                each.unlink()
        except OSError as failure:
            problems.add(
                f"cannot remove {failure.filename}: {failure.strerror}",
                remedy="remove it by hand; the other records are done",
            )
            continue
        yield head, taken
    problems.raise_as(OutputError)
