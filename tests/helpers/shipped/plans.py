"""A plan held against the tables: whether it is one, and whether what its reasons say is true."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.reasons import Reason
from tests.helpers.shipped.clashes import faults
from tests.helpers.shipped.problem import Asked, Candidate, Problem
from tests.helpers.shipped.search import Chosen, Search
from tests.helpers.shipped.tables import declared, identifier, table, within


def of_plan(problem: Problem, blocks: list[PlannedBlock], chosen: Chosen) -> Iterator[str]:
    """What is wrong with a plan: each need met, each range kept, nothing twice or superfluous, in order of building."""
    names = [block.name for block in blocks]
    if len(set(names)) != len(names):
        yield f"a block is there twice: {names}"
    for name, candidate in chosen.items():
        if problem.refusals(candidate):
            yield f"{candidate} is refused by {problem.refusals(candidate)}"
        yield from (
            f"{bound} does not hold for {candidate}"
            for bound in problem.bounds(name)
            if bound.block == candidate.block and not within(candidate.version, bound.versions)
        )
        for asked in problem.needs(candidate):
            if asked.of not in chosen or not asked.takes(chosen[asked.of]):
                yield f"{asked} is not met"
    yield from (f"{root} is not met" for root in problem.roots if root.of in chosen and not root.takes(chosen[root.of]))
    yield from (f"{root.of} is missing" for root in problem.roots if root.demanded and root.of not in chosen)
    reached = _reached(problem, chosen, build=True)
    yield from (f"nothing needs {name}" for name in chosen if name not in reached)
    runs = _reached(problem, chosen, build=False)
    for name, candidate in chosen.items():
        block = blocks[names.index(candidate.block)]
        row, cls = problem.row(*candidate[1:]), declared(block.name)
        needs = {asked.name: chosen[asked.of].block for asked in problem.needs(candidate)}
        host = row.host | ({"target": " ".join(row.targets)} if row.targets else {})
        told = (block.needs, block.host, block.build_only)
        if told != (needs, host, cls.build_only or name not in runs):
            yield f"{block.name} is described wrongly: {told}"
        late = [other for other in needs.values() if names.index(other) > names.index(block.name)]
        yield from (f"{other} is built after {block.name}, which needs it" for other in late)


def _reached(problem: Problem, chosen: Chosen, build: bool) -> set[str]:
    """What the roots lead to, by needs of the build too or only of the run."""
    found: set[str] = set()
    left = [root.of for root in problem.roots if root.demanded]
    while left:
        name = left.pop()
        if name not in found and name in chosen:
            found.add(name)
            left += [asked.of for asked in problem.needs(chosen[name]) if build or not asked.build_only]
    return found


# reasons


def of_reasons(problem: Problem, blocks: list[PlannedBlock], chosen: Chosen) -> Iterator[str]:
    """Which of a plan's reasons are not true, or are missing."""
    by_block = {block.name: block for block in blocks}
    for name, candidate in chosen.items():
        told = [reason for reason in by_block[candidate.block].reasons if isinstance(reason, Reason)]
        yield from (f"{candidate}: {each}" for each in _why_there(problem, name, candidate, told[:-1], chosen))
        yield from (
            f"{candidate}: {told[-1]!r}: {each}" for each in _why_not_newer(problem, candidate, told[-1], chosen)
        )


def _why_there(problem: Problem, name: str, candidate: Candidate, told: list[Reason], chosen: Chosen) -> Iterator[str]:
    wanted: list[Reason] = []
    for root in problem.roots:
        if root.of == name:
            wanted.append(Reason(rule="always") if root.by == "every image" else _asked(root))
    for other in chosen.values():
        wanted += [_asked(asked) for asked in problem.needs(other) if asked.of == name]
    site = [
        Reason(rule="site", by=bound.reason, requires={bound.block: bound.versions}, place=bound.place)
        for bound in problem.bounds(name)
    ]
    yield from (f"{each!r} is not told" for each in (*wanted, *site) if each not in told)
    others = [each for each in told if each not in wanted and each not in site]
    refusing = [
        (c.block, each)
        for c in problem.candidates(name)
        if c.block != candidate.block or c.form == candidate.form
        for each in (problem.refusals if problem.gives_way(candidate) else problem.default_refusals)(c)
    ]
    bounds = [Reason(rule=each.rule, by=each.by, found=each.found, place=each.place) for _, each in refusing]
    yield from (f"{each!r} is not true" for each in others if each not in bounds)
    # What an option of another provider rules out says nothing of this one.
    owed = [
        each
        for (block, _), each in zip(refusing, bounds, strict=True)
        if block == candidate.block or each.rule != "option"
    ]
    if owed and not any(each in owed for each in others):
        yield f"nothing is told of {owed}"


def _asked(asked: Asked) -> Reason:
    requires = None if asked.requires is None else dict(asked.requires)
    return Reason(
        rule="asked", by=asked.by, by_version=asked.version, of=asked.of, requires=requires, place=asked.place
    )


def truly_asked(problem: Problem, reason: Reason) -> bool:
    """Whether a block's version asks for just that, in one of its forms."""
    asking = [c for c in problem.candidates(identifier(reason.by)) if c[1:3] == (reason.by, reason.by_version)]
    bare = msgspec.structs.replace(reason, rule="asked", newer="", found="")
    return any(_asked(asked) == bare for candidate in asking for asked in problem.needs(candidate))


def _why_not_newer(problem: Problem, here: Candidate, told: Reason, chosen: Chosen) -> Iterator[str]:
    known = list(table(here.block))
    newer = known[known.index(here.version) - 1] if here.version != known[0] else ""
    if (told.rule == "newest") == bool(newer) or told.newer != newer:
        yield f"the next newer version is {newer or 'none'}"
    if told.rule == "newest" or not newer:
        return
    other = here._replace(version=newer)
    refusals = [
        Reason(rule=r.rule, by=r.by, requires={r.by or "vendor": r.requires}, found=r.found, newer=newer, place=r.place)
        for r in problem.default_refusals(other)
    ]
    before = {name: chosen[name] for name in list(chosen)[: list(chosen).index(here.identifier)]}
    if told.rule in ("fact", "vendor", "option"):
        true = told in refusals
    elif told.rule == "refused":
        true = _refused(problem, other, told, chosen)
    elif told.rule == "needs":
        true = _needs(problem, other, told, before)
    elif told.rule == "kept":
        true = problem.question.kept.get(here.block) == here.version
    elif told.rule == "preferred":
        true = _preferred(problem, other, told, chosen)
    elif told.rule == "not default":
        true = told.found == table(here.block)[newer].not_default != ""
    elif told.rule == "rest":
        yield from _rest(problem, other, told, before)
        true = True
    else:
        true = False
    if not true:
        yield "is not true"


def _refused(problem: Problem, newer: Candidate, told: Reason, chosen: Chosen) -> bool:
    asked = [root for root in problem.roots if root.of == newer.identifier]
    asked += [each for c in chosen.values() for each in problem.needs(c) if each.of == newer.identifier]
    bare = msgspec.structs.replace(told, rule="asked", newer="")
    if any(_asked(each) == bare and not each.takes(newer) for each in asked):
        return True
    return any(
        (bound.block, bound.reason, bound.place) == (newer.block, told.by, told.place)
        and (told.requires or {}).get(newer.block) == bound.versions
        and not within(newer.version, bound.versions)
        for bound in problem.bounds(newer.identifier)
    )


def _needs(problem: Problem, newer: Candidate, told: Reason, before: Chosen) -> bool:
    there = before.get(told.of)
    if there is None or told.found != f"{there.block} {there.version}":
        return False
    bare = msgspec.structs.replace(told, rule="asked", newer="", found="")
    return any(_asked(each) == bare and not each.takes(there) for each in problem.needs(newer))


def _preferred(problem: Problem, newer: Candidate, told: Reason, chosen: Chosen) -> bool:
    on, base, bases = problem.row(*newer[1:]).on, chosen["base"], problem.providers("base")
    later = [bases.index(name) for name in on if name in bases]
    if base.block in on:
        # Another base was ruled out; the order is still that in which it comes first.
        first = told.found.partition(" ")[0]
        return told.requires == on and first not in on and all(at > bases.index(first) for at in later)
    return (
        told.requires == on
        and told.found == f"{base.block} {base.version}"
        and base.block not in on
        and all(position > bases.index(base.block) for position in later)
    )


def _rest(problem: Problem, newer: Candidate, told: Reason, before: Chosen) -> Iterator[str]:
    if Search(problem).exists({**before, newer.identifier: newer}):
        yield "there is a plan with it"
    named = [each for each in told.clash if each.rule != "chosen"]
    fixed = {newer.identifier: newer}
    for each in told.clash:
        there = [c for c in before.values() if (c.block, c.version) == (each.by, each.by_version)]
        if each.rule == "chosen" and not there:
            yield f"{each} was not chosen before it"
        elif each.rule == "chosen":
            fixed[there[0].identifier] = there[0]
        elif each.by_version and not truly_asked(problem, each):
            yield f"{each!r} is asked by nobody"
    yield from faults(problem, named, fixed, newer)
