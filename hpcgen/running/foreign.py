"""An image that hpcgen did not build: the plan by which it is started, and what is said of it.

The site's profile alone decides what happens on the host. Of the image only its variables are read, and set inside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpcgen._version import __version__
from hpcgen.backends.engines import engine_format
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.core.support.file_formats import KIT
from hpcgen.launch.job.layout import resolve_job

if TYPE_CHECKING:
    from hpcgen.images.recorded import RecordedKit
    from hpcgen.images.reference import ImageReference

STACK = Stack(name="foreign", title="an image that hpcgen did not build", blocks={}, run=RunSpec(mpi=False))


def bare(site: Site) -> Site:
    """The site without what is bound into images: nobody made folders for it in one that hpcgen did not build."""
    return replace(site, file_systems={}, mpi=None)


def foreign_plan(site: Site, partition: str | None, stack: Stack = STACK, request: JobRequest | None = None) -> Plan:
    """A plan of which no block is known.

    Raises
    ------
    UnknownNameError: there is no such partition. PolicyError: the job does not fit the machine.
    """
    name = site.default_partition if partition is None else site.known_partition(partition)
    return Plan(
        number=KIT.newest,
        hpcgen=__version__,
        site=site,
        stack=stack,
        partition=name,
        format=engine_format(site.containers.preferred),
        engine=site.containers.preferred,
        blocks=[],
        job=resolve_job(site, name, stack, request or JobRequest()),
    )


def foreign_kit(image: ImageReference, site: Site, partition: str | None) -> RecordedKit:
    """What stands for the kit of an image that has none; errors as :func:`foreign_plan`."""
    from hpcgen.images.convert import own_marks
    from hpcgen.images.recorded import RecordedKit

    environment, _ = own_marks(image)
    return RecordedKit({}, foreign_plan(site, partition), environment, "")
