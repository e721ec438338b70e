"""What a batch system is given and what it answers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from hpcgen.model.job import Job
from hpcgen.model.site import Partition
from hpcgen.model.site import Scheduler as SiteScheduler
from hpcgen.support.quoting import directive


class Header(msgspec.Struct, frozen=True):
    """All that the directives of a job depend on."""

    name: str
    job: Job
    partition: Partition
    scheduler: SiteScheduler

    @property
    def gpus(self) -> int:
        """GPUs of one node."""
        return self.partition.gpu.count if self.partition.gpu is not None else 0

    @property
    def slots(self) -> int:
        """What the batch system counts per node."""
        return self.partition.slots or self.partition.cpu.cores


class Scheduler:
    """Base of the batch systems. ``mark`` starts a directive, ``start`` is shell that goes to the job's folder."""

    file_name: ClassVar[str]
    mark: ClassVar[str]
    start: ClassVar[str] = ""
    account_option: ClassVar[str] = ""

    def directives(self, header: Header) -> list[str]:
        """Options of the job's header, without the mark."""
        raise NotImplementedError


class NoScheduler(Scheduler):
    """No batch system: the script is run as it is."""

    file_name = "run.sh"
    mark = ""

    def directives(self, header: Header) -> list[str]:
        """None."""
        return []


class Direct(NoScheduler):
    """A start right here, on a system with or without a batch system."""

    # In a job after sbatch --export=NONE, as in Slurm's own script.
    start = "unset SLURM_EXPORT_ENV"


def option(name: str, value: str | int, join: str = "=") -> str:
    """``name=value`` of a header, which has no quoting; InputError for what cannot be written there."""
    return f"{name}{join}{directive(str(value), name)}"


def queue_options(header: Header, name: str, join: str = "=") -> list[str]:
    """How the job's queue is asked for: as the profile says, else by ``name``; nothing without a queue."""
    queue = next((queue for queue in header.partition.queues if queue.name == header.job.queue), None)
    if queue is not None and queue.directives:
        return _checked(queue.directives)
    return [option(name, header.job.queue, join)] if header.job.queue else []


def site_options(header: Header) -> list[str]:
    """Options of the profile, each word checked again."""
    return _checked([*header.scheduler.directives, *header.partition.directives])


def _checked(given: Iterable[str]) -> list[str]:
    return [" ".join(directive(word, "a directive of the profile") for word in item.split(" ")) for item in given]
