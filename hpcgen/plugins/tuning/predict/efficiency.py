"""Efficiency by nodes as it was measured, and the most nodes and ranks for one that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from hpcgen.core.errors import HpcgenError, InputError, MissingToolError
from hpcgen.core.model.fields import Count, Record, Text
from hpcgen.plugins.tuning.measurements.records import HIGHER_IS_BETTER, Measurement, Positive
from hpcgen.plugins.tuning.predict.scaling import law_and_misfits


class EfficiencyRow(Record, frozen=True):
    """One number of nodes: the value in the unit of its metric, and shares of linear scaling from the fewest nodes.

    ``law``: the share that the law of the series says. ``doubtful``: why nobody should trust the value.
    """

    nodes: Count
    ranks: Count
    value: Positive
    measured: Positive
    law: Positive | None = None
    doubtful: Text = ""


class EfficiencyTable(Record, frozen=True):
    """A series. ``nodes``, ``ranks``: the most with at least the efficiency ``wanted``, by the law ``form``.

    ``measured_nodes``: the most of those that were measured; None where none has it. ``why`` there is no law.
    """

    series: Text
    rows: list[EfficiencyRow]
    form: Text = ""
    wanted: Positive | None = None
    nodes: Count | None = None
    ranks: Count | None = None
    measured_nodes: Count | None = None
    why: Text = ""


def efficiency_table(
    series: str, rows: Sequence[Measurement], wanted: float | None = None, limit: int | None = None
) -> EfficiencyTable:
    """The table of one series.

    wanted: the least share, more than 0 and at most 1.
    limit: nodes that there are at most; by default twice those that were measured.
    InputError: the share or the limit is none.
    """
    found = sorted(rows, key=lambda row: row.nodes)
    per_node = found[0].ranks_per_node
    law, why = None, ""
    try:
        law, _ = law_and_misfits(found)
    except (InputError, MissingToolError) as error:
        why = error.problems[0].message
    first = found[0]
    table = [
        EfficiencyRow(
            nodes=row.nodes,
            ranks=row.ranks,
            value=row.value,
            measured=round(node_speed(row) / node_speed(first), 4),
            law=round(law.efficiency(row.nodes), 4) if law is not None else None,
            doubtful=row.doubtful,
        )
        for row in found
    ]
    nodes = None
    if wanted is not None and law is not None:
        try:
            nodes = law.most_nodes(wanted, limit or 2 * found[-1].nodes)
        except HpcgenError as error:
            why = error.problems[0].message
    good = [row.nodes for row in table if wanted is not None and row.measured >= wanted and not row.doubtful]
    return EfficiencyTable(
        series=series,
        rows=table,
        form=law.form if law is not None else "",
        wanted=wanted,
        nodes=nodes,
        ranks=nodes * per_node if nodes is not None else None,
        measured_nodes=max((each for each in good if limit is None or each <= limit), default=None),
        why=why,
    )


def node_speed(row: Measurement) -> float:
    """What one node does in a unit of time: efficiency is the ratio of two of these."""
    speed = row.value if row.metric in HIGHER_IS_BETTER else 1 / row.value
    return speed / row.nodes
