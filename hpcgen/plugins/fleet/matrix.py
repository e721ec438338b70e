"""Every partition of every site × stack × way of installing it: what would become of it."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import msgspec

from hpcgen.blocks.base import Facts
from hpcgen.blocks.guarded import BlockCodeError
from hpcgen.blocks.options import block_options, literal_words, option_fields
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError, Problem
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.stack import Stack
from hpcgen.planning.contract import gpu
from hpcgen.planning.contract.verdict import case_of
from hpcgen.planning.planner import make_plan

Result = Literal["renders", "cpu", "refused", "bug"]
RESULTS: tuple[Result, ...] = typing.get_args(Result)
WAYS = ("install", "obtain")
"""Options by which a block says how it gets into an image."""
ANY_ACCOUNT = JobRequest(account="any")
"""Sites that ask for an account ask the person who submits; it is nothing of the combination."""


class Combination(msgspec.Struct, frozen=True):
    """One partition, one stack, and one way of installing the stack's first block where it has several.

    ``usual``: whether the block would be installed in this way if nobody said anything.
    """

    site: str
    partition: str
    stack: str
    block: str = ""
    option: str = ""
    way: str = ""
    usual: bool = True

    @property
    def settings(self) -> list[str]:
        """What ``--set`` has to say for it."""
        return [f"{self.block}.{self.option}={self.way}"] if self.option else []


class MatrixOutcome(msgspec.Struct, frozen=True):
    """Result for one combination.

    Parameters
    ----------
    result: ``renders``; ``cpu``, it renders, and leaves the node's GPUs alone; ``refused``; ``bug``, an exception
        that is no refusal.
    software: the stack's first block with its version, where there is a plan.
    why: on one line, why it leaves the GPUs alone or is refused.
    problems: of a refusal, all of them.
    """

    site: str
    partition: str
    stack: str
    way: str
    usual: bool
    settings: list[str]
    result: Result
    software: str = ""
    why: str = ""
    problems: list[dict[str, str]] = []


def combinations(
    catalog: Catalog, sites: Sequence[str] = (), stacks: Sequence[str] = (), way: str = ""
) -> list[Combination]:
    """All of them, site by site; of the named sites, stacks and way alone where some are named."""
    found: list[Combination] = []
    chosen = [catalog.stack(name) for name in stacks or catalog.names("stack")]
    for name in sites or concrete_sites(catalog):
        for partition in catalog.site(name).partitions:
            for stack in chosen:
                found += _ways(catalog, name, partition, stack, way)
    return found


def concrete_sites(catalog: Catalog) -> list[str]:
    """The sites that images can be made for: the abstract ones are what several have in common."""
    return [name for name in catalog.names("site") if catalog.site_document(name).data.get("abstract") is not True]


def _ways(catalog: Catalog, site: str, partition: str, stack: Stack, only: str) -> Iterator[Combination]:
    first = next(iter(stack.blocks))
    block = None if first in catalog.virtuals else catalog.block(first)
    for field in option_fields(block.Options) if block is not None else ():
        values = literal_words(field.type)
        if field.encode_name in WAYS and len(values) > 1:
            assert block is not None
            facts = Facts.of(catalog.site(site), partition)
            chosen = block_options(block, facts, stack.blocks[first].options, {}, lambda name: None)
            usual = getattr(chosen.options, field.name)
            for value in values:
                if only in ("", value):
                    yield Combination(site, partition, stack.name, first, field.encode_name, value, value == usual)
            return
    if not only:
        yield Combination(site, partition, stack.name)


def outcome(catalog: Catalog, which: Combination) -> MatrixOutcome:
    """Plan one combination. Whatever goes wrong is told as its outcome."""

    def answer(result: Result, **more: Any) -> MatrixOutcome:
        where = (which.site, which.partition, which.stack, which.way, which.usual, which.settings)
        return MatrixOutcome(*where, result, **more)

    try:
        plan = make_plan(
            catalog,
            catalog.site(which.site),
            catalog.stack(which.stack),
            partition=which.partition,
            settings=which.settings,
            job=ANY_ACCOUNT,
            site_document=catalog.site_document(which.site),
            stack_document=catalog.stack_document(which.stack),
        )
        unused = gpus_left_alone(catalog, plan)
    except BlockCodeError as error:
        return answer("bug", why=error.problems[0].on_one_line, problems=[*map(_as_words, error.problems)])
    except HpcgenError as error:
        return answer("refused", why=error.problems[0].on_one_line, problems=[*map(_as_words, error.problems)])
    except Exception as error:
        return answer("bug", why=f"{type(error).__name__}: {error}".partition("\n")[0])
    first = plan.block(next(iter(plan.stack.blocks)))
    return answer("cpu" if unused else "renders", software=first.label if first is not None else "", why=unused)


def gpus_left_alone(catalog: Catalog, plan: Plan) -> str:
    """Why the job of a plan leaves its node's GPUs alone; empty where it does not, or there are none."""
    if plan.site.partitions[plan.partition].gpu is None:
        return ""
    checks = gpu.use(case_of(plan, catalog))
    if any(check.outcome == "holds" for check in checks):
        return ""
    who = [str(r) for r in plan.job.reasons if isinstance(r, JobReason) and r.field == "gpus_per_node"]
    return "; ".join(check.reason for check in checks) + (f" ({', '.join(who)})" if who else "")


def _as_words(problem: Problem) -> dict[str, str]:
    where = str(problem.where) if problem.where else ""
    return {"where": where, "message": problem.message, "expected": problem.expected, "remedy": problem.remedy}


# many at once

_catalog: Catalog | None = None


def outcomes(catalog: Catalog, chosen: Sequence[Combination], processes: int = 1) -> Iterator[MatrixOutcome]:
    """Result for each, in the same order. With several processes these are forked from this one."""
    nodes: dict[tuple[str, str], list[Combination]] = {}
    for each in chosen:
        nodes.setdefault((each.site, each.partition), []).append(each)
    first, *rest = nodes.values() or [[]]
    # What this process has read by then is there in those that are forked from it.
    yield from (outcome(catalog, each) for each in first)
    if processes < 2 or len(rest) < 2:
        yield from (outcome(catalog, each) for group in rest for each in group)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(processes, len(rest)), fork, _begin, (catalog,)) as pool:
        try:
            for found in pool.map(_in_process, rest):
                yield from found
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _begin(catalog: Catalog) -> None:
    """Of each process that is forked; Ctrl-C is for the one that waits for them."""
    import signal

    global _catalog
    _catalog = catalog
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_process(group: Sequence[Combination]) -> list[MatrixOutcome]:
    assert _catalog is not None
    return [outcome(_catalog, each) for each in group]


def counts(found: Iterable[MatrixOutcome]) -> dict[str, dict[Result, int]]:
    """How many of each result, by stack."""
    numbers: dict[str, dict[Result, int]] = {}
    for each in found:
        numbers.setdefault(each.stack, dict.fromkeys(RESULTS, 0))[each.result] += 1
    return dict(sorted(numbers.items()))
