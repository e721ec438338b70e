"""Which records are meant: by site, stack, result and age."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import msgspec

from hpcgen.builders.records.store import RecordHead
from hpcgen.core.errors import InputError


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
