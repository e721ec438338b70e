"""How ``hpcgen build`` builds, and the job that does it elsewhere: for one image, and for what plug-ins make of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpcgen.cli.common import required_signers, say
from hpcgen.cli.options import Options, PlanOptions

if TYPE_CHECKING:
    from hpcgen.builders import BuildOptions
    from hpcgen.core.model.plan import Plan
    from hpcgen.core.model.record import BuildRecord
    from hpcgen.core.model.site import Site
    from hpcgen.core.support.signing_keys import SigningKeys
    from hpcgen.kit.folder import KitFolder
    from hpcgen.running.build_job import BuildJob

Approve = Callable[["KitFolder", "BuildRecord | None"], None]
"""Given the kit, and afterwards the record of the build too."""
NOT_IN_JOB = {"--submit": 0, "--no-follow": 0, "--dry-run": 0, "--time": 1, "--queue": 1, "--account": 1}
"""Options that the job does not repeat, each with the number of its values."""


class BuildCommandOptions(Options, frozen=True, kw_only=True):
    """How an image is built, and of what beside a plan; ``keep``: where its kit stays; ``accept``: licences.

    ``dockerfile``: the user's own, in place of a plan; ``context``: the folder that its build sees.
    ``store``: the folder in which compiled blocks are kept; ``wheel_folders``: those with Python packages.
    ``provenance``: the file for the statement of where the image comes from; ``sign``: the keys that sign it, or
    the image. ``approve``: of a plug-in, is asked before and after the build and raises where it does not go on.
    """

    engine: str | None = None
    output: str | None = None
    keep: Path | None = None
    locked: Path | None = None
    bundle: Path | None = None
    dockerfile: Path | None = None
    context: Path | None = None
    signers: Path | None = None
    store: Path | None = None
    wheel_folders: tuple[Path, ...] = ()
    no_cache: bool = False
    notest: bool = False
    emulate: bool = False
    engine_option: tuple[str, ...] = ()
    dry_run: bool = False
    prove: bool = False
    trust_image: bool = False
    record: bool = True
    log: Path | None = None
    provenance: Path | None = None
    sign: tuple[Path, ...] = ()
    as_json: bool = False
    accept: tuple[str, ...] = ()
    submit: bool = False
    no_follow: bool = False
    approve: Approve | None = None

    @property
    def keys(self) -> SigningKeys:
        """What signs. InputError where ``sign`` names no such keys."""
        from hpcgen.core.support.signing_keys import signing_keys

        return signing_keys(self.sign)

    @property
    def how(self) -> BuildOptions:
        """The same in the words of :mod:`hpcgen.builders`."""
        from hpcgen.builders import BuildOptions
        from hpcgen.core.config.user_config import artifact_store, configured

        return BuildOptions(
            engine=self.engine,
            output=self.output,
            cache=not self.no_cache,
            notest=self.notest,
            emulate=self.emulate,
            words=self.engine_option,
            log=self.log,
            record=self.record,
            bundle=self.bundle,
            signers=required_signers(click.get_current_context()),
            artifacts=None if self.no_cache else artifact_store(self.store),
            artifact_sources=tuple(configured("artifact_sources", ())),
            local_wheels=bool(self.wheel_folders),
            pgp_key=self.keys.pgp,
        )

    def has_lock(self, options: PlanOptions) -> bool:
        """Whether a lock says what is built: one that is named, or that of the bundle."""
        return self.locked is not None or (self.bundle is not None and not options.words)


def job_of_build(site: Site, partition: str, name: str, left_out: Mapping[str, int], options: PlanOptions) -> BuildJob:
    """The job that calls this command again, without some of its options."""
    from hpcgen.core.config.user_config import account_for
    from hpcgen.core.model.job import JobRequest
    from hpcgen.running.build_job import BuildJob
    from hpcgen.running.submission import passed_on, without_options

    account = account_for(site, options.account)
    return BuildJob(
        site=site,
        partition=partition,
        name=name,
        words=without_options(sys.argv[1:], left_out),
        folder=Path.cwd(),
        request=JobRequest(walltime=options.time, queue=options.queue, account=account),
        environment=passed_on(os.environ),
    )


def hand_over(job: BuildJob, plan: Plan, dry_run: bool, follow: bool) -> str:
    """Print the script, or submit it and follow the job; its id, or a word for it where the script is only shown."""
    if dry_run:
        from hpcgen.running.build_job import build_script

        click.echo(build_script(job)[1], nl=False)
        return "JOB-ID"
    from hpcgen.cli.run_command import followed
    from hpcgen.running.build_job import submit_build
    from hpcgen.running.follow import failure

    submitted = submit_build(job, plan)
    say(f"job {submitted.id} submitted with {submitted.script}")
    if not follow:
        say(submitted.hint)
        click.echo(submitted.id)
        return submitted.id
    result = followed(submitted)
    if not result.good:
        raise failure(result, submitted.queue)
    say(f"job {result.id} succeeded")
    return submitted.id
