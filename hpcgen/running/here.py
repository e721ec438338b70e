"""Start a job right here and wait for it: its output goes straight to the terminal."""

from __future__ import annotations

import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import msgspec
from msgspec.structs import replace

from hpcgen.backends.schedulers import SCHEDULERS, Header, scheduler_for
from hpcgen.core.errors import JobFailedError, PolicyError
from hpcgen.core.model.plan import Plan
from hpcgen.core.support.processes import GRACE_S, interruptible, require_program
from hpcgen.core.support.quoting import command
from hpcgen.launch.preflight import PREFLIGHT
from hpcgen.launch.preflight import STATUS as PREFLIGHT_FAILED
from hpcgen.launch.start import batch_of, start
from hpcgen.running.image_job import ImageJob, checks, direct_script
from hpcgen.running.shared_cpus import shared_cpus_notes, sharing_cpus

BROKEN_PIPE = (-signal.SIGPIPE, 128 + signal.SIGPIPE)

OWN_STATUS = {
    66: "the image is not there",
    69: "a program is missing",
    PREFLIGHT_FAILED: "the preflight stopped it: docs/preflight.md",
}
"""Statuses of the script itself; it has said on stderr what is missing."""


class RunResult(msgspec.Struct, frozen=True):
    """How a program that was started here ended: ``seconds``; ``output``: what it printed, "" where it was not kept."""

    exit_status: int
    seconds: float
    output: str = ""


def allocation(environ: Mapping[str, str]) -> str:
    """The job that this process runs in, of whatever batch system; "" outside of one."""
    names = (SCHEDULERS.find(name).job_variable for name in SCHEDULERS.names())
    return next((environ[name] for name in names if environ.get(name)), "")


def notes(job: ImageJob, environ: Mapping[str, str]) -> list[str]:
    """What the user should know before it starts here.

    PolicyError: it needs an allocation, and there is none; it cannot be started as it is laid out.
    """
    plan = job.plan
    allocates = _allocates(job)
    shared = shared_cpus_notes(job, environ)
    if not scheduler_for(plan.site.scheduler).takes_jobs or allocation(environ):
        return shared
    if allocates:
        return [f"not in an allocation of {plan.site.name}: {allocates} requests one itself"]
    require_nodes(job, environ, "hpcgen submit, or hpcgen run")
    return [f"not in an allocation of {plan.site.name}: it starts on this machine, which all users may share", *shared]


def require_nodes(job: ImageJob, environ: Mapping[str, str], what: str) -> None:
    """PolicyError where a job of several nodes cannot be started from here.

    ``what``: the command that is to be given in an allocation.
    """
    plan = job.plan
    if plan.job.nodes == 1 or _allocates(job) or allocation(environ):
        return
    raise PolicyError(
        f"{plan.job.nodes} nodes require an allocation, and there is none here",
        expected="--nodes 1",
        remedy=f"{what} inside: {_asking(plan)}",
    )


def _allocates(job: ImageJob) -> str:
    """The launcher of a job, if it asks for nodes of its own outside of an allocation; else ""."""
    how = start(job.plan, job.environment)
    starter = batch_of(job.plan, how)
    return starter.launcher if starter is not None and starter.launcher_allocates else ""


def _asking(plan: Plan) -> str:
    words = asking_words(plan)
    facts = plan.site.scheduler
    lacks_account = not plan.job.account and facts.account == "required"
    account = [f"{scheduler_for(facts).account_option}YOUR-ACCOUNT"] if lacks_account else []
    return " ".join([command(*words), *account])


def asking_words(plan: Plan) -> list[str]:
    """The command that gives a shell in an allocation of a job's size."""
    batch = scheduler_for(plan.site.scheduler)
    # A shell has no output file.
    facts = replace(plan.site.scheduler, output=None, error=None)
    partition = plan.site.partitions[plan.partition]
    header = Header(name=plan.job_name, job=plan.job, partition=partition, scheduler=facts)
    options = [option.split(" ") for option in batch.directives(header)]
    words = [word for each in options if each[0].split("=")[0] not in batch.interactive_lacks for word in each]
    return [*batch.interactive.split(), *words]


def run_to_end(job: ImageJob, output: IO[str] | None = None, *, keep: bool = False) -> RunResult:
    """As :func:`run_here`, with the time that it took.

    ``keep``: its output is in the result, instead of going to ``output``.
    """
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") if keep else nullcontext(output) as stream:
        status = run_here(job, stream)
        seconds = round(time.monotonic() - began, 3)
        if not keep or stream is None:
            return RunResult(status, seconds)
        stream.seek(0)
        return RunResult(status, seconds, stream.read())


def run_here(job: ImageJob, output: IO[str] | None = None) -> int:
    """Start it in the present folder and wait; the status with which it ended.

    output: where it writes instead of to stdout.
    InputError: nothing says what is started.
    MissingToolError: there is no bash.
    KeyboardInterrupt: after what was started has been ended.
    BrokenPipeError: the reader of its output went away.
    """
    job.need_command()
    bash = require_program("bash", "start a job", "install bash")
    with tempfile.TemporaryDirectory(prefix="hpcgen-run-") as folder:
        script = Path(folder, "run.sh")
        script.write_text(direct_script(sharing_cpus(job), PREFLIGHT), "utf-8")
        # Its signature was checked just now, which reads all of it.
        Path(folder, PREFLIGHT).write_text(checks(replace(job, sha256="")), "utf-8")
        # In this process's own group: Ctrl-C reaches the launcher too, and programs can read from the terminal.
        process = subprocess.Popen([bash, str(script)], stdout=output)
        try:
            with interruptible():
                status = process.wait()
        except BaseException:
            _end(process)
            raise
    if status in BROKEN_PIPE:
        raise BrokenPipeError
    return status


def failure(job: ImageJob, status: int) -> JobFailedError:
    """The error of a job that ended with this status."""
    wanted = job.plan.job
    what = "a step of the job" if wanted.steps else wanted.command[0]
    return JobFailedError(f"{what} ended with {status_text(status)}", remedy=_remedy(status))


def own_status(status: int) -> bool:
    """Whether the script itself ended so, since something is missing."""
    return status in OWN_STATUS


def _end(process: subprocess.Popen[bytes]) -> None:
    """After Ctrl-C the launcher ends by itself as a rule; after a SIGTERM to hpcgen alone it knows of nothing."""
    for wait_s, number in ((1.0, signal.SIGTERM), (GRACE_S, signal.SIGTERM), (GRACE_S, signal.SIGKILL)):
        try:
            process.wait(wait_s)
            return
        except subprocess.TimeoutExpired:
            process.send_signal(number)
    process.wait()


def status_text(status: int) -> str:
    """An exit status in words; shells and launchers tell a signal as 128 and its number."""
    number = -status if status < 0 else status - 128
    try:
        name = signal.Signals(number).name if number > 0 else ""
    except ValueError:
        name = ""
    if status < 0:
        return f"the signal {name or number}"
    return f"status {status}" + (f" (the signal {name})" if name else "")


def _remedy(status: int) -> str:
    return f"{OWN_STATUS[status]}, if the lines above say so" if status in OWN_STATUS else ""
