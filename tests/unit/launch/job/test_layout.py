"""Layouts, limits and queues of a job."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import InputError, PolicyError
from hpcgen.core.model.job import Job, JobRequest
from hpcgen.core.model.site import Layout, Site
from hpcgen.core.model.stack import RunSpec, Stack
from hpcgen.core.support.units import parse_walltime, walltime_text
from hpcgen.launch.job.layout import job_findings, resolve_job
from hpcgen.launch.job.measured_layouts import consider, explain


@pytest.fixture(scope="module")
def supermuc() -> Site:
    return Catalog().site("supermuc")


@pytest.fixture(scope="module")
def workstation() -> Site:
    return Catalog().site("workstation")


def stack(**run: object) -> Stack:
    return Stack(name="demo", title="A demonstration", blocks={}, run=RunSpec(command=["true"], **run))  # type: ignore[arg-type]


def job(site: Site, partition: str = "", the_stack: Stack | None = None, **request: object) -> Job:
    wanted = JobRequest(**request)  # type: ignore[arg-type]
    return resolve_job(site, partition or site.default_partition, the_stack or stack(), wanted)


def refusal(site: Site, partition: str = "", the_stack: Stack | None = None, **request: object) -> list[str]:
    with pytest.raises(PolicyError) as caught:
        job(site, partition, the_stack, **request)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("36h", 36 * 3600),
        ("90m", 5400),
        ("45s", 45),
        ("2d", 172800),
        ("36:00:00", 36 * 3600),
        ("1-12:00:00", 36 * 3600),
        ("00:00:01", 1),
        (" 1h ", 3600),
    ],
)
def test_walltime(text: str, seconds: int) -> None:
    assert parse_walltime(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "36", "1:30", "0h", "00:00:00", "1h30m", "-1h", "1:60:00", "36h\n#SBATCH", "٣h", "1.5h"]
)
def test_bad_walltime_shows_examples(text: str) -> None:
    with pytest.raises(InputError, match="36h, 90m, 36:00:00"):
        parse_walltime(text)


@given(st.integers(min_value=1, max_value=9999 * 3600 + 3599))
def test_walltime_goes_round(seconds: int) -> None:
    assert parse_walltime(walltime_text(seconds)) == seconds


def test_the_layout_of_the_site_decides(supermuc: Site) -> None:
    result = job(supermuc)
    assert (result.nodes, result.ranks_per_node, result.threads_per_rank) == (1, 4, 12)
    assert result.ranks == 4
    assert any("907.26" in reason for reason in result.why())
    assert len(result.reasons) == 5


def test_a_request_wins_and_the_rest_follows(supermuc: Site) -> None:
    assert job(supermuc, ranks_per_node=8).threads_per_rank == 6
    assert job(supermuc, threads_per_rank=48).ranks_per_node == 1
    assert job(supermuc, nodes=17, ranks_per_node=2, threads_per_rank=24).ranks == 34


def test_a_layout_without_memory_for_its_ranks_is_passed_over(supermuc: Site) -> None:
    result = job(supermuc, memory_per_rank_gb=70.0)
    assert (result.ranks_per_node, result.threads_per_rank) == (1, 48)


def test_the_stacks_own_number_of_ranks_is_kept(supermuc: Site) -> None:
    assert job(supermuc, the_stack=stack(ranks_per_node=2)).ranks_per_node == 2
    assert job(supermuc, the_stack=stack(ranks_per_node=4)).threads_per_rank == 12


def test_without_layout_one_rank_takes_all_cores(supermuc: Site, workstation: Site) -> None:
    assert (job(workstation).ranks_per_node, job(workstation).threads_per_rank) == (1, 8)
    assert (job(supermuc, "fat").ranks_per_node, job(supermuc, "fat").threads_per_rank) == (1, 48)


def test_a_stack_without_mpi_is_one_process(supermuc: Site) -> None:
    assert job(supermuc, the_stack=stack(mpi=False)).ranks == 1
    assert "without MPI" in refusal(supermuc, the_stack=stack(mpi=False), nodes=2)[0]


@pytest.mark.parametrize(
    ("nodes", "queue"),
    [(1, "micro"), (16, "micro"), (17, "general"), (768, "general"), (769, "large"), (6336, "large")],
)
def test_the_queue_follows_the_number_of_nodes(supermuc: Site, nodes: int, queue: str) -> None:
    assert job(supermuc, nodes=nodes).queue == queue


def test_an_asked_queue(supermuc: Site) -> None:
    assert job(supermuc, queue="test").queue == "test"
    assert "did you mean general" in refusal(supermuc, queue="genral")[0]
    assert "17 to 768" in refusal(supermuc, queue="general", nodes=4)[0]


def test_every_problem_is_told_at_once(supermuc: Site) -> None:
    problems = refusal(
        supermuc, nodes=7000, ranks_per_node=8, threads_per_rank=48, memory_per_rank_gb=20.0, queue="micro"
    )
    assert len(problems) == 4
    text = "\n".join(problems)
    assert "8 ranks × 48 threads = 384 do not fit on the 96 hardware threads" in text
    assert "8 ranks × 20 GB = 160 GB exceeds the 77 GB" in text
    assert problems[-1].endswith("remedy: try --ranks-per-node 1 --nodes 16")
    assert "more than the 6336" in text
    assert "queue micro does not take this job: it takes 1 to 16 nodes, not 7000" in text


def test_the_stacks_memory_is_checked_too(supermuc: Site) -> None:
    with_memory = stack(memory_per_rank_gb=40.0)
    assert job(supermuc, the_stack=with_memory).ranks_per_node == 1
    assert "exceeds the 77 GB" in refusal(supermuc, the_stack=with_memory, ranks_per_node=2)[0]


def test_several_nodes_need_a_batch_system(workstation: Site) -> None:
    text = "\n".join(refusal(workstation, nodes=2, queue="any"))
    assert "need a batch system" in text
    assert "more than the 1" in text
    assert "no batch system, so no queue" in text


def test_a_missing_account_is_a_finding(supermuc: Site, workstation: Site) -> None:
    assert [finding.name for finding in job_findings(supermuc, "thin", job(supermuc))] == ["account"]
    assert job_findings(supermuc, "thin", job(supermuc, account="pn12ab")) == []
    assert job_findings(workstation, "main", job(workstation)) == []
    request = JobRequest(account="pn12ab")
    left_out = resolve_job(workstation, "main", stack(), request)
    assert left_out.account == ""
    assert len(job_findings(workstation, "main", left_out, request)) == 1


@given(
    nodes=st.integers(1, 8000),
    ranks=st.integers(1, 200),
    threads=st.integers(1, 200),
    memory=st.floats(0.1, 2000, allow_nan=False),
)
def test_whatever_is_accepted_fits(nodes: int, ranks: int, threads: int, memory: float) -> None:
    site = Catalog().site("supermuc")
    request = JobRequest(nodes=nodes, ranks_per_node=ranks, threads_per_rank=threads, memory_per_rank_gb=memory)
    fits = ranks * threads <= 96 and memory * ranks <= 77 and nodes <= 6336
    try:
        result = resolve_job(site, "thin", stack(), request)
    except PolicyError:
        assert not fits
    else:
        assert fits
        assert result.queue


def layouts(site: Site, *given: tuple[int, int, str]) -> Site:
    """The site with layouts of (ranks per node, nodes, measured) on its thin nodes."""
    made = [
        Layout(partition="thin", ranks_per_node=ranks, threads_per_rank=48 // ranks, nodes=nodes, measured=measured)
        for ranks, nodes, measured in given
    ]
    return msgspec.structs.replace(site, layouts=made)


@pytest.mark.parametrize(
    ("nodes", "ranks"),
    [(None, 2), (1, 8), (4, 2), (5, 2), (63, 2), (64, 4), (500, 4), (512, 16), (700, 16)],
)
def test_the_number_of_nodes_picks_the_nearest_layout(supermuc: Site, nodes: int | None, ranks: int) -> None:
    site = layouts(supermuc, (2, 4, ""), (8, 1, ""), (4, 64, ""), (16, 512, ""))
    chosen = job(site, nodes=nodes)
    assert chosen.ranks_per_node == ranks
    if nodes is not None:
        assert chosen.nodes == nodes


def test_of_equal_layouts_the_measured_one_is_taken(supermuc: Site) -> None:
    site = layouts(supermuc, (2, 4, ""), (4, 4, "3DGAN"), (8, 16, "3DGAN"))
    assert job(site, nodes=8).ranks_per_node == 4
    assert job(site, nodes=2).ranks_per_node == 4
    # Without a number the profile's order counts.
    assert job(site).ranks_per_node == 2


def test_the_reason_names_the_choice(supermuc: Site) -> None:
    site = layouts(supermuc, (2, 4, ""), (4, 64, "3DGAN"))
    reasons = job(site, nodes=10).why()
    assert "ranks per node 2: layout of the site for thin: it is for the most nodes up to 10" in reasons
    assert job(site, nodes=2).why()[1].endswith("it is for the fewest nodes above 2")


def test_explain_tells_of_every_layout_and_queue(supermuc: Site) -> None:
    site = layouts(supermuc, (2, 4, "3DGAN"), (8, 1, ""), (4, 64, ""))
    request = JobRequest(nodes=20, memory_per_rank_gb=15)
    the_job = resolve_job(site, "thin", stack(), request)
    lines = explain(site, "thin", stack(), the_job, request)
    assert "  thin: 2 × 24 on 4 nodes: taken: it is for the most nodes up to 20 (measured: 3DGAN)" in lines
    assert (
        "  thin: 8 × 6 on 1 node: not taken: 8 × 15 GB = 120 GB exceeds the 77 GB that a job may use (not measured)"
        in lines
    )
    assert "  thin: 4 × 12 on 64 nodes: not taken: the one for 4 nodes is closer to 20 (not measured)" in lines
    assert "memory: 2 × 15 GB = 30 GB of the 77 GB that a job may use of a node" in lines
    assert "  micro, 1 to 16 nodes, up to 48:00:00: it takes 1 to 16 nodes, not 20" in lines
    assert "  general, 17 to 768 nodes, up to 48:00:00: taken" in lines


@given(st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 99), st.sampled_from(["", "yes"])), max_size=6))
def test_a_layout_is_taken_if_any_fits(given_layouts: list[tuple[int, int, str]]) -> None:
    site = layouts(Catalog().site("supermuc"), *given_layouts)
    for request in (JobRequest(), JobRequest(nodes=7), JobRequest(ranks_per_node=4, nodes=50)):
        considered = consider(site, "thin", stack(), request, None)
        fitting = [each for each in given_layouts if request.ranks_per_node in (None, each[0])]
        assert sum(each.taken for each in considered) == bool(fitting)
        assert all(each.why for each in considered)


def test_jobs_get_no_core_that_the_system_keeps(supermuc: Site) -> None:
    thin = supermuc.partitions["thin"]
    kept = msgspec.structs.replace(thin, cpu=msgspec.structs.replace(thin.cpu, system_cores=4))
    site = msgspec.structs.replace(supermuc, partitions={**supermuc.partitions, "thin": kept}, layouts=[])
    assert job(site, "thin", ranks_per_node=2).threads_per_rank == (thin.cpu.cores - 4) // 2
    assert any("threads" in line for line in refusal(site, "thin", ranks_per_node=thin.cpu.cores, threads_per_rank=2))
