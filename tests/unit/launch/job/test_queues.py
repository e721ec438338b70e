"""The queue of a job: by nodes and time, one for trying things out last."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import hpcgen
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.batch import Queue, TimeLimit
from hpcgen.core.model.fields import Source
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.site import Site
from hpcgen.launch.job.queues import limits, misfit, place


def site_with(*queues: Queue, default_time: str = "01:00:00") -> Site:
    site = hpcgen.load_site("supermuc")
    partition = msgspec.structs.replace(site.partitions["thin"], queues=list(queues))
    scheduler = msgspec.structs.replace(site.scheduler, default_time=default_time)
    return msgspec.structs.replace(site, partitions={**site.partitions, "thin": partition}, scheduler=scheduler)


def queue_of(site: Site, nodes: int = 1, time: str | None = None, queue: str | None = None) -> str:
    found = place(site, "thin", nodes, JobRequest(walltime=time, queue=queue))
    assert not found.problems, found.problems
    return found.queue


NORMAL = Queue(name="normal", max_nodes=100, max_time="24:00:00")
LONG = Queue(name="long", max_nodes=4, max_time="96:00:00")
DEBUG = Queue(name="debug", max_nodes=2, max_time="00:30:00", debug=True)


@pytest.mark.parametrize(
    ("site", "time", "queue"),
    [
        ("archer2", "20h", "standard"),
        ("archer2", "90h", "long"),
        ("leonardo", "24h", "boost_usr_prod"),
        ("leonardo", "48h", "boost_qos_lprod"),
        ("lumi-g", "60h", "small-g"),
    ],
)
def test_a_long_job_goes_where_it_may_run_so_long(site: str, time: str, queue: str) -> None:
    profile = hpcgen.load_site(site)
    found = place(profile, profile.default_partition, 1, JobRequest(walltime=time))
    assert (found.queue, found.problems) == (queue, [])


def test_a_job_that_no_queue_takes_is_refused_with_their_limits() -> None:
    with pytest.raises(PolicyError) as failure:
        hpcgen.plan("archer2", "mpi-hello", walltime="100h")
    text = str(failure.value)
    assert "no queue of standard takes 1 node for 100:00:00" in text
    assert "long: 1 to 64 nodes, up to 96:00:00" in text
    assert "try --time 96:00:00" in text


def test_a_queue_for_trying_things_out_is_the_last() -> None:
    site = site_with(DEBUG, NORMAL, LONG)
    assert queue_of(site, time="10m") == "normal"
    assert queue_of(site, time="10m", queue="debug") == "debug"
    assert queue_of(site_with(DEBUG), time="10m") == "debug"


def test_a_time_that_nobody_asked_for_is_no_longer_than_the_queue_takes() -> None:
    found = place(site_with(NORMAL, DEBUG), "thin", 1, JobRequest(queue="debug"))
    assert found.seconds == 1800
    assert str(found.reasons[0]) == "the most that queue debug takes"
    refused = place(site_with(NORMAL, DEBUG), "thin", 1, JobRequest(queue="debug", walltime="1h"))
    assert "it takes jobs of up to 00:30:00, not 01:00:00" in refused.problems[0].message


def test_a_queue_for_long_jobs_alone_takes_no_short_one() -> None:
    site = site_with(Queue(name="week", min_time="24:00:00", max_time="168:00:00"), NORMAL)
    assert queue_of(site, time="1h") == "normal"
    assert queue_of(site, time="48h") == "week"


def test_what_is_not_known_of_a_queue_is_said() -> None:
    found = place(site_with(Queue(name="any")), "thin", 5, JobRequest(walltime="900h"))
    assert found.queue == "any"
    assert "any number of nodes (no limit known), time limit not known" in str(found.reasons[-1])


BINS = [
    TimeLimit(max_nodes=91, max_time="02:00:00"),
    TimeLimit(max_nodes=183, max_time="06:00:00"),
    TimeLimit(max_nodes=9472, max_time="12:00:00"),
]
BATCH = Queue(name="batch", times=BINS)


@pytest.mark.parametrize(
    ("nodes", "fits", "too_long"),
    [(1, 2, 3), (91, 2, 3), (92, 6, 7), (183, 6, 7), (184, 12, 13), (9472, 12, 13)],
)
def test_the_time_of_one_queue_may_go_by_the_number_of_nodes(nodes: int, fits: int, too_long: int) -> None:
    assert misfit(BATCH, nodes, fits * 3600) == ""
    of_nodes = "1 node" if nodes == 1 else f"{nodes} nodes"
    assert misfit(BATCH, nodes, too_long * 3600).startswith(
        f"it takes jobs of {of_nodes} of up to {fits:02d}:00:00, not"
    )


def test_more_nodes_than_the_last_number_are_the_queues_own_limit_or_too_many() -> None:
    assert "1 to 9472 nodes" in misfit(BATCH, 9473, 3600)
    with_rest = Queue(name="batch", times=BINS[:1], max_time="12:00:00")
    assert misfit(with_rest, 10000, 12 * 3600) == ""
    assert (
        limits(with_rest) == "any number of nodes (no limit known), up to 02:00:00 on up to 91 nodes, 12:00:00 on more"
    )


def test_a_time_that_nobody_asked_for_is_cut_to_that_of_the_nodes() -> None:
    site = site_with(BATCH, default_time="10:00:00")
    found = [place(site, "thin", nodes, JobRequest()).seconds for nodes in (1, 100, 1000)]
    assert found == [2 * 3600, 6 * 3600, 10 * 3600]


def test_a_job_that_is_too_long_for_its_nodes_is_told_of_more_nodes() -> None:
    site = site_with(BATCH)
    with pytest.raises(PolicyError) as failure:
        hpcgen.plan(site, hpcgen.load_stack("mpi-hello"), nodes=90, walltime="5h")
    assert "try --time 02:00:00 or --nodes 92" in str(failure.value).replace("or try --nodes", "or --nodes")


def warned(site: Site, **asked: object) -> list[str]:
    plan = hpcgen.plan(site, hpcgen.load_stack("mpi-hello"), **asked)  # type: ignore[arg-type]
    return [str(each) for each in plan.findings if each.name == "limit"]


def test_what_rests_on_a_limit_that_nobody_knows_is_a_warning_with_who_knows() -> None:
    unknown = site_with(Queue(name="general"))
    text = warned(unknown, walltime="400h")
    assert len(text) == 1 and "does not know whether the queue general may have 400:00:00 of time" in text[0]
    assert "`scontrol show partition general`" in text[0] and "https://doku.lrz.de/" in text[0]
    assert "max_time" in text[0]
    assert warned(unknown) == []
    assert warned(site_with(NORMAL), walltime="10h") == []
    partition = msgspec.structs.replace(unknown.partitions["thin"], nodes=None)
    without = msgspec.structs.replace(unknown, partitions={**unknown.partitions, "thin": partition}, sources={})
    assert "may have 100 nodes" in warned(without, nodes=100)[0]
    usable = partition.memory.usable_gb or partition.memory.total_gb
    memory = msgspec.structs.replace(partition.memory, usable_gb=None, total_gb=usable)
    whole = msgspec.structs.replace(partition, memory=memory)
    rank = {"ranks_per_node": 1, "threads_per_rank": 1}
    site = msgspec.structs.replace(unknown, partitions={**unknown.partitions, "thin": whole}, sources={})
    assert "usable_gb" in warned(site, memory_per_rank_gb=0.95 * usable, **rank)[0]
    assert warned(site, memory_per_rank_gb=0.8 * usable, **rank) == []


def test_limits_that_only_an_account_has_are_asked_of_the_batch_system() -> None:
    own = site_with(Queue(name="prod", max_nodes=100, max_time="24:00:00", by_account=True))
    assert warned(own) == []
    assert "`sacctmgr show assoc user=$USER`" in warned(own, walltime="10h")[0]
    assert "or what the account has" in limits(own.partitions["thin"].queues[0])


@pytest.mark.parametrize(("verified", "said"), [("no", True), ("yes", False)])
def test_a_refusal_by_limits_that_nobody_verified_says_so(verified: Any, said: bool) -> None:
    sources = {"partitions.thin.queues": Source(from_="somebody", checked="2026-11-28", verified=verified)}
    site = msgspec.structs.replace(site_with(NORMAL), sources=sources)
    for asked in (None, "normal"):
        (problem,) = place(site, "thin", 1, JobRequest(walltime="900:00:00", queue=asked)).problems
        assert ("by limits that are not verified" in problem.message) is said
