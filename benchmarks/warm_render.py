"""In one process with one catalog kept: plan and render, and how many renders a second with threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from timing import CallTimes, in_process

from hpcgen.catalog.catalog import Catalog
from hpcgen.catalog.collections import collections_from_environment
from hpcgen.kit.kit import make_kit
from hpcgen.model.plan import Plan
from hpcgen.planning.planner import make_plan
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats import format_for

GOAL = 0.005
"""Seconds that a warm render may take."""
GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden"
THREADS = (1, 16)


@dataclass(frozen=True)
class Warm:
    """Seconds for one site and stack: plan alone, recipe alone, both, and the whole kit of a plan."""

    plan: CallTimes
    render: CallTimes
    both: CallTimes
    kit: CallTimes


def render_recipe(plan: Plan, catalog: Catalog) -> str:
    """The recipe alone, as ``hpcgen render`` prints it."""
    return format_for(plan.format).recipe(plan, assemble(plan, catalog)).text


def cases() -> list[tuple[str, str]]:
    """The golden cases: pairs of site and stack."""
    found = sorted((stack.parent.name, stack.name) for stack in GOLDEN.glob("*/*") if stack.is_dir())
    if not found:
        raise SystemExit(f"no golden cases in {GOLDEN}")
    return found


def measure(count: int) -> dict[str, Warm]:
    """Time every golden case."""
    catalog = Catalog(collections_from_environment())
    result = {}
    for site, stack in cases():
        plan = _planner(catalog, site, stack)
        given = plan()
        result[f"{site} × {stack}"] = Warm(
            plan=in_process(plan, count),
            render=in_process(lambda given=given: render_recipe(given, catalog), count),  # type: ignore[misc]
            both=in_process(lambda plan=plan: render_recipe(plan(), catalog), count),  # type: ignore[misc]
            kit=in_process(lambda given=given: make_kit(given, catalog), count),  # type: ignore[misc]
        )
    return result


def _planner(catalog: Catalog, site: str, stack: str) -> Callable[[], Plan]:
    return lambda: make_plan(catalog, catalog.site(site), catalog.stack(stack))


def throughput(seconds: float = 3.0) -> dict[int, float]:
    """Plans and renders a second, over all golden cases alike, by number of threads."""
    catalog = Catalog(collections_from_environment())
    planners = [_planner(catalog, site, stack) for site, stack in cases()]

    def one_of_each() -> None:
        for planner in planners:
            render_recipe(planner(), catalog)

    one_of_each()
    began = time.perf_counter()
    one_of_each()
    rounds = max(2 * max(THREADS), int(seconds / (time.perf_counter() - began)))
    result = {}
    for threads in THREADS:
        with ThreadPoolExecutor(threads) as pool:
            began = time.perf_counter()
            for waiting in [pool.submit(one_of_each) for _ in range(rounds)]:
                waiting.result()
            result[threads] = rounds * len(planners) / (time.perf_counter() - began)
    return result
