"""The choice of ``hpcgen optimise``, with its evidence and the alternatives."""

from typing import Literal

from hpcgen.core.model.fields import EnvName, Name, Record, Text
from hpcgen.core.model.plan import Finding
from hpcgen.plugins.tuning.measurements.cited import RowUsed
from hpcgen.plugins.tuning.measurements.records import Metric

Basis = Literal["measured", "predicted", "none"]


class Estimate(Record, frozen=True):
    """How fast something is thought to be: ``value`` in the unit of ``metric``, with its 95 % interval if there is one.

    ``basis``: ``measured`` where rows that say release, batch and date are of exactly this, else ``predicted``, with
    the reason in ``why``; ``layout``: what the value is of, nodes x ranks on each x threads; ``rows`` that it rests on.
    """

    basis: Basis
    metric: Metric | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None
    layout: Text = ""
    rows: list[RowUsed] = []
    why: Text = ""


class Alternative(Record, frozen=True):
    """One way to run the program. ``result``: ``chosen``, could be ``planned``, or ``refused``; ``why``.

    ``slowdown``: how many times the time of the chosen one it takes, where both are known.
    """

    stack: Name
    partition: Name
    result: Literal["chosen", "planned", "refused"]
    software: Text = ""
    compiler: Text = ""
    install: Text = ""
    settings: list[Text] = []
    estimate: Estimate = Estimate(basis="none")
    slowdown: float | None = None
    why: Text = ""


class LayoutOption(Record, frozen=True):
    """One layout: its estimate, the share of linear scaling from the fewest nodes measured, and why (not) taken."""

    nodes: int
    ranks_per_node: int
    threads_per_rank: int
    chosen: bool
    estimate: Estimate = Estimate(basis="none")
    efficiency: float | None = None
    why: Text = ""


class Decision(Record, frozen=True):
    """The whole decision. ``measure``: commands whose rows would tell what nobody knows yet.

    ``versions`` of the blocks in the image, ``environment`` that the stack sets for the job.
    """

    request: Text
    goal: Text
    workload: Text
    site: Name
    partition: Name
    stack: Name
    alternatives: list[Alternative]
    versions: dict[Text, Text] = {}
    environment: dict[EnvName, Text] = {}
    layouts: list[LayoutOption] = []
    findings: list[Finding] = []
    measure: list[Text] = []
    command: Text = ""
