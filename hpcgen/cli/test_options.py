"""What ``test`` and ``ci reframe`` share: the options that say how an image is started to be tested, and its job."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import TRUST, option_group
from hpcgen.cli.options import DATA, ImageOptions, in_record
from hpcgen.cli.words import COUNT, PARTITION, SECONDS, SITE, EngineChoice

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.own_job_options import SubmissionOptions
    from hpcgen.images.reference import ImageReference
    from hpcgen.running.image_job import ImageJob


class ImageTestOptions(ImageOptions, frozen=True, kw_only=True):
    """How an image is started to be tested. ``timeout``: for each start, in seconds."""

    nodes: int = 1
    ranks_per_node: int | None = None
    threads: int | None = None
    timeout: float = 900.0


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
    DATA,
    in_record(ImageTestOptions),
)
"""A command gets them as ``options: ImageTestOptions``."""


def job_for_tests(
    image: ImageReference,
    catalog: Catalog,
    options: ImageTestOptions,
    submission: SubmissionOptions | None = None,
) -> ImageJob:
    """The job of the tests that is started elsewhere: by the batch system, or by ReFrame."""
    from hpcgen.core.model.job import JobRequest
    from hpcgen.running.verify import job_of_tests

    request = JobRequest(nodes=options.nodes, ranks_per_node=options.ranks_per_node, threads_per_rank=options.threads)
    account = None
    if submission is not None:
        request = replace(request, walltime=submission.time, queue=submission.queue)
        account = submission.account_at
    place, data = options.place(catalog), options.data()
    return job_of_tests(image, catalog, request, account=account, elsewhere=True, data=data, **place)
