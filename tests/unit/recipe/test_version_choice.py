"""The choice of versions against a search through all of them, and against random ranges beside the shipped lists."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import hpcgen
from hpcgen.catalog.catalog import Catalog
from hpcgen.core.errors import ConflictError
from hpcgen.core.model.plan import Plan
from hpcgen.recipe.parts import parts_of
from hpcgen.recipe.version_choice import VersionCandidate, VersionRule, can_hold, exact, straight

NAMES = "abcd"
VERSIONS = ("1.0", "2.0", "3.0")
RANGES = ("<2", "<3", ">=2", ">=3", "==2.0", "!=2.0", ">=1", "<1")


@some.composite
def questions(draw: some.DrawFn) -> tuple[dict[str, list[VersionCandidate]], list[VersionRule]]:
    """Few packages in few versions, or left open, and rules among them."""
    candidates = {}
    for name in NAMES:
        versions = draw(some.lists(some.sampled_from(VERSIONS), min_size=1, max_size=3, unique=True))
        left_open = draw(some.booleans()) and name in "ab"
        candidates[name] = [VersionCandidate(each, each) for each in versions] + [VersionCandidate("")] * left_open
    rules = []
    for _ in range(draw(some.integers(0, 8))):
        of = draw(some.one_of(some.none(), some.tuples(some.sampled_from(NAMES), some.sampled_from(VERSIONS))))
        package = draw(some.sampled_from([name for name in NAMES if of is None or name != of[0]]))
        rules.append(VersionRule(package, SpecifierSet(draw(some.sampled_from(RANGES))), "somebody", of=of))
    return candidates, rules


def go_together(chosen: dict[str, VersionCandidate], rules: list[VersionRule]) -> bool:
    for name, each in chosen.items():
        joint = SpecifierSet()
        for rule in rules:
            if rule.package == name and (rule.of is None or chosen[rule.of[0]].version == rule.of[1]):
                joint &= rule.specifier
        points = [each.version] if each.version else ["0", "1.0", "1.5", "2.0", "2.5", "3.0", "4.0"]
        if not any(point in joint for point in points):
            return False
    return True


def all_choices(candidates: dict[str, list[VersionCandidate]]) -> Iterator[dict[str, VersionCandidate]]:
    for each in product(*candidates.values()):
        yield dict(zip(candidates, each, strict=True))


@settings(max_examples=300, deadline=None)
@given(questions())
def test_the_first_choice_that_goes_together_is_found_or_what_clashes(
    question: tuple[dict[str, list[VersionCandidate]], list[VersionRule]],
) -> None:
    candidates, rules = question
    right = next((each for each in all_choices(candidates) if go_together(each, rules)), None)
    found = exact(candidates, rules)
    assert (found if isinstance(found, dict) else None) == right
    if (quick := straight(candidates, rules)) is not None:
        assert go_together(quick, rules)
    for clash in found if isinstance(found, list) else ():
        assert not any(go_together(each, clash) for each in all_choices(candidates))
        for at in range(len(clash)):
            fewer = [*clash[:at], *clash[at + 1 :]]
            assert any(go_together(each, fewer) for each in all_choices(candidates)), "each of them is needed"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("", True),
        (">=1.26,<2", True),
        ("<2,>=2", False),
        (">1.26,<1.26.1", True),
        ("==1.26.*,!=1.26.*", False),
        ("==1.26.*,!=1.26.4", True),
        ("~=1.26,<1.26", False),
        ("~=1.26.1,>=1.27", False),
        ("!=1.26.*,>=1.26,<1.28", True),
        ("<1", True),
        (">=2.0a1,<2", False),
        (">=2.0a1,<2.0b1", True),
        ("===odd,>=1", False),
    ],
)
def test_whether_a_range_can_hold_anything(text: str, holds: bool) -> None:
    assert can_hold(SpecifierSet(text)) is holds


# random ranges beside the shipped lists

POOLS = {"numpy": ("1.23.5", "1.26.4", "2.0.2", "2.2.6", "2.5.5"), "protobuf": ("3.20.3", "4.25.8", "5.28.0", "7.0.0")}
POOLS |= {"scipy": ("1.10.1", "1.15.3", "1.17.1")}


@some.composite
def wishes(draw: some.DrawFn) -> list[str]:
    lines = [draw(some.sampled_from(["torch==2.10.0", "jax==0.10.2", "tensorflow==2.20.0"]))]
    for name in draw(some.lists(some.sampled_from(sorted(POOLS)), min_size=1, unique=True)):
        operator = draw(some.sampled_from(["<", ">=", "==", "<=", "!="]))
        lines.append(f"{name}{operator}{draw(some.sampled_from(POOLS[name]))}")
    return lines


def planned(folder: Path, catalog: Catalog, lines: list[str]) -> Plan:
    (folder / "requirements.txt").write_text("\n".join(lines) + "\n")
    stack = folder / "hpcgen.yaml"
    stack.write_text(
        "name: ours\ntitle: ours\nrun: {command: ['true']}\n"
        "blocks: {python_packages: {options: {files: [requirements.txt]}}}\n"
    )
    return hpcgen.plan("workstation", str(stack), catalog=catalog)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wishes())
def test_what_is_planned_with_hashes_is_consistent_and_a_refusal_names_the_lines(
    tmp_path: Path, lines: list[str]
) -> None:
    catalog = Catalog()
    needs = catalog.beside.wheel_facts().needs
    wanted = [Requirement(line) for line in lines[1:]]
    try:
        plan = planned(tmp_path, catalog, lines)
    except ConflictError as refused:
        assert any(f"{one.name}{one.specifier}" in str(refused) for one in wanted)
        planned(tmp_path, Catalog(), lines[:1])  # the framework alone is fine
        return
    python = plan.block("python")
    assert python is not None
    here = {**default_environment(), "python_version": ".".join(python.version.split(".")[:2]), "extra": ""}
    here |= {"python_full_version": python.version, "platform_machine": "x86_64", "sys_platform": "linux"}
    chosen = hashed_versions(plan, catalog)
    if not all(one.name in chosen and one.specifier.contains(chosen[one.name], True) for one in wanted):
        return  # something is left open for `hpcgen lock`, or pinned by its version alone
    for name, version in chosen.items():
        for need in map(Requirement, needs.get(f"{name}=={version}") or ()):
            if need.name in chosen and (need.marker is None or need.marker.evaluate(here)):
                assert need.specifier.contains(chosen[need.name], prereleases=True), (name, version, str(need))


def hashed_versions(plan: Plan, catalog: Catalog) -> dict[str, str]:
    """The versions of the lists with hashes in the image's Python."""
    found: dict[str, str] = {}
    for each in parts_of(plan, catalog).installed:
        for text in each.wheels.requirements if each.folder == "/opt/python" and each.wheels.hashed else ():
            name, _, version = text.partition(" ")[0].partition("==")
            assert found.setdefault(name, version) == version
    return found
