"""If no plan exists: changes of the request that give one, each tried before it is suggested."""

from __future__ import annotations

import re
from bisect import bisect, bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations, islice
from typing import Any

import msgspec

from hpcgen.blocks.options import option_fields
from hpcgen.blocks.requirements import Candidate, Requirement, in_range, version, version_range
from hpcgen.core.errors import ConflictError, HpcgenError, Remedy
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.project import BLOCK
from hpcgen.core.model.site import Site
from hpcgen.core.support.quoting import sh
from hpcgen.planning.drivers import said_by
from hpcgen.planning.forward import newer_drivers
from hpcgen.planning.question import PlanRequest, UnusedSettingError
from hpcgen.planning.resolver.clash import clash_of, fitting, known, told
from hpcgen.planning.resolver.exact import exact
from hpcgen.planning.resolver.question import Question

SHOWN = 3
TRIED = 60
"""So many plans are made at most for one error."""
COMBINED = 2000
"""So many sets of requirements are dropped together at most."""
_LISTS = (BLOCK, "conda_packages", "os_packages")
"""Blocks that are no software by themselves."""


def explained(question: Question, asked: PlanRequest, site: Site, plan: Callable[[PlanRequest], Plan]) -> ConflictError:
    """The error if there is no plan: the clash, and remedies.

    ``plan``: makes the whole plan of what is asked, or raises an HpcgenError. InputError: only blocks that need each
    other stand in the way.
    """
    clash = clash_of(question)
    changes, trials = _Changes(question, clash, asked, site), Trials(asked, plan, of_gpus=True)
    found = tuple(islice(filter(None, map(trials.first, changes)), SHOWN))
    if not found:
        trials = Trials(asked, plan)
        found = tuple(islice(filter(None, map(trials.first, changes)), SHOWN))
    if not found:
        trials = Trials(asked, plan)
        found = tuple(filter(None, [trials.first(changes.several()) or trials.first(changes.without_block())]))
    bounds = [bound for requirement in clash for bound in requirement.origin.bounds]
    other = "no tried change resolves; the tables lack a compatible release"
    if any(bound.rule in ("fact", "vendor") for bound in bounds):
        other += ", or the profile would have to be wrong about the node"
    texts, gpu = [each.text for each in found], question.facts.partition.gpu
    if gpu is not None and gpu.driver_assumed and any(bound.by == "driver" for bound in bounds):
        texts.append(said_by(gpu, question.node.partition))
    expected = known(question, clash[0]) if len(clash) == 1 and clash[0].origin.kind != "site" else ""
    error = ConflictError(told(question, clash), expected=expected, remedy="\n  or: ".join(texts) or other)
    error.remedies = found
    return error


class Trials:
    """Plans each change before it is suggested, up to a limit.

    ``of_gpus``: what gives up the GPUs is no remedy yet: another may keep them.
    """

    def __init__(self, asked: PlanRequest, plan: Callable[[PlanRequest], Plan], of_gpus: bool = False) -> None:
        self.asked, self.plan, self.of_gpus = asked, plan, of_gpus
        self.left = TRIED

    def first(self, changes: Iterable[Remedy]) -> Remedy | None:
        """The first change that leads to a plan, with what that has in it."""
        for remedy in changes:
            if not self.left:
                break
            with suppress(HpcgenError):
                try:
                    found = self._planned(remedy)
                except UnusedSettingError as error:
                    found = self._planned(self._without(remedy, error.names))
                if found is not None:
                    return found
        return None

    def _planned(self, remedy: Remedy) -> Remedy | None:
        self.left -= 1
        plan = self.plan(self.asked.after(remedy))
        if self.of_gpus and _gives_up_gpus(plan, self.asked.partition):
            return None
        own = [f"{b.name} {b.version}" for b in plan.blocks if {b.name, *b.provides} & plan.stack.blocks.keys()]
        return msgspec.structs.replace(remedy, text=f"{remedy.text} (plans {', '.join(own)})")

    def _without(self, remedy: Remedy, names: Sequence[str]) -> Remedy:
        """The same, and nothing set of blocks that are not there then."""
        unused = [key for key in self.asked.names() if key.partition(".")[0] in names]
        words = [f"without --set {sh(f'{key}={self.asked.said(key)}')}" for key in unused]
        settings = {**remedy.settings, **dict.fromkeys(unused)}
        return msgspec.structs.replace(remedy, settings=settings, text=" and ".join([remedy.text, *words]))


def _gives_up_gpus(plan: Plan, partition: str | None) -> bool:
    """Whether a plan is for nodes without the GPUs that there were, or leaves those alone that the user asked for."""
    names = (plan.partition, partition or plan.site.default_partition)
    here, before = (plan.site.partitions[name].gpu for name in names)
    return (before is not None and here is None) or any(each.name == "GPU use" for each in plan.findings)


class _Changes:
    """Changes of the request, the smallest kind first; within a kind the nearest first."""

    def __init__(self, question: Question, clash: Sequence[Requirement], asked: PlanRequest, site: Site) -> None:
        self.question, self.clash, self.asked, self.site = question, clash, asked, site
        self.stated = exact(question, question.all_roots())

    def __iter__(self) -> Iterator[Iterable[Remedy]]:
        said = [each for each in self.clash if each.origin.kind == "set"]
        written = [each for each in self.clash if each.origin.kind == "stack" and each.allowed is not None]
        yield newer_drivers(self.question, self.clash, self.asked)
        yield from (self._versions(each) for each in said)
        yield from (self._providers(each) for each in said if each.identifier != "base")
        yield from (self._instead_of_file(each) for each in self.clash if each.origin.kind == "file" and each.demanded)
        yield from self._options()
        # Another distribution is another image altogether.
        yield from (self._providers(each) for each in said if each.identifier == "base")
        if any(each.origin.kind == "site" for each in self.clash):
            yield self._partitions()
        yield self._without_added()
        yield from (self._versions(each) for each in written)
        yield from (self._providers(each) for each in written)

    def _versions(self, root: Requirement) -> Iterator[Remedy]:
        """Another version than is asked for; of a block that is not there then, none."""
        said = self._said(root, "version")
        if said:
            for versions in self._nearest(root, said):
                yield self._change(root, "version", versions)
            if root.origin.kind == "set":
                yield self._change(root, "version", None)

    def _nearest(self, root: Requirement, said: str) -> Iterator[str]:
        """Versions with which a plan may exist; before all, the range that may be meant, where it was one version."""
        number, every = said.removeprefix("=="), self.question.candidates(root.identifier)
        within = f"{number}.*"
        meant = (c for c in every if c.block in (root.allowed or ()))
        if (
            re.fullmatch(r"\d+(\.\d+)*", number)
            and not fitting(self.question, root)
            and any(in_range(c.version, within) for c in meant)
        ):
            yield within
        groups = self.stated.groups_without([root.origin])
        yield from (c.version for c in self._near(root, groups) if not root.accepts(c))

    def _near(self, root: Requirement, groups: Sequence[int], beside: Sequence[Candidate] = ()) -> Iterator[Candidate]:
        """What a plan may have under these groups instead of what is asked for, the nearest version first."""
        distance = _distances(
            [c for c in self.stated.candidates[root.identifier] if c.block in (root.allowed or ())], root
        )
        for candidate in sorted(distance, key=distance.__getitem__):
            if self.stated.solve([*beside, candidate], groups):
                yield candidate

    def _instead_of_file(self, root: Requirement) -> Iterator[Remedy]:
        """A version near to what a user's file asks for; ``--set`` decides instead of the file."""
        for block in root.allowed or ():
            if self.asked.said(f"{block}.version") is None:
                groups = self.stated.groups_without([root.origin])
                yield from (self._set(f"{block}.version", c.version) for c in self._near(root, groups))

    def _providers(self, root: Requirement) -> Iterator[Remedy]:
        said = self._said(root, "provider")
        if said:
            others = (name for name in self.question.providers(root.identifier) if name != said)
            yield from (self._change(root, "provider", name) for name in others)

    def _options(self) -> Iterator[Iterable[Remedy]]:
        """Other values of the options of the blocks that clash."""
        names = dict.fromkeys(name for each in self.clash for name in (each.origin.by, *(each.allowed or ())))
        for block in filter(self.question.catalog.has_block, names):
            now = self.question.choices[block].as_data()
            for field in option_fields(self.question.catalog.block(block).Options):
                name, here = f"{block}.{field.encode_name}", _text(now[field.encode_name])
                without = [None] if self.asked.said(name) is not None else []
                others = [value for value in option_values(field.type) if value != here]
                yield [self._set(name, value) for value in (*without, *others)]

    def _partitions(self) -> Iterator[Remedy]:
        others = (name for name in self.site.partitions if name != self.question.node.partition)
        return (Remedy(partition=name, text=f"--partition {name}") for name in others)

    def _without_added(self) -> Iterator[Remedy]:
        clashing = {each.identifier for each in self.clash}
        for name in self.asked.added:
            if self.question.catalog.identifier(name) in clashing:
                yield Remedy(without=(name,), text=f"without --add {name}")

    def without_block(self) -> Iterator[Remedy]:
        """The stack without the one block that stands against the rest, and its lists without what that brings.

        Which of several the user can do without is not asked.
        """
        roots = [each for each in self.clash if each.origin.kind == "stack"]
        for root in roots if len(roots) == 1 else ():
            name, others = root.origin.asked, {*self.asked.stack.blocks} - {root.origin.asked, *_LISTS, "mpi"}
            if others and self.question.catalog.has_block(name):
                yield from self._without_one(root, name)

    def _without_one(self, root: Requirement, name: str) -> Iterator[Remedy]:
        place, catalog = root.origin.place(), self.question.catalog
        text = f"without the block {name}, if your programs can do without it: take it out of "
        text += f"{place}" if place is not None else f"the stack {self.asked.stack.name}"
        yield Remedy(stack={name: None}, text=text)
        brought = [each for each, block in catalog.distributions.items() if block == name]
        key, listed = f"{BLOCK}.without", self.asked.stack.blocks.get(BLOCK)
        if brought and listed is not None and self.asked.said(key) is None:
            left = listed.options.get("without")
            words = ",".join([*(left if isinstance(left, list) else []), *brought])
            yield Remedy(settings={key: words}, stack={name: None}, text=f"{text}, with --set {key}={words}")

    def several(self) -> Iterator[Remedy]:
        """As few changes as possible, if one is not enough; those of ``--set`` first."""
        roots = [each for each in self.question.all_roots() if each.allowed is not None and each.origin.asked]
        roots.sort(key=lambda each: each.origin.kind != "set")
        sets = (some for size in range(2, len(roots) + 1) for some in combinations(roots, size))
        for some in islice(sets, COMBINED):
            groups = self.stated.groups_without(each.origin for each in some)
            if self.stated.solve(groups=groups):
                yield self._without(some, groups)

    def _without(self, dropped: Sequence[Requirement], groups: Sequence[int]) -> Remedy:
        """For each requirement the nearest that fits beside the others; a block of which none does is left out."""
        taken: list[Candidate] = []
        parts = []
        for root in dropped:
            nearest = next(self._near(root, groups, taken), None)
            taken += [nearest] if nearest is not None else []
            if self._said(root, "version"):
                parts.append(self._change(root, "version", nearest.version if nearest is not None else None))
            if self._said(root, "provider") and nearest is None:
                parts.append(self._change(root, "provider", None))
        return Remedy(
            settings={name: value for part in parts for name, value in part.settings.items()},
            stack={name: value for part in parts for name, value in part.stack.items()},
            text=" and ".join(part.text for part in parts),
        )

    def _said(self, root: Requirement, what: str) -> str | None:
        """The requested version or provider, as it was written."""
        if root.origin.kind == "set":
            return self.asked.said(f"{root.origin.asked}.{what}")
        block = self.asked.stack.blocks.get(root.origin.asked)
        return getattr(block, what) if block is not None else None

    def _change(self, root: Requirement, what: str, value: str | None) -> Remedy:
        """Another version or provider, in ``--set`` or in the stack, wherever it is said."""
        name = f"{root.origin.asked}.{what}"
        if root.origin.kind == "set":
            return self._set(name, value)
        place = root.origin.place()
        where = f"{place} of stack {self.asked.stack.name}" if place is not None else f"stack {self.asked.stack.name}"
        said = self._said(root, what)
        text = f"{what} {value} of {root.origin.asked} instead of {said} in {where}"
        return Remedy(
            stack={name: value}, text=text if value is not None else f"no {what} of {root.origin.asked} in {where}"
        )

    def _set(self, name: str, value: str | None) -> Remedy:
        said = self.asked.said(name)
        if value is None:
            return Remedy(settings={name: None}, text=f"without --set {sh(f'{name}={said}')}")
        instead = f" instead of {said}" if said is not None else ""
        return Remedy(settings={name: value}, text=f"--set {sh(f'{name}={value}')}{instead}")


def option_values(kind: Any) -> list[str]:
    """The values of an option that takes one of a few, as ``--set`` writes them."""
    if kind is bool:
        return ["true", "false"]
    return [_text(value) for value in getattr(kind, "__args__", ())] if "Literal" in str(kind) else []


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _distances(every: Sequence[Candidate], root: Requirement) -> dict[Candidate, tuple[float, float]]:
    """How many releases lie between a version and what is asked for of its block; of two the newer is nearer."""
    found: dict[Candidate, tuple[float, float]] = {}
    for block, versions in (root.allowed or {}).items():
        rows = sorted({version(c.version) for c in every if c.block == block})
        here = [c for c in every if c.block == block]
        asked = [float(bisect_left(rows, version(c.version))) for c in here if root.accepts(c)]
        if not asked:
            asked = [bisect(rows, version(each.version.removesuffix(".*"))) - 0.5 for each in version_range(versions)]
        for candidate in here:
            place = bisect_left(rows, version(candidate.version))
            found[candidate] = min(abs(place - at) for at in asked), -place
    return found
