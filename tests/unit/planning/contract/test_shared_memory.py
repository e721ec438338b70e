"""What ranks and GPUs of a node share memory by, and what cards may lock, as a profile says it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from hpcgen.api import default_catalog
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.contract.verdict import case_of, checks_of
from hpcgen.planning.planner import make_plan


def planned(stack: str, nodes: int = 1, **memory: Any) -> Plan:
    catalog = default_catalog()
    site = catalog.site("leonardo")
    partitions = {name: replace(each, memory=replace(each.memory, **memory)) for name, each in site.partitions.items()}
    site = replace(site, partitions=partitions)
    return make_plan(catalog, site, catalog.stack(stack), job=JobRequest(nodes=nodes))


def outcome(plan: Plan, name: str) -> tuple[str, str]:
    (check,) = checks_of(case_of(plan, default_catalog()), only=(name,))
    return check.outcome, check.reason


@pytest.mark.parametrize(
    ("stack", "size", "found", "says"),
    [
        ("gromacs", None, "skipped", "the preflight looks"),
        ("gromacs", 0.064, "holds", "4 ranks of MPI use it"),
        ("gromacs", 0.002, "doubtful", "4 ranks of MPI want 0.0039 GB of /dev/shm, and the nodes have 0.002 GB"),
        ("pytorch-ddp", 0.064, "doubtful", "NCCL between 4 GPUs want 1 GB"),
        ("pytorch-ddp", 251.0, "holds", "/dev/shm has 251 GB"),
    ],
)
def test_what_shares_memory_is_held_against_its_size(stack: str, size: float | None, found: str, says: str) -> None:
    plan = planned(stack, shared_gb=size)
    assert outcome(plan, "shared memory")[0] == found and says in outcome(plan, "shared memory")[1]
    preflight = make_kit(plan, default_catalog()).files["preflight.sh"].text
    assert ("preflight_finding warning /dev/shm '1048576 kB for NCCL'" in preflight) == (stack == "pytorch-ddp")


def test_what_may_be_locked_matters_between_nodes() -> None:
    assert outcome(planned("gromacs", locked_gb=0.001), "locked memory")[0] == "skipped"
    assert outcome(planned("gromacs", 2), "locked memory")[0] == "skipped"
    assert outcome(planned("gromacs", 2, locked_gb="unlimited"), "locked memory")[0] == "holds"
    short, reason = outcome(planned("gromacs", 2, locked_gb=0.001), "locked memory")
    assert short == "doubtful" and "below 0.5 GB RDMA is left out" in reason
