"""Numbers for people, and time limits as people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpcgen.core.errors import InputError

if TYPE_CHECKING:
    from datetime import date

DAWN = 946684800
"""The first second of 2000, by Unix time: the date of files that must not have the date on which they are made."""


def size(count: int | None) -> str:
    """Bytes in the unit that reads best; powers of ten, as disks and quotas are sold."""
    if count is None:
        return "size unknown"
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.0f} {unit}" if unit in ("B", "kB") else f"{value:.1f} {unit}"


def duration(seconds: float) -> str:
    """Seconds as ``42 s``, ``3 min 07 s`` or ``2 h 10 min``."""
    whole = round(seconds)
    if whole >= 6000:
        minutes = round(seconds / 60)
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{whole} s" if whole < 100 else f"{whole // 60} min {whole % 60:02d} s"


def walltime_text(seconds: int) -> str:
    """``hours:minutes:seconds``, which Slurm, Torque and PBS read alike; hours may exceed 24."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


def number(value: float) -> str:
    """At most one digit after the point."""
    return f"{value:.1f}".removesuffix(".0")


def files(count: int) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} file{'' if count == 1 else 's'}"


def harmless(text: str) -> str:
    """A stranger's words on one line, without what would steer a terminal."""
    return "".join(character if character.isprintable() else "?" for character in text)


def shortened(text: str, most: int) -> str:
    """A text of at most so many letters, which ends in … where more followed."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def some(words: Sequence[str], most: int = 4) -> str:
    """The first few words, and how many more there are."""
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def counted(number: int, what: str) -> str:
    """``1 node``, ``2 nodes``, ``2 hashes``."""
    if number == 1:
        return f"{number} {what}"
    return f"{number} {what}{'es' if what.endswith(('s', 'sh', 'ch', 'x')) else 's'}"


def months_before(day: date, months: int) -> str:
    """The same day so many months earlier, to compare other dates with: it need not exist, such as 2026-02-30."""
    count = day.year * 12 + day.month - 1 - months
    return f"{count // 12:04}-{count % 12 + 1:02}-{day.day:02}"


# Time limits as people write them.

_WALLTIME = re.compile(
    r"(?:(?P<days>\d{1,3})-)?(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)"
    r"|(?P<number>\d{1,6})(?P<unit>[smhd])",
    re.ASCII,
)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_walltime(text: str, where: str | None = "--time") -> int:
    """Seconds of ``36h``, ``90m``, ``2d``, ``36:00:00`` (hours:minutes:seconds) or ``1-12:00:00`` (days first).

    InputError: another form, or nothing at all.
    """
    found = _WALLTIME.fullmatch(text.strip())
    seconds = 0
    if found is not None:
        if found["unit"]:
            seconds = int(found["number"]) * _UNIT_SECONDS[found["unit"]]
        else:
            days, hours, minutes, rest = (int(found[n] or 0) for n in ("days", "hours", "minutes", "seconds"))
            seconds = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if seconds < 1:
        raise InputError(
            f"{text!r} is not a time limit", where, "36h, 90m, 36:00:00 (hours first) or 1-12:00:00 (days first)"
        )
    return seconds
