"""A job: how many processes of what size are started where, for how long, and how it is queued."""

from typing import Annotated

from hpcgen.core.model.fields import Count, Gigabytes, Name, RankGpus, Record, Text, WholeNumber, matching
from hpcgen.core.model.reasons import JOB_WORDS, JobReason
from hpcgen.core.support.units import counted, number, walltime_text

JobName = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$(?!\n)",
        "at most 64 letters, digits, '.', '_', '+' and '-', starting with a letter or digit",
        "resnet50",
    ),
]


class JobStep(Record, frozen=True):
    """One of several commands that a job starts in their order."""

    name: Name
    command: list[Text]


class Job(Record, frozen=True):
    """The resolved layout of one job.

    ``walltime_s`` in seconds; ``gpus_per_node`` is what the job asks for, in plans of hpcgen 0.1.0 all of a node;
    ``rank_gpus``: whether each rank sees its own of them or all;
    ``steps`` are started in the place of ``command``, which is empty then;
    ``name``: what the batch system calls it, the stack's name if None;
    ``before``, ``afterwards``: commands that its script runs once, on the first node and outside of the image;
    ``queue`` and ``account`` are empty where the site has none; ``reasons`` say where each number is from (sentences
    in plans of hpcgen 0.1.0).
    """

    nodes: Count
    ranks_per_node: Count
    threads_per_rank: Count
    walltime_s: Count
    command: list[Text]
    steps: list[JobStep] = []
    name: JobName | None = None
    queue: Text = ""
    account: Text = ""
    memory_per_rank_gb: Gigabytes | None = None
    gpus_per_node: WholeNumber | None = None
    rank_gpus: RankGpus = "own"
    before: list[Text] = []
    afterwards: list[Text] = []
    reasons: list[JobReason | Text] = []

    @property
    def ranks(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node

    @property
    def memory_per_node_gb(self) -> float | None:
        """What the ranks of a node need, None where nobody says."""
        return None if self.memory_per_rank_gb is None else self.memory_per_rank_gb * self.ranks_per_node

    @property
    def shape(self) -> str:
        """Its nodes, ranks and threads, for people."""
        ranks, threads = counted(self.ranks_per_node, "rank"), counted(self.threads_per_rank, "thread")
        return f"{counted(self.nodes, 'node')} × {ranks} × {threads}"

    def why(self) -> list[str]:
        """Where each number is from, one line each."""
        values = {"walltime_s": walltime_text(self.walltime_s)}
        if self.memory_per_rank_gb is not None:
            values["memory_per_rank_gb"] = f"{number(self.memory_per_rank_gb)} GB"
        return [
            each
            if isinstance(each, str)
            else f"{JOB_WORDS[each.field]} {values.get(each.field, getattr(self, each.field))}: {each}"
            for each in self.reasons
        ]


class JobRequest(Record, frozen=True):
    """The user's request; None where the layout decides. ``walltime`` as hours:minutes:seconds or 36h."""

    nodes: Count | None = None
    ranks_per_node: Count | None = None
    threads_per_rank: Count | None = None
    walltime: str | None = None
    queue: Text | None = None
    account: Text | None = None
    memory_per_rank_gb: Gigabytes | None = None
    gpus_per_node: WholeNumber | None = None
    rank_gpus: RankGpus | None = None
    command: list[Text] | None = None
    steps: list[JobStep] | None = None
    name: JobName | None = None
    before: list[Text] | None = None
    afterwards: list[Text] | None = None


# Options of one submission besides the size of the job. They are in no plan.


class Queueing(Record, frozen=True):
    """How a job is queued.

    ``after``: id of a job whose end it waits for. ``tasks``: it is an array of so many, of which ``at_once`` run at a
    time. ``checkpoint_s``: so long before the time limit the stack's checkpoint command runs. ``requeue``: it is put
    back into the queue after that, and where a node fails.
    """

    after: Text = ""
    tasks: Count | None = None
    at_once: Count | None = None
    checkpoint_s: Count | None = None
    requeue: bool = False
