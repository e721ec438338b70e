"""What ``test`` and ``ci reframe`` share: the options that say how an image is started to be tested, and its job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from hpcgen.cli.common import TRUST, option_group
from hpcgen.cli.engine_choice import EngineChoice
from hpcgen.cli.words import COUNT, PARTITION, SECONDS, SITE

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.core.model.site import Site
    from hpcgen.images.reference import ImageReference
    from hpcgen.run.image_job import ImageJob

test_options = option_group(
    click.option("--site", type=SITE, help="Another site than the image's, or your own profile of it."),
    TRUST,
    click.option("--partition", type=PARTITION, help="Kind of node."),
    click.option("--engine", type=EngineChoice("runners"), help="An engine other than the site's preferred one."),
    click.option(
        "--nodes", type=COUNT, default=1, help="Nodes of the ranks; with several, the blocks' tests for them too."
    ),
    click.option(
        "--ranks-per-node", type=COUNT, help="MPI ranks; by default those of the layout, on one node at least two."
    ),
    click.option("--threads", type=COUNT, help="Threads of each rank."),
    click.option(
        "--timeout",
        type=SECONDS,
        default=900.0,
        show_default=True,
        metavar="SECONDS",
        help="Time limit for each start of the image.",
    ),
)

TEST_OPTIONS = ("site", "trust_image", "partition", "engine", "nodes", "ranks_per_node", "threads", "timeout")
"""The names of their values."""


def place_of(catalog: Catalog, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Where and by what the image is started, in the words of :func:`~hpcgen.run.image_job.plan_for_image`."""
    site = catalog.site(asked["site"]) if asked["site"] is not None else None
    return {"trust": asked["trust_image"], "site": site, "partition": asked["partition"], "engine": asked["engine"]}


def job_for_tests(
    image: ImageReference,
    catalog: Catalog,
    asked: Mapping[str, Any],
    account: Callable[[Site], str | None] | None = None,
) -> ImageJob:
    """The job of the tests that is started elsewhere: by the batch system, or by ReFrame."""
    from hpcgen.core.model.job import JobRequest
    from hpcgen.run.verify import job_of_tests

    request = JobRequest(
        nodes=asked["nodes"],
        ranks_per_node=asked["ranks_per_node"],
        threads_per_rank=asked["threads"],
        walltime=asked.get("time"),
        queue=asked.get("queue"),
    )
    return job_of_tests(image, catalog, request, account=account, elsewhere=True, **place_of(catalog, asked))
