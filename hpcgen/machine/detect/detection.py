"""All probes, one after the other: a machine → what was seen of it."""

from __future__ import annotations

from hpcgen.machine.detect.machine import Machine
from hpcgen.machine.detect.probes import (
    batch,
    cpu,
    engines,
    fabric,
    file_systems,
    gpus,
    images,
    modules,
    mpi,
    network,
    squashfs,
    system,
)
from hpcgen.machine.detect.seen import Seen

_PROBES = (
    system.probe,
    cpu.probe,
    gpus.probe,
    batch.probe,
    fabric.probe,
    modules.probe,
    mpi.probe,
    engines.probe,
    squashfs.probe,
    file_systems.probe,
    network.probe,
    images.probe,
)
"""In this order: a node's CPUs and GPUs tell which partition it belongs to, the batch system how ranks start."""


def detect(machine: Machine) -> Seen:
    """Everything that can be seen of a machine, with what stays open and why.

    A machine where nothing can be read gives no facts, and no error.
    """
    seen = Seen()
    for probe in _PROBES:
        probe(machine, seen)
    seen.notes += [f"{path} {why}" for path, why in machine.refused.items()]
    for path in seen.facts:
        seen.unseen.pop(path, None)
    return seen
