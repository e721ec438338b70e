"""Which images are to be built again, and why: by a changed fact, by what would be planned now, or by an advisory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from hpcgen.blocks.inputs.base import Pinned
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.component import Component, Kind
from hpcgen.core.model.fields import Record
from hpcgen.core.support import purl
from hpcgen.core.support.units import harmless, some
from hpcgen.images.reference import ImageReference
from hpcgen.kit.plan_difference import planned_changes, replanned
from hpcgen.machine.resting import Dependent, needs_build
from hpcgen.plugins.fleet.advisories import Advisory, judged, python_packages, sources_of, unjudged

_NOT_THE_IMAGE = ("hpcgen", "job")
"""Differences that no image has to be built again for."""


class Affected(Record, frozen=True):
    """Something that was built or rendered: what it is, for which site and stack, and each reason to build it again."""

    what: str
    site: str
    stack: str
    why: list[str]


class Answer(Record, frozen=True):
    """``affected``, how many others are not, what could not be judged, and advisories that were withdrawn."""

    affected: list[Affected]
    others: int
    unknown: list[str]
    withdrawn: list[str] = []


class AffectedQuestion(Record, frozen=True):
    """What is asked. With nothing of all this: whether anything would be planned otherwise now.

    facts: ``SITE:PATH`` of facts that are to change; of a site's parent too.
    advisories: what is known of packages; None where none was asked about.
    blocks: names of blocks; whether one of these would be planned otherwise now.
    """

    facts: Sequence[str] = ()
    advisories: Sequence[Advisory] | None = None
    blocks: Sequence[str] = ()


class AdvisedPackage(msgspec.Struct, frozen=True):
    """A package that an advisory calls affected; ``mended``: the version that mends it, "" where none is known."""

    component: Component
    advisory: Advisory
    mended: str

    @property
    def what(self) -> str:
        """Package, version and advisory."""
        return f"{self.component.name} {self.component.version}: {self.advisory.title}"


class _Packages(msgspec.Struct, frozen=True):
    """What is known of the packages of an image. ``distribution``: its id in os-release.

    ``sources``, ``python``: why a source package of its distribution, or a Python package, may be there without being
    listed; "" where it cannot.
    """

    listed: list[Component]
    distribution: str
    release: str
    sources: str = ""
    python: str = ""


def affected_by(known: Sequence[Dependent], catalog: Catalog, question: AffectedQuestion) -> Answer:
    """What is to be built again. ``known``: locks, kits and images."""
    found = []
    advisories = [each for each in question.advisories or () if not each.withdrawn]
    unknown = unjudged_ecosystems(advisories)
    for each in known:
        why = [f"it depends on {path}" for path in _facts_of(each, catalog, question.facts) if needs_build(each, path)]
        if advisories:
            packages = advised(each, catalog, advisories, unknown)
            reasons = [one.what + (f"; fixed in {one.mended}" if one.mended else "") for one in packages]
            why += dict.fromkeys(reasons)
        if question.blocks or not (question.facts or question.advisories is not None):
            why += _replanned(each, catalog, question.blocks, unknown)
        if why:
            site, stack = each.plan.site.name, each.plan.stack.name
            found.append(Affected(what=each.label, site=site, stack=stack, why=[*map(harmless, why)]))
    return Answer(
        affected=found,
        others=len(known) - len(found),
        unknown=list(dict.fromkeys(map(harmless, unknown))),
        withdrawn=[harmless(each.title) for each in question.advisories or () if each.withdrawn],
    )


def unjudged_ecosystems(advisories: Sequence[Advisory]) -> list[str]:
    """The ecosystems that nothing here knows, each with its advisories."""
    found: dict[str, list[str]] = {}
    for advisory in advisories:
        for name in unjudged(advisory):
            found.setdefault(name, []).append(advisory.id)
    return [f"{some(ids)}: locks pin no packages of {name or 'its subject'}" for name, ids in found.items()]


def _facts_of(each: Dependent, catalog: Catalog, facts: Iterable[str]) -> list[str]:
    """The paths of the facts that are of its own site, or of a parent of that."""
    site = each.plan.site.name
    own = {site}
    if facts and site in catalog.names("site"):
        own |= {Path(file).stem for file in catalog.site_document(site).files()}
    return [path for name, _, path in (fact.partition(":") for fact in facts) if name in own]


def advised(
    each: Dependent, catalog: Catalog, advisories: Sequence[Advisory], unknown: list[str]
) -> list[AdvisedPackage]:
    """The packages of one lock, kit or image that advisories call affected; adds what is not known to ``unknown``."""
    try:
        packages = _packages(each, catalog)
    except HpcgenError as error:
        unknown.append(f"{each.label}: its packages cannot be listed: {error.problems[0].message}")
        return []
    found: list[AdvisedPackage] = []
    open_: dict[str, list[str]] = {}
    for advisory in advisories:
        named = False
        for component, said in judged(advisory, packages.listed):
            named = True
            package = AdvisedPackage(component, advisory, said.mended)
            if said.verdict == "affected":
                found.append(package)
            elif said.verdict == "unknown":
                unknown.append(f"{each.label}: {package.what}: {said.why}")
        if not named:
            _add_open(advisory, packages, open_)
    unknown += [f"{each.label}: {reason}: {some(words)}" for reason, words in open_.items()]
    return found


def _add_open(advisory: Advisory, packages: _Packages, open_: dict[str, list[str]]) -> None:
    """Packages that the image may have, though none of that name is listed."""
    for reason, names in (
        (packages.sources, sources_of(advisory, packages.distribution, packages.release)),
        (packages.python, python_packages(advisory)),
    ):
        if reason and names:
            open_.setdefault(reason, []).extend(f"{name} of {advisory.id}" for name in names)


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


def _packages(each: Dependent, catalog: Catalog) -> _Packages:
    """Those of a lock or of the image's own records, or of a plan what its inputs and blocks say."""
    base, extends = each.plan.blocks[0], each.plan.extends
    more = f"it extends {extends.image}; the packages of that image are not listed" if extends is not None else ""
    of_system = [one for one in each.inside or () if one.kind == "package"]
    named = of_system and all(one.source for one in of_system)
    unnamed = "" if named else "packages of the image are listed without their source packages"
    if each.lock is not None:
        from hpcgen.kit.contents import contents

        held = contents(each.lock, [], catalog)
        if of_system:
            listed, sources = [*of_system, *(one for one in held.held if one.kind != "package")], unnamed
        else:
            listed = held.held
            sources = "packages of the base image are listed without their source packages" if held.inside else ""
        python = more
    elif each.inside is not None:
        listed, sources, python = list(each.inside), unnamed, ""
    else:
        from hpcgen.recipe.assemble import assemble

        pinned = [pin for _, item in assemble(each.plan, catalog).inputs for pin in item.pinned()]
        loose = [pin for pin in pinned if pin.kind in ("python", "conda") and not pin.by.startswith("sha256:")]
        listed = [found for pin in pinned if (found := _python(pin)) is not None]
        sources = "its OS packages are not pinned"
        python = "its Python packages are not pinned" if loose or each.plan.project is not None else more
    there = {component.name for component in listed}
    listed += [
        Component(f"block:{block.name}", "software", block.name, block.version)
        for block in each.plan.blocks
        if not block.build_only and block.name not in there
    ]
    sources = sources if each.inside is not None else more or sources
    return _Packages(listed, _distribution(each, catalog), base.version, sources, python)


def _distribution(each: Dependent, catalog: Catalog) -> str:
    """The id in os-release of what it is built on."""
    base = each.plan.blocks[0]
    return str(catalog.release(base).values.get("os_id", base.name))


def _python(pin: Pinned) -> Component | None:
    """A Python package that a recipe names with its version."""
    name, _, version = pin.name.partition("==")
    if pin.kind != "python" or not version:
        return None
    return Component(f"python:{name}", "python", name, version, purl=purl.python_package(name, version))


def with_packages(image: Dependent, catalog: Catalog, reference: ImageReference, unread: list[str]) -> Dependent:
    """The same with the packages that the image's own records name; adds what is unread.

    Of an image with a lock these say which source packages its OS packages are built from, which the lock does not.
    """
    from hpcgen.images.packages import packages_in
    from hpcgen.images.rpm_database import DATABASES

    read = packages_in(reference)
    unread += [f"{reference}: {word}" for word in read.unread]
    if not read.found:
        return image
    base = image.plan.blocks[0]
    distribution = _distribution(image, catalog)
    inside = []
    for each in read.found:
        kind: Kind = "package" if each.kind == "os" else each.kind
        known = purl.python_package(each.name, each.version) if kind == "python" else ""
        if each.where.startswith("/var/lib/dpkg/"):
            known = purl.debian_package(distribution, base.version, each.name, each.version, "")
        elif each.where in DATABASES:
            known = purl.rpm_package(distribution, base.version, each.name, each.version, "")
        ref = f"{kind}:{each.name}@{each.version}:{each.where}"
        source = {"source": each.source, "source_version": each.source_version}
        inside.append(Component(ref, kind, each.name, each.version, purl=known, where=each.where, **source))
    return msgspec.structs.replace(image, inside=inside)
