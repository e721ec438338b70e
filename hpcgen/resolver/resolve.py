"""site × stack → chosen blocks, in the order in which they are built, each with its reasons.

Pure and deterministic: the catalog is asked for classes and tables, nothing is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hpcgen.blocks.requirements import Candidate
from hpcgen.errors import InputError
from hpcgen.model.plan import PlannedBlock
from hpcgen.model.release import Release
from hpcgen.resolver.question import ALWAYS, Question
from hpcgen.resolver.reasons import reasons
from hpcgen.resolver.search import search


def resolve(question: Question) -> list[PlannedBlock]:
    """Choose every block and version; ConflictError names the requirements that clash."""
    roots = question.all_roots()
    found = search(question, roots)
    if found is None:
        from hpcgen.resolver.conflicts import conflict

        raise conflict(question, roots)
    chosen = found.chosen
    kept = _runtime_identifiers(question, chosen)
    planned: dict[str, PlannedBlock] = {}
    for identifier in build_order(question, chosen):
        candidate = chosen[identifier]
        if candidate.block in planned:
            continue
        cls = question.catalog.block(candidate.block)
        asked = [*found.asked[identifier], *question.site_requirements(identifier, candidate)]
        planned[candidate.block] = PlannedBlock(
            name=candidate.block,
            version=candidate.version,
            options=question.choices.of(candidate.block, candidate.form).as_data(),
            provides=list(cls.provides),
            needs={name: chosen[r.identifier].block for name, _, r in question.needs(candidate)},
            host=_asked_of_host(question.release(candidate)),
            reasons=reasons(question, candidate, asked, chosen),
            build_only=cls.build_only or not any(c.block == candidate.block and i in kept for i, c in chosen.items()),
            origin=question.catalog.block_origin(candidate.block),
        )
    return list(planned.values())


def _asked_of_host(release: Release) -> dict[str, str]:
    target = {"target": " ".join(release.targets)} if release.targets else {}
    return {**{str(name): versions for name, versions in release.host.items()}, **target}


def build_order(question: Question, chosen: Mapping[str, Candidate]) -> list[str]:
    """Identifiers in build order: what every image has first, then each need before what needs it.

    InputError names the blocks that need each other, where some do.
    """
    needed = {
        identifier: [
            r.identifier for _, _, r in question.needs(c) if r.identifier not in ALWAYS and r.identifier != identifier
        ]
        for identifier, c in chosen.items()
    }
    order = [name for name in ALWAYS if name in chosen]
    done = set(order)
    for start in (*(root.identifier for root in question.roots if root.identifier in chosen), *sorted(chosen)):
        path = {} if start in done else {start: iter(needed[start])}
        while path:
            last = next(reversed(path))
            below = next((name for name in path[last] if name not in done), None)
            if below is None:
                del path[last]
                done.add(last)
                order.append(last)
            elif below in path:
                raise _cycle(question, [chosen[name] for name in list(path)[list(path).index(below) :]])
            else:
                path[below] = iter(needed[below])
    return order


def _cycle(question: Question, blocks: Sequence[Candidate]) -> InputError:
    names = [each.block for each in blocks]
    circle = ", ".join(f"{one} needs {other}" for one, other in zip(names, [*names[1:], names[0]], strict=True))
    places = ", ".join(str(question.catalog.block_origin(name)) for name in names)
    return InputError(f"these blocks need each other: {circle}", where=places, remedy="take one of the needs out")


def _runtime_identifiers(question: Question, chosen: Mapping[str, Candidate]) -> set[str]:
    """Identifiers that the final stage needs: the roots, and what they need to run."""
    kept: set[str] = set()
    open_ = [*(root.identifier for root in question.roots if root.demanded), *ALWAYS]
    while open_:
        identifier = open_.pop()
        if identifier in kept or identifier not in chosen:
            continue
        kept.add(identifier)
        open_ += [r.identifier for _, build_only, r in question.needs(chosen[identifier]) if not build_only]
    return kept
