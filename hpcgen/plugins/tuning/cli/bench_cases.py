"""What ``hpcgen bench`` and ``hpcgen tune`` measure: images by their jobs, whoever built them, and a plain Python."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from hpcgen.cli.common import say
from hpcgen.core.errors import InputError, Problem

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog
    from hpcgen.cli.own_job_options import SubmissionOptions
    from hpcgen.core.model.site import Site
    from hpcgen.images.reference import ImageReference
    from hpcgen.plugins.tuning.bench import BenchCase
    from hpcgen.plugins.tuning.cli.measuring import MeasuringOptions
    from hpcgen.running.image_job import ImageJob

PLAIN = "no container"
AGAINST = "against"
"""What tables call the user's own command."""


class _NoSiteError(InputError):
    """Nothing says on which machine an image runs that hpcgen did not build."""


def cases_of(
    images: Sequence[str], catalog: Catalog, options: MeasuringOptions, plain: str | None = None, against: str = ""
) -> list[BenchCase]:
    """Images with their jobs, which can be started from here.

    Those that hpcgen did not build run where the first does that it built, in as many threads.

    ``plain``: a Python of this machine, which is measured before them with the variables of their stack. ``against``: a
    command that starts a Python, which is measured before all as the user starts it.
    """
    from hpcgen.images.reference import parse_image
    from hpcgen.running.here import require_nodes

    named = [parse_image(each) for each in images]
    jobs = _jobs(named, catalog, options)
    for job in jobs:
        require_nodes(job, os.environ, "hpcgen bench --submit, or hpcgen bench")
    like = next((each for each in jobs if not each.foreign), jobs[0] if jobs else None)
    found = [_case(image, job, like) for image, job in zip(named, jobs, strict=True)]
    if plain is not None:
        found.insert(0, _plain(PLAIN, [plain], like, catalog, options))
    if against:
        found.insert(0, _plain(AGAINST, split_words(against, "--against"), like, catalog, options))
    return found


def split_words(text: str, option: str) -> list[str]:
    """The words of a command of the user's, without the shell; UsageError for quotes that do not end, and for none."""
    try:
        words = shlex.split(text)
    except ValueError as failure:
        raise click.UsageError(f"{option} {text!r} is not a command: {failure}") from failure
    if not words:
        raise click.UsageError(f"{option} requires a command, such as venv/bin/python")
    return words


def case_of(image: str, catalog: Catalog, options: MeasuringOptions) -> BenchCase:
    """One image; see :func:`cases_of`."""
    return cases_of([image], catalog, options)[0]


def job_of(
    image: ImageReference,
    catalog: Catalog,
    options: MeasuringOptions,
    submission: SubmissionOptions | None = None,
    beside: ImageJob | None = None,
) -> ImageJob:
    """The job of an image on one node, or on as many as ``nodes`` says; what is started in it is another matter.

    ``submission``: where the job goes to the batch system. ``beside``: the job of an image that hpcgen built, on whose
    site others run where none is named.
    """
    from hpcgen.core.model.job import JobRequest
    from hpcgen.images.unpacked import startable
    from hpcgen.running.image_job import plan_for_image
    from hpcgen.running.verify.starts import with_layout

    request, account = JobRequest(nodes=options.nodes if options.nodes > 1 else None), None
    if submission is not None:
        request = replace(request, walltime=submission.time, queue=submission.queue)
        account = submission.account_at
    job = plan_for_image(
        startable(image, say),
        catalog,
        request=request,
        account=account,
        elsewhere=submission is not None,
        foreign=lambda: _site(catalog, str(image), beside),
        data=options.data(),
        **options.place(catalog),
    )
    return with_layout(job, [], job.plan.job.ranks_per_node, nodes=options.nodes)


def _jobs(images: Sequence[ImageReference], catalog: Catalog, options: MeasuringOptions) -> list[ImageJob]:
    """The jobs of the images; those that need a site of another's come after it."""
    found: dict[int, ImageJob] = {}
    for number, image in enumerate(images):
        try:
            found[number] = job_of(image, catalog, options)
        except _NoSiteError:
            continue
    beside = next((each for each in found.values() if not each.foreign), None)
    for number, image in enumerate(images):
        if number not in found:
            found[number] = job_of(image, catalog, options, beside=beside)
    return [found[number] for number in range(len(images))]


def _site(catalog: Catalog, image: str, beside: ImageJob | None) -> Site:
    """Where an image runs of which no record says it: where another does, or the site of the user's config file."""
    from hpcgen.core.config.user_config import usual

    if beside is not None:
        return beside.plan.site
    if (own := usual("site", None)) is not None:
        return catalog.site(own[0])
    raise _NoSiteError(
        Problem(
            f"the machine is unknown: {image} has no record of a site",
            expected="--site NAME|FILE",
            remedy="hpcgen site new NAME --detect -o NAME.yaml describes this machine",
        )
    )


def _case(image: ImageReference, job: ImageJob, like: ImageJob | None) -> BenchCase:
    from hpcgen.images.identity import identity_of
    from hpcgen.plugins.tuning.bench import BenchCase
    from hpcgen.plugins.tuning.bench.running import MODULES
    from hpcgen.running.python_inside import python_inside

    if not job.foreign:
        return BenchCase(image.name, job, job.content)
    job = _as_large(job, like)
    return BenchCase(str(image), job, identity_of(image), python_inside(job, [*MODULES.values()], str(image)))


def _plain(
    name: str, words: Sequence[str], like: ImageJob | None, catalog: Catalog, options: MeasuringOptions
) -> BenchCase:
    """A Python without a container, with the threads and mostly the variables of an image that it is compared with."""
    from hpcgen.plugins.tuning.bench import BenchCase
    from hpcgen.plugins.tuning.bench.running import MODULES
    from hpcgen.running.foreign import bare, foreign_plan
    from hpcgen.running.image_job import ImageJob
    from hpcgen.running.python_inside import python_here

    site = catalog.site(options.site) if options.site is not None else _site(catalog, PLAIN, like)
    plan = foreign_plan(bare(site), options.partition or (like.plan.partition if like is not None else None))
    if like is not None and name == PLAIN:
        run = replace(plan.stack.run, environment=like.plan.stack.run.environment)
        plan = replace(plan, stack=replace(plan.stack, run=run))
    job = _as_large(ImageJob(plan, {}, plain=True), like)
    if options.program:
        return BenchCase(name, job, command=tuple(words) if name == AGAINST else ())
    return BenchCase(name, job, python=python_here(words, [*MODULES.values()]))


def _as_large(job: ImageJob, like: ImageJob | None) -> ImageJob:
    """The job as one rank with all threads that the other has on a node."""
    from hpcgen.running.verify.starts import with_layout

    size = (like or job).plan.job
    threads = max(1, size.ranks_per_node * size.threads_per_rank)
    return with_layout(job, [], 1, nodes=job.plan.job.nodes, threads=threads)
