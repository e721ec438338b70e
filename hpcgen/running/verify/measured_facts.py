"""What a run of tests measured, as facts of a site profile."""

from __future__ import annotations

from hpcgen.core.model.record import JudgedFigure, TestRun
from hpcgen.core.support.units import some
from hpcgen.machine.detect.yaml_text import dump

_FEW = 4


def measured_facts(run: TestRun) -> list[JudgedFigure]:
    """The figures of tests that passed, which a profile can state; none of busy nodes."""
    passed = [each.judgement for each in run.results if each.judgement is not None and each.result == "passed"]
    return [each for each in passed if each.result != "busy"]


def measured_profile(run: TestRun, name: str, parent: str, image: str) -> str:
    """A site profile that adds the figures of a run to another profile.

    ``name``: of the new profile. ``parent``: the profile that it extends, by name or file. ``image``: what was tested,
    for the source.
    """
    # All of a fact but its tolerance is said anew: it takes the parent's place key by key, and null removes one.
    facts = {
        each.measure: {
            "value": each.measured,
            "unit": each.unit,
            "at": each.at,
            "nodes": each.nodes,
            "ranks_per_node": each.ranks_per_node,
        }
        for each in measured_facts(run)
    }
    nodes = sorted({node for each in run.results for node in each.nodes})
    day = run.started[:10]
    where = f" on {some(nodes, _FEW)}" if nodes else ""
    source = {
        "from": f"measured by hpcgen test of {image}{where}, by {run.engine}",
        "checked": day,
        "as_of": day,
        "verified": "yes",
    }
    return dump(
        {
            "name": name,
            "extends": parent,
            "partitions": {run.partition: {"performance": facts}},
            "sources": {f"partitions.{run.partition}.performance": source},
        }
    )
