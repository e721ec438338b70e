"""The queue of a job: by nodes and time, one for trying things out last."""

from __future__ import annotations

import msgspec
import pytest

import hpcgen
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.site import Queue, Site
from hpcgen.launch.job.queues import place


def site_with(*queues: Queue, default_time: str = "01:00:00") -> Site:
    site = hpcgen.load_site("supermuc")
    partition = msgspec.structs.replace(site.partitions["thin"], queues=list(queues))
    scheduler = msgspec.structs.replace(site.scheduler, default_time=default_time)
    return msgspec.structs.replace(site, partitions={"thin": partition}, scheduler=scheduler)


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
    assert "any number of nodes as far as is known, time limit not known" in str(found.reasons[-1])
