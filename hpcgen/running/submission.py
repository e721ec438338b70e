"""Write a job script, hand it to the batch system, and say what came of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from hpcgen.backends.engines import builders
from hpcgen.backends.schedulers import Header, Scheduler, scheduler_for
from hpcgen.core.errors import JobFailedError, PolicyError
from hpcgen.core.model.image_paths import NOTEST
from hpcgen.core.model.job import Queueing
from hpcgen.core.model.site import Site
from hpcgen.core.support.processes import own_module, require_program
from hpcgen.core.support.quoting import line, sh, sh_assign
from hpcgen.core.support.writing import write_file
from hpcgen.launch.preflight import PREFLIGHT
from hpcgen.launch.queueing import options, refuse
from hpcgen.launch.start import start
from hpcgen.running.image_job import ImageJob, batch_script, checks
from hpcgen.running.job_files import job_folder, with_output

# A job of the batch system that calls this very hpcgen again, with what it needs of the shell that submits it.

PASSED_ON = (
    "HPCGEN_COLLECTIONS",
    "HPCGEN_TRUST_COLLECTIONS",
    "HPCGEN_ENTRY_POINTS",
    "HPCGEN_RECORDS",
    "HPCGEN_CONFIG",
    "HPCGEN_ACCEPT_LICENCES",
    NOTEST,
)
"""hpcgen's own variables that such a job is given, written into the script, since many sites pass nothing on.

No variable that may hold a secret is among them.
"""


def own_call(words: Sequence[str]) -> str:
    """Shell that calls the same installation of hpcgen, with these words after ``hpcgen``."""
    return f"exec {line(own_module('hpcgen', *words))}"


def own_script(
    site: Site,
    directives: Sequence[str],
    about: str,
    call: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
) -> str:
    """The job's script.

    directives: options of the header, without the batch system's mark.
    about: what the job does, in a sentence.
    call: lines of shell that end with :func:`own_call`.
    folder: where they are run.
    environment: what :func:`passed_on` gives.
    InputError: a value that cannot be written in a script.
    """
    scheduler = scheduler_for(site.scheduler)
    modules = _modules(site)
    # VALET is there in a login shell alone.
    shell = "#!/bin/bash -l" if modules and site.system.modules == "valet" else "#!/bin/bash"
    lines = [shell, *(f"{scheduler.mark} {each}" for each in directives)]
    lines += ["", f"# {about}", *modules, "", "set -euo pipefail"]
    lines += [text for text in [scheduler.start] if text]
    lines += [f"cd {sh(str(folder))}"]
    lines += [f"export {sh_assign(name, value)}" for name, value in environment.items()]
    return "\n".join([*lines, "", *call]) + "\n"


def _modules(site: Site) -> list[str]:
    """Modules of the site and of its engines, before ``set -u``: their function may read what is not set."""
    modules = [*site.scheduler.modules]
    for engine in site.containers.engines.values():
        if engine.allowed:
            modules += engine.modules
    return site.system.loading(list(dict.fromkeys(modules)))


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """Those variables of an environment that such a job is given: hpcgen's own, and where engines keep images."""
    storage = (name for engine in builders().values() for name in engine.storage_variables)
    return {name: environment[name] for name in (*PASSED_ON, *storage) if environment.get(name)}


def task_number(scheduler: Scheduler, environment: Mapping[str, str]) -> int | None:
    """The number, from 0 on, of the array's task that a process runs in; None outside of an array."""
    task = environment.get(scheduler.task_variable or "-", "")
    return int(task) - scheduler.first_task if task.isdecimal() else None


def without_options(words: Sequence[str], options: Mapping[str, int]) -> list[str]:
    """Command-line words without some options; each is mapped to how many words its value takes."""
    kept: list[str] = []
    skip = 0
    for position, word in enumerate(words):
        if skip:
            skip -= 1
            continue
        if word == "--":
            return [*kept, *words[position:]]
        name, equals, _ = word.partition("=")
        if name in options:
            skip = 0 if equals else options[name]
            continue
        kept.append(word)
    return kept


_PLAIN = Queueing()
TIMEOUT_S = 120.0
"""How long the batch system may take to accept a job."""


class Submitted(msgspec.Struct, frozen=True):
    """A job that the batch system has taken: its id, its name, its script, and the folder that it starts in."""

    id: str
    name: str
    script: Path
    folder: Path
    job: ImageJob
    queue: Scheduler

    def __repr__(self) -> str:
        return f"<Submitted job {self.id} ({self.name}) of {self.job.plan.site.name}: {self.script}>"

    @property
    def hint(self) -> str:
        """How the user finds it again, and stops it."""
        look, cancel = (" ".join([*words, self.id]) for words in (self.queue.looking, self.queue.cancelling))
        return f"look at it with `{look}`, cancel it with `{cancel}`"


def submit(job: ImageJob, folder: Path, output: str = "") -> Submitted:
    """Write the script and its preflight into a folder of the job, and submit it.

    folder: where the job starts, made if it is not there; its files go into ``.hpcgen/jobs`` below it.
    output: its output, by default among these files, unless the profile of the site says where.
    InputError: nothing says what is started.
    PolicyError: the site has no batch system, or requires an account.
    MissingToolError: its commands are not here.
    OutputError: the script cannot be written.
    JobFailedError: the batch system refuses the job.
    """
    job.need_command()
    queue = queue_for(job, "hpcgen run")
    start = folder.absolute()
    # What cannot be written as a script leaves no folder behind.
    batch_script(job, PREFLIGHT)
    job, own = with_files(job, start, job.plan.job_name, output)
    name, text = batch_script(job, f"{own.relative_to(start)}/{PREFLIGHT}")
    write_file(own / PREFLIGHT, checks(job), executable=True)
    if job.facts is not None:
        from hpcgen.running.image_record import write_image_record

        write_image_record(job, own)
    return written_and_submitted(job, queue, job.plan.job_name, own / name, text, start)


def with_files(job: ImageJob, start: Path, name: str, output: str = "") -> tuple[ImageJob, Path]:
    """The job with its output among its files, and their new folder.

    ``start``: where it starts. ``name``: what the batch system calls it. ``output``: as for :func:`submit`.
    """
    own = job_folder(start, name)
    if job.queueing.tasks is not None and not output:
        # Each task of an array has an output, which the batch system names.
        return job, own
    site = with_output(job.plan.site, own, start, output)
    return msgspec.structs.replace(job, plan=msgspec.structs.replace(job.plan, site=site)), own


def queue_for(job: ImageJob, here: str) -> Scheduler:
    """The batch system that takes a job.

    ``here``: the command that does the same without one. PolicyError: the site has none, or requires an account.
    MissingToolError: its commands are not here.
    """
    site = job.plan.site
    queue = scheduler_for(site.scheduler)
    if not queue.takes_jobs:
        raise PolicyError(f"{site.name} has no batch system", remedy=f"start it right here: {here}")
    if site.scheduler.account == "required" and not job.plan.job.account:
        raise PolicyError(f"{site.name} requires an account", remedy="add --account NAME")
    require_programs(queue, site.name)
    return queue


def submit_itself(
    job: ImageJob,
    verb: str,
    words: list[str],
    about: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    queueing: Queueing = _PLAIN,
) -> Submitted:
    """Submit a job of that size which calls this very hpcgen with some words, in the folder where they are typed.

    verb: the subcommand, after which the job is called.
    words: options and subcommand, as they are typed after ``hpcgen``.
    about: what it does, in a sentence.
    environment: what :func:`hpcgen.running.submission.passed_on` gives.
    queueing: whether it is an array, each of whose tasks makes that call, and which job's end it waits for.
    PolicyError, MissingToolError, OutputError, JobFailedError: as :func:`submit`.
    """
    queue = queue_for(job, "the same without --submit")
    if queueing != _PLAIN:
        refuse(job.plan, queueing, queue, start(job.plan, job.environment))
    name = f"{verb}-{job.plan.stack.name}"
    folder = folder.absolute()
    job, own = with_files(msgspec.structs.replace(job, queueing=queueing), folder, name)
    plan = job.plan
    partition = plan.site.partitions[plan.partition]
    header = Header(name=name, job=plan.job, partition=partition, scheduler=plan.site.scheduler)
    directives = [*queue.directives(header), *options(queueing, queue, plan.site.scheduler.max_array_size)]
    text = own_script(plan.site, directives, about, [own_call(words)], folder, environment)
    return written_and_submitted(job, queue, name, own / queue.file_name, text, folder)


def written_and_submitted(
    job: ImageJob, queue: Scheduler, name: str, script: Path, text: str, start: Path
) -> Submitted:
    """Write a script and submit it.

    name: what the batch system calls the job.
    start: the folder that it is submitted from, where the job starts.
    OutputError: the script cannot be written. JobFailedError: the batch system refuses the job.
    """
    write_file(script, text, executable=True)
    before = job.plan.site.scheduler.before_submitting
    return Submitted(submit_script(queue, script, before, start), name, script, start, job, queue)


def require_programs(queue: Scheduler, site: str) -> None:
    """MissingToolError where the batch system's commands are not here."""
    for program in queue.programs:
        require_program(program, f"submit jobs of {site}", "run it where jobs are submitted, usually on a login node")


def submit_script(queue: Scheduler, script: Path, before: str, folder: Path) -> str:
    """Submit a script; the job's id.

    ``before``: what the site wants done first in the shell that submits. ``folder``: where it is submitted.
    JobFailedError: it is not taken.
    """
    command = queue.submit(script)
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=queue.submitting(os.environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        message = f"{command[0]} has not answered for {TIMEOUT_S:.0f} s; whether the job was accepted is unknown"
        raise JobFailedError(message, str(script), remedy="check your jobs before you submit it again") from None
    said = "\n".join(part.strip() for part in (done.stdout, done.stderr) if part.strip())
    if done.returncode != 0:
        message = f"{command[0]} did not accept the job:\n{said or f'status {done.returncode}, without output'}"
        remedy = f"do this first in the same shell: {before}; or see" if before else "see"
        raise JobFailedError(message, str(script), remedy=f"{remedy} --queue, --account, --time, --nodes")
    job_id = queue.job_id(done.stdout)
    if not job_id:
        message = f"{command[0]} accepted the job, but its output contains no job id:\n{said}"
        raise JobFailedError(message, str(script), remedy="list your jobs with the batch system's own command")
    return job_id
