"""Remove records that nobody needs any longer, with their logs."""

from __future__ import annotations

from collections.abc import Iterator

from hpcgen.builders.records.selection import Selection
from hpcgen.builders.records.store import RecordHead, entries
from hpcgen.core.errors import OutputError, Problems


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
