"""What the doctor finds, as data."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from hpcgen.core.errors import Position

Severity = Literal["error", "warning", "note"]
ORDER: tuple[Severity, ...] = ("error", "warning", "note")


class Drift(msgspec.Struct, frozen=True):
    """One fact of the profile that does not hold on the machine.

    Parameters
    ----------
    fact: its path in the profile, such as ``partitions.thin.cpu.cores``.
    severity: ``error`` breaks images or jobs; ``warning`` is an update that the profile has not followed.
    said: the profile's value. seen: the machine's; None for what is gone.
    where: the file and line that say it, the profile's own or a parent's.
    how: where the machine's value was read.
    means: what follows from it.
    remedy: what to do.
    depends: stacks, locks and kits that rest on the fact.
    """

    fact: str
    severity: Severity
    said: Any
    seen: Any
    where: Position
    how: str
    means: str
    remedy: str
    depends: tuple[str, ...] = ()


class Unseen(msgspec.Struct, frozen=True):
    """A fact of the profile that this machine does not show, and why."""

    fact: str
    said: Any
    where: Position
    why: str


class Report(msgspec.Struct, frozen=True):
    """All of one examination.

    Parameters
    ----------
    partition: the kind of node that this one was compared as; "" for a login node. chosen: why that one.
    agree: facts that hold.
    unsaid: what the machine shows and the profile leaves open: path → value.
    """

    site: str
    partition: str
    chosen: str
    drift: tuple[Drift, ...]
    unseen: tuple[Unseen, ...]
    agree: tuple[str, ...]
    unsaid: dict[str, Any]

    def count(self, severity: Severity) -> int:
        """How many of a severity; notes are the facts that could not be detected."""
        return len(self.unseen) if severity == "note" else sum(each.severity == severity for each in self.drift)
