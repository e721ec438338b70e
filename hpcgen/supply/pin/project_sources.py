"""Source packages that a project's own lock names: what their builds require is read from their files, and pinned.

The project's lock says what they require themselves. What cannot be pinned stays in the project's list, where pip
fetches what the build requires by itself: nothing is refused that a plan accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from hpcgen.blocks.inputs.wheels import with_sources
from hpcgen.core.model.plan import Plan
from hpcgen.core.model.project import LOCKED, ProjectPackage
from hpcgen.core.support.leftovers import scratch_folder
from hpcgen.core.support.wheel_tags import WheelTarget
from hpcgen.recipe.stages import Assembly
from hpcgen.supply.net.package_index import PackageIndex
from hpcgen.supply.pin.source_lists import UnbuildableError, source_lists
from hpcgen.supply.pin.source_metadata import UnknownSource, read_source
from hpcgen.supply.pin.source_offers import fetched_source
from hpcgen.supply.pin.uv_resolver import Resolved

_AT_ONCE = 8


def project_sources(
    plan: Plan,
    loose: Assembly,
    target: WheelTarget,
    kept: Mapping[str, Sequence[str]],
    say: Callable[[str], None],
) -> dict[str, list[str]]:
    """Hashed lines by the name of their list; none where the project's files name wheels alone.

    ``kept``: lists of an older lock, which stay where they have the same packages.
    """
    project = plan.project
    built = [each for each in project.packages if each.as_source] if project is not None and project.hashed else []
    if {each.line for each in built} == {line for name in with_sources(LOCKED, kept) for line in kept[name]}:
        return {name: list(kept[name]) for name in with_sources(LOCKED, kept, tools=True)}
    found = _read(built, say)
    folder = next((each.folder for each in loose.installed if each.wheels.name == LOCKED), "")
    beside = [each.wheels for each in loose.installed if each.wheels.hashed and each.folder == folder]
    there = sorted({line for each in beside for line in each.requirements} - {each.line for each in built})
    while found:
        try:
            return source_lists(LOCKED, found, there, target, plan.block("gnu") is not None, say)
        except UnbuildableError as failure:
            for each in failure.packages:
                _warn(each.name, each.version, "it is not available as wheels", say)
            found = [each for each in found if each not in failure.packages]
    return {}


def _read(packages: Sequence[ProjectPackage], say: Callable[[str], None]) -> list[Resolved]:
    """Those of which it is known how they are built."""
    if not packages:
        return []
    index = PackageIndex()
    with scratch_folder("hpcgen-sources-") as folder, ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = list(pool.map(partial(_said, index=index, folder=folder), packages))
    for package, answer in zip(packages, answers, strict=True):
        if isinstance(answer, str):
            _warn(package.name, package.version, answer, say)
    return [each for each in answers if isinstance(each, Resolved)]


def _said(package: ProjectPackage, index: PackageIndex, folder: Path) -> Resolved | str:
    """What the file of a package says; else why that is not known."""
    sha256 = package.hashes[0].removeprefix("sha256:")
    files = index.files(package.name, package.version)
    file = next((each for each in files if sha256 in (each.sha256, index.own_hash(each))), None)
    if file is None:
        return "no package index has its file"
    try:
        source = read_source(fetched_source(file, sha256, index, folder), package.name, needed=False)
    except UnknownSource as why:
        return str(why)
    return Resolved(package.name, package.version, file.file, sha256, source)


def _warn(name: str, version: str, why: str, say: Callable[[str], None]) -> None:
    say(
        f"warning: the build requirements of {name} {version} are not pinned ({why}); pip fetches them during the build"
    )
