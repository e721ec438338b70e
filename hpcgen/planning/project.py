"""Python packages of the user's files in a plan: what blocks bring of them, and what is installed as the files say.

Which packages a file means depends on the Python of the image, and which blocks there are on the packages. So blocks
are chosen for what the files ask for in the Python that there would be without it, and again where that changes then.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from hpcgen.blocks.requirements import Origin
from hpcgen.blocks.requirements import Requirement as Demand
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.yamlfile import Document
from hpcgen.core.errors import ConflictError, Position, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.project import (
    BLOCK,
    GitPackage,
    GitRequirement,
    HandedOver,
    PackageFile,
    PackageRequirement,
    Project,
    ProjectPackage,
)
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.package_names import normal_name
from hpcgen.core.support.wheel_tags import WheelTarget, as_numbers, best_wheel, minor_of
from hpcgen.planning.frameworks import absent_frameworks, framework_demands

Resolve = Callable[[Sequence[Demand], Mapping[str, str], Collection[str]], list[PlannedBlock]]
_ROUNDS = 4
OTHERS = 200
"""Maximum number of unsuitable wheels per package that messages list."""


class RequestedFiles(NamedTuple):
    """The files that a stack names, what they are called in messages, and the groups of them that are wanted.

    ``deciding``: blocks whose version is not for the files alone to say.
    """

    files: list[PackageFile]
    shown: Callable[[Position], Position | str]
    groups: tuple[str, ...]
    deciding: Collection[str] = ()


class _Selected(NamedTuple):
    """The packages of all files that are meant for a Python, and the block that brings each that one does.

    ``own``: blocks that bring none, because no table has what the files ask for: the index's wheels are installed.
    """

    packages: list[PackageRequirement]
    blocks: dict[str, str]
    own: set[str]


def asked_files(
    catalog: Catalog,
    stack: Stack,
    document: Document | None,
    said: Mapping[str, Mapping[str, str]],
    named: PackageFile | None = None,
) -> RequestedFiles | None:
    """The project's files that a stack, or ``--set``, names, and its own list; None if it has neither.

    named: packages that are not of a file and count as if they were.
    InputError: a file, or the list, has mistakes, each with its place.
    UnknownNameError: no file has a group of that name.
    """
    names = _option("files", stack, said)
    lines = _option("requirements", stack, said)
    if not names and not lines and named is None:
        return None
    files = catalog.project.packages(document, names, _option("without", stack, said)) if names else []
    folder = catalog.project.folder(document)
    if lines:
        files = [*files, _listed(lines, folder, document)]
    if named is not None:
        files = [*files, named]
    groups = tuple(dict.fromkeys(normal_name(each) for each in _option("groups", stack, said)))
    known = sorted({name for each in files for name in (*each.group_names, *each.default_groups)})
    problems = Problems()
    for name in groups:
        if name not in known:
            message = f"{' and '.join(names)} has no group or extra {name!r}"
            problems.add(message, f"{BLOCK}.groups", remedy=did_you_mean(name, known))
    problems.raise_as(UnknownNameError)
    from hpcgen.planning.own_wheels import deciding_blocks

    def shown(where: Position) -> Position | str:
        return Position(str(folder / where.file), where.line, where.column) if where.line else where.file

    return RequestedFiles(files, shown, groups, deciding_blocks(stack, said))


def _listed(lines: Sequence[str], folder: Path, document: Document | None) -> PackageFile:
    """The stack's own list, each line with its place in the stack's file, where it stands there."""
    from hpcgen.readers.folder import ProjectFolder
    from hpcgen.readers.requirements_txt import read_listed

    path = ("blocks", BLOCK, "options", "requirements")
    places = [
        document.position((*path, number))
        if document is not None and document.has(path)
        else Position(BLOCK, number, 1)
        for number in range(len(lines))
    ]
    at = [Position(Path(place.file).name, place.line, place.column) for place in places]
    return read_listed(ProjectFolder(folder), at[0].file, list(zip(at, lines, strict=True)))


def _option(name: str, stack: Stack, said: Mapping[str, Mapping[str, str]]) -> list[str]:
    """A list among the options of the block, as it would be."""
    block = stack.blocks.get(BLOCK)
    if name in said.get(BLOCK, {}):
        return [each for each in said[BLOCK][name].split(",") if each]
    value = block.options.get(name) if block is not None else None
    return [str(each) for each in value] if isinstance(value, list) else []


def resolved_with(
    asked: RequestedFiles, catalog: Catalog, architecture: str, said: Collection[str], resolve: Resolve
) -> list[PlannedBlock]:
    """The blocks of a plan, with those that bring packages of the files.

    said: blocks whose version ``--set`` names, which then decides, whatever a file says.
    resolve: chooses the blocks, with further requirements, versions of blocks that are tried first, and blocks of the
        stack that give way to the project's own wheels.
    ConflictError: the packages hang on the Python, and the Python on the blocks that bring them.
    """
    fixed = list(_pythons(asked))
    blocks = resolve(fixed, {}, _selected(asked, catalog, "3", architecture).own)
    before: set[tuple[str, str, str]] = set()
    with_wheels: dict[str, Demand] = {}
    for _ in range(_ROUNDS):
        selected = _selected(asked, catalog, _python(blocks), architecture)
        with_wheels |= {
            each.origin.by: each for each in _wheel_pythons(selected, catalog, _python(blocks), architecture)
        }
        demands = [*_demands(asked, selected, catalog, said), *with_wheels.values()]
        same = {(each.identifier, each.origin.by, str(each)) for each in demands}
        if same == before:
            return blocks
        before = same
        blocks = resolve([*fixed, *demands], _locked_versions(selected), selected.own)
    raise ConflictError(
        "the Python version and the packages of the files depend on each other",
        remedy="fix the Python version: --set python.version=RANGE",
    )


def _python(blocks: Sequence[PlannedBlock]) -> str:
    return next((each.version for each in blocks if each.name == "python"), "3")


def _pythons(asked: RequestedFiles) -> list[Demand]:
    """The ranges of Pythons that the files are for."""
    demands = []
    for file in asked.files:
        if file.requires_python:
            origin = Origin(f"the project by {_origin(file.python_where, file.file)}", kind="file")
            demands.append(Demand("python", {"python": file.requires_python}, origin, demanded=False))
    return demands


def _wheel_pythons(selected: _Selected, catalog: Catalog, python: str, architecture: str) -> Iterator[Demand]:
    """Other Pythons, for packages of which no release that the files accept has wheels for this one."""
    minor = minor_of(python)
    facts = catalog.beside.wheel_facts()
    for each in selected.packages:
        released = facts.pythons.get(each.name, {}).get(architecture, {})
        if each.name in selected.blocks or as_numbers(minor) > facts.newest_python():
            continue
        fitting = sorted((one for one in released if _can_have(each, released[one])), key=as_numbers)
        if fitting and minor not in fitting:
            newest = as_numbers(fitting[-1])
            versions = f">={fitting[0]},<{newest[0]}.{newest[1] + 1}"
            origin = Origin(f"{each.asked} of {each.origin}, by its wheels,", kind="file")
            yield Demand("python", {"python": versions}, origin, demanded=False)


def _can_have(asked: PackageRequirement, released: str) -> bool:
    """Whether releases in a range may be among those that are asked for."""
    from packaging.specifiers import SpecifierSet

    from hpcgen.recipe.version_choice import can_hold

    return can_hold(SpecifierSet(asked.specifier) & SpecifierSet(released))


def _demands(asked: RequestedFiles, selected: _Selected, catalog: Catalog, said: Collection[str]) -> list[Demand]:
    """The files' requirements on blocks that provide packages."""
    from hpcgen.readers.pip_text import public_range

    demands = []
    for each in selected.packages:
        block = selected.blocks.get(each.name)
        if block is not None:
            asks = _range(asked, each)
            origin = Origin(f"{each.name}{asks} of {each.origin}{_without_range(asked, each)}", kind="file")
            versions = {block: "" if block in said else public_range(asks)}
            demands.append(Demand(catalog.identifier(block), versions, origin, {}))
        else:
            by = f"{each.asked} of {each.origin}"
            demands += framework_demands(catalog, each.name, each.extras, by, without=selected.own)
    return demands


def _range(asked: RequestedFiles, package: PackageRequirement) -> str:
    """The range that the project asks for; for a lock the project's own range, if the lock has it."""
    return next((file.ranges[package.name] for file in asked.files if package.name in file.ranges), package.specifier)


def _without_range(asked: RequestedFiles, package: PackageRequirement) -> str:
    """The remark that only the locked version is accepted, because the project's range is not known; else empty."""
    known = any(package.name in file.ranges for file in asked.files)
    of = next((file for file in asked.files if package in file.requirements), None)
    return "" if known or of is None or not of.locked else " (locked, with no range of the project beside it)"


def _locked_versions(selected: _Selected) -> dict[str, str]:
    """The version that a lock has of what a block brings, which is tried first where a range allows others too."""
    named = {block: each.version for each in selected.packages if (block := selected.blocks.get(each.name))}
    return {block: version.partition("+")[0] for block, version in named.items() if version}


def _selected(asked: RequestedFiles, catalog: Catalog, python: str, architecture: str) -> _Selected:
    """The packages of all files, locked ones before mere requests."""
    from hpcgen.planning.own_wheels import unlisted_blocks
    from hpcgen.readers.locked import selected

    def those(owned: Mapping[str, str]) -> list[PackageRequirement]:
        return [each for file in asked.files for each in selected(file, python, architecture, asked.groups, owned)]

    owned = catalog.distributions
    packages = those(owned)
    of_blocks = [(owned[each.name], _range(asked, each)) for each in packages if each.name in owned]
    own = unlisted_blocks(catalog, of_blocks, asked.deciding)
    if own:
        owned = {name: block for name, block in owned.items() if block not in own}
        packages = those(owned)
    return _Selected(packages, owned, own)


# what is installed as the files say


def project_of(asked: RequestedFiles, catalog: Catalog, blocks: Sequence[PlannedBlock], architecture: str) -> Project:
    """The plan's record of the files, for the chosen Python and base.

    ConflictError: two files want different versions of one package; each with both lines.
    """
    python = _python(blocks)
    glibc = str(catalog.release(blocks[0]).values.get("glibc", "2.17"))
    target = WheelTarget(python, architecture, glibc)
    wanted, provided, own_wheels = _selected(asked, catalog, python, architecture)
    from_git = [each for each in wanted if isinstance(each, GitRequirement)]
    held = [each for file in asked.files for each in file.constraints]
    owners = {each.name: provided[each.name] for each in wanted if each.name in provided}
    companions = {pattern: block for block in sorted(owners.values()) for pattern in catalog.block(block).companions}
    tools = dict.fromkeys(catalog.block("python").companions, "python")
    own: dict[str, list[PackageRequirement]] = {}
    handed: list[HandedOver] = []
    for each in wanted:
        if each.name in owners:
            versions = _range(asked, each)
            handed.append(HandedOver(name=each.name, origin=each.origin, block=owners[each.name], versions=versions))
        elif block := _brought(each.name, {**companions, **tools} if each.hashes else companions):
            # Locks have setuptools for packages that need it; what a line asks for by itself is held to that.
            handed.append(HandedOver(name=each.name, origin=each.origin, block=block))
        elif not isinstance(each, GitRequirement):
            own.setdefault(each.name, []).append(each)
    problems = Problems()
    for each in from_git:
        if each.name in owners:
            message = f"{each.name} comes from the block {owners[each.name]}, not from a repository"
            remedy = f"name a release of it: {each.name}==VERSION; hpcgen show block {owners[each.name]} lists them"
            problems.add(message, asked.shown(each.where), remedy=remedy)
    packages = [_package(each, asked, held, target, problems) for _, each in sorted(own.items())]
    problems.raise_as(ConflictError)
    pythons = [file for file in asked.files if file.requires_python]
    return Project(
        files={path: digest for file in asked.files for path, digest in file.read.items()},
        groups=sorted(asked.groups),
        hashed=bool(packages) and all(each.version and each.hashes for each in packages),
        packages=packages,
        constraints=sorted({each.asked for each in held if each.name not in own and each.name not in owners}),
        handed_over=sorted(handed, key=lambda each: (each.name, each.origin)),
        python=pythons[0].requires_python if pythons else "",
        python_origin=_origin(pythons[0].python_where, pythons[0].file) if pythons else "",
        from_git=[GitPackage.of(each) for each in from_git],
        absent=absent_frameworks(catalog, (each.name for each in blocks), own_wheels),
        notes=[f"{_origin(note.where, '')}: {note.text}" for file in asked.files for note in file.notes],
    )


def _origin(where: Position | None, file: str) -> str:
    return f"{where.file}:{where.line}" if where is not None else file


def _brought(name: str, companions: Mapping[str, str]) -> str:
    """The block that provides a package; empty if none does."""
    return next((block for pattern, block in companions.items() if fnmatchcase(name, pattern)), "")


def _package(
    several: Sequence[PackageRequirement],
    asked: RequestedFiles,
    held: Sequence[PackageRequirement],
    target: WheelTarget,
    problems: Problems,
) -> ProjectPackage:
    """One package of which files may speak several times."""
    locked = next((each for each in several if each.version and (each.hashes or each.wheels)), None)
    first = locked or several[0]
    ranges = [*several, *(each for each in held if each.name == first.name)]
    for each in ranges:
        if first.version and each is not first and not _accepts(each, first.version):
            problems.add(
                f"{each.asked} does not go with {first.name} {first.version} of {first.origin}",
                asked.shown(each.where),
                "one version of each package",
                "regenerate the lock, or name only one of the files",
            )
    direct = _is_direct(asked, first.name)
    if locked is not None:
        return replace(_of_lock(locked, target), direct=direct)
    extras = sorted({extra for each in several for extra in each.extras})
    joint = ",".join(dict.fromkeys(part for each in ranges for part in each.specifier.split(",") if part))
    said = f"{first.name}{'[' + ','.join(extras) + ']' if extras else ''}{joint}"
    return ProjectPackage(
        name=first.name,
        asked=said,
        origin=first.origin,
        version=first.version,
        hashes=first.hashes,
        direct=direct,
    )


def _is_direct(asked: RequestedFiles, name: str) -> bool:
    """Whether a file names a package for the project: a list does, a lock where it says what the project needs."""
    for file in asked.files:
        listed = (each.name for named in (file.requirements, *file.groups.values()) for each in named)
        if name in ({*file.ranges, *(need.name for need in file.roots)} if file.locked else set(listed)):
            return True
    return False


def _accepts(asked: PackageRequirement, version: str) -> bool:
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(asked.specifier).contains(version, prereleases=True)


def _of_lock(locked: PackageRequirement, target: WheelTarget) -> ProjectPackage:
    """A locked package with the wheel that is for this image, if the lock names wheels."""

    by_file = {each.file: each for each in locked.wheels}
    best = best_wheel(by_file, target) if by_file else None
    hashes = locked.hashes
    if best is not None and (known := by_file[best].sha256) is not None:
        hashes = [known]
    elif by_file and locked.sdist is not None and locked.sdist.sha256 is not None:
        hashes = [locked.sdist.sha256]
    return ProjectPackage(
        name=locked.name,
        asked=f"{locked.name}=={locked.version}",
        origin=locked.origin,
        version=locked.version,
        hashes=hashes,
        file=best or "",
        others=[] if best else sorted(by_file)[:OTHERS],
        sdist=locked.sdist.file if locked.sdist is not None else "",
    )
