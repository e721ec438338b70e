"""In one process with one catalog kept: plan and recipe of every pair, and how many a second with threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from timing import CallTimes, in_process

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.collections import collections_from_environment
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.plan import Plan
from hpcgen.kit.kit import make_kit
from hpcgen.planning.planner import make_plan
from hpcgen.plugins.fleet.matrix import ANY_ACCOUNT, concrete_sites
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for

PLAN, RECIPE = 0.003, 0.007
"""Seconds of the processor that plan and recipe may take: the median of all pairs."""
GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
THREADS = (1, 16)


@dataclass(frozen=True)
class Warm:
    """Seconds for one site and stack: plan alone, recipe alone, both, and the whole kit of a plan."""

    plan: CallTimes
    render: CallTimes
    both: CallTimes
    kit: CallTimes


@dataclass(frozen=True)
class Pairs:
    """Seconds of the processor for all pairs of site and stack: of plans, and of the recipes of these plans."""

    plan: list[float]
    recipe: list[float]

    @property
    def medians(self) -> tuple[float, float]:
        return statistics.median(self.plan), statistics.median(self.recipe)


def render_recipe(plan: Plan, catalog: Catalog) -> str:
    """The recipe alone, as ``hpcgen render`` prints it."""
    return format_for(plan.format).recipe(plan, assemble(plan, catalog)).text


def cases() -> list[tuple[str, str]]:
    """The golden cases: pairs of site and stack."""
    found = sorted((stack.parent.name, stack.name) for stack in GOLDEN.glob("*/*") if stack.is_dir())
    if not found:
        raise SystemExit(f"no golden cases in {GOLDEN}")
    return found


def measure(count: int, budget: float) -> dict[str, Warm]:
    """Time every golden case."""
    catalog = Catalog(collections_from_environment())
    result = {}
    for site, stack in cases():
        plan = _planner(catalog, site, stack)
        given = plan()
        result[f"{site} × {stack}"] = Warm(
            plan=in_process(plan, count, budget),
            render=in_process(lambda given=given: render_recipe(given, catalog), count, budget),  # type: ignore[misc]
            both=in_process(lambda plan=plan: render_recipe(plan(), catalog), count, budget),  # type: ignore[misc]
            kit=in_process(lambda given=given: make_kit(given, catalog), count, budget),  # type: ignore[misc]
        )
    return result


def pairs(repeats: int, step: int = 1) -> Pairs:
    """The best of some runs of every site with every stack that has a plan there, after one that fills the catalog.

    Parameters
    ----------
    step: take one pair of so many.
    """
    catalog = Catalog(collections_from_environment())
    found = Pairs([], [])
    for site, stack in list(product(concrete_sites(catalog), catalog.names("stack")))[::step]:
        planner = _planner(catalog, site, stack)
        with suppress(HpcgenError):
            plan = planner()
            render_recipe(plan, catalog)
            found.plan.append(min(_seconds(planner) for _ in range(repeats)))
            recipe = partial(render_recipe, plan, catalog)
            found.recipe.append(min(_seconds(recipe) for _ in range(repeats)))
    return found


def _seconds(function: Callable[[], object]) -> float:
    began = time.thread_time()
    function()
    return time.thread_time() - began


def _planner(catalog: Catalog, site: str, stack: str) -> Callable[[], Plan]:
    """Makes the plan, also where the contract is broken: of some golden cases it is."""
    return lambda: make_plan(catalog, catalog.site(site), catalog.stack(stack), job=ANY_ACCOUNT, allow_unsupported=True)


def throughput(seconds: float) -> dict[int, float]:
    """Plans and renders a second, over all golden cases alike, by number of threads."""
    catalog = Catalog(collections_from_environment())
    planners = [_planner(catalog, site, stack) for site, stack in cases()]

    def one_of_each() -> None:
        for planner in planners:
            render_recipe(planner(), catalog)

    one_of_each()
    began = time.perf_counter()
    one_of_each()
    rounds = max(2, int(seconds / (time.perf_counter() - began)))
    result = {}
    for threads in THREADS:
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            for waiting in [pool.submit(one_of_each) for _ in range(rounds)]:
                waiting.result()
            result[threads] = rounds * len(planners) / (time.perf_counter() - began)
    return result
