"""Options of one submission besides the size of the job. They are in no plan."""

from hpcgen.core.model.fields import Count, Record, Text


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
