"""Which images are to be built again, and why: by a changed fact, by what would be planned now, or by an advisory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.component import Component
from hpcgen.core.model.fields import Record
from hpcgen.core.support import purl
from hpcgen.kit.plan_difference import planned_changes, replanned
from hpcgen.machine.doctor.dependents import Dependent, depends_on
from hpcgen.plugins.fleet.advisories import Advisory, hits, unjudged

_NOT_THE_IMAGE = ("hpcgen", "job")
"""Differences that no image has to be built again for."""


class Affected(Record, frozen=True):
    """Something that was built or rendered: what it is, for which site and stack, and each reason to build it again."""

    what: str
    site: str
    stack: str
    why: list[str]


class Answer(Record, frozen=True):
    """``affected``, how many others are not, and what could not be judged."""

    affected: list[Affected]
    others: int
    unknown: list[str]


def affected_by(
    known: Sequence[Dependent],
    catalog: Catalog,
    facts: Sequence[str] = (),
    advisories: Sequence[Advisory] = (),
    blocks: Sequence[str] = (),
) -> Answer:
    """What is to be built again.

    Parameters
    ----------
    known: locks, kits and images.
    facts: ``SITE:PATH`` of facts that are to change.
    advisories: what is known of packages.
    blocks: names of blocks; whether one of these would be planned otherwise now. With nothing of all that is given,
        whether anything would.
    """
    found = []
    unknown = [
        f"{each.id}: locks pin no packages of {name or 'its subject'}" for each in advisories for name in unjudged(each)
    ]
    for each in known:
        why: list[str] = []
        if facts:
            why += [f"it rests on {path}" for path in _facts_of(each, facts) if depends_on(each, path)]
        if advisories:
            components, open_ = _components(each, catalog)
            unknown += [f"{each.label}: {word}" for word in open_]
            why += [word for advisory in advisories for word in _advised(advisory, components)]
        if blocks or not (facts or advisories):
            why += _replanned(each, catalog, blocks, unknown)
        if why:
            found.append(Affected(what=each.label, site=each.plan.site.name, stack=each.plan.stack.name, why=why))
    return Answer(affected=found, others=len(known) - len(found), unknown=list(dict.fromkeys(unknown)))


def _facts_of(each: Dependent, facts: Iterable[str]) -> list[str]:
    """The paths of the facts that are of its own site."""
    pairs = [fact.partition(":") for fact in facts]
    return [path for site, _, path in pairs if site == each.plan.site.name]


def _advised(advisory: Advisory, components: list[Component]) -> Iterator[str]:
    for component, mended in hits(advisory, components):
        yield f"{component.name} {component.version}: {advisory.title}" + (f"; mended in {mended}" if mended else "")


def _replanned(each: Dependent, catalog: Catalog, blocks: Sequence[str], unknown: list[str]) -> list[str]:
    """What would be planned otherwise now by the same words."""
    plan = each.plan
    try:
        new = replanned(plan, catalog, catalog.stack(plan.stack.name))
    except HpcgenError as error:
        unknown.append(f"{each.label}: it cannot be planned now: {error.problems[0].message}")
        return []
    moved = [change for change in planned_changes(plan, new) if change.what not in _NOT_THE_IMAGE]
    if blocks:
        moved = [change for change in moved if change.what == "block" and change.name in blocks]
    return [f"{each.name} {each.old} → {each.new}: {each.why}" for each in moved]


def _components(each: Dependent, catalog: Catalog) -> tuple[list[Component], list[str]]:
    """The packages of an image, and what is not known of them."""
    try:
        if each.lock is not None:
            from hpcgen.kit.sbom.components import contents

            return contents(each.lock, [], catalog).held, []
        from hpcgen.recipe.assemble import assemble

        listed = [pinned for _, item in assemble(each.plan, catalog).inputs for pinned in item.pinned()]
    except HpcgenError as error:
        return [], [f"its packages cannot be listed: {error.problems[0].message}"]
    python = [pinned.name.partition("==") for pinned in listed if pinned.kind == "python"]
    components = [
        Component(f"python:{name}", "python", name, version, purl=purl.python_package(name, version))
        for name, _, version in python
        if version
    ]
    return components, ["its OS packages are not pinned, so no advisory was checked against them"]
