"""What a profile says of a site's batch system: its queues, and what jobs say to it."""

from typing import Annotated, Literal

from hpcgen.core.model.fields import NAMES_OF, Count, Gigabytes, ModuleName, Record, Text, matching
from hpcgen.core.support.quoting import NAME_PATTERN

Directive = Annotated[
    str,
    matching(
        r"^--?[A-Za-z0-9][^\x00-\x20\x7f-\xa0\u2028\u2029'\"`$\\;|<>]*( [A-Za-z0-9./%_=:,@+-]+)?$(?!\n)",
        "one option, without quotes, $ or line breaks",
        "--ear=off",
    ),
]


SchedulerName = Annotated[str, matching(NAME_PATTERN, "a batch system, or none", "slurm", {NAMES_OF: "schedulers"})]


WallTime = Annotated[str, matching(r"^\d{1,4}:[0-5]\d:[0-5]\d$(?!\n)", "a time: hours:minutes:seconds", "36:00:00")]


class TimeLimit(Record, frozen=True):
    """How long jobs of a queue may take that have no more than so many nodes."""

    max_nodes: Count
    max_time: WallTime


MemoryUnit = Literal["node", "cpu", "gpu"]


class Queue(Record, frozen=True):
    """A scheduler partition or queue, and the job sizes (nodes) and times it takes. The first that fits is used.

    ``times``: limits that go by the number of nodes, the smallest number first; ``max_time`` holds for jobs of
    more nodes than all of them. ``by_account``: each account has its own limits, which may be narrower.
    ``debug``: it is for trying things out, and used where it is asked for, or where no other takes the job.
    ``directives``: the header options that ask for it, where that is not Slurm's ``--partition`` or PBS's ``-q`` with
    its name, such as ``--qos``. ``default_memory``: GB that a job gets there for each node, CPU or GPU unless it asks
    for memory; ``max_memory``: GB that it may ask for.
    """

    name: Text
    min_nodes: Count = 1
    max_nodes: Count | None = None
    min_time: WallTime | None = None
    max_time: WallTime | None = None
    times: list[TimeLimit] = []
    by_account: bool = False
    debug: bool = False
    directives: list[Directive] = []
    default_memory: dict[MemoryUnit, Gigabytes] = {}
    max_memory: dict[MemoryUnit, Gigabytes] = {}

    def time_limit(self, nodes: int) -> str | None:
        """How long a job of so many nodes may take; None where that is not known."""
        return next((each.max_time for each in self.times if nodes <= each.max_nodes), self.max_time)

    @property
    def most_nodes(self) -> int | None:
        """The most nodes that it takes; None where that is not known."""
        return (
            self.times[-1].max_nodes if self.max_nodes is None and self.times and not self.max_time else self.max_nodes
        )


ChunkResource = Annotated[
    str, matching(r"^[a-z][a-z0-9_]*=[A-Za-z0-9._-]+$(?!\n)", "a resource and its value", "node_type=rome")
]


Resource = Annotated[
    str, matching(r"^[A-Za-z_][A-Za-z0-9_.+-]{0,63}$(?!\n)", "a name that the batch system knows", "h_vmem")
]


class BatchSystem(Record, frozen=True):
    """What jobs say to the site's batch system. ``directives`` are header options of every job, ``output`` the pattern.

    ``gpu_request``: the option of Slurm that asks for a node's GPUs; ``none`` where they come with the node.
    ``gpu_bind``: how each rank gets its own GPU: by a ``variable`` that the start line sets, such as
    CUDA_VISIBLE_DEVICES, or by the batch system's own ``launcher``, as with Slurm's ``--gpus-per-task``.
    ``max_array_size``: tasks that an array may have, such as Slurm's MaxArraySize; where it is not known, the batch
    system's default.
    ``parallel_environment``: Grid Engine's that gives a job's slots on whole nodes (``qconf -spl``);
    ``one_node_environment``: another one for jobs of one node. ``memory_request``: how jobs ask for the memory of their
    ranks: of Slurm ``mem`` (its default), ``mem-per-cpu``, ``mem-per-gpu``; of PBS Pro ``mem``, of Torque ``pmem``, of
    LSF ``rusage`` or ``M``, of PJM ``node-mem``; ``none`` where they must not. For Grid Engine it is the resource by
    which every job asks for memory, which counts per slot, such as h_vmem.
    ``resources``: those that every job has to name, such as PBS's ``filesystems`` at ALCF, with their values.
    ``before_submitting``: what the user does first in the shell that submits, usually a command.
    ``container_universe``: HTCondor's pool starts images by itself, and job scripts run inside of them.
    """

    kind: SchedulerName
    directives: list[Directive] = []
    modules: list[ModuleName] = []
    resources: dict[Resource, Text] = {}
    account: Literal["required", "optional", "none"] = "optional"
    gpu_request: Literal["gres", "gpus-per-node", "none"] = "gres"
    gpu_bind: Literal["variable", "launcher"] = "variable"
    before_submitting: Text = ""
    output: Text = ""
    error: Text = ""
    default_time: WallTime = "01:00:00"
    max_array_size: Count | None = None
    parallel_environment: Resource | None = None
    one_node_environment: Resource | None = None
    memory_request: Resource | None = None
    container_universe: bool = False
