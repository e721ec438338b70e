"""Prove an image: the self-tests of its blocks, and the promises between image and host, on the machine it runs on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hpcgen.blocks.rank_test import DEBUG, OPEN_MPI_DEBUG, rank_words
from hpcgen.core.errors import PolicyError, Problem, TestFailedError
from hpcgen.core.model.fields import EngineName
from hpcgen.core.model.image_paths import SELFTEST
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.core.model.record import TestResult, TestRun
from hpcgen.core.model.site import Site
from hpcgen.core.support.processes import printable
from hpcgen.images.reference import ImageReference
from hpcgen.running.data import DataRequest
from hpcgen.running.here import require_nodes
from hpcgen.running.image_job import ImageJob, plan_for_image
from hpcgen.running.verify.contract import collectives_tests, engine_tests, no_ranks, node_tests, rank_tests
from hpcgen.running.verify.lines import CONTRACT, OnBegin, SelfTestLines, read_ranks
from hpcgen.running.verify.node import engine_script, node_command, read_node
from hpcgen.running.verify.over_nodes import TestsOverNodes, judged_start
from hpcgen.running.verify.several import rank_tests_of
from hpcgen.running.verify.starts import start_job, start_script, with_layout

if TYPE_CHECKING:
    from hpcgen.catalog.catalog import Catalog


__all__ = ["TIMEOUT_S", "failed", "failure", "job_of_tests", "verify_image"]


# Start an image in the ways that its site starts it, and gather what that proves.

TIMEOUT_S = 900.0
"""Seconds for each start of an image, of which there are three."""


def verify_image(
    image: ImageReference,
    catalog: Catalog,
    *,
    trust: bool = False,
    site: Site | None = None,
    partition: str | None = None,
    engine: EngineName | None = None,
    ranks_per_node: int | None = None,
    threads: int | None = None,
    nodes: int = 1,
    timeout_s: float = TIMEOUT_S,
    data: DataRequest | None = None,
    on_begin: OnBegin = lambda group, name: None,
) -> TestRun:
    """Run the self-tests and the contract's run-time half right here, by the site's own launch line.

    Returns every result. That tests failed raises nothing: see :func:`failed`. No record is written.

    catalog, trust: as for :func:`~hpcgen.running.image_job.plan_for_image`.
    site, partition, engine, ranks_per_node, threads: other than the recorded ones. Where a layout has one rank on
        a node, two are started unless ``ranks_per_node`` says otherwise.
    nodes: with more than one, the ranks are started over so many, and the tests that blocks have for several nodes too.
    timeout_s: seconds for each start of the image.
    data: as for :func:`~hpcgen.running.image_job.plan_for_image`.
    on_begin: called with the group and name of each test that begins.
    InputError: the image is for a site of which the user has no profile, or nothing says which machine it is for.
    PolicyError: it cannot be started here, whatever the result would be, such as several nodes without an allocation.
    """
    request = JobRequest(nodes=nodes, ranks_per_node=ranks_per_node, threads_per_rank=threads)
    started, began = datetime.now(timezone.utc), time.monotonic()
    job = job_of_tests(image, catalog, request, trust=trust, site=site, partition=partition, engine=engine, data=data)
    more = _for_several(image, job) if nodes > 1 else []
    proof = _Proof(job, more, timeout_s, on_begin)
    proof.run()
    return TestRun(
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        site=job.plan.site.name,
        engine=job.plan.engine,
        # What the blocks say first, then what holds between image and host.
        results=sorted(proof.results, key=lambda each: each.group == CONTRACT),
        seconds=round(time.monotonic() - began, 3),
        nodes=nodes,
        partition=job.plan.partition,
    )


def job_of_tests(
    image: ImageReference,
    catalog: Catalog,
    request: JobRequest,
    *,
    trust: bool = False,
    site: Site | None = None,
    partition: str | None = None,
    engine: EngineName | None = None,
    account: Callable[[Site], str | None] | None = None,
    elsewhere: bool = False,
    data: DataRequest | None = None,
) -> ImageJob:
    """The job in whose layout an image is tested.

    ``request``: what is asked of it. Of several nodes in the image's record one is used, unless more are asked for.
    ``trust``, ``site``, ``partition``, ``engine``, ``account``, ``elsewhere``, ``data``: as for
    :func:`~hpcgen.running.image_job.plan_for_image`, which says what is raised.
    """
    nodes = request.nodes or 1
    job = plan_for_image(
        image,
        catalog,
        trust=trust,
        site=site,
        partition=partition,
        engine=engine,
        request=replace(request, nodes=nodes if nodes > 1 else None),
        account=account,
        elsewhere=elsewhere,
        data=data,
        signed=False,
    )
    if request.ranks_per_node is None and nodes == 1:
        job = _with_company(job)
    job = with_layout(job, [], job.plan.job.ranks_per_node, nodes=nodes)
    if nodes > 1 and (why := no_ranks(job.plan)):
        raise PolicyError(f"no ranks can be tried on {nodes} nodes: {why}", "--nodes", remedy="--nodes 1")
    return job


def _for_several(image: ImageReference, job: ImageJob) -> list[RankTest] | None:
    """The image's tests for several nodes, None where its kit cannot tell.

    PolicyError where its job cannot be started on them from here.
    """
    require_nodes(job, os.environ, "hpcgen test --submit, or hpcgen test")
    return rank_tests_of(image) if job.facts is None else []


def _with_company(job: ImageJob) -> ImageJob:
    """One rank would prove nothing of how ranks find each other: two share its threads."""
    layout = job.plan.job
    if layout.ranks_per_node > 1 or no_ranks(job.plan):
        return job
    layout = replace(layout, ranks_per_node=2, threads_per_rank=max(1, layout.threads_per_rank // 2))
    return replace(job, plan=replace(job.plan, job=layout))


def failed(run: TestRun) -> list[TestResult]:
    """The results of a run that count against the image."""
    return [each for each in run.results if each.result == "failed"]


def failure(run: TestRun, remedy: str = "") -> TestFailedError | None:
    """The error with every test that failed; None if none did.

    ``remedy``: what to do, in place of what each result says.
    """
    found = failed(run)
    problems = [
        Problem(f"{each.group}: {each.name}: {printable(each.reason)}", remedy=remedy or each.remedy) for each in found
    ]
    return TestFailedError(problems) if found else None


class _Proof:
    """The starts of one image, one after the other."""

    def __init__(self, job: ImageJob, more: list[RankTest] | None, timeout_s: float, on_begin: OnBegin) -> None:
        self.results: list[TestResult] = []
        self._more = more
        self._job = job
        self._timeout_s = timeout_s
        self._on_begin = on_begin
        self._provider = ""

    def run(self) -> None:
        """All of them; without an engine there is nothing to start."""
        if not self._engine():
            return
        self._node()
        self._selftest()
        self._ranks()
        if self._job.plan.job.nodes > 1:
            self._several()

    def _engine(self) -> bool:
        """Whether there is one that starts."""
        self._on_begin(CONTRACT, "engine")
        ended = start_script(engine_script(self._job.plan, self._job.environment), self._timeout_s)
        self.results += engine_tests(self._job.plan, ended)
        return ended.status == 0

    def _node(self) -> None:
        self._on_begin(CONTRACT, "CPU and GPU")
        ended = start_job(with_layout(self._job, node_command(), 1), self._timeout_s)
        self.results += node_tests(self._job.plan, read_node(ended.lines), ended, self._job.built_for)

    def _selftest(self) -> None:
        if self._job.facts is not None:
            reason = "the image has no block tests, because hpcgen did not build it"
            self.results.append(TestResult(group=CONTRACT, name="blocks", result="skipped", reason=reason))
            return
        reader = SelfTestLines(self._on_begin, self.results.append)
        job = with_layout(self._job, [SELFTEST, "--lines"], 1)
        ended = start_job(job, self._timeout_s, reader.feed)
        reader.finish(ended.status, self._timeout_s)

    def _ranks(self) -> None:
        plan = self._job.plan
        ended = None
        if not no_ranks(plan):
            self._on_begin(CONTRACT, "ranks")
            asked = {**DEBUG, **OPEN_MPI_DEBUG}
            debug = {name: value for name, value in asked.items() if name not in plan.stack.run.environment}
            layout = plan.job
            job = with_layout(self._job, rank_words(plan), layout.ranks_per_node, debug, nodes=layout.nodes)
            ended = start_job(job, self._timeout_s)
        results = rank_tests(plan, ended)
        if ended is not None and plan.job.nodes > 1:
            self._provider = read_ranks(ended.lines).provider
            results = judged_start(plan, results, ended, lambda: start_job(job, self._timeout_s))
        self.results += results

    def _several(self) -> None:
        """What the blocks have for several nodes."""
        if self._more is None:
            reason = "the image's kit does not say which tests its blocks have: another hpcgen wrote it"
            self.results.append(TestResult(group=CONTRACT, name="blocks", result="skipped", reason=reason))
        tests = TestsOverNodes(self._job, self._timeout_s, self._on_begin)
        for test in self._more or ():
            tests.start(test)
        self.results += tests.judged(self._provider)
        self.results += collectives_tests(self._job.plan, tests.networks)
