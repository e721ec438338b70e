"""Every partition of every site × stack × way of installing it: what would become of it, kept and shown."""

from __future__ import annotations

import contextlib
import hashlib
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import msgspec

from hpcgen.blocks.base import Facts
from hpcgen.blocks.guarded import BlockCodeError
from hpcgen.blocks.options import block_options, literal_words, option_fields
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.user_config import cache_folder
from hpcgen.core.errors import HpcgenError, OutputError, Problem
from hpcgen.core.model.bundle import COLLECTED_FOLDERS
from hpcgen.core.model.job import JobRequest
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.reasons import JobReason
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.hashing import read_plain
from hpcgen.core.support.registry import entry_points
from hpcgen.core.support.writing import write_file
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

    result: ``renders``; ``cpu``, it renders, but does not use the node's GPUs; ``refused``; ``bug``, an exception
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


MARKS: dict[Result, str] = {"renders": "yes", "cpu": "cpu", "refused": "no", "bug": "BUG"}
"""The cells of a grid."""
OTHERWISE = "*"
"""After a mark, where another way of installing has another result."""
_LEGEND = (
    "{}: renders; {}: renders, but does not use the node's GPUs; {}: refused; "
    f"{OTHERWISE}: another way of installing has another result"
)
LEGEND, SHORT_LEGEND = _LEGEND.format("yes", "cpu", "no"), _LEGEND.format("y", "c", "n")
COUNTED = ["stack", *RESULTS]


def grid(found: Sequence[MatrixOutcome]) -> tuple[list[str], list[list[str]]]:
    """The names of the stacks, and for each partition its name and a mark for each of them."""
    stacks = list(dict.fromkeys(each.stack for each in found))
    cells: dict[str, dict[str, list[MatrixOutcome]]] = {}
    for each in found:
        cells.setdefault(node(each), {}).setdefault(each.stack, []).append(each)
    return stacks, [[name, *(_mark(row.get(stack, [])) for stack in stacks)] for name, row in cells.items()]


def node(outcome: MatrixOutcome) -> str:
    """Site and partition in a word."""
    return f"{outcome.site}:{outcome.partition}"


def _mark(ways: Sequence[MatrixOutcome]) -> str:
    if not ways:
        return "-"
    usual = next((each for each in ways if each.usual), ways[0])
    return MARKS[usual.result] + (OTHERWISE if len({each.result for each in ways}) > 1 else "")


def short_mark(mark: str) -> str:
    """``y``, ``c``, ``n`` or ``B``, with what follows a mark; a letter that names a column is as it is."""
    return mark[0] + OTHERWISE * mark.endswith(OTHERWISE)


def columns_that_fit(stacks: Sequence[str], first: int, width: int) -> list[list[int]]:
    """The numbers of the columns that stand beside each other in lines of a width; ``first``: of the row's name."""
    groups: list[list[int]] = []
    room = 0
    for number, name in enumerate(stacks):
        needed = max(len(name), len("yes*")) + 2
        if not groups or needed > room:
            groups.append([])
            room = width - first
        groups[-1].append(number)
        room -= needed
    return groups


def count_rows(found: Sequence[MatrixOutcome]) -> list[list[str]]:
    """How many of each result, by stack, and of all."""
    by_stack = counts(found)
    rows = [[stack, *map(str, numbers.values())] for stack, numbers in by_stack.items()]
    total = [str(sum(numbers[result] for numbers in by_stack.values())) for result in RESULTS]
    return [*rows, ["all", *total]]


def markdown(found: Sequence[MatrixOutcome]) -> str:
    """A page: the grid, the counts, and for each stack what is refused or left to the CPU, and why."""
    stacks, rows = grid(found)
    lines = ["# Which stack renders where", "", f"Written by `hpcgen matrix --markdown`. {LEGEND}.", ""]
    return "\n".join([*lines, *_table(["partition", *stacks], rows), "", below_grid(found)])


def below_grid(found: Sequence[MatrixOutcome]) -> str:
    """The rest of that page: the counts and the reasons."""
    lines = ["## How many", "", *_table(COUNTED, count_rows(found))]
    for stack, body in reasons(found).items():
        told = [[mark, _cell(why), where] for mark, why, where in body]
        lines += ["", f"## {stack}", "", *_table(REASONED, told)]
    return "\n".join(lines) + "\n"


REASONED = ["result", "why", "where"]


def reasons(found: Sequence[MatrixOutcome]) -> dict[str, list[list[str]]]:
    """For each stack that does not render everywhere: marks, why, and of which partitions and ways that is so."""
    grouped: dict[str, dict[tuple[Result, str], list[str]]] = {}
    for each in found:
        of_stack = grouped.setdefault(each.stack, {})
        if each.result != "renders":
            where = node(each) + (f" ({each.way})" if each.way else "")
            of_stack.setdefault((each.result, each.why), []).append(where)
    return {
        stack: [[MARKS[result], why, ", ".join(where)] for (result, why), where in of_stack.items()]
        for stack, of_stack in grouped.items()
        if of_stack
    }


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows]]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


PACKAGE = Path(__file__).resolve().parents[2]
USED = ("archspec", "hpccm", "msgspec", "packaging", "python-sat", "pyyaml")
"""Packages that plans rest on."""
_MOST_BYTES = 64 * 1024 * 1024
_KEPT = 4

_outcomes = msgspec.json.Decoder(list[MatrixOutcome])


def remembered(
    catalog: Catalog,
    chosen: Sequence[Combination],
    processes: int,
    fresh: bool = False,
    show: Callable[[str], None] | None = None,
) -> Iterator[MatrixOutcome]:
    """As :func:`outcomes`, but those that were worked out before from the very same files are read.

    ``fresh``: nothing is read. ``show``: told how many have been planned.
    """
    path = None if fresh else _file(catalog)
    known = _read(path) if path is not None else {}
    missing = [each for each in chosen if _key(each) not in known]
    new: dict[tuple[str, ...], MatrixOutcome] = {}
    for each in outcomes(catalog, missing, processes):
        # A bug is looked at again each time, by whoever is mending it.
        new[_key(each)] = each
        if show is not None:
            show(f"planned {len(new)} of {len(missing)}")
    if path is not None and new:
        _write(path, {**known, **{key: each for key, each in new.items() if each.result != "bug"}})
    for which in chosen:
        key = _key(which)
        yield known[key] if key in known else new[key]


def _key(each: Combination | MatrixOutcome) -> tuple[str, ...]:
    return each.site, each.partition, each.stack, each.way


def _file(catalog: Catalog) -> Path | None:
    """The file for what the answers rest on now; None where that cannot be said."""
    groups = ("engines", "schedulers", "launchers", "formats")
    if any(True for group in groups for _ in entry_points(f"hpcgen.{group}")):
        return None
    try:
        return cache_folder("matrix") / f"{_state(catalog)}.json"
    except (OSError, RuntimeError):
        return None


def _state(catalog: Catalog) -> str:
    """A hash of hpcgen's own code, of what it uses, and of every file of the collections."""
    digest = hashlib.sha256(f"{sys.version} {' '.join(map(version, USED))}".encode())
    trees = [PACKAGE, *(folder / part for folder in catalog.folders for part in COLLECTED_FOLDERS)]
    for tree in trees:
        digest.update(f"\n{tree}\n".encode("utf-8", "surrogateescape"))
        for path in sorted(tree.rglob("*")):
            if path.suffix != ".pyc" and path.is_file():
                data = read_plain(path, _MOST_BYTES)
                name = path.relative_to(tree).as_posix()
                digest.update(f"{name} {len(data)}\n".encode("utf-8", "surrogateescape"))
                digest.update(data)
    return digest.hexdigest()


def _read(path: Path) -> dict[tuple[str, ...], MatrixOutcome]:
    try:
        return {_key(each): each for each in _outcomes.decode(read_plain(path, _MOST_BYTES))}
    except (OSError, msgspec.DecodeError):
        return {}


def _write(path: Path, known: dict[tuple[str, ...], MatrixOutcome]) -> None:
    """Store what is known, and remove what was stored for files as they are no longer."""
    with contextlib.suppress(OutputError, OSError):
        write_file(path, msgspec.json.encode(list(known.values())).decode(), folders=True)
        stored = sorted(path.parent.glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True)
        for old in stored[_KEPT:]:
            old.unlink(missing_ok=True)
