"""Threads that have to share CPUs wait passively, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
import pytest

from hpcgen.core.model.plan import Plan
from hpcgen.running.here import notes
from hpcgen.running.image_job import ImageJob, direct_script
from hpcgen.running.shared_cpus import sharing_cpus
from tests.unit.launch.test_launch import IMAGE, make_plan

PASSIVE = "export OMP_WAIT_POLICY=passive\n"


@pytest.fixture(autouse=True)
def one_cpu() -> Iterator[None]:
    """This process may use one CPU, whatever the machine has."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    yield
    os.sched_setaffinity(0, every)


def job(plan: Plan, **layout: int) -> ImageJob:
    size = msgspec.structs.replace(plan.job, **{"nodes": 1, "ranks_per_node": 1, "threads_per_rank": 2, **layout})
    return ImageJob(msgspec.structs.replace(plan, job=size), IMAGE, "demo:1", "docker")


def test_two_threads_on_one_cpu_wait_passively_and_the_user_is_told() -> None:
    here = job(make_plan("workstation"))
    assert PASSIVE in direct_script(sharing_cpus(here, {}))
    (told,) = notes(here, {})
    assert "2 threads share 1 CPU" in told and "--threads 1 " in told


@pytest.mark.parametrize("layout", [{"threads_per_rank": 1}, {"nodes": 2}])
def test_one_thread_has_its_cpu_and_other_nodes_are_not_this_one(layout: dict[str, int]) -> None:
    here = job(make_plan("workstation"), **layout)
    assert sharing_cpus(here, {}) is here


def test_what_somebody_says_stays() -> None:
    here = job(make_plan("workstation"))
    said = {"OMP_WAIT_POLICY": "active"}
    assert sharing_cpus(here, said) is here and notes(here, said) == []


def test_a_batch_system_gives_its_steps_cpus_of_their_own() -> None:
    plan = make_plan("juwels-booster")
    assert "srun" in direct_script(job(plan))
    assert PASSIVE not in direct_script(sharing_cpus(job(plan), {}))
