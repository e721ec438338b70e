"""Builds as jobs: which site's batch system, and handing the script over to it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hpcgen.backends.schedulers import scheduler_for
from hpcgen.core.errors import InputError
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.site import Site
from hpcgen.core.support.writing import write_file
from hpcgen.plugins.fleet.build_job import BuildJob, build_script, check_site
from hpcgen.plugins.fleet.changes import MemberState
from hpcgen.plugins.fleet.file import LoadedFleet, build_site
from hpcgen.running.image_job import ImageJob
from hpcgen.running.submission import Submitted, require_programs, submit_script


def array_site(loaded: LoadedFleet, states: Sequence[MemberState], asked: str | None) -> tuple[Site, str]:
    """The site whose batch system builds, and its kind of node.

    ``--on`` wins, then the fleet's ``build_on``; without both it is the members' site, if all have the same.

    Raises
    ------
    InputError: the members are for several sites.
    PolicyError: see :func:`hpcgen.plugins.fleet.build_job.check_site`.
    """
    name = asked or build_site(loaded)
    if name is None:
        sites = sorted({state.member.site for state in states})
        if len(sites) > 1:
            message = f"the members are for {', '.join(sites)}: which of them builds?"
            where = loaded.document.position()
            raise InputError(message, where, remedy="add `build_on: SITE` to the fleet, or --on SITE")
        name = sites[0]
    site = loaded.catalog.site(name)
    check_site(site, loaded.catalog.site_document(name))
    return site, site.default_partition


def submit_build(job: BuildJob, plan: Plan) -> Submitted:
    """Write the script into the job's folder and submit it from there.

    Parameters
    ----------
    plan: what is built, or the first of it: what follows the job reads the site from it.

    Raises
    ------
    MissingToolError: the batch system's commands are not here.
    OutputError: the script cannot be written.
    JobFailedError: the batch system refuses the job.
    """
    queue = scheduler_for(job.site.scheduler)
    require_programs(queue, job.site.name)
    name, text = build_script(job)
    script = job.folder / f"{job.name}.{name}"
    write_file(script, text, executable=True)
    here = ImageJob(plan=replace(plan, site=job.site, partition=job.partition), environment={})
    before = job.site.scheduler.before_submitting
    return Submitted(submit_script(queue, script, before), job.name, script, job.folder, here, queue)
