"""The search: the documented optimum, wherever there is a plan, and an answer in any case."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

import hpcgen
from hpcgen.core.errors import ConflictError, InputError
from tests.helpers.random_questions import Answer, answer, difference, falsehood, plan_of
from tests.helpers.random_worlds import Asked, Row, World, random_world


def world(rows: dict[str, list[Row]], needs: dict[str, list[Asked]], *stack: str, **settings: int) -> World:
    return World(rows, {name: needs.get(name, []) for name in rows}, {}, dict.fromkeys(stack), settings)


def versions(plan: hpcgen.Plan | None) -> dict[str, str]:
    assert plan is not None
    return {block.name: block.version for block in plan.blocks if block.name not in ("site_trust", "ubuntu")}


def wrong(first: int, count: int, check: Callable[[World, Answer], str]) -> dict[int, str]:
    worlds = {seed: random_world(seed) for seed in range(first, first + count)}
    said = {seed: check(world, answer(world)) for seed, world in worlds.items()}
    return {seed: text for seed, text in said.items() if text}


@pytest.mark.parametrize("check", [difference, falsehood])
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_collections_have_the_plan_that_a_plain_search_finds(
    first: int, check: Callable[[World, Answer], str]
) -> None:
    assert not wrong(first, 20, check)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_thousands_of_collections_have_the_plan_that_a_plain_search_finds(first: int) -> None:
    assert not wrong(first, 500, difference)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_what_is_said_of_thousands_of_collections_is_true(first: int) -> None:
    assert not wrong(first, 500, falsehood)


def test_what_the_stack_names_first_is_the_newest() -> None:
    rows = {
        "lib": [Row(1), Row(2)],
        "p": [Row(1, {"lib": (2, 2)}), Row(2, {"lib": (1, 1)})],
    }
    assert versions(plan_of(world(rows, {"p": [Asked("lib")]}, "lib", "p"))) == {"lib": "2", "p": "1"}
    assert versions(plan_of(world(rows, {"p": [Asked("lib")]}, "p", "lib"))) == {"lib": "1", "p": "2"}


def test_a_need_that_the_chosen_version_does_not_have_leaves_no_trace() -> None:
    """What was tried and given up neither stays in the plan nor refuses anything."""
    rows = {
        "s": [Row(1)],
        "p": [Row(1)],
        "q": [Row(1)],
        "r": [Row(1, {"x": (1, 1)})],
        "x": [Row(1), Row(2)],
    }
    needs = {
        "s": [Asked("v"), Asked("x")],
        "p": [Asked("r")],
        "r": [Asked("q"), Asked("x")],
    }
    asked = world(rows, needs, "s")
    asked.virtuals = {"v": ["p", "q"]}
    plan = plan_of(asked)
    assert versions(plan) == {"s": "1", "q": "1", "x": "2"}
    assert plan is not None and not any("r 1" in str(reason) for block in plan.blocks for reason in block.reasons)


def test_a_block_that_stands_for_two_virtuals_is_there_once() -> None:
    rows = {"both": [Row(1), Row(2)], "one": [Row(1, {"both": (1, 1)})]}
    asked = world(rows, {"one": [Asked("v"), Asked("w")]}, "one")
    asked.virtuals = {"v": ["both"], "w": ["both"]}
    plan = plan_of(asked)
    assert plan is not None
    assert [(block.name, block.version) for block in plan.blocks if block.name == "both"] == [("both", "1")]


def test_blocks_that_need_each_other_are_named() -> None:
    rows = {"a": [Row(1)], "b": [Row(1)], "c": [Row(1)]}
    needs = {"a": [Asked("b")], "b": [Asked("c")], "c": [Asked("b")]}
    with pytest.raises(InputError, match="these blocks need each other: b needs c, c needs b"):
        plan_of(world(rows, needs, "a"))


def test_a_provider_that_needs_what_needs_it_is_passed_over() -> None:
    """p is preferred, and cannot be built, since its r needs it."""
    rows = {"s": [Row(1)], "p": [Row(1), Row(2)], "q": [Row(1)], "r": [Row(1)]}
    asked = world(rows, {"s": [Asked("v")], "p": [Asked("r")], "r": [Asked("p")]}, "s")
    asked.virtuals = {"v": ["p", "q"]}
    assert versions(plan_of(asked)) == {"s": "1", "q": "1"}
    asked.settings = {"p": 1}
    with pytest.raises(InputError, match="these blocks need each other: p needs r, r needs p"):
        plan_of(asked)


def test_a_long_chain_is_planned() -> None:
    names = [f"n{number}" for number in range(1200)]
    rows = {name: [Row(1)] for name in names}
    needs = {name: [Asked(other)] for name, other in pairwise(names)}
    assert len(versions(plan_of(world(rows, needs, "n0")))) == 1200


def test_many_unrelated_blocks_beside_a_clash_do_not_matter() -> None:
    names = [f"n{number}" for number in range(50)]
    rows = {name: [Row(version) for version in range(1, 11)] for name in names}
    rows |= {"a": [Row(1, {"c": (1, 1)})], "b": [Row(1, {"c": (2, 2)})], "c": [Row(1), Row(2)]}
    asked = world(rows, {"a": [Asked("c")], "b": [Asked("c")]}, *names, "a", "b")
    assert plan_of(asked) is None


def test_a_conflict_names_only_what_clashes() -> None:
    rows = {"a": [Row(1, {"c": (1, 1)})], "b": [Row(1, {"c": (2, 2)})], "c": [Row(1), Row(2)], "n": [Row(1)]}
    asked = world(rows, {"a": [Asked("c")], "b": [Asked("c")]}, "n", "a", "b")
    with pytest.raises(ConflictError) as failure:
        plan_of(asked, or_none=False)
    said = str(failure.value)
    assert "a 1 (" in said and "needs c >=1,<=1" in said and "needs c >=2,<=2" in said
    assert "n" not in [word for word in said.split() if len(word) == 1]


def test_a_conflict_names_what_a_block_needs_that_is_there_in_another_form() -> None:
    """No small form of x suits, and the whole one needs what is not there."""
    rows = {"s": [Row(1)], "x": [Row(1, {}, ("whole",))], "y": [Row(1), Row(2)]}
    needs = {"s": [Asked("x", None, True)], "x": [Asked("y", (2, 2), True, ("whole",))]}
    with pytest.raises(ConflictError, match=r"x 1 \(.*\) needs y >=2,<=2"):
        plan_of(world(rows, needs, "s", y=1), or_none=False)


def test_a_block_that_needs_another_version_of_itself_is_told() -> None:
    rows = {"a": [Row(1), Row(2)]}
    with pytest.raises(ConflictError, match=r"a 2 \(.*\) needs a >=3,<=3"):
        plan_of(world(rows, {"a": [Asked("a", (3, 3))]}, "a"), or_none=False)


def test_a_release_that_needs_what_no_table_has_is_not_the_whole_conflict() -> None:
    """s 1 can be had with nothing, s 2 with another y: that is what a person can change."""
    rows = {"s": [Row(1, {"x": (9, 9)}), Row(2, {"y": (2, 2)})], "x": [Row(1)], "y": [Row(1), Row(2)]}
    with pytest.raises(ConflictError, match=r"remedy: --set y.version=2 instead of 1 \(plans s 2\)"):
        plan_of(world(rows, {"s": [Asked("x"), Asked("y")]}, "s", y=1), or_none=False)


def test_of_many_releases_that_clash_alike_the_number_is_told() -> None:
    rows = {"s": [Row(v, {"x": (v, v)}) for v in range(1, 11)], "x": [Row(v) for v in range(1, 12)]}
    with pytest.raises(ConflictError) as failure:
        plan_of(world(rows, {"s": [Asked("x")]}, "s", x=11), or_none=False)
    lines = [line for line in str(failure.value).splitlines() if " needs x " in line]
    assert len(lines) == 6
    assert "  - and 4 more releases of s" in str(failure.value)
