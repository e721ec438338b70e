"""A job: how many processes of what size are started where, and for how long."""

from hpcgen.model.fields import Count, Gigabytes, Record, Text


class Job(Record, frozen=True):
    """The resolved layout of one job.

    ``walltime_s`` in seconds; ``queue`` and ``account`` are empty where the site has none;
    ``reasons`` say where each number is from.
    """

    nodes: Count
    ranks_per_node: Count
    threads_per_rank: Count
    walltime_s: Count
    command: list[Text]
    queue: Text = ""
    account: Text = ""
    memory_per_rank_gb: Gigabytes | None = None
    reasons: list[str] = []

    @property
    def ranks(self) -> int:
        """Ranks over all nodes."""
        return self.nodes * self.ranks_per_node


class JobRequest(Record, frozen=True):
    """What a person asked for; None where the layout decides. ``walltime`` as hours:minutes:seconds or 36h."""

    nodes: Count | None = None
    ranks_per_node: Count | None = None
    threads_per_rank: Count | None = None
    walltime: str | None = None
    queue: Text | None = None
    account: Text | None = None
    memory_per_rank_gb: Gigabytes | None = None
    command: list[Text] | None = None
