"""Hashes for the Python packages of an image that no wheel list has: those of the project, beside the blocks' lists.

What is left open is resolved beside the lists as they are. Where that has no solution, all that share the environment
is resolved in one go: the blocks' own demands are requirements, and the lists' versions preferences, so that one of
them moves only if it must. What moved stands in the lock's list of the project, whose versions count for all lists.
Where wheels alone have no solution either, packages are taken as source, in lists of their own (`source_lists`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal

from hpcgen.blocks.inputs.wheels import with_sources
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError, HpcgenError, Problem
from hpcgen.core.model.conda import PIP_LIST
from hpcgen.core.model.lock import Lock, Pins
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.project import BLOCK
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import some
from hpcgen.core.support.wheel_tags import WheelTarget
from hpcgen.recipe.joint_pins import LeftOpen
from hpcgen.recipe.parts import parts_of
from hpcgen.recipe.requirement_lines import package_line, requirements
from hpcgen.recipe.stages import Assembly
from hpcgen.supply.pin.source_lists import UnbuildableError, source_lists

if TYPE_CHECKING:
    from hpcgen.supply.pin.uv_resolver import Resolved

Say = Callable[[str], None]
_AT_A_TIME = 4
_UNBUILDABLE = 5
"""So many solutions are tried where one has source packages whose build requires something that is not available."""


def lock_image_wheels(
    plan: Plan, catalog: Catalog, loose: Assembly, old: Lock | None, say: Say
) -> dict[str, list[str]]:
    """Hashed lines for every list that no collection has; they fit those that are hashed already.

    old: a lock whose lists stay where they still fit.
    ConflictError: the packages contradict each other; the resolver's own words say why.
    FetchError, MissingToolError: as :func:`hpcgen.supply.pin.wheels.lock_wheels`.
    """
    from hpcgen.supply.net.pip_settings import pip_settings
    from hpcgen.supply.pin.project_sources import project_sources

    kept = old.pins.wheels if old is not None and _runs_on(old.plan) == _runs_on(plan) else {}
    wanted = {name: lines for name, lines in sorted(loose.loose.items()) if name != PIP_LIST}
    fitting = {
        name: {each: kept[each] for each in with_sources(name, kept, tools=True)}
        for name in wanted
        if _still_fits(wanted[name], [line for each in with_sources(name, kept) for line in kept[each]])
    }
    if fitting and not _go_together(plan, catalog, _merged(fitting.values())):
        fitting = {}
    if plan.block("python") is None:
        return _merged(fitting.values())
    of_project = project_sources(plan, loose, _target(plan, catalog), kept, say)
    if len(fitting) == len(wanted):
        return _merged([*fitting.values(), of_project])

    def locked(name: str) -> dict[str, list[str]]:
        say(f"Python packages of {name}: {len(wanted[name])} requested")
        try:
            lists = _Question(plan, catalog, loose, name, wanted[name]).lists(say)
        except ConflictError as failure:
            raise _placed(failure, plan) from None
        say(f"Python packages of {name}: {sum(map(len, lists.values()))} chosen")
        return lists

    todo = [name for name in wanted if name not in fitting]
    pip_settings()  # once, not by each of the threads
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        resolved = dict(zip(todo, pool.map(locked, todo), strict=True))
    return _merged([*(fitting.get(name) or resolved[name] for name in wanted), of_project])


def _merged(lists: Iterable[Mapping[str, list[str]]]) -> dict[str, list[str]]:
    return {name: lines for each in lists for name, lines in each.items()}


def _placed(failure: ConflictError, plan: Plan) -> ConflictError:
    """A contradiction at the lines of the project's files whose packages it names."""
    packages = plan.project.packages if plan.project is not None else ()

    def place(problem: Problem) -> Problem:
        told = {normal_name(word) for word in re.findall(r"[A-Za-z0-9][A-Za-z0-9._-]*", problem.message)}
        where = [each.origin for each in packages if each.name in told]
        return problem.at(some(where)) if where else problem

    return ConflictError([place(each) for each in failure.problems])


def _runs_on(plan: Plan) -> tuple[str, ...]:
    """What decides which file of a Python package is the right one: Python, architecture, and the base's C library."""
    python, base = plan.block("python"), plan.blocks[0]
    return (python.version if python else "", plan.site.system.architecture, base.name, base.version)


def _target(plan: Plan, catalog: Catalog) -> WheelTarget:
    python, glibc = plan.block("python"), str(catalog.release(plan.blocks[0]).values["glibc"])
    return WheelTarget(python.version if python else "", plan.site.system.architecture, glibc)


def _still_fits(wanted: Sequence[str], lines: Iterable[str]) -> bool:
    """Whether hashed lines hold every requirement in the version that it asks for."""
    held = _versions(lines)
    asked = {normal_name(each.name): each.specifier for each in requirements(wanted)}
    return bool(held) and all(name in held and each.contains(held[name], True) for name, each in asked.items())


def _go_together(plan: Plan, catalog: Catalog, lists: Mapping[str, list[str]]) -> bool:
    """Whether hashed lists of an older lock suit the lists of today's collections."""
    try:
        parts_of(plan, catalog, Pins(wheels=dict(lists)))
    except HpcgenError:
        return False
    return True


def _versions(lines: Iterable[str]) -> dict[str, str]:
    """Version by normal name, of lines ``NAME==VERSION --hash=…``."""
    said = (package_line(line.partition(" --hash=")[0]) for line in lines)
    return {each.name: each.version for each in said if each is not None and each.version}


class _Question:
    """What a list without hashes asks for, beside the lists of its environment."""

    def __init__(self, plan: Plan, catalog: Catalog, loose: Assembly, name: str, wanted: Sequence[str]) -> None:
        self.name, self.compiler = name, plan.block("gnu") is not None
        # Only the block of the user's packages knows how to build them.
        self.sources: Literal["", "pure", "any"] = "pure" if name == BLOCK else ""
        self.built: list[Resolved] = []
        self.target = _target(plan, catalog)
        self.wanted = tuple(wanted)
        # What rules of Bazel install for themselves is in no environment of the image.
        folder = next((each.folder for each in loose.installed if each.wheels.name == name), "")
        self.lists_there = [e.wheels for e in loose.installed if e.wheels.hashed and folder in ("", e.folder)]
        self.left_open = loose.left_open.get(folder, LeftOpen({}, {}))
        self.listed = _versions(line for each in self.lists_there for line in each.requirements)
        self.constraints = tuple(plan.project.constraints) if plan.project is not None else ()
        self.needs = catalog.beside.wheel_facts().needs
        self.of_blocks = {name for name, block in catalog.distributions.items() if plan.block(block) is not None}

    def lists(self, say: Say) -> dict[str, list[str]]:
        """Hashed lines of the list, and of those beside it for what is taken as source and what builds that.

        Versions that cannot be built here are left out, as an index leaves out what has no file for this Python.
        """
        failures: list[ConflictError] = []
        while len(failures) < _UNBUILDABLE:
            try:
                return self._whole(say)
            except UnbuildableError as failure:
                failures.append(failure)
                self.constraints += tuple(f"{each.name}!={each.version}" for each in failure.packages)
            except ConflictError as failure:
                failures.append(failure)
                break
        raise failures[0] from None

    def _whole(self, say: Say) -> dict[str, list[str]]:
        """The lists in one solution."""
        try:
            lines = self._lines(say)
        except ConflictError as failure:
            if not self.sources or not getattr(failure, "lacking", ()):
                raise
            self.sources = "any"
            lines = self._lines(say)
        if not self.built:
            return {self.name: lines}
        there = [*(line for each in self.lists_there for line in each.requirements), *lines]
        return {self.name: lines, **source_lists(self.name, self.built, there, self.target, self.compiler, say)}

    def _lines(self, say: Say) -> list[str]:
        """Everything that the list needs, with hashes, and what of other lists has to move for it."""
        named = {normal_name(each.name) for each in requirements(self.wanted)}
        if self.name == BLOCK and {*self.left_open.ranges} & {*self.listed} - named:
            # A list's version that the plan left open has to move whether or not the project's packages require it.
            return self._together(None, say)
        held = self._without(self.left_open.ranges)
        held += [f"{name}{versions}" for name, versions in self.left_open.ranges.items() if versions]
        try:
            return self._locked(self.wanted, [*held, *self.constraints])
        except ConflictError as failure:
            if not self.listed:
                raise
            return self._together(failure, say)

    def _locked(self, wanted: Sequence[str], held: Sequence[str]) -> list[str]:
        from hpcgen.supply.pin.wheels import lock_packages

        target, provided = (self.target.python, self.target.architecture, self.target.glibc), self._provided()
        found = lock_packages(wanted, *target, constraints=held, provided=provided, sources=self.sources)
        self.built = [each for each in found if each.source is not None]
        return [each.line for each in found if each.source is None]

    def _provided(self) -> dict[str, list[str]]:
        """Packages that come another way, with what they require of those that are in lists."""
        found = {}
        for name, version in self.left_open.provided.items():
            needs = requirements(self.needs.get(f"{name}=={version}") or ())
            found[f"{name}=={version}"] = [str(each) for each in needs if normal_name(each.name) in self.listed]
        return found

    def _together(self, failure: ConflictError | None, say: Say) -> list[str]:
        """A solution in which lists' versions may move; ``failure`` if the user's packages are not what clashes."""
        from hpcgen.supply.pin.uv_resolver import Request, joint_versions

        # Of source packages a resolver for another Python cannot ask what they require.
        sources = {name for name in self.listed if self.needs.get(f"{name}=={self.listed[name]}", ()) is None}
        provided = self._provided() | {f"{name}=={self.listed[name]}": [] for name in sources}
        names = [name for name in sorted(self.listed) if name not in sources]
        request = Request(
            self.target,
            (*self.wanted, *self._demands(names), *(self._kept(name) for name in names)),
            constraints=self.constraints,
            provided=tuple((line, tuple(needs)) for line, needs in provided.items()),
            preferred=tuple(f"{name}=={self.listed[name]}" for name in names),
            subject=self.wanted,
            sources=self.sources,
        )
        try:
            versions = joint_versions(request)
        except ConflictError as clash:
            named = {normal_name(each.name) for each in requirements(self.wanted)}
            about = any(name in problem.message.partition("\n")[2] for problem in clash.problems for name in named)
            raise (clash if about or failure is None else failure) from None
        moved = {name: versions[name] for name in names if versions.get(name, self.listed[name]) != self.listed[name]}
        for name, version in moved.items():
            say(f"{name} {version} instead of {self.listed[name]}, which the requested packages do not accept")
        fixed = [f"{name}=={version}" for name, version in versions.items() if name not in {*self.listed} - {*moved}]
        pins = [f"{name}=={version}" for name, version in moved.items()]
        return self._locked([*self.wanted, *pins], [*self._without(moved), *fixed])

    def _without(self, names: Mapping[str, str]) -> list[str]:
        """Lines of the lists that are about other packages."""
        lines = (line for each in self.lists_there for line in each.requirements)
        return [line for line in lines if not names.keys() & _versions([line]).keys()]

    def _kept(self, name: str) -> str:
        """A package of a list that stays, be it in another version, but for what a block itself is."""
        return f"{name}=={self.listed[name]}" if name in self.of_blocks else name

    def _demands(self, names: Sequence[str]) -> list[str]:
        """What the blocks ask for themselves, of what is in their lists."""
        return [
            str(one) for each in self.lists_there for one in requirements(each.asked) if normal_name(one.name) in names
        ]
