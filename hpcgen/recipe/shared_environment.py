"""A Python environment that several wheel lists are installed into: a version of each package for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from hpcgen.blocks.base import Chosen
from hpcgen.core.model.plan import Finding
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.core.support.wheel_tags import minor_of
from hpcgen.recipe.clashes import clash_problem
from hpcgen.recipe.joint_pins import JoinedLists, Knowledge, LeftOpen, ListClash, ListedPin, ListInstallation
from hpcgen.recipe.requirement_lines import Needs, needs_of, package_line, requirements
from hpcgen.recipe.version_choice import VersionCandidate, VersionRule, exact, joint_range, straight

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


class SharedEnvironment:
    """Lists that are installed into one folder, in their order, and the pins of each package in them."""

    def __init__(
        self,
        installed: Sequence[ListInstallation],
        pins: Mapping[str, Sequence[ListedPin]],
        python: Chosen | None,
        architecture: str,
        known: Knowledge,
    ) -> None:
        self.installed, self.pins = installed, pins
        self.python, self.architecture, self.known = python, architecture, known

    @cached_property
    def asked(self) -> list[dict[str, SpecifierSet]]:
        """What each block asks for itself."""
        return [{normal_name(one.name): one.specifier for one in requirements(e.wheels.asked)} for e in self.installed]

    @cached_property
    def provided(self) -> dict[str, str]:
        """Packages that come another way than by a list, in the version that their block asks for."""
        said = (package_line(line) for each in self.installed for line in each.wheels.asked)
        return {each.name: each.version for each in said if each and each.version and each.name not in self.pins}

    def join(self, found: JoinedLists) -> None:
        """Choose, and note what becomes of the lists' lines."""
        candidates = {name: self._own(name) for name in self._order()}
        rules = self._rules(candidates)
        chosen: dict[str, VersionCandidate] | list[list[VersionRule]] | None = straight(candidates, rules)
        if chosen is None:
            candidates = {name: self._with_others(name, own) for name, own in candidates.items()}
            rules = self._rules(candidates)
            chosen = exact(candidates, rules)
        if isinstance(chosen, list) and (moved := self._moved(candidates, rules, chosen)) is not None:
            chosen = moved
            found.doubts.extend(self._to_move(chosen, rules))
        if isinstance(chosen, list):
            known = {name: [each.version for each in several if each.version] for name, several in candidates.items()}
            lists = [(each.block, each.wheels) for each in self.installed]
            found.problems.extend(
                clash_problem(each, rules, lists, known, self.python, self.architecture) for each in chosen
            )
            found.clashes.extend(ListClash(each, self._releases(each)) for each in chosen)
            return
        doubtful: dict[tuple[str, str], list[str]] = {}
        for name, pins in self.pins.items():
            self._note(pins, chosen[name], found)
            for pin, source in self._doubts(name, pins, chosen[name]):
                text = f"{name} {chosen[name].version} instead of {pin.version}"
                doubtful.setdefault((pin.label, source), []).append(text)
        ranges = {
            name: str(joint_range(name, chosen, rules)) if not each.version else f"=={each.version}"
            for name, each in chosen.items()
            if not each.line and name in self.pins
        }
        found.left_open[self.installed[0].folder] = LeftOpen(ranges, self.provided)
        found.doubts.extend(_doubt(*labels, texts) for labels, texts in doubtful.items())

    def _releases(self, rules: Sequence[VersionRule]) -> dict[str, str]:
        """The blocks that rules are of, but for that of the user's own packages."""
        labels = {rule.block if rule.of is not None else rule.by for rule in rules}
        blocks = [each.block for each in self.installed if each.block.label in labels]
        return {block.name: block.version for block in blocks if block.name != BLOCK}

    # what may be chosen

    def _order(self) -> list[str]:
        """The user's own packages before the others."""
        own = {name for name, pins in self.pins.items() if not all(pin.hashed for pin in pins)}
        return [*sorted(own), *sorted({*self.pins, *self.provided} - own)]

    def _own(self, name: str) -> list[VersionCandidate]:
        """Versions of the environment's lists; of what no list has with a hash, what the user asks for."""
        pins = self.pins.get(name)
        if pins is None:
            return [VersionCandidate(self.provided[name])]
        hashed = {pin.version: VersionCandidate(pin.version, pin.line) for pin in reversed(pins) if pin.hashed}
        if not hashed:
            return self._asked_for(pins)
        versions = list(dict.fromkeys(pin.version for pin in pins if pin.hashed))
        # Where it is not known what suits all, pip would leave the last of them there.
        sure = [version for version in versions if all(self._knows(name, pin, version) for pin in pins)]
        return [hashed[version] for version in [*sure, *reversed([v for v in versions if v not in sure])]]

    def _asked_for(self, pins: Sequence[ListedPin]) -> list[VersionCandidate]:
        """The exact versions that the user's lines have, or else what their ranges hold."""
        exactly = [VersionCandidate(pin.version) for pin in pins if not pin.hashed and pin.version]
        return list(dict.fromkeys(exactly)) or [VersionCandidate("")]

    def _with_others(self, name: str, own: Sequence[VersionCandidate]) -> list[VersionCandidate]:
        """With versions of lists that are not installed, the newest first, and with what the user asks for."""
        pins = self.pins.get(name, ())
        loose = [pin for pin in pins if not pin.hashed]
        if len(loose) == len(pins):
            return list(own)
        versions = {each.version for each in own}
        more = [each for each in self._elsewhere.get(name, ()) if each.version not in versions]
        last = self._asked_for(pins) if loose else []
        return [*own, *more, *(each for each in last if each.version not in {*versions, *(e.version for e in more)})]

    def _moved(
        self,
        candidates: Mapping[str, Sequence[VersionCandidate]],
        rules: Sequence[VersionRule],
        clashes: Sequence[Sequence[VersionRule]],
    ) -> dict[str, VersionCandidate] | None:
        """A choice that leaves versions of lists open which stand against the project's own lines; None without one.

        Only what no block asks for in one version gives way. `hpcgen lock`, which knows all there are, takes others.
        """
        free: set[str] = set()
        chosen: dict[str, VersionCandidate] | list[list[VersionRule]] = [list(each) for each in clashes]
        while isinstance(chosen, list):
            more = {name for clash in chosen for name in self._may_move(clash)} - free
            if not more:
                return None
            free |= more
            freer = {n: [*each, VersionCandidate("")] if n in free else each for n, each in candidates.items()}
            chosen = exact(freer, rules)
        return chosen

    def _may_move(self, clash: Sequence[VersionRule]) -> Iterator[str]:
        """Packages of a clash whose versions are a list's choice alone, with a project's line without a hash in it."""
        own = {each.block.label for each in self.installed if each.block.name == BLOCK and not each.wheels.hashed}
        if any(rule.of is None and rule.by in own for rule in clash):
            one = {n for each in self.asked for n, said in each.items() if any(e.operator == "==" for e in said)}
            names = {rule.of[0] for rule in clash if rule.of is not None} - one
            yield from (name for name in names if name in self.pins and all(pin.hashed for pin in self.pins[name]))

    def _to_move(self, chosen: Mapping[str, VersionCandidate], rules: Sequence[VersionRule]) -> Iterator[Finding]:
        """By list, what `hpcgen lock` has to take in another version."""
        told: dict[str, list[str]] = {}
        for rule in rules:
            left = rule.block and rule.of is not None and rule.of[0] in self.pins and not chosen[rule.of[0]].version
            if left and not rule.allows(chosen[rule.package]):
                told.setdefault(rule.block, []).append(f"{rule.by} requires {rule.package}{rule.specifier}")
        for label, texts in told.items():
            yield Finding(
                name="python-packages",
                severity="warning",
                message=f"not all of {label}'s list goes with the project's own versions: {some(texts, 4)}",
                remedy="`hpcgen lock` takes other versions of these; a build without a lock stops at pip's check",
            )

    @cached_property
    def _elsewhere(self) -> dict[str, list[VersionCandidate]]:
        """Versions of other lists by package, the newest first, of which nothing is missing here that they require."""
        from packaging.version import Version

        found: dict[str, dict[str, VersionCandidate]] = {}
        for listed, lines in self.known.others():
            for line in lines:
                said = package_line(line.partition(" --hash=")[0])
                if said is not None and said.name in self.pins and said.version and said.marker is None:
                    found.setdefault(said.name, {}).setdefault(
                        said.version, VersionCandidate(said.version, line, listed)
                    )
        return {
            name: [
                by_version[version]
                for version in sorted(by_version, key=Version, reverse=True)
                if (needs := self._needs(name, version)) is not None
                and all(each.name in self.pins or each.name in self.provided for each in needs)
            ]
            for name, by_version in found.items()
        }

    def _needs(self, name: str, version: str) -> list[Needs] | None:
        """What a version requires here; None where that is not known."""
        lines = self.known.facts().needs.get(f"{name}=={version}")
        return None if lines is None else needs_of(lines, self.python, self.architecture)

    # what limits it

    def _rules(self, candidates: Mapping[str, Sequence[VersionCandidate]]) -> list[VersionRule]:
        return [*self._demands(), *self._python_rules(), *self._requirements(candidates)]

    def _demands(self) -> Iterator[VersionRule]:
        """What blocks and the user ask for."""
        from packaging.specifiers import SpecifierSet

        for each, asked in zip(self.installed, self.asked, strict=True):
            for name, specifier in asked.items():
                if specifier and (name in self.pins or name in self.provided):
                    yield VersionRule(name, specifier, each.block.label, self._place(each, name))
        for name, pins in self.pins.items():
            for pin in pins:
                # Of the user's own packages each hashed line was chosen for all.
                if pin.of.block.name == BLOCK and pin.hashed and pin.version:
                    yield VersionRule(name, SpecifierSet(f"=={pin.version}"), pin.label, self._place(pin.of, name))
        for one in requirements(self.known.constraints):
            if one.specifier and normal_name(one.name) in self.pins:
                yield VersionRule(normal_name(one.name), one.specifier, "a constraint of the project's files")

    def _python_rules(self) -> Iterator[VersionRule]:
        """The releases that have wheels for the Python, of packages that are looked for in an index."""
        from packaging.specifiers import SpecifierSet

        # A conda environment has a Python of its own.
        if self.python is None or any(each.by != self.python.prefix for each in self.installed):
            return
        minor = minor_of(self.python.version)
        pythons = self.known.facts().pythons
        for name, pins in self.pins.items():
            released = pythons.get(name, {}).get(self.architecture, {}).get(minor, "")
            if released and not all(pin.hashed for pin in pins):
                yield VersionRule(name, SpecifierSet(released), f"Python {minor}", of_python=True)

    def _requirements(self, candidates: Mapping[str, Sequence[VersionCandidate]]) -> Iterator[VersionRule]:
        """What packages require of each other, but for what a block replaces on purpose of one that it needs."""
        for name, several in candidates.items():
            pins = self.pins.get(name, ())
            for version in dict.fromkeys(each.version for each in several if each.version):
                of = next((pin for pin in pins if pin.version == version), None)
                block, place = (of.label, self._place(of.of, name)) if of is not None else ("", "")
                for needed in self._needs(name, version) or ():
                    meant = pins and all(self._is_replaced(needed.name, pin) for pin in pins)
                    if needed.specifier and needed.name in candidates and not meant:
                        by = f"{name} {version}"
                        yield VersionRule(needed.name, needed.specifier, by, place, (name, version), block)

    def _is_replaced(self, name: str, pin: ListedPin) -> bool:
        """Whether a block that needs the pin's one asks for just one version of a package: it was tried with it."""
        return any(
            pin.of.block.name in each.block.needs.values() and any(one.operator == "==" for one in asked.get(name, ()))
            for each, asked in zip(self.installed, self.asked, strict=True)
        )

    def _knows(self, name: str, pin: ListedPin, version: str) -> bool:
        """Whether all is known that the packages of a pin's list, and their block, require of another version."""
        if pin.version == version or not pin.hashed:
            return True
        at = self.installed.index(pin.of)
        return name in self.asked[at] or not self._unknown[at] - {name} or self._is_replaced(name, pin)

    @cached_property
    def _unknown(self) -> list[set[str]]:
        """Packages of each list, and those that its block gets in another way, of which no requirements are known."""
        known = self.known.facts().needs
        return [
            {
                said.name
                for line in (*each.wheels.requirements, *each.wheels.asked)
                if (said := package_line(line.partition(" --hash=")[0])) is not None
                and said.version
                and known.get(f"{said.name}=={said.version}") is None
            }
            for each in self.installed
        ]

    def _place(self, of: ListInstallation, name: str) -> str:
        return next((place for package, place in of.wheels.places if normal_name(package) == name), "")

    # what becomes of the lines

    def _note(self, pins: Sequence[ListedPin], mine: VersionCandidate, found: JoinedLists) -> None:
        """The chosen line in place of others; without a hash, lists after the user's leave their own out."""
        first = next((at for at, pin in enumerate(pins) if not pin.hashed), len(pins))
        for at, pin in enumerate(pins):
            if pin.hashed and pin.version != mine.version and (mine.line or at > first):
                found.instead.setdefault(pin.of.block.name, {})[pin.line] = mine.line
                if mine.listed:
                    found.taken.add(mine.listed)

    def _doubts(self, name: str, pins: Sequence[ListedPin], mine: VersionCandidate) -> Iterator[tuple[ListedPin, str]]:
        """Lists that get another version of which it is not known whether it suits all, and whose version that is."""
        source = next((pin.label for pin in pins if pin.version == mine.version), mine.listed)
        unknown = not mine.line and self._needs(name, mine.version) is None
        for pin in pins if mine.version else ():
            if pin.hashed and pin.version != mine.version and (unknown or not self._knows(name, pin, mine.version)):
                yield pin, source


def _doubt(label: str, chosen: str, texts: Sequence[str]) -> Finding:
    return Finding(
        name="python-packages",
        severity="warning",
        message=f"{label} takes the versions of {chosen} (combination not tested): {some(texts, 8)}",
        remedy="the self-test checks with pip that all packages are compatible",
    )
