"""Where the facts of a profile are from: file and line, the source that covers them, and how many are verified."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hpcgen.catalog.catalog import Catalog
from hpcgen.core.config.provenance import Counts, Fact, counts, facts_of
from tests.conftest import ROOT, Command

PARENT = """\
name: family
abstract: true
title: A family
system: {os: sles, glibc: 2.31}
partitions:
  cpu:
    cpu: {target: zen2, cores: 128}
    memory: {total_gb: 256}
sources:
  system: {from: the manual, checked: 2026-01-01, verified: yes}
  partitions: {from: the manual, checked: 2026-01-01, verified: yes}
  partitions.cpu.memory: {from: a talk, checked: 2025-01-01, verified: no, note: a slide}
"""
CHILD = """\
name: member
extends: family
title: A member
partitions:
  cpu:
    cpu:
      cores: 64
    memory: {total_gb: 512}
    queues:
      - name: all
sources:
  partitions.cpu.memory: {from: free -g, checked: 2026-02-02, verified: yes}
"""


@pytest.fixture
def member(collection: Path) -> list[Fact]:
    (collection / "site_profiles" / "family.yaml").write_text(PARENT)
    (collection / "site_profiles" / "member.yaml").write_text(CHILD)
    return facts_of(Catalog([collection]).site_document("member"))


def fact(facts: list[Fact], path: str) -> Fact:
    return next(each for each in facts if each.path == path)


def test_a_fact_is_where_the_nearest_file_says_it(member: list[Fact]) -> None:
    places = {each.path: (Path(each.where.file).name, each.where.line) for each in member}
    assert places["system.glibc"] == ("family.yaml", 4)
    assert places["partitions.cpu.cpu.target"] == ("family.yaml", 7)
    assert places["partitions.cpu.cpu.cores"] == ("member.yaml", 7)
    assert places["partitions.cpu.queues"] == ("member.yaml", 9)


def test_the_longest_path_of_a_source_counts(member: list[Fact]) -> None:
    memory = fact(member, "partitions.cpu.memory.total_gb")
    assert memory.source is not None
    assert (memory.value, memory.source.from_, memory.source_path) == ("512", "free -g", "partitions.cpu.memory")


def test_a_parents_source_does_not_speak_for_what_the_child_says_anew(member: list[Fact]) -> None:
    assert fact(member, "partitions.cpu.cpu.target").mark == "verified"
    assert fact(member, "partitions.cpu.cpu.cores").mark == "no source"


def test_counts(member: list[Fact]) -> None:
    assert counts(member) == Counts(facts=6, verified=4, unverified=0, without_source=2)
    assert str(counts(member)) == "6 facts, 4 verified, 0 unverified, 2 without a source"


@pytest.mark.parametrize("name", Catalog().names("site"))
def test_built_in_profiles_have_a_source_for_every_fact(name: str) -> None:
    facts = facts_of(Catalog().site_document(name))
    assert [f"{each.where}: {each.path}" for each in facts if each.source is None] == []


# the command


def test_show_with_origin_tells_file_line_source_and_date(hpcgen: Command) -> None:
    done = hpcgen("site", "show", "supermuc", "--origin")
    assert done.returncode == 0
    line = next(line for line in done.stdout.splitlines() if line.startswith("mpi.pmi "))
    number = 1 + (ROOT / "site_profiles" / "supermuc.yaml").read_text().splitlines().index("  pmi: [hydra]")
    assert f"site_profiles/supermuc.yaml:{number} " in line
    assert "  2026-" in line
    assert "hpcgen: supermuc: " in done.stderr
    assert " 0 without a source" in done.stderr


def test_show_as_json_and_only_what_is_not_verified(hpcgen: Command) -> None:
    shown = json.loads(hpcgen("site", "show", "supermuc", "--origin", "--unverified", "--json").stdout)
    assert shown["counts"]["unverified"] == len(shown["facts"]) > 0
    assert {each["mark"] for each in shown["facts"]} == {"unverified"}
    assert all(each["file"].startswith("site_profiles/") and each["line"] and each["source"] for each in shown["facts"])


def test_show_without_origin_is_as_in_show(hpcgen: Command) -> None:
    assert hpcgen("site", "show", "supermuc").stdout == hpcgen("show", "site", "supermuc").stdout
    assert hpcgen("site", "show", "supermuc", "--unverified").returncode == 2


def test_list_counts_facts(hpcgen: Command) -> None:
    rows = {row["name"]: row for row in json.loads(hpcgen("list", "sites", "--facts", "--json").stdout)}
    one = rows["supermuc"]
    assert one["facts"] == one["verified"] + one["unverified"] + one["without_source"] > 50
    assert "without source" in hpcgen("list", "sites", "--facts").stdout.splitlines()[0]
    assert hpcgen("list", "stacks", "--facts").returncode == 2


def test_an_unknown_site_is_an_unknown_name(hpcgen: Command) -> None:
    done = hpcgen("site", "show", "supermuk", "--origin")
    assert (done.returncode, "did you mean supermuc" in done.stderr) == (4, True)
