"""Which records are meant: by site, stack, result and age."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import msgspec

from hpcgen.builders.records.store import RecordHead, entries
from hpcgen.core.errors import InputError, OutputError, Problems


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

    Raises
    ------
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
