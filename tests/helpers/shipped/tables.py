"""The shipped release tables and profiles as their YAML says them, and ranges of versions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml
from packaging.specifiers import SpecifierSet
from packaging.version import Version

import hpcgen
from hpcgen.api import default_catalog
from hpcgen.blocks.base import Facts

ROOT = Path(__file__).resolve().parents[3]
BLOCKS = sorted(path.stem for path in (ROOT / "building_blocks").glob("*.py"))
PROFILES = sorted(path.stem for path in (ROOT / "site_profiles").glob("*.yaml"))
STACKS = sorted(path.stem for path in (ROOT / "recipes").glob("*.yaml"))


@dataclass(frozen=True)
class Row:
    """A row of a release table, as far as versions are chosen by it."""

    version: str
    accepts: dict[str, str] = field(default_factory=dict)
    on: dict[str, str] = field(default_factory=dict)
    host: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    only: dict[str, list[str]] = field(default_factory=dict)
    ways: list[dict[str, Any]] = field(default_factory=list)
    not_default: str = ""


def ways_for(row: Row, architecture: str) -> list[dict[str, Any]]:
    """The ways of a row that an architecture has: those that name it, else those with a wheel for it."""
    return [way for way in row.ways if architecture in _architectures(way)]


def _architectures(way: dict[str, Any]) -> list[str]:
    named: list[str] = way.get("architectures", [])
    return named or [each for each in ("x86_64", "aarch64") if not way.get("wheels") or _of(way, each)]


def _of(way: dict[str, Any], architecture: str) -> list[str]:
    """Addresses of a way's wheels for an architecture."""
    return [each["url"] for each in way["wheels"] if each["url"].endswith(f"{architecture}.whl")]


def by_way(row: Row, way: dict[str, Any], architecture: str) -> Row:
    """A row as it is when it is had in one of its ways."""
    accepts = _together(row.accepts, way.get("accepts", {}))
    if way.get("wheels"):
        minors = sorted({int(re.findall("-cp3([0-9]+)-", url)[0]) for url in _of(way, architecture)})
        first, last = minors[0], minors[-1]
        gaps = [f"!=3.{minor}.*" for minor in range(first, last) if minor not in minors]
        accepts["python"] = f"==3.{first}.*" if first == last else ",".join([f">=3.{first}", f"<3.{last + 1}", *gaps])
    return replace(
        row,
        accepts=accepts,
        on=_together(row.on, way.get("on", {})),
        host=row.host | way.get("host", {}),
        targets=way.get("targets") or row.targets,
        ways=[],
    )


def _together(one: dict[str, str], other: dict[str, str]) -> dict[str, str]:
    return {name: ",".join(each[name] for each in (one, other) if name in each) for name in {**one, **other}}


@dataclass(frozen=True)
class Node:
    """What of a profile rules releases out, each fact as the profile's own text; ``path`` leads to the GPU's."""

    partition: str
    architecture: str = "x86_64"
    distribution: str | None = None
    gpu: dict[str, str] = field(default_factory=dict)
    fabric: str = "none"
    mpi: tuple[str, str] | None = None

    @property
    def path(self) -> str:
        return f"partitions.{self.partition}.gpu"


def _yaml(*parts: str) -> Any:
    return yaml.load(ROOT.joinpath(*parts).read_text("utf-8"), Loader=yaml.CBaseLoader)  # every value as its text


@cache
def table(block: str) -> dict[str, Row]:
    """The rows of a block, the newest first."""
    whole = _yaml("building_blocks", f"{block}.yaml")
    rows = {version: dict(row or {}) for version, row in whole["releases"].items()}
    for version, row in rows.items():
        said = [way for way in whole.get("ways", []) if Version(version) in SpecifierSet(way.get("versions", ""))]
        row["ways"] = [*row.get("ways", []), *said]
    names = ("accepts", "on", "host", "targets", "only", "ways", "not_default")
    made = {
        version: Row(version, **{name: row[name] for name in names if name in row}) for version, row in rows.items()
    }
    return dict(sorted(made.items(), key=lambda item: Version(item[0]), reverse=True))


@cache
def _lines(block: str) -> list[str]:
    return (ROOT / "building_blocks" / f"{block}.yaml").read_text("utf-8").splitlines()


def row_at(block: str, line: int) -> str:
    """The version of the row that a line of a table, counted from 1, is part of."""
    above = (text for text in reversed(_lines(block)[:line]) if re.match(r"  [\"\w]", text))
    return next(above, "").strip().split(": ")[0].rstrip(":").strip('"')


@cache
def virtuals() -> dict[str, list[str]]:
    """The providers of each virtual."""
    found: dict[str, list[str]] = _yaml("building_blocks", "virtuals.yaml")["virtuals"]
    # The search knows neither of these; tests/helpers/random_questions.py has the former.
    assert all(len([v for v in found.values() if block in v]) <= 1 for block in BLOCKS), "a block for two virtuals"
    needed = {block: {need.name for need in declared(block).needs} for block in BLOCKS}
    TopologicalSorter(needed | {name: set(blocks) for name, blocks in found.items()}).prepare()  # no circle
    return found


@cache
def identifier(name: str) -> str:
    return next((virtual for virtual, providers in virtuals().items() if name in providers), name)


@cache
def declared(block: str) -> Any:
    """The class of a block: what it needs and prefers is a declaration, and not worked out here."""
    return default_catalog().block(block)


@cache
def within(version: str, said: str) -> bool:
    """Whether a version lies in a range; a bare version means exactly that one."""
    return not said or SpecifierSet(f"=={said}" if said[0].isdigit() else said).contains(Version(version), True)


@cache
def profile(name: str) -> dict[str, Any]:
    """A profile laid over those that it extends; ``null`` takes away."""
    own: dict[str, Any] = _yaml("site_profiles", f"{name}.yaml")
    parent = dict(profile(own["extends"])) if own.get("extends") else {}
    parent.pop("abstract", None)
    return _over(parent, own)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    found = dict(below)
    for key, value in above.items():
        if value in ("null", "~"):
            found.pop(key, None)
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = _over(found[key], value)
        else:
            found[key] = value
    return found


@cache
def stack(name: str) -> dict[str, Any]:
    """A recipe, laid over the one that it extends."""
    found: dict[str, Any] = _yaml("recipes", f"{name}.yaml")
    below = found.pop("extends", "")
    return _laid_over(stack(below), found) if below else found


def _laid_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {name: _laid_over(below[name], above[name]) for name in above if isinstance(below.get(name), dict)}
    return {**below, **above, **both}


def node(data: dict[str, Any], partition: str) -> Node:
    """A kind of node of a profile's data."""
    gpu = data["partitions"][partition].get("gpu") or {}
    mpi = data.get("mpi") or {}
    return Node(
        partition,
        data["system"].get("architecture", "x86_64"),
        (data.get("image") or {}).get("distribution"),
        {fact: str(gpu[fact]) for fact in ("vendor", "driver", "capability", "target") if fact in gpu},
        (data.get("fabric") or {}).get("kind", "none"),
        (mpi["flavour"], str(mpi["version"])) if mpi else None,
    )


def same_facts(mine: Node, site: hpcgen.Site, facts: Facts) -> bool:
    """Whether hpcgen read the same of a profile."""
    gpu, mpi = facts.partition.gpu, facts.mpi
    said = {name: getattr(gpu, name) for name in ("vendor", "driver", "capability", "target")} if gpu else {}
    return mine == Node(
        mine.partition,
        facts.architecture,
        site.image.distribution,
        {name: value for name, value in said.items() if value is not None},
        facts.fabric.kind,
        (mpi.flavour, mpi.version) if mpi else None,
    )


def real_nodes() -> list[tuple[str, str]]:
    """Every profile that is no mere parent, with each of its partitions."""
    own = [(name, profile(name)) for name in PROFILES]
    return [(name, part) for name, data in own if data.get("abstract") != "true" for part in data["partitions"]]
