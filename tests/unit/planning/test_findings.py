"""What a plan notes of the facts that it rests on: who has verified them, and how old they are."""

from __future__ import annotations

from pathlib import Path

import pytest

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.model.fields import Source
from hpcgen.planning.findings import site_findings

MINE = """\
name: mine
title: Ours
system: {os: linux}
partitions:
  main: {cpu: {target: zen2, cores: 8}, memory: {total_gb: 16}}
  main-large: {cpu: {target: zen2, cores: 64}, memory: {total_gb: 256}}
default_partition: main
containers: {preferred: docker, engines: {docker: {}}}
scheduler: {kind: none}
network: {internet: {login: true, compute: true, build: true}}
fabric: {kind: none}
"""


def findings(folder: Path, sources: str = "", name: str = "mine", partition: str = "main") -> dict[str, str]:
    """What is noted of ``mine``, all of whose facts were seen but those that ``sources`` names; or of its child."""
    path = folder / "site_profiles" / "mine.yaml"
    path.parent.mkdir(exist_ok=True)
    seen = "{from: seen, checked: 2026-11-20, verified: yes}"
    roots = ("system", "partitions", "default_partition", "containers", "scheduler", "network", "fabric")
    path.write_text(MINE + "sources:\n" + "".join(f"  {root}: {seen}\n" for root in roots) + sources)
    catalog = Catalog([folder])
    found = site_findings(catalog.site(name), partition, catalog.site_document(name))
    return {finding.name: finding.message for finding in found}


def test_nothing_is_noted_of_facts_that_somebody_has_seen(tmp_path: Path) -> None:
    assert findings(tmp_path) == {}


def test_facts_of_another_partition_are_not_told_of_this_one(tmp_path: Path) -> None:
    fact = "partitions.main-large.cpu"
    hearsay = f"  {fact}: {{from: hearsay, checked: 2026-11-20, as_of: 2020, verified: no}}\n"
    assert findings(tmp_path, hearsay) == {}
    # The shorter name is the start of this one, and another partition all the same.
    told = findings(tmp_path, hearsay, partition="main-large")
    assert told["unverified-facts"] == f"not verified in the profile of mine: {fact}"
    assert told["old-facts"] == f"from sources more than two years old in the profile of mine: {fact}"


def test_a_fact_that_a_child_says_anew_has_not_been_verified_for_it(tmp_path: Path) -> None:
    (tmp_path / "site_profiles").mkdir()
    (tmp_path / "site_profiles" / "ours.yaml").write_text(
        "name: ours\nextends: mine\npartitions: {main: {memory: {total_gb: 8}}}\n"
    )
    told = findings(tmp_path, name="ours")
    assert told == {"unverified-facts": "not verified in the profile of ours: partitions.main.memory.total_gb"}


def test_a_plan_for_a_site_without_sources_says_that_nobody_has_verified_it() -> None:
    site = hpcgen.load_site(
        {
            "name": "bare",
            "title": "Bare",
            "system": {"os": "linux"},
            "partitions": {"main": {"cpu": {"target": "zen2", "cores": 8}, "memory": {"total_gb": 16}}},
            "default_partition": "main",
            "containers": {"preferred": "docker", "engines": {"docker": {}}},
            "scheduler": {"kind": "none"},
            "network": {"internet": {"login": True, "compute": True, "build": True}},
        }
    )
    (finding,) = [each for each in hpcgen.plan(site, "mpi-hello").findings if each.name == "unverified-facts"]
    assert finding.message.startswith("not verified in the profile of bare: containers.")


@pytest.mark.parametrize(
    ("as_of", "old"),
    [
        (None, False),
        ("2024-11-22", False),
        ("2024-11-21", True),
        ("2024-11", False),
        ("2024-10", True),
        ("2024", False),
        ("2023", True),
    ],
)
def test_a_source_is_old_two_years_before_it_was_read(as_of: str | None, old: bool) -> None:
    source = Source(from_="a page", checked="2026-11-22", verified="yes", as_of=as_of)
    assert source.old is old


def test_packages_that_only_an_index_can_solve_are_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("numpy<2\nscipy==1.16.3\nnobody-knows==1.0\nnor-this>1\n")
    packages = "{options: {files: [requirements.txt]}}"
    text = f"name: s\ntitle: t\nblocks: {{python_packages: {packages}}}\nrun: {{command: [python3, app.py]}}\n"
    (tmp_path / "hpcgen.yaml").write_text(text)
    (told,) = [
        each
        for each in hpcgen.plan("workstation", str(tmp_path / "hpcgen.yaml"), catalog=Catalog()).findings
        if "not solved yet" in each.message
    ]
    assert told.message.endswith("what they require: nobody-knows==1.0, nor-this")
    assert told.severity == "note" and "hpcgen lock" in told.remedy
