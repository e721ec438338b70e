"""What the user asked for beside the files."""

from __future__ import annotations

from collections.abc import Callable

import msgspec


def _never(file: str, why: str) -> bool:
    return False


class SourceSettings(msgspec.Struct, frozen=True):
    """How sources are read.

    Parameters
    ----------
    system: which system is meant, where a file has several.
    may_run: whether a settings file may be run, by its name and why that would help.
    """

    system: str
    may_run: Callable[[str, str], bool] = _never
