"""Collections, and finding sites, stacks and blocks in them by name.

A collection is a folder with any of ``site_profiles/``, ``recipes/`` and ``building_blocks/``, perhaps with further
``engines/``, ``schedulers/``, ``launchers/`` and ``formats/`` (:mod:`hpcgen.core.support.registry`). The first
collection that has a name wins, the built-in one is last. A name is looked up by its path alone, so that the
cost does not grow with the number of files; folders are listed only to help with an unknown name.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hpcgen.catalog.beside_blocks import BesideBlocks
from hpcgen.catalog.collections import built_in, collection_names
from hpcgen.catalog.concerns import with_said_of_ranges
from hpcgen.catalog.copied import CopiedFiles
from hpcgen.catalog.project import ProjectFiles
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.in_memory import InMemory
from hpcgen.core.config.inheritance import Merged
from hpcgen.core.config.yamlfile import LONG_LIST, Document, load
from hpcgen.core.errors import InputError, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import Name, Record
from hpcgen.core.model.plan import PlannedBlock
from hpcgen.core.model.release import (
    AssumedDriver,
    AssumedDrivers,
    MeasuredDefault,
    MeasuredDefaults,
    Release,
    ReleaseTable,
)
from hpcgen.core.model.site import Site
from hpcgen.core.model.stack import Stack
from hpcgen.core.support.quoting import NAME_PATTERN
from hpcgen.core.support.registry import load_file, use_collection

if TYPE_CHECKING:
    # Names of sites and stacks are told without what blocks are written with.
    from hpcgen.blocks.base import Block

FOLDERS = {"site": "site_profiles", "stack": "recipes", "block": "building_blocks"}
_ENDINGS = {"site": ".yaml", "stack": ".yaml", "block": ".py"}
KINDS = {"site": "site profile", "stack": "stack recipe"}
"""What may extend another of its kind, and what messages call it."""
_NAME = re.compile(NAME_PATTERN)


class Virtuals(Record, frozen=True):
    """``building_blocks/virtuals.yaml``: the blocks that provide each virtual, the preferred first."""

    virtuals: dict[Name, list[Name]]


def is_file_name(name: str) -> bool:
    """Whether a site or stack is given as a file of its own instead of by its name in a collection."""
    return name.endswith(".yaml")


def reference_from(folder: Path, name: str) -> str:
    """A site or stack that a file in ``folder`` names: its name, or a file, from that folder."""
    return str(folder / name) if is_file_name(name) else name


class Catalog:
    """Sites, stacks and blocks of a list of collections.

    ``collections``: folders in order of precedence; the built-in collection is added last. ``blocks``: classes of
    blocks that come before those of every collection, each with its rows in ``releases``.

    Loaded files are kept: a catalog sees a file as it was when it was first asked for. Safe to share
    between threads, as a file read twice gives the same record.
    """

    def __init__(self, collections: Sequence[Path | str] = (), blocks: Sequence[type[Block]] = ()) -> None:
        self._given = {block.name: block for block in blocks}
        self.folders: list[Path] = [Path(folder) for folder in collections]
        for folder in self.folders:
            if not folder.is_dir():
                raise InputError(
                    f"the collection {folder} is not a folder",
                    expected=f"a folder with any of {', '.join(FOLDERS.values())}",
                    remedy="correct --collection, $HPCGEN_COLLECTIONS or your config file",
                )
            use_collection(folder)
        self.names_of_folders = collection_names(self.folders)
        """The collections but the built-in one, by what locks, kits and bundles call them; the first wins."""
        self._built_in = built_in()
        self.folders.append(self._built_in)
        self._documents: dict[tuple[str, str], Document] = {}
        self._sites: dict[str, Site] = {}
        self._stacks: dict[str, Stack] = {}
        self._classes: dict[str, type[Block]] = {}
        self._tables: dict[str, dict[str, Release]] = {}
        self.beside = BesideBlocks([folder / FOLDERS["block"] for folder in self.folders], self.shown, self.recorded)
        self.copied = CopiedFiles(self)
        self.project = ProjectFiles()
        self.bases: dict[str, Path] = {}
        """Where images of this machine lie that stacks start from, by the names of their files."""
        self._loading = threading.Lock()
        self.with_drivers: dict[object, tuple[Site, Site]] = {}
        """Sites of which nobody names a driver, each with those that are planned for."""
        self.nodes: dict[object, Any] = {}
        """What the resolver has worked out of partitions of sites; it goes when the catalog goes."""

    # names and places

    def find(self, kind: str, name: str) -> Path:
        """The file of a site, stack or block; UnknownNameError with the nearest names if there is none."""
        path = self._path(kind, name)
        if path is not None:
            return path
        from hpcgen.catalog.other_names import what_is_meant

        raise UnknownNameError(f"no {kind} is called {name!r}", remedy=what_is_meant(self, kind, name))

    def _path(self, kind: str, name: str) -> Path | None:
        if _NAME.match(name):
            for folder in self.folders:
                path = folder / FOLDERS[kind] / (name + _ENDINGS[kind])
                if path.is_file():
                    return path
        return None

    def has_block(self, name: str) -> bool:
        """Whether there is a block of that name."""
        return name in self._given or self._path("block", name) is not None

    def is_given(self, name: str) -> bool:
        """Whether the block is a class that is in no collection."""
        return name in self._given

    def block_origin(self, name: str) -> str:
        """How the file of a block is named to people, or the class that was given in its place."""
        return self._given_origin(name) or self.shown(self.find("block", name))

    def recorded_origin(self, name: str) -> str:
        """The same for plans and locks, which are read elsewhere too."""
        return self._given_origin(name) or self.recorded(self.find("block", name))

    def _given_origin(self, name: str) -> str:
        given = self._given.get(name)
        return f"class {given.__module__}.{given.__qualname__}" if given is not None else ""

    def names(self, kind: str) -> list[str]:
        """Every name of a kind, sorted. Reads folders; abstract profiles are included."""
        found = set(self._given) if kind == "block" else set()
        for folder in self.folders:
            try:
                entries = os.listdir(folder / FOLDERS[kind])
            except OSError:
                continue
            ending = _ENDINGS[kind]
            found.update(e.removesuffix(ending) for e in entries if e.endswith(ending) and not e.startswith("_"))
        return sorted(found)

    def shown(self, path: Path) -> str:
        """How a file is named to people: one of hpcgen's own from its collection, others as they lie here."""
        return path.as_posix().removeprefix(f"{self._built_in.as_posix()}/")

    def recorded(self, path: Path) -> str:
        """How plans and locks name a file: ``COLLECTION:building_blocks/…``, the same wherever the collection lies."""
        for name, folder in self.names_of_folders.items():
            if path.is_relative_to(folder):
                return f"{name}:{path.relative_to(folder).as_posix()}"
        return self.shown(path)

    # sites and stacks

    def site_document(self, name: str) -> Document:
        """The profile with its parents merged in, by name or from a file that ends in .yaml."""
        return self._document("site", name)

    def _read(self, kind: str, name: str, children: tuple[str, ...] = ()) -> Document:
        document = self._load(kind, name)
        if is_file_name(name):
            children = (str(document.data.get("name", name)),)
        return self.with_parents(document, children or (name,), kind)

    def _load(self, kind: str, name: str) -> Document:
        if is_file_name(name):
            return load(Path(name), name)
        path = self.find(kind, name)
        return load(path, self.shown(path))

    def with_parents(self, document: Document, children: tuple[str, ...], kind: str = "site") -> Document:
        """Lay a profile or a recipe over the parents that its ``extends`` names."""
        parent = document.data.get("extends")
        if parent is None or not isinstance(parent, str):
            return document
        if parent in children:
            circle = " → ".join((*children, parent))
            raise InputError(
                f"the {KINDS[kind]} extends itself: {circle}",
                where=document.position(["extends"]),
                expected="a chain of parents without a circle",
                remedy="remove one `extends` of the circle",
            )
        try:
            above = self._read(kind, parent, (*children, parent))
        except UnknownNameError as error:
            raise InputError(
                f"extends names {parent!r}, which is no {KINDS[kind]}",
                where=document.position(["extends"]),
                remedy=did_you_mean(parent, self.names(kind), f"hpcgen list {kind}s"),
            ) from error
        return Merged(document, above)

    def site(self, name: str) -> Site:
        """A site profile by name, or from a file that ends in .yaml."""
        if name not in self._sites:
            document = self.site_document(name)
            self._check_name(document, name)
            if document.data.get("abstract") is True:
                from hpcgen.catalog.other_names import sites_extending

                own = str(document.data.get("name", name))
                extending = sites_extending(self, own)
                raise InputError(
                    f"{own} is an abstract profile: the common facts of several sites",
                    remedy=f"name a site that extends it: {' or '.join(extending) or 'none is known here'}",
                )
            self._sites[name] = self.site_from(document)
        return self._sites[name]

    def site_from(self, document: Document) -> Site:
        """A site from a document, with what the types alone cannot say checked too."""
        from hpcgen.catalog.checks import check_site

        site = convert(document, Site)
        check_site(site, document)
        return site

    def stack_document(self, name: str) -> Document:
        """The recipe with its parents merged in, by name or from a file that ends in .yaml."""
        return self._document("stack", name)

    def stack(self, name: str) -> Stack:
        """A stack recipe by name, or from a file that ends in .yaml."""
        if name not in self._stacks:
            document = self.stack_document(name)
            self._check_name(document, name)
            self._stacks[name] = self.stack_from(document)
        return self._stacks[name]

    def stack_from(self, document: Document) -> Stack:
        """A stack from a document, with its version ranges and block names checked."""
        from hpcgen.catalog.checks import check_stack

        stack = convert(document, Stack)
        check_stack(stack, document, self)
        return stack

    def document_of(self, record: Site | Stack) -> Document | None:
        """The file that a site or stack was loaded from by this catalog; None if it was made in Python.

        Two threads may each have read it, so the content decides; of two files that say the same, its own is taken.
        """
        read = self.site_document if isinstance(record, Site) else self.stack_document
        loaded: Mapping[str, Site | Stack] = self._sites if isinstance(record, Site) else self._stacks
        alike = [(known is not record, name) for name, known in list(loaded.items()) if known == record]
        return read(min(alike)[1]) if alike else None

    def _document(self, kind: str, name: str) -> Document:
        key = (kind, name)
        if key not in self._documents:
            self._documents[key] = self._read(kind, name)
        return self._documents[key]

    def _check_name(self, document: Document, name: str) -> None:
        if not is_file_name(name) and document.data.get("name", name) != name:
            raise InputError(
                f"the file is called {name} but says name: {document.data['name']}",
                where=document.position(["name"]),
                expected=f"name: {name}",
                remedy="give the file and its name field the same name",
            )

    # blocks and their releases

    @cached_property
    def virtuals(self) -> dict[str, list[str]]:
        """Providers of each virtual; a collection's providers come before the built-in ones."""
        result: dict[str, list[str]] = {}
        for block in self._given.values():
            for virtual in block.provides:
                result.setdefault(virtual, []).append(block.name)
        for folder in self.folders:
            path = folder / FOLDERS["block"] / "virtuals.yaml"
            if path.is_file():
                for name, providers in convert(load(path, self.shown(path)), Virtuals).virtuals.items():
                    known = result.setdefault(name, [])
                    known.extend(p for p in providers if p not in known)
        return result

    @cached_property
    def gpu_drivers(self) -> list[AssumedDriver]:
        """What is planned for where a profile names no driver; a collection's rows come before the built-in ones."""
        paths = [folder / FOLDERS["block"] / "gpu_drivers.yaml" for folder in self.folders]
        tables = [convert(load(path, self.shown(path)), AssumedDrivers) for path in paths if path.is_file()]
        return [row for table in tables for row in table.drivers]

    @cached_property
    def measured_defaults(self) -> list[MeasuredDefault]:
        """What images have by default because it was measured to gain; a collection's rows come first."""
        paths = [folder / FOLDERS["block"] / "measured_defaults.yaml" for folder in self.folders]
        tables = [convert(load(path, self.shown(path)), MeasuredDefaults) for path in paths if path.is_file()]
        return [row for table in tables for row in table.measured_defaults]

    def identifier(self, name: str) -> str:
        """What is chosen once where this block may be chosen: the virtual that it provides, or the block itself."""
        return self._virtual_of.get(name, name)

    @cached_property
    def _virtual_of(self) -> dict[str, str]:
        """The first virtual that each provider provides."""
        return {name: virtual for virtual, names in reversed(self.virtuals.items()) for name in names}

    @cached_property
    def distributions(self) -> dict[str, str]:
        """The block that brings each Python package that a block says it does; of several the first by name."""
        found: dict[str, str] = {}
        for name in self.names("block"):
            for distribution in self.block(name).distributions:
                found.setdefault(distribution, name)
        return found

    def block(self, name: str) -> type[Block]:
        """The class of a block; its file is loaded on first use."""
        if name in self._given:
            return self._given[name]
        if name not in self._classes:
            path = self.find("block", name)
            with self._loading:
                # Loaded twice it would be two classes of one name.
                if name not in self._classes:
                    self._classes[name] = self._block_class(name, path)
        return self._classes[name]

    def _block_class(self, name: str, path: Path) -> type[Block]:
        from hpcgen.blocks.base import Block

        module = load_file(path)
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, Block) and vars(value).get("name") == name:
                return value
        raise InputError(
            f"{self.shown(path)} has no block named {name!r}",
            expected=f"a subclass of hpcgen.Block with name = {name!r}",
        )

    def releases(self, name: str) -> dict[str, Release]:
        """Rows of a block's table; rows of earlier collections are added and win."""
        if name not in self._tables:
            merged: dict[str, Release] = {}
            tables = [convert(document, ReleaseTable) for document in self.release_documents(name)]
            for table in tables:
                for version, release in table.releases.items():
                    merged.setdefault(version, _with_table(release, table))
            self._tables[name] = with_said_of_ranges(merged, tables)
        return self._tables[name]

    def said_of(self, name: str, version: str) -> Release:
        """What the tables of a block say of the ranges that a version is in which none of them has."""
        tables = [convert(document, ReleaseTable) for document in self.release_documents(name)]
        return with_said_of_ranges({version: Release()}, tables)[version]

    def release(self, block: PlannedBlock, architecture: str = "") -> Release:
        """The row of a planned block, as it is for its options; KeyError if its table has none of that version."""
        from hpcgen.blocks.ways import in_use

        return in_use(self.releases(block.name)[block.version], block.options, architecture)

    def release_documents(self, name: str) -> list[Document]:
        """The release tables of a block: that of the class that was given, then one per collection that has one."""
        tables = [load(path, self.shown(path), LONG_LIST) for path in self.release_files(name)]
        given = self._given.get(name)
        if given is not None:
            tables.insert(0, InMemory({"block": name, "releases": given.releases}, self.block_origin(name)))
        return tables

    def release_files(self, name: str) -> list[Path]:
        """The files of a block's release tables, one per collection that has one."""
        paths = [folder / FOLDERS["block"] / f"{name}.yaml" for folder in self.folders]
        return [path for path in paths if path.is_file()]


def _with_table(release: Release, table: ReleaseTable) -> Release:
    """A row with what the whole table says where the row says nothing."""
    source, licence = release.source or table.source, release.licence or table.licence
    if source is release.source and licence is release.licence:
        return release
    return msgspec.structs.replace(release, source=source, licence=licence)
