"""What a batch system is given and what it answers. A class makes text and reads text; it starts nothing itself."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from hpcgen.core.model.batch import BatchSystem, Queue
from hpcgen.core.model.job import Job
from hpcgen.core.model.site import Partition
from hpcgen.core.support.quoting import directive
from hpcgen.core.support.traced import Subject, traced

Phase = Literal["waiting", "running", "ended", "gone"]
"""``gone``: the batch system does not know the job, or no longer."""


class Header(msgspec.Struct, frozen=True):
    """All that the directives of a job depend on.

    ``container_image``: the file that the batch system is to start the script in; "" where the script starts one.
    """

    name: str
    job: Job
    partition: Partition
    scheduler: BatchSystem
    container_image: str = ""

    @property
    def gpus(self) -> int:
        """GPUs that the job asks for on each node."""
        if self.job.gpus_per_node is not None:
            return self.job.gpus_per_node
        return self.partition.gpu.count if self.partition.gpu is not None else 0

    @property
    def slots(self) -> int:
        """What the batch system counts per node."""
        return self.partition.slots or self.partition.cpu.for_jobs

    @property
    def queue(self) -> Queue | None:
        """The job's queue as the profile describes it."""
        return next((queue for queue in self.partition.queues if queue.name == self.job.queue), None)

    @property
    def units(self) -> dict[str, int]:
        """How many of what memory may be counted by the job has on each node; CPUs and slots as they are asked for."""
        cpus = self.job.ranks_per_node * self.job.threads_per_rank
        return {"node": 1, "cpu": cpus, "gpu": self.gpus, "slot": self.slots}


class JobState(msgspec.Struct, frozen=True):
    """What is known of a job at one moment.

    word: the system's own word for the state.
    good: it ended as it should; meant for ``phase="ended"`` alone.
    reason: why it waits, or why it ended.
    exit_status: of the job script; None before its end and where no status is told.
    elapsed_s: seconds that it has run.
    output, error: files; "" where the system does not tell. ``error`` is "" where it is the same file.
    """

    phase: Phase
    word: str
    good: bool = False
    reason: str = ""
    exit_status: int | None = None
    signal: int = 0
    elapsed_s: int | None = None
    where: str = ""
    output: str = ""
    error: str = ""


_MIB_PER_GB = 1024
"""Nodes' memory is in units of 2^30 bytes, so that of jobs too."""

GONE = JobState("gone", "unknown")


class Scheduler:
    """Base of the batch systems.

    name: as profiles name it in ``scheduler.kind``.
    title: as people write it.
    file_name: what a job script is called.
    mark: what a line begins with that is a directive; "" where there are no jobs to submit.
    start: shell that makes the script's shell what the job counts on, such as its folder.
    before_modules: shell that comes before modules are loaded, where a job's shell does not know of them.
    account_option: how the account is asked for, to be completed by the user.
    programs: without these no job can be submitted and followed.
    looking, cancelling: the words before a job's id by which the user looks at it, and by which it is cancelled.
    needs: what a profile has to say of it beyond its kind, by the names below ``scheduler``.
    records_after_s: how long after a job's end it may not know how that was.
    output_at_end: the output file appears when the job has ended.
    interactive: the command that gives a shell in an allocation.
    interactive_lacks: options of a job's header that this command does not take.
    job_variable: is set in an allocation.
    queue_variable: holds the name of the queue there; "" if none does.
    node_list: words of shell that print the nodes of a job, each in a line; "" if unknown.
    node_count: shell for how many nodes a job has, or the step of it that a program runs in; "" where
        that is unknown without starting a program on every rank.
    launcher_variables: by these an MPI's launcher knows that it is in a job, and wants programs of the batch system.
    mpi_environment: variables that an MPI's own launcher needs in its jobs, by the MPI's flavour.
    job_variables: what the names of variables begin with that an allocation sets, and that a job submitted from within
        it would have, always or with all of the caller's environment; () where it sets each of them anew.
    client_variables: those of them by which a user tells the system's commands something.
    output_variables: by these the user has its launcher label or redirect what ranks print.
    selecting: options by which a job lands on one kind of node, whatever else its queue has.
    task_variable: holds the number of an array's task; "" where hpcgen submits no arrays.
    first_task: the number of an array's first task.
    array_size: tasks that an array may have unless a site says otherwise.
    requeueing: options by which a job may be started again; () where hpcgen asks for none.
    wished: forms of the options for what else a user may want of a job, by its name: ``after`` (a dependency as the
        system writes it), ``array``, ``begin``, ``exclusive``, ``qos``, ``nodes`` (their names), ``environment`` (names
        of variables), ``whole_environment``.
    nodes_in_request: names of nodes stand in the request for nodes (``Partition.chunk``), not in an option.
    kind_of_node: the option for a kind of node by a name of the site; "" where there is none.
    mail_words: events about which it writes a mail, in its own words, by the words of a request.
    memory_forms: how a job asks for memory: forms of the option by the values of ``scheduler.memory_request``, each
        with what it is for (``node``, ``cpu``, ``gpu``, ``slot``); the number is in MiB.
    usual_memory: the form for a profile that names none; "" where jobs ask for none then.
    again: shell by which a job puts itself back into the queue.
    launcher: its own program that starts the ranks; "" where an MPI's does.
    pmi: ways in which that can tell ranks about each other.
    pmi_variable: chooses among them too; "" where none does.
    id_form: a regular expression of the job's id in a line that the submitting command prints.
    local_rank: holds a rank's number on its node, where that program started it.
    copies_to_nodes: the words before a file and its place on each node; () where it has no program for that.
    launcher_allocates: that program asks for nodes of its own outside of an allocation.
    limits_of, account_limits: commands that tell the limits of a queue, and those of the user's accounts.
    resource_form: the option for a resource that every job of a site names; "" where it knows none by name.
    endings: what to do about a state in which a job ended, by its word.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    file_name: ClassVar[str]
    mark: ClassVar[str]
    start: ClassVar[str] = ""
    before_modules: ClassVar[str] = ""
    account_option: ClassVar[str] = ""
    programs: ClassVar[tuple[str, ...]] = ()
    looking: ClassVar[tuple[str, ...]] = ()
    cancelling: ClassVar[tuple[str, ...]] = ()
    needs: ClassVar[tuple[str, ...]] = ()
    records_after_s: ClassVar[float] = 0.0
    output_at_end: ClassVar[bool] = False
    interactive: ClassVar[str] = ""
    interactive_lacks: ClassVar[tuple[str, ...]] = ()
    job_variable: ClassVar[str] = ""
    queue_variable: ClassVar[str] = ""
    node_list: ClassVar[str] = ""
    node_count: ClassVar[str] = ""
    launcher_variables: ClassVar[tuple[str, ...]] = ()
    mpi_environment: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    job_variables: ClassVar[tuple[str, ...]] = ()
    client_variables: ClassVar[tuple[str, ...]] = ()
    output_variables: ClassVar[tuple[str, ...]] = ()
    selecting: ClassVar[tuple[str, ...]] = ()
    task_variable: ClassVar[str] = ""
    first_task: ClassVar[int] = 0
    array_size: ClassVar[int] = 0
    requeueing: ClassVar[tuple[str, ...]] = ()
    wished: ClassVar[Mapping[str, str]] = {}
    nodes_in_request: ClassVar[bool] = False
    kind_of_node: ClassVar[str] = ""
    mail_words: ClassVar[Mapping[str, str]] = {}
    memory_forms: ClassVar[Mapping[str, tuple[str, str]]] = {}
    usual_memory: ClassVar[str] = ""
    again: ClassVar[str] = ""
    launcher: ClassVar[str] = ""
    pmi: ClassVar[tuple[str, ...]] = ()
    pmi_variable: ClassVar[str] = ""
    id_form: ClassVar[str] = ""
    local_rank: ClassVar[str] = ""
    copies_to_nodes: ClassVar[tuple[str, ...]] = ()
    launcher_allocates: ClassVar[bool] = False
    limits_of: ClassVar[str] = ""
    account_limits: ClassVar[str] = ""
    resource_form: ClassVar[str] = ""
    endings: ClassVar[Mapping[str, str]] = {}

    @property
    def takes_jobs(self) -> bool:
        """Whether jobs can be submitted to it."""
        return bool(self.programs)

    # the job script

    def starts_images(self, facts: BatchSystem) -> bool:
        """Whether it starts a job's image by itself and runs the script inside."""
        return False

    def account(self, header: Header) -> list[str]:
        """How the job's account is asked for; nothing without one."""
        name = self.account_option.rstrip(" =")
        account, join = header.job.account, self.account_option.removeprefix(name)
        return [option(name, account, join, of_job("account"))] if account else []

    def directives(self, header: Header) -> list[str]:
        """Options of the job's header, without the mark. InputError for what cannot be written there."""
        raise NotImplementedError

    def memory(self, header: Header) -> str:
        """What the header says so that the job gets the memory of its ranks; "" where it asks for none."""
        asked = header.scheduler.memory_request or self.usual_memory
        needed = header.job.memory_per_node_gb
        if needed is None or asked not in self.memory_forms:
            return ""
        form, unit = self.memory_forms[asked]
        if not header.units[unit]:
            form, unit = self.memory_forms[self.usual_memory]
        return form.format(math.ceil(needed * _MIB_PER_GB / header.units[unit]))

    def memory_said(self, line: str) -> tuple[str, float] | None:
        """The memory in GB that an option of a header asks for, after what it counts by; 0 stands for all of a node.

        None for another option.
        """
        return None

    def memory_given(self, header: Header) -> tuple[float, str] | None:
        """GB that the job gets of each node, with what says so: an option of the profile, else the queue."""
        partition, queue = header.partition, header.queue
        own = [*header.scheduler.directives, *partition.directives, *(queue.directives if queue is not None else ())]
        asked = [(said, line) for line in own if (said := self.memory_said(line)) is not None]
        if not asked and queue is not None and not self.memory(header):
            asked = [(said, f"the default of {queue.name}") for said in queue.default_memory.items()]
        given = [(size * header.units[unit], line) for (unit, size), line in asked if size]
        return min(given) if given else None

    def array(self, tasks: int, limit: int | None) -> str:
        """The option that makes the job an array of tasks, from ``first_task`` on, of which ``limit`` run at a time.

        Where it takes several, each is a line.
        """
        raise NotImplementedError

    def launch(self, job: Job, pmi: Sequence[str]) -> list[str]:
        """The words of its own launcher, before the command.

        ``pmi``: what the launcher offers to ranks, by the profile.
        """
        raise NotImplementedError

    def bind_gpus(self, gpus_per_rank: int) -> list[str]:
        """The words by which its own launcher gives each rank GPUs of its own; none where it cannot."""
        return []

    def launch_one(self, threads: int) -> list[str]:
        """The words of its own launcher for a single process with that many threads."""
        raise NotImplementedError

    def terminal_words(self, threads: int) -> list[str] | None:
        """What stands between ``interactive``, with its options, and a command that has the terminal on a node.

        None where hpcgen knows no way to start a command so.

        ``threads``: that the command may use.
        """
        return None

    def on_each_node(self, nodes: int) -> list[str]:
        """The words of its own launcher for one process on each node of a job; none where it has no launcher."""
        return []

    def requested_pmi(self, pmi: Sequence[str]) -> str | None:
        """Which of these the launch line names: the first that it can; None where it leaves that to the launcher."""
        return next((each for each in pmi if each in self.pmi), None)

    # the queue

    def submit(self, script: Path) -> list[str]:
        """The command that submits a script, to be run in the job's folder."""
        raise NotImplementedError

    def submitting(self, environment: Mapping[str, str]) -> dict[str, str]:
        """The environment in which the submitting command is run: without that of a job which hpcgen runs in."""
        inside = self.job_variable in environment
        return {
            name: value
            for name, value in environment.items()
            if not inside or name in self.client_variables or not name.startswith(self.job_variables)
        }

    def after(self, job_id: str) -> str:
        """The option of a job's header that makes it wait for the end of another, however that ends; "" without one."""
        return ""

    def warn(self, seconds: int) -> str:
        """The option by which the script alone is sent SIGUSR1 so long before the time limit; "" without one."""
        return ""

    def wish(self, name: str, value: str) -> str:
        """The option for something that a user wants of a job, by its name in ``wished``; "" without one."""
        form = self.wished.get(name, "")
        return form.format(value)

    def mail(self, events: Sequence[str], address: str) -> list[str]:
        """Options for mails about these events, which are among ``mail_words``."""
        return [f"-m {''.join(self.mail_words[each] for each in events)}", f"-M {address}"]

    def job_id(self, output: str) -> str:
        """The job's id from what that command printed, which is its last line that is one; "" if it is not there."""
        ids = [line.strip() for line in output.splitlines() if re.fullmatch(self.id_form, line.strip())]
        return ids[-1] if ids else ""

    def ask(self, job_id: str) -> list[list[str]]:
        """Commands that tell the state; the next is tried where one knows nothing of the job."""
        raise NotImplementedError

    def read(self, status: int, output: str, errors: str) -> JobState | None:
        """The state in the answer of such a command; None if the system could not be reached."""
        raise NotImplementedError

    def default_files(self, name: str, job_id: str, facts: BatchSystem) -> tuple[str, str]:
        """Output and error file where the system does not tell them, relative to the job's folder."""
        raise NotImplementedError


def option(name: str, value: str | int, join: str = "=", of: Subject | None = None) -> str:
    """``name=value`` of a header, which has no quoting; InputError for what cannot be written there.

    ``of``: what the line is of: ``of_job("nodes")``, ``of_fact("scheduler.output")``.
    """
    text = f"{name}{join}{directive(str(value), name)}"
    return text if of is None else traced(text, of)


def of_job(*fields: str) -> Subject:
    """That a directive says these fields of the job."""
    return Subject("job", " ".join(fields))


def of_fact(path: str) -> Subject:
    """That a directive says this fact of the profile; ``*`` stands for the job's partition."""
    return Subject("fact", path)


def file_options(header: Header, output: str, error: str) -> list[str]:
    """Where the profile says that output and errors go, by short options; they have defaults."""
    named = ((output, "output", header.scheduler.output), (error, "error", header.scheduler.error))
    return [option(name, value, " ", of_fact(f"scheduler.{fact}")) for name, fact, value in named if value]


def queue_options(header: Header, name: str, join: str = "=") -> list[str]:
    """How the job's queue is asked for: as the profile says, else by ``name``; nothing without a queue."""
    queue = header.queue
    if queue is not None and queue.directives:
        return _checked(queue.directives, of_job("queue"))
    return [option(name, header.job.queue, join, of_job("queue"))] if header.job.queue else []


def site_options(header: Header, resource_form: str = "") -> list[str]:
    """Options of the profile, each word checked again; its resources where the batch system has a form for them."""
    wanted = header.scheduler.resources.items() if resource_form else ()
    common = [option(resource_form, f"{each}={value}", " ", of_fact("scheduler.resources")) for each, value in wanted]
    common += _checked(header.scheduler.directives, of_fact("scheduler.directives"))
    return common + _checked(header.partition.directives, of_fact("partitions.*.directives"))


def _checked(given: Iterable[str], of: Subject) -> list[str]:
    lines = (" ".join(directive(word, "a directive of the profile") for word in item.split(" ")) for item in given)
    return [traced(line, of) for line in lines]


def seconds_of(text: str) -> int | None:
    """Seconds of ``[DAYS-]HOURS:MINUTES:SECONDS`` or ``MINUTES:SECONDS``; None for anything else."""
    days, _, rest = text.rpartition("-")
    parts: Sequence[str] = rest.split(":")
    if not all(part.isdigit() for part in parts) or len(parts) not in (2, 3) or (days and not days.isdigit()):
        return None
    seconds = 0
    for part in parts:
        seconds = seconds * 60 + int(part)
    return seconds + int(days or 0) * 86400
