"""The public functions that build images and start them: on this machine, or as jobs of its batch system."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpcgen.api import catalog_with, default_catalog, locked_kit, quiet, site_or_stack, walltime_in_text
from hpcgen.blocks.base import Block
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.in_memory import checked
from hpcgen.core.config.user_config import account_for, allowed_signers, artifact_store, configured
from hpcgen.core.errors import InputError
from hpcgen.core.model.job import JobRequest, Queueing
from hpcgen.core.model.lock import Lock
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.record import BuildRecord, TestRun
from hpcgen.core.model.site import Site
from hpcgen.images.reference import ImageReference, parse_image
from hpcgen.kit.folder import KitFolder, read_kit
from hpcgen.kit.kit import Kit, make_kit, store_kit
from hpcgen.running.data import DataRequest
from hpcgen.running.image_job import ImageJob, plan_for_image

if TYPE_CHECKING:
    from hpcgen.running.follow import JobResult
    from hpcgen.running.here import RunResult
    from hpcgen.running.submission import Submitted

AnyImage = str | Path | BuildRecord | ImageReference
"""An image: its file or folder, its name in a store (``podman:NAME``), or the record of its build."""
Say = Callable[[str], None]


def build(
    source: Plan | Lock | Kit | Path | str,
    *,
    engine: str | None = None,
    output: Path | str | None = None,
    cache: bool = True,
    notest: bool = False,
    engine_options: Sequence[str] = (),
    bundle: Path | str | None = None,
    artifacts: Path | str | None = None,
    log: Path | str | None = None,
    record: bool = True,
    accept_licences: Sequence[str] = (),
    say: Say | None = None,
    blocks: Sequence[type[Block]] = (),
    catalog: Catalog | None = None,
) -> BuildRecord:
    """Build an image with a container engine of this machine, and wait for it: minutes to hours.

    Parameters
    ----------
    source: a plan, a lock, a kit, or the folder of one.
    engine: the program that builds; by the plan and what is installed if None. A plan or lock is built in the format
        that it reads.
    output: the image's file, folder or name; where the job script looks for it if None.
    cache: whether steps may be taken from the engine's cache.
    notest: leave out the self-test that ends a build.
    engine_options: further words for the engine's build command.
    bundle: the folder of a bundle, from which the build takes everything; of a lock, or of a kit for one.
    artifacts: of a plan, the folder in which compiled blocks are kept, and from which they are taken; that of the
        user's config file if None. Without ``cache``, none.
    log: the file for the engine's whole output; beside the record if None.
    record: whether a record of the build is kept.
    accept_licences: names of licences that you accept, or ``all``; also those of the environment and config file.
    say: is told what is going on, line by line, such as ``print``.
    blocks, catalog: those that :func:`hpcgen.plan` was given.

    Returns
    -------
    The record, whose ``image`` says where the image is and whose ``seconds`` how long it took.

    Raises
    ------
    BuildFailedError: the engine did not build it; under the image's name is what was there before.
    MissingToolError: the engine, or what it needs, is not installed here.
    PolicyError: a licence is not accepted, the site does not allow the engine's format, or a lock or bundle lacks the
        signature that the user's config file requires.
    InputError, OutputError: the kit cannot be used; the image, its log or its record cannot be written.
    KeyboardInterrupt: Ctrl-C or SIGTERM, after everything was undone.
    """
    from hpcgen.builders.display import PlainDisplay
    from hpcgen.builders.preparing import BuildOptions
    from hpcgen.builders.running import build_kit
    from hpcgen.core.support.leftovers import scratch_folder
    from hpcgen.planning.licences import require_accepted

    options = BuildOptions(
        engine=engine,
        output=os.fspath(output) if output is not None else None,
        cache=cache,
        notest=notest,
        words=tuple(engine_options),
        log=Path(log) if log is not None else None,
        record=record,
        bundle=Path(bundle).absolute() if bundle is not None else None,
        signers=allowed_signers(),
        artifacts=artifact_store(Path(artifacts) if artifacts is not None else None) if cache else None,
        artifact_sources=tuple(configured("artifact_sources", ())),
    )
    watcher = PlainDisplay(say or quiet)
    with scratch_folder("hpcgen-kit-") as folder:
        catalog = catalog_with(blocks, catalog)
        kit = _kit_folder(source, options.engine, options.bundle, folder / "kit", accept_licences, blocks, catalog)
        require_accepted(kit.plan.licences, accept_licences)
        if isinstance(source, Plan):
            from hpcgen.builders.artifacts.making import with_artifacts

            options = with_artifacts(kit.plan, catalog, None, kit.content, options, watcher)
        return build_kit(kit, options, watcher)


def test(
    image: AnyImage,
    *,
    site: Site | str | None = None,
    partition: str | None = None,
    engine: str | None = None,
    nodes: int = 1,
    ranks_per_node: int | None = None,
    threads_per_rank: int | None = None,
    timeout_s: float = 900.0,
    trust_image: bool = False,
    check: bool = True,
    record: bool = True,
    on_begin: Callable[[str, str], None] | None = None,
    say: Say | None = None,
    catalog: Catalog | None = None,
) -> TestRun:
    """Run the self-tests of an image's blocks on this machine, and check the image against it.

    Parameters
    ----------
    image: a file, a folder, a name in an engine's store, or the record of a build.
    site, partition, engine, ranks_per_node, threads_per_rank: other than those that the image was built for.
    nodes: over so many nodes of an allocation, with what the blocks test there.
    timeout_s: seconds for each start of the image, of which there are three.
    trust_image: the image's own record may decide what is started on this host.
    check: whether failed tests raise; else the results say which.
    record: whether the results are added to the record of the build.
    on_begin: called with group and name of each test that begins.
    say: is told that the results were added, or could not be.
    catalog: where your own profiles are looked up; :func:`default_catalog` if None.

    Raises
    ------
    TestFailedError: tests failed, with a problem for each.
    InputError: the image is for a site of which you have no profile, or nothing says which machine it is for.
    PolicyError: it cannot be started here, whatever the result would be.
    """
    from hpcgen.core.support.processes import interruptible
    from hpcgen.running.verify import failure, verify_image

    catalog = catalog or default_catalog()
    reference = _reference(image)
    with interruptible():
        run = verify_image(
            reference,
            catalog,
            trust=trust_image,
            site=_site(catalog, site),
            partition=partition,
            engine=engine,
            nodes=nodes,
            ranks_per_node=ranks_per_node,
            threads=threads_per_rank,
            timeout_s=timeout_s,
            on_begin=on_begin or (lambda group, name: None),
        )
    if record:
        from hpcgen.builders.records.store import add_to_record_of

        add_to_record_of(reference, run, say or quiet)
    if check and (error := failure(run)) is not None:
        raise error
    return run


def run(
    image: AnyImage,
    command: Sequence[str] | None = None,
    *,
    site: Site | str | None = None,
    partition: str | None = None,
    engine: str | None = None,
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    threads_per_rank: int | None = None,
    gpus_per_node: int | None = None,
    binds: Sequence[str] = (),
    trust_image: bool = False,
    check: bool = True,
    keep_output: bool = False,
    say: Say | None = None,
    catalog: Catalog | None = None,
) -> RunResult:
    """Start an image on this machine, or in the allocation that this process runs in, and wait until it ends.

    Parameters
    ----------
    image: a file, a folder, a name in an engine's store, or the record of a build.
    command: what is started, and its arguments; what the image was built for if None.
    site, partition, engine: other than those that the image was built for.
    nodes, ranks_per_node, threads_per_rank, gpus_per_node: of the job; the site's layouts decide where None.
    binds: folders and files of the host that it sees, as ``--bind`` has them (``SRC[:DST[:ro]]``).
    trust_image: the image's own record may decide what is started on this host.
    check: whether another exit status than 0 raises.
    keep_output: what it prints is in the result, instead of going to this process's own output.
    say: is told what the user should know first, such as that this machine may be shared.
    catalog: where your own profiles are looked up; :func:`default_catalog` if None.

    Raises
    ------
    JobFailedError: the program ended with another status than 0.
    InputError: the image is for a site of which you have no profile, or nothing says which machine it is for.
    PolicyError: nothing that is allowed here starts the image, or it takes an allocation.
    """
    from hpcgen.running.here import failure, notes, run_to_end

    request = JobRequest(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        threads_per_rank=threads_per_rank,
        gpus_per_node=gpus_per_node,
        command=list(command) if command is not None else None,
    )
    place = (site, partition, engine, trust_image)
    job = _job(image, checked(request, "run()"), place, catalog, binds, elsewhere=False)
    tell = say or quiet
    for note in notes(job, os.environ):
        tell(f"note: {note}")
    _fetch(job, Path.cwd())
    result = run_to_end(job, keep=keep_output)
    if check and result.exit_status:
        raise failure(job, result.exit_status)
    return result


def _fetch(job: ImageJob, start: Path) -> None:
    """Have the models of the job's stack where it looks for them, in the folder of the start or on scratch."""
    if job.plan.stack.run.models:
        from hpcgen.core.support.progress import Watch
        from hpcgen.running.models import fetch_models, store_folder

        fetch_models(job.plan, store_folder(job.plan.site, job.plan.job.account, os.environ, start), Watch())


def submit(
    image: AnyImage,
    command: Sequence[str] | None = None,
    *,
    folder: Path | str = ".",
    site: Site | str | None = None,
    partition: str | None = None,
    engine: str | None = None,
    nodes: int | None = None,
    ranks_per_node: int | None = None,
    threads_per_rank: int | None = None,
    gpus_per_node: int | None = None,
    binds: Sequence[str] = (),
    walltime: str | timedelta | None = None,
    queue: str | None = None,
    account: str | None = None,
    memory_per_rank_gb: float | None = None,
    name: str | None = None,
    queueing: Queueing | None = None,
    trust_image: bool = False,
    catalog: Catalog | None = None,
) -> Submitted:
    """Submit an image as a job of the batch system, and return at once; :func:`follow` waits for its end.

    Parameters
    ----------
    image, command, site, partition, engine, trust_image, catalog: as for :func:`run`.
    folder: where the job starts, and where its script and output go.
    nodes, ranks_per_node, threads_per_rank, gpus_per_node, walltime, queue, memory_per_rank_gb: as for
        :func:`hpcgen.plan`.
    account: the account to charge; that of your config file for the site, else the recorded one, if None.
    name: what the batch system calls the job; the stack's name if None.
    queueing: whether it is an array, waits for another job, or is put back into the queue.
    binds: folders of the machine that the job sees, as for :func:`run`.

    Raises
    ------
    PolicyError: the site has no batch system or requires an account, or the job does not fit.
    MissingToolError: the batch system's commands are not here. OutputError: the script cannot be written.
    JobFailedError: the batch system does not accept the job.
    """
    from hpcgen.running.submission import submit as submit_job

    request = JobRequest(
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        threads_per_rank=threads_per_rank,
        gpus_per_node=gpus_per_node,
        walltime=walltime_in_text(walltime, "submit()"),
        queue=queue,
        account=account,
        memory_per_rank_gb=memory_per_rank_gb,
        command=list(command) if command is not None else None,
        name=name,
    )
    place = (site, partition, engine, trust_image)
    job = _job(image, checked(request, "submit()"), place, catalog, binds, elsewhere=True)
    _fetch(job, Path(folder))
    return submit_job(replace(job, queueing=checked(queueing or Queueing(), "submit()")), Path(folder))


def follow(job: Submitted, *, check: bool = True, say: Say | None = None) -> JobResult:
    """Wait for the end of a job, and show its output as it comes.

    Parameters
    ----------
    job: what :func:`submit` gave; not an array.
    check: whether a job that failed raises.
    say: is told when it waits, runs and begins a step.

    Raises
    ------
    JobFailedError: it failed, or the batch system no longer answers.
    KeyboardInterrupt: Ctrl-C; the job goes on.
    """
    from hpcgen.running.follow import Follower, failure

    if job.job.queueing.tasks is not None:
        raise InputError(f"job {job.id} is an array, which cannot be followed", remedy=job.hint)
    result = Follower(job, say or quiet).follow()
    if check and not result.good:
        raise failure(result, job.queue)
    return result


def _kit_folder(
    source: Plan | Lock | Kit | Path | str,
    engine: str | None,
    bundle: Path | None,
    folder: Path,
    accepted: Sequence[str],
    blocks: Sequence[type[Block]],
    catalog: Catalog,
) -> KitFolder:
    """The kit of what is to be built, in a folder: its own, or that one."""
    if isinstance(source, str | Path):
        return read_kit(Path(source))
    if isinstance(source, Plan):
        source = make_kit(_plan_for(source, engine, accepted), catalog)
    elif isinstance(source, Lock):
        source = locked_kit(source, catalog, blocks, bundle=bundle, format=_format(engine))
    store_kit(folder, source.all_files)
    return read_kit(folder)


def _plan_for(plan: Plan, engine: str | None, accepted: Sequence[str]) -> Plan:
    """The plan with its licences accepted, in the format that the engine reads."""
    from hpcgen.planning.licences import all_accepted, require_accepted
    from hpcgen.planning.planner import in_format

    require_accepted(plan.licences, accepted)
    format = _format(engine)
    return all_accepted(plan if format in (None, plan.format) else in_format(plan, format))


def _format(engine: str | None) -> str | None:
    from hpcgen.backends.engines import builder_for

    return builder_for(engine).format if engine is not None else None


def _reference(image: AnyImage) -> ImageReference:
    if isinstance(image, ImageReference):
        return image
    if not isinstance(image, BuildRecord):
        return parse_image(os.fspath(image), start=True)
    if image.image is None:
        raise InputError(f"the build {image.id} made no image", expected="the record of a build that succeeded")
    return ImageReference(image.image.kind, image.image.name, start=True)


def _site(catalog: Catalog, site: Site | str | None) -> Site | None:
    return site_or_stack(catalog, site, Site)[0] if site is not None else None


def _job(
    image: AnyImage,
    request: JobRequest,
    place: tuple[Site | str | None, str | None, str | None, bool],
    catalog: Catalog | None,
    binds: Sequence[str],
    *,
    elsewhere: bool,
) -> ImageJob:
    """The job of an image; ``place``: site, partition and engine that are asked for, and whether it is trusted."""
    catalog = catalog or default_catalog()
    site, partition, engine, trust = place
    return plan_for_image(
        _reference(image),
        catalog,
        trust=trust,
        site=_site(catalog, site),
        partition=partition,
        request=request,
        engine=engine,
        account=lambda here: account_for(here, None),
        elsewhere=elsewhere,
        data=DataRequest(tuple(binds)),
    )
