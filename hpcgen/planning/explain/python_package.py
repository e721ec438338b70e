"""A Python package: which line asks for it, which block installs it and why that one, which version it has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from hpcgen.blocks.inputs.wheels import Wheels, parse_pin, role_of
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.project import BLOCK, HandedOver, PackageFile, PackageRequirement, ProjectPackage
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.units import counted, some
from hpcgen.core.support.wheel_tags import minor_of
from hpcgen.planning.contract.packages import packages as suits
from hpcgen.planning.contract.verdict import case_of
from hpcgen.planning.contract.wheel_names import gpu_vendor
from hpcgen.planning.explain import blocks
from hpcgen.planning.explain.case import ExplainCase, Explanation, Ground, Refused

KIND = "Python package"


class _Listed(NamedTuple):
    """A line of a wheel list: the package, the block that installs the list, the list, the version, the hashes."""

    name: str
    block: PlannedBlock
    wheels: Wheels
    version: str
    hashes: list[str]


def names(case: ExplainCase) -> list[str]:
    """The packages of the plan, requested ones first; a name that is also a block's means the block."""
    asked = _asked_names(case)
    listed = [each.name for each in _lines(case)]
    return list(dict.fromkeys([*asked, *(name for name in listed if case.plan.block(name) is None)]))


def _asked_names(case: ExplainCase) -> list[str]:
    project = case.plan.project
    if project is None:
        return []
    return [*(each.name for each in project.packages), *(each.name for each in project.handed_over)]


def left_out(case: ExplainCase) -> list[str]:
    """Packages that files of the project name and this image does not get."""
    there = {*_asked_names(case), *(each.name for each in _lines(case))}
    named = [each.name for file in case.asked_files.python for each in _all_of(file)]
    return [name for name in dict.fromkeys(named) if name not in there]


def package(case: ExplainCase, name: str) -> Explanation:
    """An installed package."""
    project = case.plan.project
    asked = next((each for each in project.packages if each.name == name), None) if project is not None else None
    handed = [each for each in project.handed_over if each.name == name] if project is not None else []
    listed = [each for each in _lines(case) if each.name == name]
    said = next((each for each in listed if each.version), None)
    grounds, refused, see = _own_options(case, name), list[Refused](), list[str]()
    if asked is not None:
        grounds += _of_file(case, asked)
        refused += _other_versions(case, asked)
        see.append(BLOCK)
    for each in handed:
        grounds += _handed_over(case, each)
        refused.append(_index_refused(case, each))
        see.append(each.block)
    if owner := next((each.block for each in handed if case.catalog.distributions.get(name) == each.block), ""):
        # Where both have one name, the block speaks for itself.
        why = blocks.block(case, owner) if owner != name else None
        grounds += why.grounds if why is not None else []
        refused += why.refused if why is not None else []
    grounds += [ground for each in listed for ground in _by_list(case, each, asked)]
    see += [each.block.name for each in listed if not each.block.name.startswith(BLOCK)]
    planned = case.plan.block(owner) if owner else None
    version = said.version if said is not None else (planned.version if planned is not None else "")
    if asked is not None:
        version = version or asked.version
        grounds += _version(case, asked, version)
        grounds += _site(case, asked)
    return Explanation(
        kind=KIND,
        name=name,
        value=version or (asked.asked.removeprefix(name) if asked is not None else ""),
        grounds=grounds,
        refused=refused,
        see=list(dict.fromkeys(see)),
    )


def not_installed(case: ExplainCase, name: str) -> Explanation:
    """A package that a file names for other images, or in a group that nobody asks for."""
    grounds, marked = [], False
    for file in case.asked_files.python:
        for each in _all_of(file):
            if each.name == name:
                marked = marked or bool(each.marker)
                grounds.append(_line(case, each.origin, each.asked + (f" ; {each.marker}" if each.marker else "")))
        groups = [group for group, inside in file.groups.items() if any(each.name == name for each in inside)]
        groups += [each.extra for each in file.roots if each.name == name and each.extra]
        for group in dict.fromkeys(each for each in groups if each not in _groups(case)):
            text = f"the group {group} has it, which is not requested: `groups: [{group}]` next to `files` adds it"
            grounds.append(Ground(kind="rule", text=text))
    if all(each.kind == "file" for each in grounds):
        why = "its marker does not hold for" if marked else "no installed package needs it for"
        grounds.append(Ground(kind="rule", text=f"{why} {_image(case)}"))
    return Explanation(kind=KIND, name=name, value="not installed", grounds=grounds, see=[BLOCK])


def _all_of(file: PackageFile) -> list[PackageRequirement]:
    return [*file.requirements, *(each for group in file.groups.values() for each in group)]


def _groups(case: ExplainCase) -> list[str]:
    return case.plan.project.groups if case.plan.project is not None else []


def _image(case: ExplainCase) -> str:
    """The environment that a package of the image must fit."""
    python = case.plan.block("python")
    minor = minor_of(python.version) if python is not None else "3"
    return f"CPython {minor} on {case.plan.site.system.architecture} with the C library of {case.plan.blocks[0].label}"


def _line(case: ExplainCase, origin: str, text: str) -> Ground:
    return Ground(kind="file", text=text, place=case.asked_files.shown(origin))


# who asks


def _own_options(case: ExplainCase, name: str) -> list[Ground]:
    """The reason that the stack itself, or ``--add``, names it."""
    pins = case.option_words(BLOCK, "packages")
    return [
        case.said_in_list(BLOCK, "packages", number, f"--add pip:{pin}")
        for number, pin in enumerate(pins)
        if normal_name(pin.partition("==")[0]) == name
    ]


def _of_file(case: ExplainCase, package: ProjectPackage) -> Iterator[Ground]:
    """The line that asks for it; of a lock also what the project itself asks for, and what needs it."""
    yield _line(case, package.origin, package.asked)
    for file in case.asked_files.python:
        if package.name in file.ranges:
            yield Ground(kind="file", text=f"the project asks for {package.name}{file.ranges[package.name]}")
        needers = [
            each.name
            for each in file.requirements
            if any(need.name == package.name and need.version in ("", package.version) for need in each.needs)
        ]
        if needers:
            yield Ground(kind="file", text=f"needed by {some(sorted(set(needers)))}", place=file.file)
        for held in (each for each in file.constraints if each.name == package.name):
            yield _line(case, held.origin, f"held to {held.asked}")


def _handed_over(case: ExplainCase, handed: HandedOver) -> Iterator[Ground]:
    """The reason that a block provides it."""
    yield _line(case, handed.origin, f"{handed.name}{handed.versions}")
    planned = case.plan.block(handed.block)
    label = planned.label if planned is not None else handed.block
    if case.catalog.distributions.get(handed.name) == handed.block:
        text = f"{label} brings it, in the build for this site; {BLOCK} leaves it out"
    else:
        text = f"{label} brings its own; {BLOCK} leaves it out"
    yield Ground(kind="block", text=text, place=case.catalog.block_origin(handed.block))


def _by_list(case: ExplainCase, listed: _Listed, asked: ProjectPackage | None) -> Iterator[Ground]:
    """The reason that a block's list contains it."""
    block, role = listed.block, role_of(listed.wheels.name)
    if block.name == BLOCK and asked is not None and not role:
        return
    by = f", pinned by {counted(len(listed.hashes), 'sha256')}" if listed.hashes else ", pinned by its version"
    how = {"source": "builds its source package, by", "tools": "builds others with it, by"}.get(
        role, "installs it with"
    )
    what = f"{block.label} {how} the list {listed.wheels.name}{by if listed.version else ''}"
    locked = case.lock is not None and listed.wheels.name in case.lock.pins.wheels
    place = "" if locked else case.release(block.name, block.version)
    yield Ground(kind="lock" if locked else "release", text=what, place=place)


def _lines(case: ExplainCase) -> Iterator[_Listed]:
    for block, item in case.assembly.inputs:
        if isinstance(item, Wheels):
            for line in item.requirements:
                name, version, hashes = parse_pin(line)
                yield _Listed(normal_name(name), block, item, version, hashes)


# which version


def _version(case: ExplainCase, package: ProjectPackage, version: str) -> Iterator[Ground]:
    if package.hashes:
        of = f", as the wheel {package.file}" if package.file else ""
        text = f"{package.name} {version} by {counted(len(package.hashes), 'hash')}{of}"
        yield Ground(kind="file", text=text, place=case.asked_files.shown(package.origin))
    elif case.lock is not None and version:
        yield Ground(kind="lock", text=f"{package.name} {version}: chosen by `hpcgen lock` within {package.asked}")
    elif package.version:
        yield Ground(kind="rule", text="by its version and no hash: `hpcgen lock` adds the hash")
    else:
        text = "no lock: the newest that fits on the day of the build; `hpcgen lock` pins one"
        yield Ground(kind="rule", text=text)


def _site(case: ExplainCase, package: ProjectPackage) -> Iterator[Ground]:
    """The facts that decide which of its files fits, and whether it runs."""
    yield case.fact("system.architecture", f"so it is for {_image(case)}")
    if vendor := gpu_vendor(package):
        whose = {"nvidia": "NVIDIA", "amd": "AMD", "intel": "Intel"}[vendor]
        yield case.fact("partitions.*.gpu.model", f"it is built for {whose} GPUs")
    project = case.plan.project
    assert project is not None
    alone = msgspec.structs.replace(case.plan, project=msgspec.structs.replace(project, packages=[package]))
    contract = msgspec.structs.replace(case_of(case.plan, case.catalog), plan=alone)
    for check in suits(contract):
        if check.outcome in ("broken", "doubtful"):
            yield case.fact(check.path, check.reason) if check.path else Ground(kind="rule", text=check.reason)
    if case.plan.site.network.mirrors.pip is not None:
        yield case.fact("network.mirrors.pip", "it is fetched from there")


# what was not taken


def _other_versions(case: ExplainCase, package: ProjectPackage) -> Iterator[Refused]:
    """Its versions in a lock for other images."""
    for file in case.asked_files.python:
        for each in file.requirements:
            if each.name != package.name:
                continue
            if each.version and each.version != package.version:
                yield Refused(what=f"{each.name} {each.version}", why=_marked(case, each), place=_shown(case, each))
            elif package.file and len(each.wheels) > 1:
                what = f"{counted(len(each.wheels) - 1, 'other wheel')} of {each.name} {each.version}"
                yield Refused(what=what, why=f"not for {_image(case)}, or less suited", place=_shown(case, each))


def _marked(case: ExplainCase, each: PackageRequirement) -> str:
    return f"not for {_image(case)}" + (f": {each.marker}" if each.marker else "")


def _shown(case: ExplainCase, each: PackageRequirement) -> str:
    return case.asked_files.shown(each.origin)


def _index_refused(case: ExplainCase, handed: HandedOver) -> Refused:
    what = f"{handed.name} of the package index"
    if case.catalog.distributions.get(handed.name) == handed.block:
        return Refused(what=what, why=f"pip knows neither GPU, driver nor MPI; {handed.block} chooses by them")
    return Refused(what=what, why=f"a second copy besides that of {handed.block}")
