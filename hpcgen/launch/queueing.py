"""What a job script has because of how it is queued: options of its header, its task, its checkpoint."""

from __future__ import annotations

from msgspec.structs import replace

from hpcgen.backends.schedulers import Scheduler
from hpcgen.core.errors import PolicyError, Problem
from hpcgen.core.model.job import Queueing
from hpcgen.core.model.plan import Plan
from hpcgen.launch.start import Start

TASK = "HPCGEN_TASK"
"""The number of an array's task, from 0 on, whatever the batch system counts from."""


def options(queueing: Queueing, scheduler: Scheduler, most_tasks: int | None) -> list[str]:
    """Options of the header; none for a plain job. ``most_tasks``: of an array at the site, where that is known."""
    asked = []
    if queueing.tasks is not None and queueing.tasks <= (most_tasks or scheduler.array_size):
        asked += scheduler.array(queueing.tasks, queueing.at_once).split("\n")
    if queueing.after:
        asked.append(scheduler.after(queueing.after))
    if queueing.checkpoint_s is not None:
        asked.append(scheduler.warn(queueing.checkpoint_s))
    return [*asked, *(scheduler.requeueing if queueing.requeue else ())]


def refuse(plan: Plan, queueing: Queueing, scheduler: Scheduler, how: Start) -> None:
    """PolicyError with everything that is asked for and cannot be had there."""
    most = plan.site.scheduler.max_array_size or scheduler.array_size
    title, problems = scheduler.title, []
    if queueing.tasks is not None and not scheduler.takes_jobs:
        message = f"{plan.site.name} has no batch system that could take an array"
        problems.append(Problem(message, "--array", remedy="leave it out: one job then does everything"))
    elif queueing.tasks is not None and not scheduler.task_variable:
        problems.append(Problem(f"hpcgen cannot submit arrays to {title}", "--array", remedy="submit several jobs"))
    elif queueing.tasks is not None and queueing.tasks > most:
        problems.append(
            Problem(f"an array of {queueing.tasks} tasks", "--array", f"no more than {most}", "submit several arrays")
        )
    if queueing.after and not scheduler.after(queueing.after):
        problems.append(
            Problem(
                f"{title} has no job dependencies",
                "--after",
                remedy="submit this one when the other has ended",
            )
        )
    if queueing.checkpoint_s is not None:
        problems += _checkpoint_problems(plan, queueing.checkpoint_s, scheduler, how)
    if queueing.requeue and not scheduler.requeueing:
        problems.append(
            Problem(
                f"hpcgen cannot make {title} restart a job",
                "--requeue",
                remedy="leave it out, and resubmit the job yourself",
            )
        )
    if problems:
        raise PolicyError(problems)


def _checkpoint_problems(plan: Plan, seconds: int, scheduler: Scheduler, how: Start) -> list[Problem]:
    where = "--checkpoint"
    if not plan.stack.run.checkpoint:
        remedy = "state in the stack how the program saves its state: docs/stacks.md"
        return [Problem(f"{plan.stack.name} names no command for it (run.checkpoint)", where, remedy=remedy)]
    if not scheduler.warn(seconds):
        return [
            Problem(
                f"{scheduler.title} cannot send the script a signal before the time limit",
                where,
                remedy="leave it out, and let the program save its state regularly",
            )
        ]
    if how.engine.launcher:
        return [
            Problem(
                f"{how.engine.name} starts nothing on a node where the program runs already",
                where,
                remedy="use another engine of the site (--engine), or let the program save its state regularly",
            )
        ]
    if seconds >= plan.job.walltime_s:
        return [
            Problem(
                f"{seconds} s before the end of a job of {plan.job.walltime_s} s",
                where,
                "less than its time",
                "request more time, or a later signal",
            )
        ]
    return []


def with_task(how: Start) -> Start:
    """The start of an array's task, which sees its number."""
    return replace(how, call=replace(how.call, inherited=(*how.call.inherited, TASK)))
