"""Start the tests that blocks have for several nodes, and judge what they measure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from hpcgen.core.model.plan import Plan
from hpcgen.core.model.recipe_facts import RankTest
from hpcgen.core.model.record import Figure, TestResult
from hpcgen.running.image_job import ImageJob
from hpcgen.running.verify.conditions import NodeCondition, read_conditions, watched
from hpcgen.running.verify.judging import START_UP, Evidence, better, judge, judged_results
from hpcgen.running.verify.lines import OnBegin
from hpcgen.running.verify.several import (
    LaunchShape,
    command_of,
    direct_paths,
    fixed_launcher,
    networks,
    result_of,
    shape_of,
    skipped,
)
from hpcgen.running.verify.starts import StartResult, start_job, with_layout

_STARTS = 3
"""How often a test is started that is too slow: a moment's disturbance is no fault, and the best figure counts."""


class TestsOverNodes:
    """The tests of one image over several nodes, and what was seen while they ran.

    job: in whose layout they are started.
    timeout_s: seconds for each start.
    on_begin: called with the group and name of each test that begins.
    """

    __test__ = False

    def __init__(self, job: ImageJob, timeout_s: float, on_begin: OnBegin) -> None:
        self.networks: list[str] | None = None
        self.results: list[TestResult] = []
        self._job = job
        self._timeout_s = timeout_s
        self._on_begin = on_begin
        self._direct = False
        self._conditions: dict[str, list[NodeCondition]] = {}

    def start(self, test: RankTest) -> None:
        """Start one of them, again where it is too slow."""
        shape = shape_of(test, self._job.plan.job)
        if shape is None:
            self.results.append(skipped(test, "the job requests no GPU"))
            return
        # The table of NCCL tells by which network, too, where it is asked.
        asked = {"NCCL_DEBUG": "INFO"} if test.figures == "nccl_tests" else {}
        size = {"nodes": shape.nodes, "threads": shape.threads}
        command = command_of(test, watched(test.command) if test.measure else "")
        job = with_layout(self._job, command, shape.ranks, asked, **size)
        if fixed := fixed_launcher(self._job, job):
            self.results.append(skipped(test, f"{fixed} always starts all ranks of the allocation"))
            return
        self._on_begin(test.block, test.name)
        result = self._measured(test, shape, job)
        for starts in range(2, _STARTS + 1):
            if result.judgement is None or result.judgement.result != "slow":
                break
            result = better(result, self._measured(test, shape, job))
            if result.judgement is not None:
                result = replace(result, judgement=replace(result.judgement, starts=starts))
        self.results.append(result)

    def _measured(self, test: RankTest, shape: LaunchShape, job: ImageJob) -> TestResult:
        ended = start_job(job, self._timeout_s)
        result = result_of(test, shape, ended)
        if test.measure is None or result.result != "passed":
            return result
        self._conditions[test.measure] = read_conditions(ended.lines)
        if test.figures == "nccl_tests":
            self.networks, self._direct = networks(ended.lines), direct_paths(ended.lines)
        judgement = judge(job.plan.site, job.plan.partition, test.measure, result.figures, shape.nodes, shape.ranks)
        return replace(result, judgement=judgement)

    def judged(self, provider: str) -> list[TestResult]:
        """All results with what their figures mean. ``provider``: by which the ranks sent, as their MPI says."""
        seen = Evidence(provider, self.networks, self._direct, self._conditions)
        return judged_results(self._job.plan, self.results, seen)


def judged_start(
    plan: Plan, results: list[TestResult], ended: StartResult, again: Callable[[], StartResult]
) -> list[TestResult]:
    """The results of the rank test, of which the one that counts ranks has the time until they had met.

    ``ended``: how the rank test ended. ``again``: starts it once more, which is done where it took too long.
    """
    at = next((place for place, each in enumerate(results) if each.name == "ranks" and each.result == "passed"), None)
    if at is None:
        return results
    starts = 1
    found = _start_up(plan, results[at], ended)
    while found.judgement is not None and found.judgement.result == "slow" and starts < _STARTS:
        starts += 1
        found = better(found, _start_up(plan, results[at], again()))
        if found.judgement is not None:
            found = replace(found, judgement=replace(found.judgement, starts=starts))
    return [*results[:at], *judged_results(plan, [found], Evidence()), *results[at + 1 :]]


def _start_up(plan: Plan, result: TestResult, ended: StartResult) -> TestResult:
    figures = [Figure(name=START_UP, value=ended.seconds, unit="s")] if ended.status == 0 else []
    judgement = judge(plan.site, plan.partition, "start_up", figures, plan.job.nodes, plan.job.ranks_per_node)
    return replace(result, figures=figures, judgement=judgement)
