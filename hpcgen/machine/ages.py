"""How old facts of a profile may be, by what they say, and which are older or of unknown age."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date

import msgspec

from hpcgen.core.config.provenance import Sourced
from hpcgen.core.support.units import months_before


class Kind(msgspec.Struct, frozen=True):
    """What facts speak of, and for how many months a source of them is believed.

    ``paths``: of facts, each with everything below it; ``*`` stands for any name.
    """

    name: str
    months: int
    paths: tuple[str, ...]


KINDS = (
    Kind("drivers", 6, ("partitions.*.gpu.driver",)),
    Kind("queues", 12, ("partitions.*.queues",)),
    Kind("engines", 12, ("containers.engines.*.version", "containers.engines.*.modules")),
    Kind(
        "MPIs",
        12,
        (
            "mpi.version",
            "mpi.root",
            "mpi.libraries",
            "mpi.binds",
            "mpi.modules",
            "mpi.bind_modules",
            "mpi.gpu",
            "mpi.glibc",
        ),
    ),
    Kind("fabric libraries", 12, ("fabric.libfabric", "partitions.*.fabric.libfabric")),
    Kind("systems", 12, ("system.os", "system.os_version", "system.kernel", "system.glibc")),
    Kind("schedulers", 24, ("scheduler", "partitions.*.directives", "partitions.*.chunk")),
    Kind("policies", 24, ("containers.preferred", "containers.engines", "containers.build_on", "network.internet")),
    Kind("policies", 24, ("containers.unprivileged_build", "system.user_namespaces")),
    Kind("performance", 24, ("partitions.*.performance",)),
    Kind("environments", 24, ("environment", "partitions.*.environment", "mpi.environment", "file_systems")),
)
"""The first that fits counts. What none of them names does not age: hardware, and what an interface is called."""


class OldFact(msgspec.Struct, frozen=True):
    """Facts of one source and kind that may no longer hold.

    path: what the facts have in common of their paths.
    as_of: the source's date; None where it has none, so that nobody knows how old it is.
    months: for how long facts of the kind are believed.
    """

    path: str
    kind: str
    as_of: str | None
    months: int


class Doubtful(msgspec.Struct, frozen=True):
    """What is not certain of the facts of a profile, by their paths, and of a plan's releases.

    old: what may no longer hold.
    from_memory: what nobody found a source for.
    not_verified: other facts whose source nobody read, or that have none.
    releases: what a plan takes from rows of release tables that nobody verified.
    """

    old: list[OldFact]
    from_memory: list[str]
    not_verified: list[str]
    releases: list[str] = []


def doubtful(facts: Iterable[Sourced], today: date, rests: Callable[[str], bool] = lambda path: True) -> Doubtful:
    """What is not certain of those facts that ``rests`` holds for, by their paths."""
    asked = [fact for fact in facts if rests(fact.path)]
    memory, others = dict[str, None](), dict[str, None]()
    for fact in asked:
        if fact.mark != "verified":
            of_memory = fact.source is not None and fact.source.from_memory
            (memory if of_memory else others)[fact.source_path or fact.path] = None
    return Doubtful(old_facts(asked, today), [*memory], [*others])


def kind_of(path: str) -> Kind | None:
    """The kind of a fact; None for one that does not age."""
    steps = path.split(".")
    return next((kind for kind in KINDS if any(_covers(each.split("."), steps) for each in kind.paths)), None)


def old_facts(facts: Iterable[Sourced], today: date) -> list[OldFact]:
    """Facts whose source is older than their kind allows, or has no date; those without a source are not among them."""
    found: dict[tuple[str, str | None, Kind], str] = {}
    for fact in facts:
        kind = kind_of(fact.path)
        if kind is None or fact.source is None:
            continue
        as_of = fact.source.date
        # What nobody verified is told as that: its source says nothing of when it held.
        told = fact.mark == "verified" if as_of is None else _before(as_of, today, kind.months)
        if told:
            key = (fact.source_path, as_of, kind)
            found[key] = _common(found.get(key, fact.path), fact.path)
    ordered = sorted(found.items(), key=lambda each: KINDS.index(each[0][2]))
    return [OldFact(path, kind.name, as_of, kind.months) for (_, as_of, kind), path in ordered]


def _covers(pattern: list[str], steps: list[str]) -> bool:
    return len(pattern) <= len(steps) and all(one in ("*", two) for one, two in zip(pattern, steps, strict=False))


def _before(as_of: str, today: date, months: int) -> bool:
    """Whether a year, month or day lies wholly before the day so many months ago."""
    return as_of < months_before(today, months)[: len(as_of)]


def _common(one: str, two: str) -> str:
    """The beginning that two paths share, in whole steps."""
    same = []
    for left, right in zip(one.split("."), two.split("."), strict=False):
        if left != right:
            break
        same.append(left)
    return ".".join(same)
