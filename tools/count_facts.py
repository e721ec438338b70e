#!/usr/bin/env python3
"""Count how the facts of the collection are known, and what plans rest on and say.

    tools/count_facts.py [--today 2026-11-27]

prints how many facts of site profiles and sources of release tables are dated, verified or from memory; and of all
plans of every partition and stack, how many rest on what is old, from memory or not verified. Exit status 1 if
``hpcgen plan`` does not say so of one of them without ``--notes``.
"""

from __future__ import annotations

import argparse
import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr
from datetime import date

import click
import msgspec

from hpcgen.catalog.catalog import Catalog
from hpcgen.cli.fact_ages import doubts_of, say_doubts
from hpcgen.core.config.provenance import facts_of
from hpcgen.core.errors import HpcgenError
from hpcgen.core.model.fields import Source
from hpcgen.machine.ages import Doubtful
from hpcgen.planning.planner import make_plan


def known(sources: Iterable[Source | None]) -> str:
    """One line of how many there are, and how they are known."""
    found = Counter[str]()
    for source in sources:
        found["all"] += 1
        if source is not None:
            found["with a source"] += 1
            found["dated by it"] += source.date is not None
            found["dated by reading"] += source.as_of is not None and source.date is None
            found["verified"] += source.verified == "yes"
            found["verified without a date"] += source.verified == "yes" and source.as_of is None
            found["from memory"] += source.from_memory
            found["from memory, yet verified"] += source.from_memory and source.verified == "yes"
    return ", ".join(f"{number} {name}" for name, number in found.items())


def sources_in(data: object) -> Iterator[Source]:
    """Every source in a release table: the table's own, those of rows, and of the ways in them."""
    if isinstance(data, dict):
        if {"from", "verified"} <= data.keys():
            yield msgspec.convert(data, Source, strict=False)
        for each in data.values():
            yield from sources_in(each)
    elif isinstance(data, list):
        for each in data:
            yield from sources_in(each)


def told(site: str, found: Doubtful) -> str:
    """What ``hpcgen plan`` says of it."""
    said = io.StringIO()
    with redirect_stderr(said), click.Context(click.Command("plan"), obj=()):
        say_doubts(site, found, notes=False)
    return said.getvalue()


def plans(catalog: Catalog, today: date) -> tuple[Counter[str], list[str]]:
    """How many plans rest on what, and those that do not say it."""
    found, silent = Counter[str](), []
    sites = [name for name in catalog.names("site") if not catalog.site_document(name).data.get("abstract")]
    for name in sites:
        site = catalog.site(name)
        for partition in site.partitions:
            for stack in catalog.names("stack"):
                try:
                    plan = make_plan(catalog, site, catalog.stack(stack), partition=partition, allow_unsupported=True)
                except HpcgenError:
                    found["refused"] += 1
                    continue
                doubts = doubts_of(catalog, name, plan, today)
                said = told(name, doubts)
                asked = {
                    "old facts": ("out of date", doubts.old),
                    "facts from memory": ("from memory", doubts.from_memory),
                    "facts not verified": ("of the profile", doubts.not_verified),
                    "releases not verified": ("in the release tables", doubts.releases),
                }
                found["planned"] += 1
                found["resting on any of these"] += any(what for _, what in asked.values())
                for kind, (word, what) in asked.items():
                    found[f"resting on {kind}"] += bool(what)
                    if what and word not in said:
                        silent.append(f"{name} {partition} {stack}: {kind}")
    return found, silent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--today", type=date.fromisoformat, default=date.today())
    today = parser.parse_args().today
    catalog = Catalog()
    documents = [catalog.site_document(name) for name in catalog.names("site")]
    own = [f for d in documents for f in facts_of(d) if str(f.where).partition(":")[0] == d.position([]).file]
    print(f"facts of {len(documents)} profiles, each where it is written: {known(f.source for f in own)}")
    tables = [table.data for block in catalog.names("block") for table in catalog.release_documents(block)]
    rows = [each for table in tables for each in sources_in(table)]
    print(f"sources of release tables: {known(rows)}")
    found, silent = plans(catalog, today)
    print("plans: " + ", ".join(f"{number} {name}" for name, number in found.items()))
    print(f"plans that do not say it: {len(silent)}")
    print(*silent, sep="\n", end="\n" if silent else "")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
