"""Time limits as people write them."""

from __future__ import annotations

import re

from hpcgen.core.errors import InputError

_WALLTIME = re.compile(
    r"(?:(?P<days>\d{1,3})-)?(?P<hours>\d{1,4}):(?P<minutes>[0-5]\d):(?P<seconds>[0-5]\d)"
    r"|(?P<number>\d{1,6})(?P<unit>[smhd])",
    re.ASCII,
)
_UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_walltime(text: str, where: str | None = "--time") -> int:
    """Seconds of ``36h``, ``90m``, ``2d``, ``36:00:00`` (hours:minutes:seconds) or ``1-12:00:00`` (days first).

    Raises
    ------
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
