"""fleet.yaml → members whose names, sites, stacks and settings are known to exist."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec

from hpcgen.backends.engines import builder_for, engine_called
from hpcgen.catalog.catalog import Catalog, is_file_name, reference_from
from hpcgen.catalog.collections import collections_from_environment
from hpcgen.catalog.trust import Allow, folder_offered, refuse
from hpcgen.core.config.decoding import convert
from hpcgen.core.config.yamlfile import LONG_LIST, Document, load
from hpcgen.core.errors import HpcgenError, InputError, Position, Problem, Problems, UnknownNameError, did_you_mean
from hpcgen.core.model.fields import FormatName, Name
from hpcgen.core.model.record import BuilderName
from hpcgen.core.model.site import Site
from hpcgen.planning.resolver.question import parse_settings
from hpcgen.plugins.fleet.records import Fleet, Member
from hpcgen.recipe.formats import FORMATS


class FleetMember(msgspec.Struct, frozen=True):
    """One member with the defaults filled in. ``site`` and ``stack`` are what a catalog takes."""

    name: str
    stack: str
    site: str
    partition: str | None
    settings: tuple[str, ...]
    format: FormatName | None
    engine: BuilderName | None
    test: bool
    test_site: str | None
    allow_unsupported: bool
    latest_base: bool
    place: Position


class LoadedFleet(msgspec.Struct, frozen=True):
    """A fleet file, its members in the file's order, and the catalog that its names are looked up in."""

    path: Path
    fleet: Fleet
    document: Document
    members: list[FleetMember]
    catalog: Catalog

    def member(self, name: str) -> FleetMember:
        """The member of that name; UnknownNameError with the nearest names."""
        for member in self.members:
            if member.name == name:
                return member
        known = [member.name for member in self.members]
        raise UnknownNameError(f"{self.path} has no member {name!r}", "--member", remedy=did_you_mean(name, known))

    @property
    def lock_path(self) -> Path:
        """Where the lock lies if nothing else is said: fleet.lock beside fleet.yaml."""
        return self.path.with_suffix(".lock")


def load_fleet(path: Path, collections: Sequence[Path] = (), allow: Allow = refuse) -> LoadedFleet:
    """Read a fleet file.

    collections: folders that come before the fleet's own, as ``--collection`` gives them.
    allow: whether the Python of the fleet's own may run.
    InputError: with every mistake of the file, each with file, line and column.
    PolicyError: it names a collection that the user does not trust.
    """
    return fleet_from(load(path, str(path), LONG_LIST), path, collections, allow)


def fleet_from(document: Document, path: Path, collections: Sequence[Path] = (), allow: Allow = refuse) -> LoadedFleet:
    """The fleet of a document that was read from ``path``; as :func:`load_fleet`."""
    fleet = convert(document, Fleet)
    catalog = _catalog(fleet, document, path, collections, allow)
    members = [_filled(fleet, path.parent, document, number) for number in range(len(fleet.members))]
    problems = _repeated_names(document, members)
    for number, member in enumerate(members):
        problems += _member_problems(fleet, document, catalog, number, member)
    if fleet.build_on is not None:
        site = reference_from(path.parent, fleet.build_on)
        problems += _unknown(catalog, "site", site, document.position(["build_on"]))
    if problems:
        raise InputError(sorted(problems, key=_by_place))
    return LoadedFleet(path, fleet, document, members, catalog)


def checked_fleet(document: Document, path: Path, collections: Sequence[Path], allow: Allow) -> list[Site]:
    """The sites of the members of a fleet that is only checked; as :func:`load_fleet`."""
    loaded = fleet_from(document, path, collections, allow)
    return [loaded.catalog.site(name) for name in sorted({each.site for each in loaded.members})]


def build_site(loaded: LoadedFleet) -> str | None:
    """The fleet's ``build_on`` as a catalog takes it."""
    name = loaded.fleet.build_on
    return None if name is None else reference_from(loaded.path.parent, name)


def _catalog(fleet: Fleet, document: Document, path: Path, collections: Sequence[Path], allow: Allow) -> Catalog:
    own = [path.parent / folder for folder in fleet.collections]
    problems = Problems()
    for number, folder in enumerate(own):
        if not folder.is_dir():
            message = f"the collection {fleet.collections[number]} is not a folder"
            problems.add(message, document.position(["collections", number]), f"a folder, from {path.parent}")
    problems.raise_as(InputError)
    named = {folder.resolve() for folder in collections}
    allow([folder_offered(folder, str(path)) for folder in own if folder.resolve() not in named])
    return Catalog([*collections, *own, *collections_from_environment()])


def _filled(fleet: Fleet, folder: Path, document: Document, number: int) -> FleetMember:
    member, defaults = fleet.members[number], fleet.defaults
    site = member.site or defaults.site or ""
    test_site = member.test_site or defaults.test_site
    return FleetMember(
        name=member.name or _default_name(member, site),
        stack=reference_from(folder, member.stack),
        site=reference_from(folder, site),
        partition=member.partition,
        settings=tuple(member.settings),
        format=member.format or defaults.format,
        engine=_builder(member.engine or defaults.engine),
        test=defaults.test if member.test is None else member.test,
        test_site=None if test_site is None else reference_from(folder, test_site),
        allow_unsupported=member.allow_unsupported,
        latest_base=defaults.latest_base if member.latest_base is None else member.latest_base,
        place=document.position(["members", number]),
    )


def _default_name(member: Member, site: str) -> str:
    stack, place = (Path(name).name.removesuffix(".yaml") for name in (member.stack, site or "nowhere"))
    return f"{stack}-{place}"


def _repeated_names(document: Document, members: Sequence[FleetMember]) -> list[Problem]:
    problems = Problems()
    first: dict[str, FleetMember] = {}
    for number, member in enumerate(members):
        other = first.setdefault(member.name, member)
        if other is not member:
            problems.add(
                f"two members are called {member.name}",
                where=document.position(["members", number, "name"], key=True),
                expected=f"a name other than that of line {other.place.line}",
                remedy="give this one its own `name:`",
            )
    return problems


def _member_problems(
    fleet: Fleet, document: Document, catalog: Catalog, number: int, member: FleetMember
) -> list[Problem]:
    at: list[str | int] = ["members", number]
    problems = Problems(_unknown(catalog, "stack", member.stack, document.position([*at, "stack"])))
    if not member.site:
        message = "`site` is missing: neither the member nor `defaults` has it"
        problems.append(Problem(message, document.position(at), remedy="add `site: …`"))
    else:
        own = fleet.members[number].site is not None
        place = [*at, "site"] if own else ["defaults", "site"]
        problems += _unknown(catalog, "site", member.site, document.position(place))
    if member.test_site is not None:
        place = [*at, "test_site"] if fleet.members[number].test_site is not None else ["defaults", "test_site"]
        problems += _unknown(catalog, "site", member.test_site, document.position(place))
    if member.format is not None and member.format not in FORMATS:
        place = [*at, "format"] if fleet.members[number].format is not None else ["defaults", "format"]
        message, remedy = f"no format is called {member.format!r}", did_you_mean(member.format, FORMATS.names())
        problems.append(Problem(message, document.position(place), remedy=remedy))
    problems += _engine_problems(fleet, document, number, member)
    try:
        msgspec.convert(member.name, Name)
    except msgspec.ValidationError:
        message = f"{member.name!r} cannot be the name of an image"
        expected = "at most 64 lower-case letters, digits, '.', '_' and '-'"
        problems.append(Problem(message, document.position(at), expected, "give it a `name:`"))
    for index, setting in enumerate(member.settings):
        with problems.caught(partial(document.position, [*at, "settings", index])):
            parse_settings([setting], catalog)
    return problems


def _builder(word: str | None) -> BuilderName | None:
    """The engine as records call it, as far as there is one of that name."""
    found = engine_called(word) if word is not None else None
    return found.builder_name() if found is not None and found.builds else word


def _engine_problems(fleet: Fleet, document: Document, number: int, member: FleetMember) -> list[Problem]:
    if member.engine is None:
        return []
    own = fleet.members[number].engine is not None
    try:
        reads = builder_for(member.engine).format
    except HpcgenError as error:
        where = document.position(["members", number, "engine"] if own else ["defaults", "engine"])
        return [problem.at(where) for problem in error.problems]
    if member.format in (None, reads):
        return []
    message = f"{member.engine} does not build recipes in the format {member.format}"
    return [Problem(message, document.position(["members", number]), f"format: {reads}")]


def _unknown(catalog: Catalog, kind: str, name: str, where: Position) -> list[Problem]:
    if is_file_name(name):
        if Path(name).is_file():
            return []
        return [Problem(f"there is no file {name}", where, f"a {kind}'s name, or a file next to this one")]
    try:
        catalog.find(kind, name)
    except HpcgenError as error:
        return [problem.at(where) for problem in error.problems]
    return []


def _by_place(problem: Problem) -> tuple[str, int, int]:
    where = problem.where
    return (where.file, where.line, where.column) if isinstance(where, Position) else (str(where), 0, 0)
