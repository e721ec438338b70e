"""The job script, of one command or several in order, and the run line as text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hpcgen.backends.schedulers import Header, Scheduler, scheduler_for
from hpcgen.backends.schedulers.base import option
from hpcgen.backends.schedulers.none import Direct
from hpcgen.backends.schedulers.slurm import Slurm
from hpcgen.core.model.host_mpi import Bind
from hpcgen.core.model.job import JobStep, Queueing
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.support.quoting import line, plain, sh
from hpcgen.core.support.templates import Template
from hpcgen.core.support.traced import Subject, Traced, together, traced
from hpcgen.launch.binding import binding_text
from hpcgen.launch.environment import OF_LOADER, output_variables
from hpcgen.launch.job.measured_layouts import layout_text, memory_text
from hpcgen.launch.node_checks import has_rank_test
from hpcgen.launch.node_files import nodes_part, uses_nodes, without_mounted
from hpcgen.launch.parts import container_part, exports_part, fill, image_part, module_lines, start_part
from hpcgen.launch.preflight import PREFLIGHT, STATUS, preflight_text
from hpcgen.launch.queueing import TASK, options, refuse, with_task
from hpcgen.launch.start import Start, start
from hpcgen.recipe.formats.base import header as file_header

_WIDTH = 120


def job_script(
    plan: Plan,
    image_environment: Mapping[str, str],
    image: str | None = None,
    *,
    direct: bool = False,
    named: bool = False,
    preflight: str = PREFLIGHT,
    more_inside: Mapping[str, str] | None = None,
    queueing: Queueing | None = None,
    sealed: bool = False,
    shown: Sequence[Bind] = (),
    alone: bool = False,
    keep_cache: bool = False,
) -> tuple[str, str]:
    """File name and text of the script that starts a plan's image as a job; its lines know what they are of.

    image_environment: variables of the image's final stage, as they are at its end (nothing to expand).
    image: the image's file or name; where the build script puts it if None.
    direct: for starting it right here, in the present folder, in an allocation or without one.
    named: ``image`` is a name in the engine's store, not a file.
    preflight: name of the file with :func:`preflight_script`, in the folder that a job starts in, or, for a direct
        start, beside the script; "" for a script that does not look whether the nodes have what the job counts on.
    more_inside: variables that are set in the container alone.
    queueing: how a job is queued, as nothing in particular if None.
    sealed: foreign code runs in the container: without a network, and with nothing of the host but the present folder.
    shown: folders of the host that it sees beside that.
    alone: the script is not one of a kit, so that no plan.json lies beside it.
    keep_cache: what programs compile is kept for the next job of the image.
    PolicyError: the batch system lacks what ``queueing`` asks for; the site's engine or MPI cannot start the job as
        it is laid out.
    InputError: a value that cannot be written in a script or its header.
    """
    scheduler = Direct() if direct else scheduler_for(plan.site.scheduler)
    how = start(plan, image_environment, more_inside, sealed=sealed, shown=shown)
    if keep_cache and how.caches is not None:
        how = replace(how, caches=replace(how.caches, keep=True))
    queueing = queueing or Queueing()
    refuse(plan, queueing, scheduler, how)
    how = with_task(how) if queueing.tasks is not None else how
    name, sent = scheduler.file_name, ""
    if scheduler.starts_images(plan.site.scheduler):
        from hpcgen.launch.inside import container_image, inside_image

        how, sent, preflight = inside_image(plan, how), container_image(plan, how, image), ""
    on_nodes, loads = not sent and uses_nodes(plan, how, named), module_lines(plan, how)
    usage = f"usage: {name} [COMMAND …]"
    usage += "      HPCGEN_IMAGE: another image" if image is None and not sent else ""
    usage += "      HPCGEN_PREFLIGHT=0|warn" if preflight else ""
    # A batch system copies the script away from the kit, and starts it in the folder that it was submitted from.
    place = f"$folder/{sh(preflight)}" if scheduler.mark else f'$(dirname "$0")/{sh(preflight)}'
    parts = [
        _top(
            plan,
            scheduler,
            how,
            "job script of ",
            usage,
            options(queueing, scheduler, plan.site.scheduler.max_array_size),
            _set_up_once(plan, scheduler, how, image),
            alone,
            sent,
        ),
        fill("modules", before=scheduler.before_modules, modules=loads) if loads else "",
        start_part(scheduler, how, name, folder=True),
        "" if sent else image_part(plan, how, name, image, named, asked="before" if direct and image else ""),
        nodes_part(plan, how, name, named) if not sent else "",
        "" if plan.job.steps else _command(plan, name),
        exports_part(how, scheduler),
        _task(scheduler) if queueing.tasks is not None else "",
        container_part(how, name, cleans=on_nodes),
        _preflight(how, place, name) if preflight else "",
        _checkpoint(plan, how, scheduler, name, queueing) if queueing.checkpoint_s is not None else "",
        _host_command(plan.job.before, "host_before"),
        _host_command(plan.job.afterwards, "host_afterwards", also="leave_nodes" if on_nodes else ""),
        _run(plan, how, scheduler, attended=queueing.checkpoint_s is not None, cleans=on_nodes),
    ]
    return name, together(filter(None, parts), "\n")


def _command(plan: Plan, name: str) -> str:
    """What is started where the script is given no other words; a stack may leave that to each job."""
    if plan.job.command:
        return traced(fill("command", command=line(plan.job.command)), Subject("command"))
    message = f"{name}: the stack {plan.stack.name} names no command: pass it after the script's name"
    return traced(fill("no_command", message=sh(message)), Subject("command"))


def plain_script(plan: Plan) -> str:
    """bash that starts a plan's command right here without a container, with what a job has outside of one.

    PolicyError: as :func:`job_script`.
    """
    how = start(plan, {})
    # For the program alone, as in a container.
    loader = [f"{name}={value}" for name, value in how.variables.inside.items() if OF_LOADER.fullmatch(name)]
    command = ["env", *loader, *plan.job.command] if loader else plan.job.command
    return f"{exports_part(how, Direct())}exec {line(command)}\n"


def preflight_script(
    plan: Plan,
    image_environment: Mapping[str, str],
    *,
    named: bool = False,
    built_for: str = "",
    more_inside: Mapping[str, str] | None = None,
    sha256: str = "",
) -> str:
    """What a job script calls before it starts its command; the user may call it too, in an allocation.

    named: the image is a name in the engine's store, not a file.
    built_for: archspec's name of the CPU that the image was compiled for, if it is not that of the plan's partition.
    more_inside: as for :func:`job_script`.
    sha256: of the image's file, which must be that one; "" where nobody asks.
    PolicyError, InputError: as :func:`job_script`.
    """
    how = start(plan, image_environment, more_inside)
    if any(each.mounted for each in how.data):
        # Ranks are tried without it: what mounts it is the job's own script.
        how = start(without_mounted(plan, how), image_environment, more_inside)
    scheduler, loads = Direct(), module_lines(plan, how)
    ranks = has_rank_test(plan, how)
    # An image of no fixed folder is looked for in the present one.
    folder = ranks or (plan.site.containers.image_directory is None and how.engine.image_is_file)
    usage = f"usage: {PREFLIGHT} [IMAGE]      in an allocation; exits with {STATUS} if something is missing"
    parts = [
        _top(plan, scheduler, how, "preflight of ", usage),
        fill("modules_alone", modules=loads) if loads else "",
        start_part(scheduler, how, PREFLIGHT, folder=folder),
        fill("given") + image_part(plan, how, PREFLIGHT, None, named, asked="by caller"),
        exports_part(how, scheduler),
        _plain_output() if how.outer else "",
        container_part(how, PREFLIGHT) + fill("launch", outer=_outer(how)) if ranks else "",
        fill("checks", functions=preflight_text(plan, how, built_for=built_for, named=named, sha256=sha256)),
    ]
    return together(filter(None, parts), "\n")


def _preflight(how: Start, place: str, name: str) -> str:
    text = fill("preflight", place=place, file_name=name, outer=_outer(how), status=str(STATUS))
    return traced(text, Subject("preflight"))


def _top(
    plan: Plan,
    scheduler: Scheduler,
    how: Start,
    what: str,
    usage: str,
    asked: Sequence[str] = (),
    offered: Sequence[str] = (),
    alone: bool = False,
    sent: str = "",
) -> str:
    """All that the user reads first.

    ``asked``, ``offered``: further directives, and lines that the user can make directives. ``alone``: as for
    :func:`job_script`. ``sent``: the image that the batch system starts by itself.
    """
    partition = plan.site.partitions[plan.partition]
    header = Header(plan.job_name, plan.job, partition, plan.site.scheduler, sent)
    reasons = [
        traced(plain(text, "a reason"), Subject("job", each.field if isinstance(each, JobReason) else ""))
        for text, each in zip(plan.job.why(), plan.job.reasons, strict=True)
    ]
    shared = binding_text(plan, how.mpi, how.binding)
    reasons += [traced(f"GPUs of a rank: {shared}", Subject("job", "rank_gpus"))] if shared else []
    memory = traced(f"memory: {memory_text(partition, plan.job)}", Subject("fact", "partitions.*.memory"))
    return fill(
        "top",
        # VALET is there in a login shell alone.
        shell_options=" -l" if how.modules and plan.site.system.modules == "valet" else "",
        directives=[together([f"{scheduler.mark} ", item]) for item in [*scheduler.directives(header), *asked]],
        account=_account(plan, scheduler),
        before=_before(plan, scheduler),
        offered=fill("offered", lines=list(offered)) if offered else "",
        header=[
            traced(f"# {plain(text, 'the header')}", Subject("header")) for text in file_header(plan, what, alone=alone)
        ],
        layout=traced(f"layout: {layout_text(plan.job)}", Subject("job", "nodes ranks_per_node threads_per_rank")),
        usage=usage,
        reasons=[part for text in [*reasons, memory] for part in _wrapped(text)],
    )


def _wrapped(text: Traced) -> list[Traced]:
    """A reason as lines of a comment that fit a terminal."""
    lines = textwrap.wrap(text, _WIDTH, initial_indent="#   ", subsequent_indent="#     ", break_long_words=False)
    return [traced(line, text.subjects[0]) for line in lines]


def _plain_output() -> str:
    """After the exports: a profile may set these for the sake of jobs."""
    names = textwrap.wrap(" ".join(output_variables()), _WIDTH - len("unset "))
    return fill("plain_output", names=" \\\n    ".join(names))


def _host_command(words: Sequence[str], part: str, **more: str) -> str:
    """What runs on the host before the program, or when the script ends."""
    return traced(fill(part, words=line(words), **more), Subject("command")) if words else ""


def _run(plan: Plan, how: Start, scheduler: Scheduler, *, attended: bool, cleans: bool) -> str:
    words = 'attended "$@"' if attended else f'{_outer(how)}"${{container[@]}}" "$@"'
    if plan.job.steps:
        return steps_text(plan.job.steps, words)
    ends = attended or cleans or bool(plan.job.afterwards)
    alone = isinstance(scheduler, Direct) and not how.engine.launcher and not ends
    replaced = "exec " if alone else ""
    return traced(f"{replaced}{words}\n", Subject("launch"))


def _task(scheduler: Scheduler) -> str:
    first = f" - {scheduler.first_task}" if scheduler.first_task else ""
    return f"export {TASK}=$(({scheduler.task_variable}{first}))\n"


def _checkpoint(plan: Plan, how: Start, scheduler: Scheduler, name: str, queueing: Queueing) -> str:
    """What starts a program, and runs its checkpoint command when the batch system says that the end is near."""
    # By itself: it is no rank, and must not wait for others to join it.
    words = [*how.engine.start_words(replace(how.call, join=0)), how.under_old_driver]
    return fill(
        "checkpoint",
        seconds=str(queueing.checkpoint_s),
        file_name=name,
        words=[line(group) for group in words if group],
        command=line(plan.stack.run.checkpoint),
        again=f"{scheduler.again} || true" if queueing.requeue else "",
        outer=_outer(how),
    )


def _outer(how: Start) -> str:
    """The launcher on the host, with a space after it where there is one."""
    return f"{line(how.outer)} " if how.outer else ""


def _account(plan: Plan, scheduler: Scheduler) -> str:
    """The directive to be filled in where the site requires an account and none was given."""
    if plan.site.scheduler.account != "required" or plan.job.account or not scheduler.mark:
        return ""
    text = fill("account", directive=f"{scheduler.mark} {scheduler.account_option}")
    return traced(text, Subject("fact", "scheduler.account"))


def _set_up_once(plan: Plan, scheduler: Scheduler, how: Start, image: str | None) -> list[str]:
    """Directives of an engine that Slurm knows; no directives yet, because only the user knows the image's registry."""
    if scheduler.mark != Slurm.mark:
        return []
    name = image or f"REGISTRY/{how.engine.image_names(plan.stack.name, plan.site.name)[0]}"
    return [f"#   {scheduler.mark} {option(*each)}" for each in how.engine.header_options(how.call, name)]


def _before(plan: Plan, scheduler: Scheduler) -> str:
    """What the user does first where the site wants it."""
    before = plan.site.scheduler.before_submitting
    return fill("before", before=plain(before, "scheduler.before_submitting")) if before and scheduler.mark else ""


MARK = "hpcgen-step:"
"""What the lines begin with; the time in UTC, the step and what became of it follow."""

_LINE = re.compile(
    rf"{MARK} \S+ (?P<name>[a-z0-9._-]+) \((?P<number>\d+) of (?P<count>\d+)\) "
    r"(?:begins|ended with status (?P<status>\d+) after (?P<seconds>\d+) s)"
)
_fill = Template(Path(__file__).with_name("templates") / "job.sh").fill


class StepState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far a step is, the ``number``-th of ``count``; without a status it has begun."""

    name: str
    number: int
    count: int
    exit_status: int | None = None
    seconds: int | None = None

    @property
    def title(self) -> str:
        """``train (2 of 3)``."""
        return f"{self.name} ({self.number} of {self.count})"


def steps_text(steps: Sequence[JobStep], run: str) -> str:
    """The end of a job script that starts steps. ``run``: shell that starts the words in ``$@`` on all ranks."""
    calls = [line(["step", step.name, *step.command]) for step in steps]
    return _fill("steps", count=str(len(steps)), mark=MARK, run=run, steps=calls)


def read_step(text: str) -> StepState | None:
    """What one of the lines says; None for any other line."""
    found = _LINE.fullmatch(text.strip())
    if found is None:
        return None
    status, seconds = found["status"], found["seconds"]
    return StepState(
        found["name"],
        int(found["number"]),
        int(found["count"]),
        int(status) if status is not None else None,
        int(seconds) if seconds is not None else None,
    )
