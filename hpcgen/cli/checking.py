"""Check one file whatever its kind: site profile, stack recipe, release table, block, or what plug-ins read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import msgspec

from hpcgen.blocks.options import option_problems
from hpcgen.blocks.requirements import in_range
from hpcgen.blocks.requirements import version as version_of
from hpcgen.blocks.ways import wheel_tags
from hpcgen.catalog.block_checks import is_empty, key_problems, right_part
from hpcgen.catalog.catalog import Catalog, Virtuals
from hpcgen.catalog.checks import check_stack
from hpcgen.catalog.copied import check_copied
from hpcgen.catalog.project import CONDA, SPACK
from hpcgen.catalog.trust import Allow, refuse
from hpcgen.cli.plugged import FileKind, file_kinds
from hpcgen.cli.project_stack import PROJECT
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, Document, load
from hpcgen.core.errors import InputError, Position, Problem, Problems, did_you_mean
from hpcgen.core.model.fields import Record
from hpcgen.core.model.mpi_packages import MpiPackageTable
from hpcgen.core.model.project import BLOCK as PYTHON
from hpcgen.core.model.release import (
    AssumedDrivers,
    Beside,
    Concern,
    DatedImage,
    MeasuredDefaults,
    Release,
    ReleaseTable,
    ReleaseWay,
)
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack, StackBlock
from hpcgen.core.support.package_names import licence_expression
from hpcgen.planning.code import with_code

KINDS = {
    "virtuals": "list of providers",
    "drivers": "table of drivers",
    "measured_defaults": "table of measured defaults",
    "mpi_packages": "table of packages with an MPI",
    "block": "release table",
    "blocks": "stack recipe",
    "run": "stack recipe",
    "system": "site profile",
}
"""A key that only one kind of file has, and that kind; :func:`~hpcgen.cli.plugged.file_kinds` has those of plug-ins."""


WHEELS = "building_blocks/wheels"
COLLECTED = {
    "site_profiles": (".yaml",),
    "recipes": (".yaml",),
    "building_blocks": (".yaml", ".py"),
    WHEELS: (".txt",),
    "engines": (".py",),
    "schedulers": (".py",),
    "launchers": (".py",),
    "formats": (".py",),
    "measurements": (".yaml", ".jsonl"),
}
"""Folders of a collection, each with the endings of its files that are checked."""


def collection_of(folder: Path) -> Path:
    """The collection that is meant by a folder: itself, or the one that it is a part of."""
    return folder.resolve().parents[_part(folder).count("/")] if _part(folder) in COLLECTED else folder


def code_of(path: Path) -> Path:
    """The collection whose Python runs where a folder of it, or a Python file in it, is checked."""
    return collection_of(path) if path.is_dir() else path.resolve().parent.parent


def collected_files(folder: Path) -> list[Path]:
    """The files of a collection, or of one folder in it, that can be checked; InputError where it is none."""
    part = _part(folder)
    folders = {folder: COLLECTED[part]} if part in COLLECTED else {folder / name: COLLECTED[name] for name in COLLECTED}
    files = [
        path for each, endings in folders.items() for path in sorted(each.glob("[!_.]*.*")) if path.suffix in endings
    ]
    files += [path for path in [folder / "fleet.yaml"] if path.is_file()]
    if not files:
        expected = f"a collection, with files in any of {', '.join(COLLECTED)}"
        raise InputError("nothing to check in this folder", str(folder), expected)
    return files


def _part(folder: Path) -> str:
    """What a folder is called in its collection, if it is one of those that are checked."""
    name = folder.resolve().name
    return WHEELS if f"{folder.resolve().parent.name}/{name}" == WHEELS else name


def check_file(
    catalog: Catalog, path: Path, allow: Allow = refuse, profiles: list[Document] | None = None
) -> list[Site]:
    """Check a file; the sites that images are built for by it: of a profile, or of a fleet's members.

    allow: whether the Python of a fleet's own collections may run.
    profiles: gets a profile with its parents merged in.
    InputError: every mistake of the file.
    """
    if path.suffix == ".py":
        if not path.is_file():
            raise InputError(
                "there is no such file, or it is not a regular one", str(path), remedy="check the spelling of its path"
            )
        from hpcgen.cli.block_trial import trial

        own = code_of(path)
        trial(path.resolve(), [own, *(each for each in catalog.folders[:-1] if each.resolve() != own)])
        return []
    if path.suffix == ".txt":
        from hpcgen.catalog.beside_blocks import read_wheel_list

        read_wheel_list(path, str(path))
        return []
    for each in file_kinds():
        if each.ending and path.suffix == each.ending:
            return each.check(None, path, catalog.folders[:-1], allow)
    small = path.resolve().parent.name in ("site_profiles", "recipes")
    document = load(path, str(path)) if small else load(path, str(path), LONG_LIST)
    kind = _kind(document, path)
    if kind == "site profile":
        merged = catalog.with_parents(document, (str(document.data.get("name", path.stem)),))
        site = _check_site(catalog, merged)
        if profiles is not None:
            profiles.append(merged)
        return [site]
    if kind == "stack recipe":
        name = str(document.data.get("name", path.stem))
        _check_stack(catalog, catalog.with_parents(document, (name,), "stack"))
    elif kind == "release table":
        check_release_table(catalog, document)
    elif isinstance(kind, FileKind):
        return kind.check(document, path, catalog.folders[:-1], allow)
    else:
        convert(document, _TABLES.get(kind, Virtuals))
    return []


_TABLES: dict[str, type[Record]] = {
    "table of drivers": AssumedDrivers,
    "table of measured defaults": MeasuredDefaults,
    "table of packages with an MPI": MpiPackageTable,
}


def _kind(document: Document, path: Path) -> str | FileKind:
    folder = path.resolve().parent.name
    if folder == "site_profiles":
        return "site profile"
    if folder == "recipes" or path.name == PROJECT:
        return "stack recipe"
    for key, kind in KINDS.items():
        if key in document.data:
            return kind
    for each in file_kinds():
        if each.key in document.data:
            return each
    if "extends" in document.data or "partitions" in document.data:
        return "site profile"
    *known, last = (f"{each.words} (with {each.key}:)" for each in file_kinds())
    own = "a site profile (with system:), a stack recipe (with blocks:), a release table (with block:)"
    raise InputError(
        "this is not a file that hpcgen reads",
        where=document.position(),
        expected=f"{', '.join([own, *known])} or {last}",
    )


def _check_site(catalog: Catalog, merged: Document) -> Site:
    problems = Problems()
    if merged.data.get("abstract") is True:
        from hpcgen.catalog.block_checks import completed, own_problems

        merged = completed(merged)
        try:
            site = catalog.site_from(merged)
        except InputError as error:
            raise InputError(own_problems(error)) from None
    else:
        merged = right_part(merged, Site, problems)
        with problems.caught():
            catalog.site_from(merged)
        site = convert(merged, Site)
    from hpcgen.backends.hardware.microarchitecture import has_feature

    bases, preferred = catalog.virtuals["base"], site.image.distribution
    if preferred is not None and preferred not in bases:
        place = merged.position(["image", "distribution"])
        problems.add(f"no distribution is called {preferred!r}", place, remedy=did_you_mean(preferred, bases))
    for partition, facts in site.partitions.items():
        with problems.caught(partial(merged.position, ["partitions", partition, "cpu", "target"])):
            has_feature(facts.cpu.target, "sse2")
    problems.raise_as(InputError)
    return site


def _check_stack(catalog: Catalog, document: Document) -> None:
    """As the planner does, and the options of all blocks that the stack names."""
    problems = Problems()
    document = right_part(document, Stack, problems)
    stack = convert(document, Stack)
    with problems.caught():
        check_stack(stack, document, catalog)
    with problems.caught():
        check_copied(stack, document)
    with problems.caught():
        with_code(stack, document)
    with problems.caught():
        _check_files(catalog, stack, document)
    for name, block in stack.blocks.items():
        if block.version:
            with problems.caught(partial(document.position, ["blocks", name, "version"])):
                _check_some_release(catalog, name, block)
        if block.options and name not in catalog.virtuals and catalog.has_block(name):
            with problems.caught():
                where = partial(_option_place, document, name)
                problems += option_problems(catalog.block(name), block.options, where)
    problems.raise_as(InputError)


def _check_files(catalog: Catalog, stack: Stack, document: Document) -> None:
    """Files of the project that blocks take are there, and have no mistakes."""
    problems = Problems()
    project = catalog.project
    for name, read in ((PYTHON, project.packages), (CONDA, project.conda), (SPACK, project.spack)):
        files = stack.blocks[name].options.get("files") if name in stack.blocks else None
        if isinstance(files, list):
            with problems.caught():
                read(document, files)
    problems.raise_as(InputError)


def _check_some_release(catalog: Catalog, name: str, asked: StackBlock) -> None:
    """InputError where no release of a block, or of what may stand for a virtual, lies in the stack's range."""
    meant = catalog.virtuals.get(name, [name]) if asked.provider is None else [asked.provider]
    releases = [version for each in meant if catalog.has_block(each) for version in catalog.releases(each)]
    try:
        there = any(in_range(version, asked.version) for version in releases)
    except InputError:
        return  # told as a mistake of the range or of the release table
    if releases and not there:
        known = ", ".join(sorted(releases, key=version_of))
        raise InputError(f"no release of {' or '.join(meant)} matches {asked.version!r}", expected=f"one of {known}")


def _option_place(document: Document, block: str, option: str) -> Position:
    return document.position(["blocks", block, "options", option])


def check_release_table(catalog: Catalog, document: Document) -> None:
    """Versions are versions, ranges of blocks that exist, licences SPDX expressions; each digest is of one image."""
    table = convert(document, ReleaseTable)
    problems = Problems(_licence_problems(document, table.licence, ["licence"]))
    problems += _circle_problems(catalog, document, table.block)
    problems += _key_problems(catalog, document, table)
    problems += _concern_problems(catalog, document, table.block, table.concerns, ["concerns"])
    for number, beside in enumerate(table.beside):
        problems += _range_problems(catalog, document, beside, ["beside", number])
    for text, release in table.releases.items():
        problems += _licence_problems(document, release.licence, ["releases", text, "licence"])
        problems += _digest_problems(document, release, ["releases", text, "images"])
        problems += _concern_problems(catalog, document, table.block, release.concerns, ["releases", text, "concerns"])
        for name, tree in release.trees.items():
            problems += _licence_problems(document, tree.licence, ["releases", text, "trees", name, "licence"])
        problems += _range_problems(catalog, document, release, ["releases", text])
        for number, beside in enumerate(release.beside):
            problems += _range_problems(catalog, document, beside, ["releases", text, "beside", number])
        for number, way in enumerate(release.ways):
            problems += _range_problems(catalog, document, way, ["releases", text, "ways", number])
            problems += _wheel_problems(document, way, ["releases", text, "ways", number, "wheels"])
    problems.raise_as(InputError)


def _range_problems(
    catalog: Catalog, document: Document, row: Release | ReleaseWay | Beside, path: list[str | int]
) -> list[Problem]:
    """Ranges in which nothing lies, and names that nothing has, of a row, one of its ways, or what goes beside it."""
    known = {"accepts": [*catalog.names("block"), *catalog.virtuals], "on": catalog.virtuals.get("base", [])}
    problems = Problems()
    for part in ("accepts", "on", "host"):
        for name, versions in getattr(row, part, {}).items():
            if name not in known.get(part, [name]):
                place = document.position([*path, part, name], key=True)
                what = "block" if part == "accepts" else "distribution"
                problems.add(f"no {what} is called {name!r}", place, remedy=did_you_mean(name, known[part]))
            with problems.caught(partial(document.position, [*path, part, name])):
                _check_range(versions)
    return problems


def _wheel_problems(document: Document, way: ReleaseWay, path: list[str | int]) -> Iterator[Problem]:
    """Addresses that do not end in the name of a wheel, by which its Python and architecture are known."""
    for number, wheel in enumerate(way.wheels):
        if wheel_tags(wheel.url) is None:
            place = document.position([*path, number, "url"])
            expected = "an address ending in a name such as torch-2.9.1%2Bcpu-cp312-cp312-manylinux_2_28_x86_64.whl"
            yield Problem(f"{wheel.url} is not the address of a wheel for Linux", place, expected)


def _key_problems(catalog: Catalog, document: Document, table: ReleaseTable) -> list[Problem]:
    """Keys that are not versions of releases, at their places."""
    others = [key for other in catalog.release_documents(table.block) for key in other.data.get("releases") or ()]
    found = key_problems(table.releases, map(str, others))
    return [problem.at(document.position(["releases", text], key=True)) for text, problem in found]


def _check_range(versions: str) -> None:
    """InputError where this is no range, or one that leaves nothing; an empty one leaves everything."""
    if versions and is_empty(versions):
        message = f"no version matches {versions!r}"
        raise InputError(message, expected="a range such as >=2.3,<2.16", remedy="correct one of its bounds")


def _concern_problems(
    catalog: Catalog, document: Document, block: str, concerns: Sequence[Concern], path: list[str | int]
) -> Iterator[Problem]:
    """Concerns that can hold for nothing: their range is empty, or they ask an option that the block has not."""
    options = msgspec.structs.fields(catalog.block(block).Options) if catalog.has_block(block) else ()
    known = [field.encode_name for field in options]
    for index, concern in enumerate(concerns):
        problems = Problems()
        with problems.caught(partial(document.position, [*path, index, "versions"])):
            _check_range(concern.versions)
        yield from problems
        for option in concern.only.keys() - set(known):
            place = document.position([*path, index, "only", option], key=True)
            yield Problem(f"{block} has no option {option!r}", place, remedy=did_you_mean(option, known))


def _circle_problems(catalog: Catalog, document: Document, block: str) -> list[Problem]:
    """Whether a block needs itself, by way of needs that hold in any case."""
    if not catalog.has_block(block):
        return []
    open_, seen = [(block, [block])], {block}
    while open_:
        name, path = open_.pop()
        for need in catalog.block(name).needs:
            if need.when is not None or need.name in catalog.virtuals or not catalog.has_block(need.name):
                continue
            if need.name == block:
                way = ", which needs ".join([*path[1:], block])
                message = f"{block} needs {way}: none of them can be built first"
                return [Problem(message, document.position(["block"]), remedy="remove one of these needs")]
            if need.name not in seen:
                seen.add(need.name)
                open_.append((need.name, [*path, need.name]))
    return []


def _digest_problems(document: Document, release: Release, path: list[str]) -> Iterator[Problem]:
    """Digests of dated images that stand for two things: an index and manifests, each of its own architecture."""
    for use, image in release.images.items():
        if isinstance(image, DatedImage):
            seen = {image.digest: "the index"}
            for platform, digest in image.platforms.items():
                if digest in seen:
                    place = document.position([*path, use, "platforms", platform])
                    message = f"{image.dated}: {seen[digest]} and {platform} have the same digest"
                    yield Problem(message, place, remedy="look them up again: every manifest has its own")
                seen.setdefault(digest, platform)


def _licence_problems(document: Document, text: str, path: list[str]) -> list[Problem]:
    if not text or licence_expression(text):
        return []
    return [
        Problem(
            f"{text!r} is not an SPDX licence expression",
            where=document.position(path),
            expected="identifiers of spdx.org/licenses with AND, OR and WITH, such as BSD-3-Clause OR GPL-2.0-only",
            remedy="correct it, call a licence that is not listed LicenseRef-NAME, or omit it if it is unknown",
        )
    ]
