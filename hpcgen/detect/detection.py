"""All probes, one after the other: a machine → what was seen of it."""

from __future__ import annotations

from hpcgen.detect.machine import Machine
from hpcgen.detect.probes import (
    cpu,
    system,
)
from hpcgen.detect.seen import Seen

_PROBES = (
    system.probe,
    cpu.probe,
)


def detect(machine: Machine) -> Seen:
    """Everything that can be seen of a machine, with what stays open and why.

    A machine where nothing can be read gives no facts, and no error.
    """
    seen = Seen()
    for probe in _PROBES:
        probe(machine, seen)
    for path, why in machine.refused.items():
        seen.notes.append(f"{path} {why}")
    for path in seen.facts:
        seen.unseen.pop(path, None)
    return seen
