"""What an image will hold and what only builds it, from its lock: the part that both kinds of SBOM share.

Held is what the final stage has: the base image with its packages, packages added, Python packages of the folders that
are copied over, what is compiled or unpacked, programs of hpcgen's own. All else that the lock names builds it and is
gone: said too, and marked so. What sources bundle inside themselves, nobody here knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

import msgspec
from packaging.utils import canonicalize_name

from hpcgen.blocks.steps import Archive, BazelFile, BazelFiles, GitTree, Wheels
from hpcgen.catalog.catalog import Catalog
from hpcgen.model.bundle import BundleItem
from hpcgen.model.lock import Lock, StageName
from hpcgen.model.plan import PlannedBlock
from hpcgen.recipe.assemble import assemble
from hpcgen.recipe.formats.docker import qualified
from hpcgen.recipe.stages import Assembly, Stage
from hpcgen.sbom import purl
from hpcgen.support.spdx_expressions import licence_expression

Kind = Literal["image", "system", "package", "python", "software", "program", "file"]
"""``system``: the distribution. ``software``: from an archive or git. ``program``: of hpcgen or a block's own text."""

OWN_LICENCE = "Apache-2.0"
"""hpcgen's, of its scripts in the image."""


COMPILED = "compiled from its source package while the image is built; the hash is that package's"


class Component(msgspec.Struct, frozen=True):
    """One thing with a version.

    Parameters
    ----------
    ref: unique in the SBOM. block: the block that it is of, empty for OS packages and the base.
    sha256: of the file that it came in. url: where that file is fetched from, where the lock says so.
    where: the folder of the image that it is in, empty if it is spread.
    note: what a reader of the SBOM should know.
    """

    ref: str
    kind: Kind
    name: str
    version: str
    purl: str = ""
    licence: str = ""
    sha256: str = ""
    url: str = ""
    block: str = ""
    where: str = ""
    note: str = ""


class Contents(msgspec.Struct):
    """``held`` is in the image, ``tools`` built it; ``inside`` are refs of what the base image brought itself.

    ``needs``: refs of what a thing needs at run time, by its ref, as far as blocks say.
    """

    held: list[Component]
    tools: list[Component]
    inside: list[str]
    needs: dict[str, list[str]]


def contents(lock: Lock, items: Sequence[BundleItem], catalog: Catalog) -> Contents:
    """Everything that the lock says of the image.

    Parameters
    ----------
    items: of the bundle, which know licences that lock and tables do not.
    """
    assembly = assemble(lock.plan, catalog, lock.pins)
    files = {item.sha256: item for item in items}
    maker = _Maker(lock, catalog, assembly, files)
    held: dict[str, Component] = {}
    tools: dict[str, Component] = {}
    inside = maker.packages("final", present=True)
    for part in (maker.base("final"), inside, maker.packages("final"), maker.python(held=True), maker.own()):
        held |= {component.ref: component for component in part}
    for component, kept in maker.sources():
        (held if kept else tools)[component.ref] = component
    gone = (maker.base("builder"), maker.packages("builder", present=True), maker.packages("builder"))
    for part in (*gone, maker.python(held=False), maker.bazel_files()):
        tools |= {component.ref: component for component in part if component.ref not in held}
    return Contents(
        held=sorted(held.values(), key=_order),
        tools=sorted(tools.values(), key=_order),
        inside=sorted(component.ref for component in inside if held[component.ref] == component),
        needs=maker.needs(held.values()),
    )


def _order(component: Component) -> tuple[str, str, str]:
    return component.kind, component.name, component.ref


class _Maker:
    """Makes the components of one lock."""

    def __init__(self, lock: Lock, catalog: Catalog, assembly: Assembly, files: Mapping[str, BundleItem]) -> None:
        self.lock, self.catalog, self.assembly, self.files = lock, catalog, assembly, files
        base = lock.plan.blocks[0]
        self.distribution, self.release = base.name, base.version

    def base(self, stage: StageName) -> list[Component]:
        """The image that a stage starts from, and the distribution in it."""
        image = self._stage(stage).image
        pin = self.lock.pins.images.get(image.name)
        digest = pin.digest if pin is not None else image.digest
        address = purl.image(qualified(image.name), digest, self.lock.plan.site.system.architecture)
        system = Component(f"system:{self.distribution}", "system", self.distribution, self.release)
        where = Component(
            f"image:{image.name}",
            "image",
            image.name,
            digest or "not pinned",
            purl=address,
            sha256=digest.removeprefix("sha256:"),
            note="the base image; the digest is that of its manifest",
        )
        return [where, system]

    def packages(self, stage: StageName, present: bool = False) -> list[Component]:
        """OS packages: those of the base image, or those that the build adds."""
        pinned = self.lock.pins.packages.get(stage)
        if pinned is None:
            return []
        if present:
            kept = {name: version for name, version in pinned.present.items() if name not in pinned.added}
            return [self._package(name, version) for name, version in kept.items()]
        return [
            self._package(name, pin.version, pin.architecture, pin.sha256, pin.url)
            for name, pin in pinned.added.items()
        ]

    def _package(self, name: str, version: str, arch: str = "", sha256: str = "", url: str = "") -> Component:
        return Component(
            f"package:{name}@{version}",
            "package",
            name,
            version,
            purl=purl.debian_package(self.distribution, self.release, name, version, arch),
            licence=self._licence(sha256),
            sha256=sha256,
            url=url,
        )

    def python(self, *, held: bool) -> list[Component]:
        """Python packages in folders that the final stage takes over, or in others; the last of a name stays."""
        lists = {item.name: (block, item) for block, item in self.assembly.inputs if isinstance(item, Wheels)}
        found: dict[tuple[str, str], Component] = {}
        for each in (installed for _, step in self.assembly.builder.steps for installed in step.installs):
            folder = each.folder
            if each.name not in lists or self._copied(folder) != held:
                continue
            block, wheels = lists[each.name]
            for line in wheels.requirements:
                component = self._python(block, wheels.name, line, folder)
                if each.compiled:
                    component = msgspec.structs.replace(component, note=COMPILED)
                found[folder, canonicalize_name(component.name)] = component
        return list(found.values())

    def _python(self, of: PlannedBlock, listing: str, line: str, folder: str) -> Component:
        name, version, hashes = parse_pin(line)
        known = [digest for digest in hashes if digest in self.files] or (hashes if len(hashes) == 1 else [])
        sha256 = known[0] if known else ""
        block = of.name
        # A list is named after the package that it is for; its other lines are what that needs.
        leads = canonicalize_name(name).startswith(canonicalize_name(block)) and listing.startswith(f"{name}-{version}")
        own = leads or folder == f"/opt/{block}"
        return Component(
            f"python:{folder}:{canonicalize_name(name)}@{version}",
            "python",
            name,
            version,
            purl=purl.python_package(name, version),
            licence=self._licence(sha256) or (self._table_licence(of) if own else ""),
            sha256=sha256,
            block=block if own else "",
            where=folder,
        )

    def sources(self) -> Iterator[tuple[Component, bool]]:
        """What comes from archives and git trees, each with whether the image holds it."""
        for block, item in self.assembly.inputs:
            if isinstance(item, Archive):
                yield self._archive(block, item), not block.build_only
            elif isinstance(item, GitTree):
                yield self._tree(block, item), not block.build_only

    def _archive(self, of: PlannedBlock, archive: Archive) -> Component:
        block, version = of.name, of.version
        count = sum(1 for other, item in self.assembly.inputs if other is of and isinstance(item, Archive))
        name = block if count == 1 else archive.name
        return Component(
            f"software:{name}@{version}",
            "software",
            name,
            version,
            purl=purl.download(name, version, archive.url, archive.sha256),
            licence=self._licence(archive.sha256) or self._table_licence(of),
            sha256=archive.sha256,
            url=archive.url,
            block=block,
            where=self._prefix(block),
            note="made from this archive while the image is built; the hash is the archive's",
        )

    def _tree(self, of: PlannedBlock, tree: GitTree) -> Component:
        block, version = of.name, of.version
        url, commit = tree.url, tree.commit
        rows = self.catalog.releases(block)[version].trees.values()
        own = next((row.licence for row in rows if (row.url, row.commit) == (url, commit)), "")
        name = url.rsplit("/", 1)[-1].removesuffix(".git")
        return Component(
            f"software:{name}@{commit}",
            "software",
            name,
            commit,
            purl=purl.purl("generic", name, commit, vcs_url=f"git+{url}@{commit}"),
            licence=licence_expression(own) or self._table_licence(of),
            url=f"git+{url}@{commit}",
            block=block,
            where=self._prefix(block),
            note="made from this git tree while the image is built",
        )

    def bazel_files(self) -> list[Component]:
        """Files that Bazel takes; which of them end up in a program, Bazel alone knows."""
        return [
            self._bazel_file(block.name, file)
            for block, item in self.assembly.inputs
            if isinstance(item, BazelFiles)
            for file in item.files
        ]

    def _bazel_file(self, block: str, file: BazelFile) -> Component:
        url = file.urls[0] if file.urls else ""
        package, _, version = file.package.partition("==")
        return Component(
            f"file:{file.name}:{file.sha256[:12]}",
            "file",
            package or file.name,
            version,
            purl=purl.python_package(package, version) if package else purl.download(file.name, "", url, file.sha256),
            licence=self._licence(file.sha256),
            sha256=file.sha256,
            url=url,
            block=block,
            note="taken by Bazel while it builds; parts of it may be compiled in",
        )

    def own(self) -> list[Component]:
        """hpcgen's scripts in every image, and programs whose text is in the recipe."""
        note = "self-test, kit and test programs, written by the recipe"
        kit = Component("program:hpcgen", "program", "hpcgen", self.lock.hpcgen, licence=OWN_LICENCE, note=note)
        sources = {block.name for block, _ in self.assembly.inputs}
        found = [kit]
        for planned in self.lock.plan.blocks:
            folder = self._prefix(planned.name)
            if planned.name not in sources and folder and not planned.build_only:
                licence = self._table_licence(planned)
                ref = f"program:{planned.name}@{planned.version}"
                found.append(
                    Component(
                        ref,
                        "program",
                        planned.name,
                        planned.version,
                        licence=licence,
                        block=planned.name,
                        where=folder,
                        note="its text is in the recipe",
                    )
                )
        return found

    def needs(self, held: Iterable[Component]) -> dict[str, list[str]]:
        """Which block's software needs which other's, from the plan."""
        refs: dict[str, list[str]] = {}
        for component in held:
            if component.block:
                refs.setdefault(component.block, []).append(component.ref)
        result = {}
        for block in self.lock.plan.blocks:
            wanted = {ref for name in block.needs.values() for ref in refs.get(name, [])}
            for ref in refs.get(block.name, []):
                result[ref] = sorted(wanted - {ref})
        return {ref: wanted for ref, wanted in result.items() if wanted}

    # what is asked of lock, tables and assembly

    def _stage(self, name: StageName) -> Stage:
        return self.assembly.final if name == "final" else self.assembly.builder

    def _copied(self, folder: str) -> bool:
        place = PurePosixPath(folder)
        copies = [PurePosixPath(path) for path in self.assembly.final.copies]
        return any(place.is_relative_to(copy) or copy.is_relative_to(place) for copy in copies)

    def _prefix(self, block: str) -> str:
        folder = f"/opt/{block}"
        return folder if self._copied(folder) else ""

    def _licence(self, sha256: str) -> str:
        item = self.files.get(sha256)
        return licence_expression(item.licence) if item is not None else ""

    def _table_licence(self, block: PlannedBlock) -> str:
        return licence_expression(self.catalog.releases(block.name)[block.version].licence)


def parse_pin(line: str) -> tuple[str, str, list[str]]:
    """Name, version (empty if it is not one exact version) and hashes of a line of a wheel list."""
    requirement, *rest = line.split(" --hash=")
    name, _, version = requirement.split(";")[0].partition("==")
    name = name.split("[")[0].strip()
    if not version:
        name = name.rstrip("<>=!~.*0123456789, ")
    hashes = [word.split()[0].removeprefix("sha256:") for word in rest if word.startswith("sha256:")]
    return name, version.strip(), hashes
