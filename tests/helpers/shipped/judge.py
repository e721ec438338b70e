"""A question put to hpcgen, and what is wrong with its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.core.errors import ConflictError, Position, UnknownNameError
from hpcgen.core.model.reasons import Reason
from hpcgen.planning.question import question_of, with_blocks
from hpcgen.planning.resolver.clash import clash
from hpcgen.planning.resolver.exact import exact
from hpcgen.planning.resolver.question import Question as Asking
from hpcgen.planning.resolver.question import parse_settings
from hpcgen.planning.resolver.resolve import resolve
from tests.helpers.shipped.clashes import faults
from tests.helpers.shipped.plans import of_plan, of_reasons, truly_asked
from tests.helpers.shipped.problem import Problem, Question
from tests.helpers.shipped.remedies import of_remedies, whole_plan
from tests.helpers.shipped.search import Chosen, Search
from tests.helpers.shipped.tables import row_at, same_facts


def judge(question: Question, remedies: bool = False) -> tuple[str, list[str]]:
    """``planned``, ``conflict`` or ``refused``, and every difference.

    ``remedies``: those of a conflict are looked at too, which takes ten times as long.
    """
    site, stack = hpcgen.load_site(question.site), hpcgen.load_stack(question.stack)
    problem = Problem(question, site)
    if not same_facts(problem.node, site, problem.facts):
        return "planned", ["the profile's facts are read otherwise"]
    wanted = Search(problem).best()
    meant = {
        name: (c.block, c.version, msgspec.to_builtins(problem.options_of(c.block, c.version, c.form)))
        for name, c in (wanted or {}).items()
    }
    try:
        asking = _asking(question, site, stack)
        blocks = resolve(asking)
    except ConflictError:
        if wanted is not None:
            return "conflict", [f"a conflict where {_text(meant)} is a plan"]
        more = of_remedies(question, site, stack) if remedies and not question.kept else ()
        return "conflict", [*_of_conflict(problem, asking), *more]
    except Exception as error:  # whatever else is raised is a difference
        return "planned", [f"crash: {error!r}"]
    planned = {name: (b.name, b.version, b.options) for b in blocks for name in (b.provides or [b.name])}
    if wanted is None:
        return "planned", [f"planned {_text(planned)} where there is no plan"]
    outcome, found = _of_settings(question, site, stack, wanted)
    if planned != meant:
        return outcome, [*found, f"planned {_text(planned)}, meant {_text(meant)}"]
    return outcome, [*found, *of_plan(problem, blocks, wanted), *of_reasons(problem, blocks, wanted)]


def _asking(question: Question, site: hpcgen.Site, stack: hpcgen.Stack) -> Asking:
    catalog = default_catalog()
    settings = parse_settings([f"{key}={value}" for key, value in question.settings.items()], catalog)
    more = with_blocks(catalog, stack, question.added)
    added = more.blocks.keys() - stack.blocks.keys()
    return question_of(catalog, site, question.partition, more, settings, added, kept=question.kept)


def _of_settings(question: Question, site: hpcgen.Site, stack: hpcgen.Stack, wanted: Chosen) -> tuple[str, list[str]]:
    """What is set of a block that the plan does not have is refused by its name."""
    there = {candidate.block for candidate in wanted.values()} | wanted.keys()
    lacking = {key.split(".")[0] for key in question.settings} - there
    if not lacking or question.kept:
        return "planned", []
    try:
        plan = whole_plan(question, site, stack)
    except UnknownNameError as error:
        return "refused", [f"{name} is not refused" for name in lacking if f"no block {name!r}" not in str(error)]
    # What GPUs send by comes to the plan once the rest is chosen.
    lacking -= {block.name for block in plan.blocks}
    return ("refused", [f"nothing is said of {sorted(lacking)}, which the plan lacks"]) if lacking else ("planned", [])


def _of_conflict(problem: Problem, asking: Asking) -> Iterator[str]:
    found = clash(exact(asking, asking.all_roots())).requirements
    named: list[Reason] = []
    for each in found:
        by, requires = each.origin, None if each.allowed is None else dict(each.allowed)
        own = Reason(rule="asked", by=by.by, by_version=by.version, of=each.identifier, requires=requires)
        named += by.bounds or [own]
        place = by.place()
        if by.kind == "block" and str(place) != f"building_blocks/{by.by}.py":
            row = row_at(by.by, place.line) if isinstance(place, Position) else ""
            yield from [f"{own} is not said at {place}"] if row != by.version else []
    yield from faults(problem, named, {}, None)
    yield from (f"nobody asks so: {each!r}" for each in named if each.by_version and not truly_asked(problem, each))


def _text(planned: Mapping[str, tuple[str, str, object]]) -> str:
    return ", ".join(f"{block} {version} {options or ''}".rstrip() for block, version, options in planned.values())
