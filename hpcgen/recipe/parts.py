"""The blocks of a plan, each with the arguments of its methods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from hpcgen.backends.hardware.microarchitecture import compiler_flags
from hpcgen.blocks.base import Block, Chosen, Context, Facts
from hpcgen.blocks.sources import BundleSupply, Supply
from hpcgen.blocks.steps import BazelFiles, Input, Run, WheelFile, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.decoding import record_from
from hpcgen.core.errors import ConflictError, InputError, Problem
from hpcgen.core.model.plan import Finding, Plan, PlannedBlock, PlannedConda
from hpcgen.core.model.spack import PlannedSpack
from hpcgen.core.support.units import some
from hpcgen.core.support.wheel_tags import as_numbers, glibc_of, minor_of
from hpcgen.recipe.joint_pins import Knowledge, LeftOpen, ListClash, ListInstallation, joined
from hpcgen.recipe.requirement_lines import Needs, needs_of, package_line

if TYPE_CHECKING:
    from hpcgen.core.model.lock import Pins


class ListClashError(ConflictError):
    """The wheel lists of a plan's blocks do not go together; other releases of the blocks may."""

    def __init__(self, problems: Sequence[Problem], clashes: Sequence[ListClash], plan: Plan) -> None:
        super().__init__(problems)
        self.clashes, self.plan = clashes, plan


class PlannedPart(msgspec.Struct, frozen=True):
    """A block of the plan with the arguments of its methods.

    ``unpacked``: the step that takes the place of those that compile it.
    """

    planned: PlannedBlock
    block: Block
    ctx: Context
    unpacked: Run | None = None

    @property
    def label(self) -> str:
        return self.planned.label

    @property
    def inputs(self) -> list[Input]:
        """The inputs of its build, its wheel lists as they are joined with those of other blocks."""
        found = self.block.inputs(self.ctx)
        return [self.ctx.beside_others(each) if isinstance(each, Wheels) else each for each in found]

    @property
    def build_steps(self) -> Iterable[Run]:
        """What makes it in the builder; what is unpacked has no more than the steps that fill a Python environment."""
        steps = self.block.build(self.ctx)
        if self.unpacked is None:
            return steps
        filling = (step for step in steps if any(each.folder == each.by for each in step.installs))
        return (self.unpacked, *filling)

    @property
    def notices(self) -> list[str]:
        """What the block says of itself, first that it leaves a GPU alone."""
        unused, gpu = self.block.capabilities(self.ctx).gpu_unused, self.ctx.facts.partition.gpu
        notes = self.block.notices(self.ctx)
        if unused is None or gpu is None:
            return notes
        return [f"{self.label} computes on the CPU, not on {gpu.model}: {unused.reason}", *notes]


class Parts(NamedTuple):
    """All parts of a plan, in its order.

    loose: requirements of the wheel lists that nobody has made with hashes, by the list's name.
    installed: the wheel lists that go into Python environments, in the order of the steps.
    doubts: what is not known of their packages.
    left_open: by environment, what is left to `hpcgen lock` or pip.
    """

    parts: list[PlannedPart]
    loose: dict[str, tuple[str, ...]]
    installed: list[ListInstallation]
    doubts: list[Finding]
    left_open: dict[str, LeftOpen]


class _Lists:
    """Where wheel lists are looked up: in the lock, for every Python, or for the chosen one."""

    def __init__(self, catalog: Catalog, pins: Pins | None, python: Chosen | None) -> None:
        self._catalog = catalog
        self._pins = pins
        self._python = python
        self.loose: dict[str, tuple[str, ...]] = {}
        self.made_for: dict[tuple[str, str], str] = {}
        """The C library that a list is made for, by block and list."""

    def find(self, block: str, name: str, fallback: tuple[str, ...]) -> tuple[str, ...] | None:
        """The lines of a list; None if there is none, which is noted."""
        lines = self._found(block, name)
        if lines is None:
            self.loose[name] = fallback
        return lines

    def _found(self, block: str, name: str) -> tuple[str, ...] | None:
        if self._pins is not None and name in self._pins.wheels:
            return tuple(self._pins.wheels[name])
        found = self._catalog.beside.wheels(name)
        if self._python is not None:
            minor = minor_of(self._python.version)
            found = found and found.for_python(minor)
            found = found or self._catalog.beside.wheels(f"{name}-cp{minor.replace('.', '')}")
        if found is None:
            return None
        self.made_for[block, name] = found.glibc
        return found.lines


def parts_of(plan: Plan, catalog: Catalog, pins: Pins | None = None, listed: bool = False) -> Parts:
    """The parts of a plan, whose wheel lists agree on each package of an environment that they share.

    pins: exact versions and digests of a lock.
    listed: read what Bazel fetches also where nothing is pinned.
    InputError: the plan was made with other collections and does not fit these.
    ConflictError: two lists ask for different versions of a package, or one is made for a newer C library than the
        base has.
    """
    chosen = _all_chosen(plan, catalog)
    lists = _Lists(catalog, pins, chosen.get("python"))
    parts = list(_parts(plan, catalog, pins, chosen, lists, listed))
    installed = list(_installed(parts))
    found = joined(installed, chosen.get("python"), plan.site.system.architecture, _known(plan, catalog, parts))
    if too_new := list(_too_new(parts, lists, catalog)):
        raise ConflictError([*too_new, *found.problems])
    if found.problems:
        raise ListClashError(found.problems, found.clashes, plan)
    for name in sorted(found.taken):
        catalog.beside.wheels(name)  # the image rests on it
    if found.instead:
        parts = [_beside_others(part, found.instead) for part in parts]
        installed = list(_installed(parts))
    return Parts(parts, lists.loose, installed, found.doubts, found.left_open)


def certain_needs(plan: Plan, catalog: Catalog, block: str) -> list[Needs]:
    """What a block of a plan asks for itself, and what the packages that it asks for in one version require."""
    chosen = _all_chosen(plan, catalog)
    python, known = chosen.get("python"), catalog.beside.wheel_facts().needs
    parts = _parts(plan, catalog, None, chosen, _Lists(catalog, None, python), False)
    lists = (each for part in parts if part.planned.name == block for each in part.inputs if isinstance(each, Wheels))
    asked = [line for each in lists for line in each.asked]
    pinned = (said for line in asked if (said := package_line(line)) is not None)
    needs = (known.get(f"{each.name}=={each.version}") or () for each in pinned)
    return [each for lines in (asked, *needs) for each in needs_of(lines, python, plan.site.system.architecture)]


def _known(plan: Plan, catalog: Catalog, parts: Sequence[PlannedPart]) -> Knowledge:
    """What the collections know of packages, for the Python, architecture and C library of the plan."""
    python = plan.block("python")
    glibc = str(parts[0].ctx.base.release.values.get("glibc", ""))

    def others() -> Iterator[tuple[str, tuple[str, ...]]]:
        minor = minor_of(python.version) if python is not None else ""
        for name, listed in catalog.beside.lists_for(minor, plan.site.system.architecture) if minor else ():
            if not glibc or as_numbers(listed.glibc) <= as_numbers(glibc):
                yield name, listed.lines

    return Knowledge(catalog.beside.wheel_facts, others, plan.project.constraints if plan.project is not None else ())


def _beside_others(part: PlannedPart, instead: Mapping[str, Mapping[str, str]]) -> PlannedPart:
    """A part that uses other lines of its wheel lists."""
    ctx = msgspec.structs.replace(part.ctx, instead=instead.get(part.planned.name, {}))
    return msgspec.structs.replace(part, ctx=ctx)


def _installed(parts: Sequence[PlannedPart]) -> Iterator[ListInstallation]:
    """The wheel lists that steps of the builder install, in their order."""
    for part in parts:
        lists = {each.name: each for each in part.inputs if isinstance(each, Wheels)}
        for step in part.block.build(part.ctx) if lists else ():
            for each in step.installs:
                if each.name in lists:
                    yield ListInstallation(part.planned, lists[each.name], each.folder, each.by)


def _too_new(parts: Sequence[PlannedPart], lists: _Lists, catalog: Catalog) -> Iterator[Problem]:
    """Wheels for a newer C library than the base has: pip does not take them."""
    here, base = str(parts[0].ctx.base.release.values.get("glibc", "")), parts[0].label
    for part in parts if here else ():
        made_for = {name: glibc for (block, name), glibc in lists.made_for.items() if block == part.planned.name}
        files = [each for each in part.inputs if isinstance(each, WheelFile)]
        made_for |= {each.name: glibc_of(each.name) for each in files}
        newest = max(made_for, key=lambda name: as_numbers(made_for[name]), default="")
        wanted = made_for.get(newest, "")
        if as_numbers(wanted) > as_numbers(here):
            yield Problem(
                f"{part.label} comes as wheels for glibc {wanted} and newer ({newest}), and {base} has glibc {here}",
                expected=f"a base with glibc {wanted} or newer",
                remedy=f"use {some(_bases(catalog, wanted))}",
            )


def _bases(catalog: Catalog, glibc: str) -> list[str]:
    """Distributions with that C library or a newer one."""
    return [
        f"{name} {version}"
        for name in catalog.virtuals.get("base", [])
        for version, row in catalog.releases(name).items()
        if as_numbers(str(row.values.get("glibc", ""))) >= as_numbers(glibc)
    ]


def _parts(
    plan: Plan, catalog: Catalog, pins: Pins | None, chosen: Mapping[str, Chosen], lists: _Lists, listed: bool
) -> Iterator[PlannedPart]:
    facts = Facts.of(plan.site, plan.partition)
    bundled = plan.supply == "bundle" and pins is not None
    supply = BundleSupply(pins.trees) if bundled and pins is not None else Supply(plan.site.network)
    base = chosen[plan.blocks[0].name]
    compiler = chosen.get("gnu")
    flags = compiler_flags(facts.partition.cpu.target, "gcc", compiler.version) if compiler else ()
    for planned in plan.blocks:
        others = {}
        for wanted, name in planned.needs.items():
            others[wanted] = others[name] = chosen[name]
        ctx = Context(
            me=chosen[planned.name],
            facts=facts,
            others=others,
            base=base,
            flags=flags,
            supply=supply,
            find_wheels=partial(lists.find, planned.name),
            find_bazel=partial(_find_bazel, catalog, pins, listed),
            find_file=catalog.beside.text_file,
            project=plan.project,
            conda=_conda(plan, pins),
            spack=_spack(plan, pins),
            locked=pins.wheels if pins is not None else {},
        )
        yield PlannedPart(planned, catalog.block(planned.name)(), ctx)


def _all_chosen(plan: Plan, catalog: Catalog) -> dict[str, Chosen]:
    """Every block of the plan, which may come from a file; InputError where the collections lack what it names."""
    chosen: dict[str, Chosen] = {}
    problems = []
    names = {block.name for block in plan.blocks}
    for planned in plan.blocks:
        try:
            chosen[planned.name] = _chosen(planned, catalog, plan.site.system.architecture)
            lost = [f"needs {name}, which is not planned" for name in planned.needs.values() if name not in names]
        except KeyError:
            lost = [f"has no version {planned.version}"]
        except msgspec.ValidationError as failure:
            lost = [f"takes other options ({failure})"]
        problems += [f"{planned.name} {each}" for each in lost]
    if problems or not chosen:
        message = f"the plan does not match the collections here: {', '.join(problems) or 'it has no blocks'}"
        remedy = "install that release, name its collections with --collection, or plan again"
        raise InputError(message, expected=f"those that hpcgen {plan.hpcgen} used for the plan", remedy=remedy)
    return chosen


def _chosen(planned: PlannedBlock, catalog: Catalog, architecture: str) -> Chosen:
    options: Any = record_from(planned.options, catalog.block(planned.name).Options, strict=False)
    return Chosen(planned.name, planned.version, options, catalog.release(planned, architecture))


def _conda(plan: Plan, pins: Pins | None) -> PlannedConda | None:
    """The conda request, with the packages that a lock has chosen for it."""
    if plan.conda is None or pins is None or not pins.conda:
        return plan.conda
    return msgspec.structs.replace(plan.conda, packages=pins.conda)


def _spack(plan: Plan, pins: Pins | None) -> PlannedSpack | None:
    """The Spack environment, with what a lock has chosen for it."""
    if plan.spack is None or pins is None:
        return plan.spack
    return msgspec.structs.replace(plan.spack, chosen=pins.spack)


def _find_bazel(catalog: Catalog, pins: Pins | None, listed: bool, name: str) -> BazelFiles | None:
    """The files that a run of Bazel fetched, from the lock, or the list of a collection.

    Without pins there is no bundle, and the list is read for who asks for it alone.
    """
    if pins is None and not listed:
        return None
    if pins is not None and name in pins.bazel:
        from hpcgen.blocks.inputs.bazel import pinned_files

        return pinned_files(name, pins.bazel[name])
    return catalog.beside.bazel_files(name)


def in_stage(name: str, parts: list[PlannedPart]) -> list[PlannedPart]:
    """The parts of a stage: not all of the builder's are in the image."""
    return [part for part in parts if name == "builder" or not part.planned.build_only]
